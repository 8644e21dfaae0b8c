// Package agent serves the verbs of amkc to agents, through the Model Context Protocol: tools, which run verbs;
// resources, which are the documentation and the files of campaigns; and prompts.
//
// A tool runs a verb in a separate process and returns its JSON result: there is one way to judge a configuration, for
// every caller. Tools may access files in one directory, the root. The package must not import compiler/cli, whose verb
// starts the server, nor what compiles.
package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// Options configure a server.
type Options struct {
	Exe     string // amkc itself, whose verbs the tools run
	Root    string // the directory that everything is in that a tool may name
	Key     string // file of the key that verdicts are signed with, outside of the root
	Version string // of amkc
}

// A Server has tools, resources and prompts.
type Server struct {
	options Options
	root    *os.Root
	dir     string        // the root, without links
	named   string        // the root, as it was named
	turn    chan struct{} // held by what measures: two measurements on one machine would spoil each other
	mcp     *mcp.Server
}

// instructions are what a client tells its model of the server.
const instructions = `amkc compiles a decoder model into one persistent CUDA kernel and searches for faster schedules.
Read the resource amkc://docs/program.md before a campaign: it says what to do, step by step. Links in a page are
relative to it; those to other pages of docs, and to texts below it, are resources too. Paths are relative to the
server's root. A configuration is judged by the tool eval and by nothing else: its verdict is signed, and a campaign
takes no other number.`

// New opens the root and returns a server. The error is a diagnostic.
func New(o Options) (*Server, error) {
	named, err := filepath.Abs(o.Root)
	dir := named
	if err == nil {
		dir, err = filepath.EvalSymlinks(named)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(dir)
	}
	if err != nil {
		return nil, diag.Errorf(codeRoot, o.Root, "cannot be the root: %s; want a directory", infile.Reason(err))
	}
	if lies(dir, o.Key) {
		root.Close()
		return nil, diag.Errorf(codeRoot, o.Root, "holds the key that verdicts are signed with, which tools could "+
			"then name; want a directory next to it, or --key with a file elsewhere")
	}
	s := &Server{options: o, root: root, dir: dir, named: named, turn: make(chan struct{}, 1)}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "amkc", Title: "amkc", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}})
	s.addTools()
	if err := s.addResources(); err != nil {
		return nil, err
	}
	s.addPrompts()
	return s, nil
}

// lies reports whether a file is in a directory without links, or would if it were made.
func lies(dir, file string) bool {
	if file == "" {
		return false
	}
	at, err := filepath.Abs(file)
	if err != nil {
		return true
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			to, err := filepath.Rel(dir, filepath.Join(real, rest))
			return err != nil || filepath.IsLocal(to)
		}
		parent := filepath.Dir(at)
		if parent == at {
			return true
		}
		at, rest = parent, filepath.Join(filepath.Base(at), rest)
	}
}

// Serve serves one client until it disconnects or the context is cancelled. The error is a diagnostic.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := s.mcp.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return diag.Errorf(codeProtocol, "stdin", "is not what a client of the protocol sends: %s; want a client of MCP",
		infile.Reason(err))
}

// Close closes the root.
func (s *Server) Close() error { return s.root.Close() }
