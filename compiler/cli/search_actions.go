package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A searchAction is what search does: a whole search, or a part of one on many machines, which its first word names.
type searchAction struct {
	name     string
	usage    string
	min, max int // number of arguments; max -1: any
	// flags that it takes, besides those of every verb; nil: those of a search but for rounds and without
	flags   []string
	without []string
	run     func(*searchFlags, *call) error
}

// ofRounds are flags that only work takes.
var ofRounds = []string{"index", "stage"}

var searchActions = []searchAction{
	{usage: "amkc search MODEL -o DIR", min: 1, max: 1, run: (*searchFlags).carry},
	{name: "plan", usage: "amkc search plan MODEL -o DIR --trials N", min: 1, max: 1,
		without: []string{"minutes", "gpu-seconds", "jobs", "gpu", "turn", "registers"}, run: (*searchFlags).plan},
	{name: "work", usage: "amkc search work -o DIR --index N",
		flags: []string{"out", "index", "stage", "gpu", "timeout", "key", "turn", "registers"},
		run:   (*searchFlags).work},
	{name: "merge", usage: "amkc search merge -o DIR [DIR...]", max: -1, flags: []string{"out", "key"},
		run: (*searchFlags).merge},
}

// searchActionOf takes the action off the arguments, and holds these and the flags to it. A model directory that is
// called like an action is written with a path.
func searchActionOf(c *call) (*searchAction, error) {
	a := &searchActions[0]
	if i := slices.IndexFunc(searchActions, func(a searchAction) bool { return a.name == c.args[0] }); i > 0 {
		a, c.args = &searchActions[i], c.args[1:]
	}
	switch {
	case len(c.args) < a.min:
		return nil, c.usage("an argument is missing; usage: %s", a.usage)
	case a.max >= 0 && len(c.args) > a.max:
		return nil, c.usage("unexpected argument %q; usage: %s", c.args[a.max], a.usage)
	}
	if c.flags.Lookup("out").Value.String() == "" {
		return nil, c.usage("a directory for the campaign is needed; want -o DIR")
	}
	common, wrong := commonFlags(), ""
	c.flags.Visit(func(f *pflag.Flag) {
		takes := slices.Contains(a.flags, f.Name)
		if a.flags == nil {
			takes = !slices.Contains(ofRounds, f.Name) && !slices.Contains(a.without, f.Name)
		}
		if !takes && common.Lookup(f.Name) == nil && wrong == "" {
			wrong = f.Name
		}
	})
	if wrong != "" {
		return nil, c.usage("--%s means nothing to amkc search%s; usage: %s", wrong,
			strings.TrimRight(" "+a.name, " "), a.usage)
	}
	return a, nil
}
