package explore

import (
	"fmt"
	"slices"
	"strings"

	"amkc/explore/mutant"
)

// Table is a table of a report: mutants by kind, and their outcomes.
func (r *MutantReport) Table() string {
	by := map[string]bool{}
	for _, m := range r.Results {
		if m.Fate == Killed {
			by[m.By] = true
		}
	}
	columns := sorted(by)
	var b strings.Builder
	fmt.Fprintf(&b, "| mutants | total | %s | equivalent | unreached | survived |\n|---%s|\n",
		strings.Join(columns, " | "), strings.Repeat("|--:", len(columns)+4))
	row := func(name string, of func(m *MutantResult) bool) {
		total, counts := 0, map[string]int{}
		for _, m := range r.Results {
			if !of(m) {
				continue
			}
			total++
			if m.Fate == Killed {
				counts[m.By]++
			} else {
				counts[string(m.Fate)]++
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", name, total)
		for _, c := range append(slices.Clone(columns), string(Equivalent), string(Unreached), string(Survived)) {
			fmt.Fprintf(&b, " %d |", counts[c])
		}
		b.WriteString("\n")
	}
	for _, kind := range mutant.Kinds {
		row(string(kind), func(m *MutantResult) bool { return m.Kind == kind })
	}
	row("all", func(*MutantResult) bool { return true })
	return b.String()
}
