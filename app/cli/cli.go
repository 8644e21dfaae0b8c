// Package cli is the command line of an emitted launcher: run, chat, serve, bench, check and info on the build
// alongside the executable.
//
// Results go to stdout; errors and progress go to stderr, progress on a terminal only. Exit codes: 0 success; 1 the
// input is at fault, or check found differences; 2 bad usage or a broken environment; 130 interrupted.
//
// The package is copied into every emitted launcher. Test internal/layering lists what it may import.
package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"amkc/app/front"
	"amkc/runtime/host"
)

// A Launcher is an executable made for one model.
type Launcher struct {
	Model host.Model           // of the executable; the build alongside it must match
	Dir   string               // the build directory; empty: where the executable is
	Check host.ReferenceOpener // nil: the reference kernels of the build
}

// A verb is one of the launcher's commands.
type verb struct {
	name, doc string
	run       func(*command, context.Context, []string) error
}

var verbs = []verb{
	{"run", "decode from a prompt and print the text as it comes", (*command).runPrompt},
	{"chat", "talk with the model", (*command).chat},
	{"serve", "serve the model with OpenAI's and Anthropic's HTTP APIs", (*command).serve},
	{"bench", "check, then measure the latency of a token", (*command).bench},
	{"check", "compare the megakernel with the plain kernels of the build", (*command).check},
	{"info", "describe the build; needs no GPU", (*command).info},
}

// command is one invocation.
type command struct {
	launcher       Launcher
	dir            string
	stdin          io.Reader
	stdout, stderr io.Writer
	gpu            int
	json           bool
}

// Main runs the command line, with arguments without the program's name, and returns the exit code. An interrupt raises
// the kernel's abort word and leaves the GPU clean; a second one ends the process at once.
func (l Launcher) Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	c := &command{launcher: l, stdin: stdin, stdout: stdout, stderr: stderr}
	err := c.dispatch(ctx, args)
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	return c.report(err)
}

var errInterrupted = errors.New("interrupted")

func (c *command) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return &usageError{"no command", c.usage()}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		_, err := io.WriteString(c.stdout, c.usage())
		return err
	}
	for _, v := range verbs {
		if v.name == args[0] {
			if err := c.locate(); err != nil {
				return err
			}
			return v.run(c, ctx, args[1:])
		}
	}
	return &usageError{fmt.Sprintf("unknown command %q", args[0]), c.usage()}
}

func (c *command) usage() string {
	name := c.launcher.Model.Name
	s := fmt.Sprintf("usage: %s COMMAND [flags]\n\n", name)
	for _, v := range verbs {
		s += fmt.Sprintf("  %-6s %s\n", v.name, v.doc)
	}
	return s + fmt.Sprintf("\n`%s COMMAND --help` lists the flags of a command.\n", name)
}

// locate finds the build directory.
func (c *command) locate() error {
	if c.dir = c.launcher.Dir; c.dir != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return err
	}
	c.dir = filepath.Dir(self)
	return nil
}

// facts reads the manifest and refuses one that describes another model than the executable's.
func (c *command) facts() (*host.Facts, error) {
	f, err := host.ReadFacts(c.dir)
	if err != nil {
		return nil, err
	}
	if f.Model != c.launcher.Model {
		return nil, &host.BuildError{Path: filepath.Join(c.dir, host.ManifestFile),
			What: fmt.Sprintf("it describes %s, and this launcher was made for %s", brief(f.Model),
				brief(c.launcher.Model)),
			Remedy: "run make in that directory to build its own launcher"}
	}
	return f, nil
}

func brief(m host.Model) string {
	return fmt.Sprintf("%s (%s, %s, %d layers, vocab %d, max_seq %d)", m.Name, m.Architecture, m.Types(), m.Layers,
		m.Vocab, m.MaxSeq)
}

// open opens the build on the GPU.
func (c *command) open(ctx context.Context) (*host.Session, error) {
	line := c.newProgress()
	defer line.Clear()
	return host.Open(ctx, c.dir, host.Options{GPU: c.gpu, Progress: line.ReportBytes, Reference: c.launcher.Check})
}

// withSession opens the build, calls f and closes it.
func (c *command) withSession(ctx context.Context, f func(*host.Session) error) (err error) {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}

// A usageError is a command line that cannot be understood, and what is said of the right one below.
type usageError struct{ msg, help string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{msg: fmt.Sprintf(format, args...)} }

// errHelp says that help was asked for and given.
var errHelp = errors.New("help was printed")

// flags starts the flag set of a verb, with the flags that all have in common.
func (c *command) flags(verb string) *flag.FlagSet {
	fs := flag.NewFlagSet(verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&c.json, "json", false, "print the result as JSON")
	if verb != "info" {
		fs.IntVar(&c.gpu, "gpu", 0, "`N`umber of the GPU, from 0")
	}
	return fs
}

// parse reads the arguments of a verb, which are flags only.
func (c *command) parse(fs *flag.FlagSet, args []string) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if _, err := fmt.Fprintf(c.stdout, "usage: %s %s [flags]\n\n%s", c.launcher.Model.Name, fs.Name(),
			defaults(fs)); err != nil {
			return err
		}
		return errHelp
	case err != nil && fs.Name() == "chat" && strings.HasSuffix(err.Error(), ": -sample"):
		return usagef("%s", front.NoSample)
	case err != nil:
		return usagef("%s: %s", fs.Name(), wrongFlag(err))
	case fs.NArg() > 0:
		return usagef("%s: unexpected argument %q; it takes flags only", fs.Name(), fs.Arg(0))
	}
	return nil
}

// wrongFlag says what is wrong with a flag, in the spelling with two dashes, and what is wanted.
func wrongFlag(err error) string {
	said, unread := strings.CutSuffix(strings.ReplaceAll(err.Error(), " -", " --"), ": parse error")
	switch {
	case !unread:
		return said
	case strings.HasPrefix(said, "invalid boolean"):
		return said + "; want true or false"
	}
	return said + "; want a whole number"
}

// defaults describes the flags, in the spelling with two dashes and 80 columns.
func defaults(fs *flag.FlagSet) string {
	var b bytes.Buffer
	fs.VisitAll(func(f *flag.Flag) {
		kind, doc := flag.UnquoteUsage(f)
		if doc == "" { // a name of the previous release
			return
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" {
			doc += " (default " + f.DefValue + ")"
		}
		line := fmt.Sprintf("  %-26s", strings.TrimRight("--"+f.Name+" "+strings.ToUpper(kind), " "))
		for _, word := range strings.Fields(doc) {
			if len(line)+1+len(word) > 80 {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", 28)
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	})
	return b.String()
}

// parseIDs reads "1,2,3"; commas may be spaces, or have spaces around them.
func parseIDs(s string) ([]int, error) {
	var ids []int
	for _, word := range strings.FieldsFunc(s,
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, usagef("--ids: %q is not an id; numbers separated by commas are expected", word)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, usagef("--ids: no ids")
	}
	return ids, nil
}
