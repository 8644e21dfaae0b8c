package validate

import (
	"amkc/ir"
	"amkc/validate/views"
)

// checkMemory walks the tasks in a legal order and keeps, for every segment of memory, its last writer and who read
// it since. Each access is compared with those alone: an earlier one is before the last writer, and the relations are
// transitive. Whatever legal order is walked, the verdict is the same, because two conflicting accesses that no
// relation orders are found from whichever comes second.
func (p *Proof) checkMemory() {
	p.clock.start(p.flat, p.StepCounter())
	s := &p.sweep
	s.begin(p)
	for _, t := range p.schedule.order {
		if p.flat.Tasks[t].Rank > 0 {
			continue // it is walked with its twin
		}
		hb, fb, ok := p.begin(t)
		if !ok {
			return
		}
		s.start(t, hb, fb)
		all := p.mem.accesses[:p.mem.first[t+1]]
		for i := int(p.mem.first[t]); i < len(all); {
			op := all[i].op
			for ; i < len(all) && all[i].op == op && !all[i].write; i++ {
				s.access(int32(i))
			}
			s.joinPolls()
			for ; i < len(all) && all[i].op == op; i++ {
				s.access(int32(i))
			}
		}
		s.finish()
		p.end(t, s.hb, s.fb)
		for _, q := range p.peers.of(t) {
			s.push(q)
		}
		if p.Full() || p.work.over {
			return
		}
	}
	p.stats.Chains = len(p.clock.length)
}

// sweep is the walk over memory at one task.
type sweep struct {
	p         *Proof
	task      int32
	hb, fb    []int32
	pos       int  // initial cache rows are those below it
	tried     bool // pos is one of several that are tried one by one, and is worth naming
	published bool // the task has written flagged words
	quiet     bool // the current view has been reported

	observed observedWords
	shared   sharedSets
	marks    []int32 // for each task: the last count of mark it was seen at
	mark     int32
}

// begin prepares the walk over a whole program.
func (s *sweep) begin(p *Proof) {
	*s = sweep{p: p, pos: p.flat.Lo, task: -1, observed: s.observed, shared: s.shared,
		marks: sized(s.marks, len(p.flat.Tasks))}
	s.shared.reset()
	s.observed.reset(len(p.flat.Tasks), len(p.flat.Counters))
}

func (s *sweep) start(t int32, hb, fb []int32) {
	s.task, s.hb, s.fb, s.published = t, hb, fb, false
	s.startPolls()
}

// access looks at the k-th access.
func (s *sweep) access(k int32) {
	p := s.p
	a := &p.mem.accesses[k]
	l := &p.mem.locs[a.loc]
	if l.symbolic {
		s.symbolic(l, k)
		return
	}
	s.quiet = false
	for _, r := range p.segments.runs[a.from:a.to] {
		if !a.write && r.wide() && s.joinReaders(l, r, a) {
			continue
		}
		if !p.spend(&p.work.visits, r.hi-r.lo+1, maxVisits, "comparisons of memory ranges", s.task) {
			return
		}
		s.touchRun(l, r, a)
	}
	if made := &p.clock.vectors.made; *made > 0 {
		p.spend(&p.work.cells, *made, maxClockCells, "vector clock components", s.task)
		*made = 0
	}
}

// touchRun walks the segments of a run and notes the access, be it wrong or not, so that what follows is judged on its
// own.
func (s *sweep) touchRun(l *location, r run, a *access) {
	c := &s.p.clock
	if a.write {
		for i := r.lo; i < r.hi && !s.p.Full() && s.affords(); i++ {
			g := &l.segs[i]
			s.write(l, i, a)
			g.writer, g.buf = s.task, a.buf
			g.readers.clear(c)
			g.seen = 0
			s.leaveReaders(g)
		}
		s.published = s.published || l.words && s.flagged(s.task)
		return
	}
	for i := r.lo; i < r.hi && !s.p.Full(); i++ {
		s.read(l, i, a)
	}
	if r.wide() && s.startReaders(l, r, a) {
		return
	}
	polled := l.copies.of(s.p.flat.Tasks[s.task].SM)
	for i := r.lo; i < r.hi && s.affords(); i++ {
		if g := &l.segs[i]; !s.atHand(l, g) {
			g.readers.add(c.chain[s.task], c.index[s.task], c)
			g.seen |= polled
		}
	}
}

// atHand reports whether the current task wrote the words of a segment itself. It polls nothing then, so it is not a
// reader that has seen them in memory: that it has ended follows from its write. A task polls words that ranks push
// even if it pushed some of them, since the others are of other ranks.
func (s *sweep) atHand(l *location, g *segment) bool {
	return l.words && g.writer == s.task && !l.pushed
}

// perVisit is the number of components of sets of readers that take as long as a segment.
const perVisit = 8

// affords spends what sets of readers took, now and then, and reports whether the budget still holds.
func (s *sweep) affords() bool { return s.p.clock.vectors.seen < 1<<12 || s.spendReaders() }

func (s *sweep) spendReaders() bool {
	v := &s.p.clock.vectors
	n := v.seen / perVisit
	v.seen = 0
	return s.p.spend(&s.p.work.visits, n, maxVisits, "comparisons of memory ranges", s.task)
}

// read checks that a segment holds what was written through this buffer, by a task that is before this one.
func (s *sweep) read(l *location, i int, a *access) {
	g := &l.segs[i]
	if l.onChip() {
		s.own(l, i, a)
	}
	w := g.writer
	switch {
	case w < 0:
		if !s.initial(l, i, a) {
			s.undefined(l, i, a)
		}
	case g.buf != a.buf:
		s.clobbered(l, i, a)
	case !s.knows(l, w) && !(l.words && s.poll(l, w)):
		s.unordered(l, i, a, w, "reads", "written by")
	case l.words && !s.atHand(l, g) && (s.published || s.p.words.several(a.buf)) && !s.hasRead(g):
		if s.p.words.several(a.buf) {
			s.current(l, i, a, w)
		}
		if s.published {
			s.report(l, i, a, CodePollOrder, "polls %s after an earlier op of the task has published words; a "+
				"task polls first", s.span(l, i, a)).
				Suggest("list the reading op first")
		}
	}
	if l.words && w >= 0 && !s.finds(l, w) {
		s.report(l, i, a, CodeBackend, "reads %s, written by %s, for whose counter it does not wait; the kernel "+
			"polls words for the exchange that their reader waits for", s.span(l, i, a), s.p.Who(w)).
			Suggest("wait for that counter, and read words of no other exchange")
	}
}

// write checks that the last writer of a segment and all who read it since are before this task.
func (s *sweep) write(l *location, i int, a *access) {
	g, c := &l.segs[i], &s.p.clock
	if l.onChip() {
		s.own(l, i, a)
	}
	free := s.hb
	if l.words {
		free = s.fb
	}
	w := g.writer
	if chain, index := s.unread(l, g, free); index > 0 {
		s.unordered(l, i, a, c.taskAt(chain, index), "overwrites", "still read by")
	} else if w < 0 || w == s.task {
		return
	} else if !s.precedes(l, w, free) {
		s.unordered(l, i, a, w, "overwrites", "written by")
	} else if l.words && !s.precedes(l, w, s.hb) {
		if unseen := s.unseen(l, g); unseen != 0 {
			s.reportUnseen(l, i, a, unseen)
		}
	}
}

// flagged reports whether a task announces its words by a flagged counter.
func (s *sweep) flagged(t int32) bool {
	c := s.p.flat.Tasks[t].Signal
	return c >= 0 && s.p.flat.Counters[c].How == ir.Flagged
}

// initial reports whether a segment that no task has written is defined: states are, and cache rows below pos, from
// earlier steps.
func (s *sweep) initial(l *location, i int, a *access) bool {
	b := &s.p.flat.Buffers[a.buf]
	if b.Kind != ir.KVCache {
		return b.Kind == ir.Recurrent
	}
	d := views.RowsDim(b)
	return l.bounds[i]/product(b.Shape[d+1:])%b.Shape[d] < s.pos
}
