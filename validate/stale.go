package validate

import "amkc/ir"

// A buffer of exchange words may be used by one exchange after another, each with a flagged counter of its own. A
// wait on such a counter polls the words that its producers wrote; when somebody has written them anew by then, the
// poll may never end, be the newer words in order before the task or not. So whoever waits for an exchange and reads
// words of it finds them as that exchange left them: their last writer is its producer.

// noteExchanges notes for every buffer the exchange that writes its words, or that there are several.
func (p *Proof) noteExchanges() {
	p.exchangeOf = sized(p.exchangeOf, len(p.flat.Buffers))
	for i := range p.accesses {
		a := &p.accesses[i]
		if !a.write || !p.locs[a.loc].words {
			continue
		}
		exchange := int32(p.flat.Tasks[a.task].Signal) + 2 // 1 for a task that signals nothing
		if seen := &p.exchangeOf[a.buf]; *seen == 0 {
			*seen = exchange
		} else if *seen != exchange {
			*seen = -1
		}
	}
}

// several reports whether several exchanges use a buffer. Where one does, each of its words has one writer
// (checkWords).
func (p *Proof) several(buf int32) bool { return p.exchangeOf[buf] < 0 }

// current checks that a segment, last written by task w, is not one that the task polls for by a wait for an earlier
// exchange.
func (s *sweep) current(l *location, i int, a *access, w int32) {
	p := s.p
	if !p.spend(&p.work.visits, len(p.flat.Tasks[s.task].Waits), maxVisits, "comparisons of memory ranges", s.task) {
		return
	}
	for _, wait := range p.flat.Tasks[s.task].Waits {
		if p.flat.Counters[wait.Counter].How != ir.Flagged || p.flat.Tasks[w].Signal == wait.Counter {
			continue
		}
		for _, q := range p.producers.of(wait.Counter) {
			if !p.spend(&p.work.visits, 1+int(p.first[q+1]-p.first[q]), maxVisits, "comparisons of memory ranges",
				s.task) {
				return
			}
			for k := p.first[q]; k < p.first[q+1]; k++ {
				b := &p.accesses[k]
				if !b.write || b.buf != a.buf || !p.spend(&p.work.visits, int(b.to-b.from), maxVisits,
					"comparisons of memory ranges", s.task) {
					continue
				}
				for _, r := range p.runs[b.from:b.to] {
					if r.lo <= i && i < r.hi {
						d := s.report(l, i, a, CodeStale, "waits on %s and so polls %s for the words of %s, but %s "+
							"has written them anew", p.flat.Counters[wait.Counter].Name, s.span(l, i, a), p.Who(q),
							p.Who(w))
						d.Other = p.flat.Tasks[w].Name
						d.Suggest("give the two exchanges buffers of their own, or drop the wait")
						return
					}
				}
			}
		}
	}
}
