package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/ir/diag"
)

// renamedVerbs are verbs of the previous release that have another name now. They still work, with a warning.
var renamedVerbs = map[string]string{"eval": "search eval", "space": "search space", "campaign": "search campaign"}

// renamedFlags are flags of the previous release in the same way, where a verb has the new one.
var renamedFlags = map[string]string{"prompt-ids": "ids", "pos": "position"}

// A renaming is a name of the previous release that was used, and the one that it has now.
type renaming struct{ old, now string }

// currentVerb replaces a verb of the previous release at the beginning of args.
func currentVerb(args []string) ([]string, []renaming) {
	if len(args) == 0 || renamedVerbs[args[0]] == "" {
		return args, nil
	}
	now := renamedVerbs[args[0]]
	return slices.Concat(strings.Fields(now), args[1:]), []renaming{{"amkc " + args[0], "amkc " + now}}
}

// currentFlag lets a set know flags by the names of the previous release.
func (c *call) currentFlag(f *pflag.FlagSet, name string) pflag.NormalizedName {
	now, old := renamedFlags[name]
	if !old || f.Lookup(now) == nil {
		return pflag.NormalizedName(name)
	}
	if r := (renaming{"--" + name, "--" + now}); !slices.Contains(c.renamed, r) {
		c.renamed = append(c.renamed, r)
	}
	return pflag.NormalizedName(now)
}

// warnRenamed says which names are to be replaced. With --strict that is an error.
func (c *call) warnRenamed() error {
	var list diag.List
	for _, r := range c.renamed {
		list.Add(diag.Warningf(codeRenamed, c.verb.title(), "%s is %s now; the old name is gone in the next release",
			r.old, r.now))
	}
	if c.strict {
		return list.Strict().Err()
	}
	c.report(list)
	return nil
}
