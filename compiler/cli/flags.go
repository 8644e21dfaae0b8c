package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/ir/diag"
	"amkc/passes"
)

// A choice is the value of a flag that takes one of a few words. Help, errors and completion read the words off it.
type choice struct {
	value    *string
	accepted []string
}

// newChoice sets the default and returns the flag's value.
func newChoice(value *string, def string, accepted ...string) *choice {
	*value = def
	return &choice{value, accepted}
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return strings.Join(c.accepted, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.accepted, s) {
		return errors.New(diag.Guess(s, c.accepted, "want "+listOr(c.accepted)))
	}
	*c.value = s
	return nil
}

// words is the value of a flag that may be repeated.
type words struct{ values *[]string }

func (w *words) String() string { return strings.Join(*w.values, " ") }
func (w *words) Type() string   { return "string" }

func (w *words) Set(s string) error {
	if s == "" {
		return front.ErrEmpty
	}
	*w.values = append(*w.values, s)
	return nil
}

// formatWords is the value of a flag that lists formats of matrices, without names.
type formatWords struct{ values *[]string }

// newFormatWords sets the default and returns the flag's value.
func newFormatWords(values *[]string, def ...string) *formatWords {
	*values = def
	return &formatWords{values}
}

func (w *formatWords) String() string { return strings.Join(*w.values, ",") }
func (w *formatWords) Type() string   { return "formats" }

func (w *formatWords) Set(s string) error {
	items, err := passes.ParseWeightFormats(s)
	if err != nil {
		return err
	}
	var words []string
	for _, item := range items {
		if item.Name != "" {
			return fmt.Errorf("%q names a matrix; want formats alone, which are tried for each", item.Name)
		}
		if word := item.String(); !slices.Contains(words, word) { // each costs a measurement of every matrix
			words = append(words, word)
		}
	}
	*w.values = words
	return nil
}

// weightFormats is the value of a flag that says how matrices are stored.
type weightFormats struct{ value *passes.WeightFormats }

func (w *weightFormats) String() string { return w.value.String() }
func (w *weightFormats) Type() string   { return "string" }

func (w *weightFormats) Set(s string) (err error) {
	if s == "" {
		return front.ErrEmpty
	}
	*w.value, err = passes.ParseWeightFormats(s)
	return err
}

// listOr joins words as in `a, b or c`.
func listOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// flagNames returns the long flags as they are typed, in the order of the help text.
func flagNames(f *pflag.FlagSet) []string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, "--"+flag.Name) })
	return append(names, "--help")
}

// flagFault says in amkc's own words what pflag has found wrong with a flag. verb is what lists the flags.
func flagFault(f *pflag.FlagSet, verb string, err error) string {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		typed := "--" + unknown.GetSpecifiedName()
		if group := unknown.GetSpecifiedShortnames(); group != "" {
			typed = "-" + group
		}
		if verb == "chat" && typed == "--sample" {
			return front.NoSample
		}
		return "unknown flag " + typedWord(typed) + "; " +
			diag.Guess("--"+strings.TrimLeft(typed, "-"), flagNames(f), "amkc help "+verb+" lists the flags")
	case errors.As(err, &empty):
		name, _ := pflag.UnquoteUsage(empty.GetFlag())
		return "--" + empty.GetFlag().Name + " needs a value: " + name
	case errors.As(err, &invalid):
		fault := invalid.Unwrap()
		if invalid.GetFlag().Value.Type() == "bool" {
			fault = errors.New("want no value, true or false")
		}
		return "--" + invalid.GetFlag().Name + " " + strconv.Quote(invalid.GetValue()) + ": " + fault.Error()
	}
	return "a flag is malformed; want --NAME VALUE or --NAME=VALUE" // pflag.InvalidSyntaxError: --=x
}

// typedWord is a word of the command line as it was typed, quoted if it has more than letters, digits and dashes.
func typedWord(s string) string {
	for _, r := range cmp.Or(s, " ") {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return strconv.Quote(s)
		}
	}
	return s
}
