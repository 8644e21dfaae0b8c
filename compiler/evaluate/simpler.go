package evaluate

import (
	"fmt"
	"strings"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/host"
)

// fewerTasks is the least part of the tasks by which a schedule is simpler.
const fewerTasks = 0.01

// complexity is what a schedule is simple by, in the playbook's order, over all variants.
func complexity(p *ir.Program, tasks int) []measure {
	return []measure{{"tasks", tasks, max(1, int(fewerTasks*float64(tasks)))}, {"pages", len(p.Pages), 1},
		{"chunks in flight", knobs.InFlight.Of(&p.Config), 1}, {"groups of operators", len(p.Config.FusionGrouping), 1}}
}

// A measure is a number of something, and how many fewer of it count.
type measure struct {
	what        string
	n, leastFew int
}

// simpler says in what the candidate is simpler than its baseline: it has fewer of something, and more of nothing.
func simpler(is, was []measure) string {
	var fewer []string
	for i := range is {
		switch less := was[i].n - is[i].n; {
		case less < 0:
			return ""
		case less >= was[i].leastFew:
			fewer = append(fewer, fmt.Sprintf("%d %s in place of %d", is[i].n, is[i].what, was[i].n))
		}
	}
	return strings.Join(fewer, ", ")
}

// mostMemory is the part of a GPU's memory that a configuration may take: the playbook's. What drivers, libraries and
// other processes take is not known.
const mostMemory = 0.8

// room refuses a configuration that takes too much of the target's memory, if that is known.
func room(p *ir.Program, t *ir.Target) error {
	if t.HBMBytes <= 0 {
		return nil
	}
	f, err := compiler.Memory(p)
	if err != nil {
		return err
	}
	most := uint64(mostMemory * float64(t.HBMBytes))
	if f.Bytes() <= most {
		return nil
	}
	d := diag.Errorf(codeMemory, "target "+t.Name, "has %s of memory, and this configuration takes %s, more than "+
		"the %.0f %% (%s) that one may take", host.FormatBytes(uint64(t.HBMBytes)), host.FormatBytes(f.Bytes()),
		100*mostMemory, host.FormatBytes(most))
	if fits := f.Fits(most); fits > 0 {
		return d.Suggest("want --max-seq %d or less, or --memory GIB if the GPU has more", fits)
	}
	return d.Suggest("want a GPU with more memory, --memory GIB if this one has more, or narrower weights")
}
