package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
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
		return fmt.Errorf("want %s", listOr(c.accepted))
	}
	*c.value = s
	return nil
}

// listOr joins words as in `a, b or c`.
func listOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// flagNames returns the flags as they are typed, in the order of the help text.
func flagNames(f *pflag.FlagSet) []string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Shorthand != "" {
			names = append(names, "-"+flag.Shorthand)
		}
		names = append(names, "--"+flag.Name)
	})
	return append(names, "-h", "--help")
}
