package soundness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"amkc/simulate"
)

// Markdown is the report of a run of n programs as a page for docs/results.
func (rep *Report) Markdown(n int, e simulate.Effort) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	all := rep.Total("")
	w("# How sound validate is\n")
	w("Written by `go test ./internal/soundness -run Population -programs %d -report docs/results`. %s programs, "+
		"judged by `validate` and by the oracles of package `simulate`:", n, thousands(all.Programs))
	w("all interleavings of up to %s states for each step and each two steps in a row, else %d random and "+
		"adversarial schedules.", thousands(e.States), e.Orders)
	w("What a task touches is what the reference code touched. `docs/validator.md` explains the words, and " +
		"names three false accepts that reading the code has found and no population of programs.\n")
	w("**%s programs that an oracle calls unsafe; %s of them rejected; %d false accepts.** %s go wrong in some order "+
		"of their tasks. The others are wrong whatever the order, and no order of theirs was run; %s of those are "+
		"refused by what reads a program, for `validate` and the oracles alike. Of the %s programs that are "+
		"accepted, every order of %s was seen; of the others, the orders that the effort allows.\n",
		thousands(all.Unsafe), thousands(all.Rejected), all.FalseAccepts, thousands(all.Ordered), thousands(all.Unread),
		thousands(all.Accepted), thousands(all.Seen))
	w("Of %s programs both `validate` and the reference VM have looked at the operands of every op; they disagree "+
		"about the operands of %d.\n", thousands(all.Compared), all.Disagree)
	for _, g := range []struct{ group, title string }{
		{"published", "The published population, rebuilt"},
		{"ours", "On top of it: mutants of amkc's own programs and of random ones, by operator"},
	} {
		w("## %s\n", g.title)
		w("| class | programs | accepted | every order seen of these | oracle unsafe | in some order | by the reader " +
			"| rejected of the unsafe | false accepts | rejected, nothing seen |")
		w("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
		for _, r := range append(slices.DeleteFunc(slices.Clone(rep.Rows),
			func(r Row) bool { return r.Group != g.group }), rep.Total(g.group)) {
			w("| %s | %s | %s | %s | %s | %s | %s | %s | %d | %s |", r.Class, thousands(r.Programs),
				thousands(r.Accepted), thousands(r.Seen), thousands(r.Unsafe), thousands(r.Ordered),
				thousands(r.Unread), thousands(r.Rejected), r.FalseAccepts, thousands(r.Strict))
		}
		w("")
	}
	w("## Rejected although the oracles saw nothing\n")
	w("| code | programs | the hazard that they cannot see, or why the rule is stricter than safety | such a program |")
	w("|---|---:|---|---|")
	for _, code := range slices.Sorted(maps.Keys(rep.Strict)) {
		n := 0
		for _, k := range rep.Strict[code] {
			n += k
		}
		w("| %s | %s | %s | `%s` |", code, thousands(n), explained[code], rep.Examples[code])
	}
	return b.String()
}

// thousands prints a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
