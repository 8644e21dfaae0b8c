package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
	"amkc/runtime/infile"
	"amkc/runtime/printable"
	"amkc/runtime/progress"
)

// A call is one run of amkc: the verb, its streams, and the flags that every verb has.
type call struct {
	verb           verb
	stdin          io.Reader
	stdout, stderr io.Writer

	flags   *pflag.FlagSet
	args    []string // what is left after the flags
	json    bool
	quiet   bool
	all     bool
	colour  string
	verbose bool
	strict  bool
	watched string
	renamed []renaming // names of the previous release on the command line

	diags   diag.List       // what was reported
	said    map[string]bool // the same as texts
	shown   int             // errors printed as text
	payload any             // the result's own fields, a struct, for --json
	raw     bool            // the output is a text in a form of its own, and no JSON result follows it
}

// errDifferent ends a verb with exit code 1 without a diagnostic: its output is the finding.
var errDifferent = errors.New("differences were found")

func (c *call) defineFlags() {
	f := pflag.NewFlagSet(c.verb.name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SortFlags = false
	f.Usage = func() {}
	if c.verb.flags != nil {
		c.verb.flags(f)
	}
	f.BoolVar(&c.json, "json", false, "print the result as one JSON object, and diagnostics as one JSON object each")
	f.BoolVarP(&c.all, "all-errors", "e", false, fmt.Sprintf("print all errors, not the first %d", maxErrors))
	f.Var(newChoice(&c.colour, "auto", "auto", "always", "never"), "color",
		"colour diagnostics; auto: on a terminal, unless NO_COLOR is set")
	f.BoolVar(&c.strict, "strict", false, "treat warnings as errors")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "say more: passes with their times, files of a build")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only, and which tool a build lacks")
	f.Var(newChoice(&c.watched, watchedAuto, watchedAuto, watchedJSON), "progress",
		"show how far long work is: auto on a terminal, json as JSON objects on stderr")
	f.SetNormalizeFunc(c.currentFlag)
	c.flags = f
}

// parse reads flags and arguments. Its error is pflag.ErrHelp or a diagnostic of bad usage.
func (c *call) parse(args []string) error {
	err := c.flags.Parse(args)
	c.args = c.flags.Args()
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return c.usage("%s", flagFault(c.flags, c.verb.name, err))
	case len(args) == 0 && c.verb.name == compileName:
		return c.usage("a model directory or a verb is needed; amkc help lists the verbs")
	}
	if err := c.warnRenamed(); err != nil {
		return err
	}
	switch {
	case len(c.args) < c.verb.min:
		return c.usage("an argument is missing; usage: %s", c.verb.synopsisLine())
	case c.verb.max >= 0 && len(c.args) > c.verb.max:
		return c.usage("unexpected argument %q; usage: %s", c.args[c.verb.max], c.verb.synopsisLine())
	}
	return nil
}

// usage returns a diagnostic of bad usage: one line, which says what would be accepted or which help says it.
func (c *call) usage(format string, args ...any) error {
	return diag.Errorf(codeUsage, c.verb.title(), format, args...)
}

// finish reports what ended the call, prints the JSON result and returns the exit code.
func (c *call) finish(err error) int {
	code := exitCode(err)
	if err != nil && !errors.Is(err, errDifferent) {
		c.report(asList(c.verb.title(), err))
	}
	c.closeReport()
	if c.strict {
		code = max(code, exitCode(c.diags.Err())) // of what would have been warnings
	}
	if !c.json || c.raw {
		return code
	}
	if err := c.printResult(code); err != nil {
		c.json = false
		c.report(diag.List{diag.Errorf(codeOutput, "stdout", "cannot write the result: %v", infile.Reason(err))})
		return 2
	}
	return code
}

// result is the head of every JSON result. Fields are added, never renamed; a change of meaning is a new schema.
type result struct {
	Schema   string    `json:"schema"` // amkc.VERB/1
	OK       bool      `json:"ok"`
	Exit     int       `json:"exit"`
	Errors   diag.List `json:"errors"`
	Warnings diag.List `json:"warnings"`
}

func (c *call) printResult(code int) error {
	head := result{Schema: "amkc." + c.verb.word() + "/1", OK: code == 0, Exit: code,
		Errors: append(diag.List{}, c.diags.Errors()...), Warnings: append(diag.List{}, c.diags.Warnings()...)}
	text, err := marshal(head)
	if err != nil {
		return err
	}
	if c.payload != nil {
		more, err := marshal(c.payload)
		if err != nil {
			return err
		}
		if len(more) > len("{}") {
			text = slices.Concat(text[:len(text)-1], []byte(","), more[1:])
		}
	}
	_, err = io.WriteString(c.stdout, printable.Text(string(text))+"\n")
	return err
}

// marshal is json.Marshal without the escaping of <, > and &, which are common in generated code and shapes.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// printf prints a result to stdout, unless it goes there as JSON. Whatever a terminal would act on is escaped.
func (c *call) printf(format string, args ...any) error {
	if c.json {
		return nil
	}
	return c.write(printable.Text(fmt.Sprintf(format, args...)))
}

// print writes a document to stdout whatever the flags are: as it is into a file or a pipe, and to a terminal with
// everything escaped that it would act on.
func (c *call) print(text string) error {
	if progress.IsTerminal(c.stdout) {
		text = printable.Text(text)
	}
	return c.write(text)
}

func (c *call) write(text string) error {
	if _, err := io.WriteString(c.stdout, text); err != nil {
		return diag.Errorf(codeOutput, "stdout", "cannot write: %v", infile.Reason(err))
	}
	return nil
}

// note tells the user something that is neither result nor diagnostic.
func (c *call) note(format string, args ...any) {
	if !c.quiet && !c.json {
		fmt.Fprintln(c.stderr, printable.Text(fmt.Sprintf(format, args...)))
	}
}

// interruptible returns a context that a first Ctrl-C cancels; a second one ends the process at once.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
