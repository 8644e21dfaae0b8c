package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

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
	case err != nil:
		return usagef("%s: %s", fs.Name(), strings.ReplaceAll(err.Error(), " -", " --"))
	case fs.NArg() > 0:
		return usagef("%s: unexpected argument %q; it takes flags only", fs.Name(), fs.Arg(0))
	}
	return nil
}

// defaults describes the flags, in the spelling with two dashes.
func defaults(fs *flag.FlagSet) string {
	var b bytes.Buffer
	fs.VisitAll(func(f *flag.Flag) {
		kind, doc := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-26s %s\n", strings.TrimRight("--"+f.Name+" "+strings.ToUpper(kind), " "), doc)
	})
	return b.String()
}

// parseIDs reads "1,2,3"; spaces may stand for or beside the commas.
func parseIDs(s string) ([]int, error) {
	var ids []int
	for _, word := range strings.FieldsFunc(s,
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, usagef("--prompt-ids: %q is not an id; numbers separated by commas are expected", word)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, usagef("--prompt-ids: no ids")
	}
	return ids, nil
}
