package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
)

// exchangeWords are the writes of exchange words.
type exchangeWords struct {
	writes     []wordWrite // of the current exchange
	exchangeOf []int32     // for each buffer: the exchange that writes its words, 0 for none, -1 for several
}

// wordWrite is a run of exchange words that a task writes.
type wordWrite struct {
	loc  int32
	runs run
	task int32
	buf  int32
}

func (a wordWrite) compare(b wordWrite) int {
	if c := cmp.Compare(a.loc, b.loc); c != 0 {
		return c
	}
	if c := cmp.Compare(a.runs.lo, b.runs.lo); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.runs.hi, b.runs.hi), cmp.Compare(a.task, b.task))
}

// checkSingleWrites: the producers of a flagged counter write every exchange word once. A waiter knows the words of an
// exchange by their epoch, which the first and the second write of one exchange have in common.
func (p *Proof) checkSingleWrites() {
	writes := p.words.writes
	p.noteExchanges()
	for c := range p.flat.Counters {
		if p.flat.Counters[c].How != ir.Flagged {
			continue
		}
		writes = writes[:0]
		for _, t := range p.counters.producers.of(c) {
			for i := p.mem.first[t]; i < p.mem.first[t+1]; i++ {
				a := &p.mem.accesses[i]
				if !a.write || !p.mem.locs[a.loc].words {
					continue
				}
				for _, r := range p.segments.runs[a.from:a.to] {
					writes = append(writes, wordWrite{a.loc, r, t, a.buf})
				}
			}
		}
		if !slices.IsSortedFunc(writes, wordWrite.compare) { // most are written in order
			slices.SortFunc(writes, wordWrite.compare)
		}
		for i, widest := 1, 0; i < len(writes); i++ {
			a, b := &writes[widest], &writes[i]
			if a.loc == b.loc && b.runs.lo < a.runs.hi {
				s, l, view := sweep{p: p, task: b.task}, &p.mem.locs[b.loc], &access{buf: b.buf}
				d := s.report(l, b.runs.lo, view, CodeTwice,
					"writes %s, which %s writes in the same exchange: a waiter on %s cannot tell which of the "+
						"two it polled",
					s.span(l, b.runs.lo, view), p.Who(a.task), p.flat.Counters[c].Name)
				d.Other = p.flat.Tasks[a.task].Name
				d.Suggest("give the second write a counter of its own, or another buffer")
				break
			}
			widest = i // the runs so far are apart, so that the last one ends last
		}
	}
	p.words.writes = writes
}
