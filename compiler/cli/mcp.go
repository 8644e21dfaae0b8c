package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler/agent"
	"amkc/compiler/version"
	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// mcpFlags are the flags of mcp.
type mcpFlags struct {
	root string
	key  string
}

func mcpVerb() verb {
	f := &mcpFlags{}
	return verb{
		name: "mcp", synopsis: "[--root DIR]",
		summary: "serve tools for searching to an agent",
		details: `
On stdin and stdout. Tools are verbs, each run as a process of its own; a client that cancels ends it. Resources are
the documentation and the files of campaigns. Models, builds and campaigns are in the root, and no tool accesses files
outside of it (docs/agents.md).`,
		flags: func(set *pflag.FlagSet) {
			set.Var(front.NewWord(&f.root, "."), "root", "let tools access only files in `DIR`")
			set.Var(front.NewWord(&f.key, ""), "key",
				"sign verdicts with the key in `FILE`; default: verdict.key of the "+
					"user's configuration of amkc")
		},
		run: f.run,
	}
}

func (f *mcpFlags) run(c *call) error {
	c.raw = true // stdout is the protocol's
	exe, err := os.Executable()
	if err != nil {
		return diag.Errorf(codeFailed, "amkc", "does not know where it is: %s", infile.Reason(err))
	}
	if f.key == "" {
		if f.key, err = usersKey(); err != nil {
			return err
		}
	}
	if f.key, err = filepath.Abs(f.key); err != nil {
		return diag.Errorf(codeInput, "key", "there is no directory to find it in: %s", infile.Reason(err))
	}
	s, err := agent.New(agent.Options{Exe: exe, Root: f.root, Key: f.key, Version: version.Get().Version})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := interruptible()
	defer cancel()
	return s.Serve(ctx, io.NopCloser(c.stdin), unclosed{c.stdout})
}

// unclosed is a writer that is not the server's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
