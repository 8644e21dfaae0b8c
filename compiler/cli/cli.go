// Package cli is the command line of amkc: a table of verbs, with one file per verb, and their common parts: flags,
// diagnostics on stderr, results on stdout, exit codes.
//
// Results go to stdout and everything else to stderr. With --json, stdout has one versioned object and stderr one
// object per diagnostic. Exit codes: 0 success; 1 the input is at fault, or differences were found; 2 bad usage or a
// broken environment; 130 interrupted.
//
// It parses, calls and prints. Code that is useful without a command line belongs in package compiler or below. It may
// import every package of amkc except cmd, and only cmd may import it. Nothing here ends the process or keeps state
// between calls of Main.
package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
)

// A verb is one row of the table.
type verb struct {
	name     string // one word, or that of a verb above and one more: search eval
	synopsis string // arguments and main flags, as usage prints them after the name
	summary  string // one line
	details  string // further paragraphs of its help, may be empty; indented ones keep their lines
	min, max int    // number of arguments; max -1: any
	flags    func(*pflag.FlagSet)
	run      func(*call) error
}

// verbs returns the table, in the order of the help text. The first one is what a first word that is not a verb means.
// Every call returns fresh rows: the variables of the flags belong to one run.
func verbs() []verb {
	return []verb{
		compileVerb(), packVerb(), runVerb(), chatVerb(), serveVerb(), logitsVerb(), qualityVerb(), formatsVerb(),
		validateVerb(), simulateVerb(), exploreVerb(), costVerb(), searchVerb(), spaceVerb(), evalVerb(),
		campaignVerb(), mcpVerb(), dumpVerb(), verifyVerb(), checkVerb(), benchVerb(), diffVerb(),
		doctorVerb(), targetsVerb(), modelsVerb(), passesVerb(), explainVerb(), versionVerb(), licensesVerb(),
		completionVerb(), helpVerb(),
	}
}

// findVerb returns the verb that args begin with, and the arguments after it.
func findVerb(args []string) (found verb, rest []string, ok bool) {
	for _, v := range verbs() {
		words := strings.Fields(v.name)
		if n := len(words); n <= len(args) && slices.Equal(words, args[:n]) && n > len(strings.Fields(found.name)) {
			found, rest, ok = v, args[n:], true
		}
	}
	return found, rest, ok
}

// below returns the last words of the verbs below one.
func below(name string) []string {
	var words []string
	for _, v := range verbNames() {
		if word, is := strings.CutPrefix(v, name+" "); is {
			words = append(words, word)
		}
	}
	return words
}

// Main runs amkc with the arguments after the program's name, and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	v, stray := verbs()[0], ""
	if len(args) > 0 && args[0] == "--version" { // as every program has it
		args = append([]string{"version"}, args[1:]...)
	}
	args, renamed := currentVerb(args)
	named, rest, ok := findVerb(args)
	if ok {
		v, args = named, rest
	}
	if len(args) > 0 && isStray(args[0]) && (!ok || len(diag.Nearest(args[0], below(v.name))) > 0) {
		stray = args[0]
	}
	c := &call{verb: v, stdin: stdin, stdout: stdout, stderr: stderr, renamed: renamed}
	c.defineFlags()
	err := c.parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = c.printHelp()
	case stray != "" && (err != nil || c.flags.Lookup("out").
		Value.String() == "" || len(diag.Nearest(stray, c.verbNames())) > 0):
		err = c.unknownVerb(stray)
	case err == nil:
		err = v.run(c)
	}
	return c.finish(err)
}

// isStray reports whether a first word that is not a verb is not a path either.
func isStray(word string) bool {
	if word == "" || strings.HasPrefix(word, "-") || strings.ContainsAny(word, `/\`) {
		return false
	}
	_, err := os.Lstat(word)
	return errors.Is(err, fs.ErrNotExist)
}

// verbNames returns what may stand where a word is that is neither a verb nor a path.
func (c *call) verbNames() []string {
	if c.verb.name == compileName {
		return verbNames()
	}
	return below(c.verb.name)
}

func (c *call) unknownVerb(word string) error {
	return c.usage("there is no verb and no directory %s; %s", typedWord(word), guessVerb(word, c.verbNames()))
}

// guessVerb returns a hint for a word that is not a verb. It may be near the last word of one below another.
func guessVerb(word string, known []string) string {
	if len(diag.Nearest(word, known)) == 0 {
		for _, name := range known {
			if _, last, lower := strings.Cut(name, " "); lower && len(diag.Nearest(word, []string{last})) > 0 {
				word = name
				break
			}
		}
	}
	return diag.Guess(word, known, "amkc help lists the verbs")
}

// title is how messages call the verb: `amkc run`, and plain `amkc` for compiling.
func (v *verb) title() string {
	return strings.TrimSpace("amkc " + strings.TrimPrefix(v.name, compileName))
}

// word is the last word of the verb's name, which its JSON result is called after.
func (v *verb) word() string { return v.name[strings.LastIndex(v.name, " ")+1:] }

// synopsisLine is the verb with its arguments and main flags.
func (v *verb) synopsisLine() string { return strings.TrimSpace(v.title() + " " + v.synopsis) }
