package validate

import "amkc/ir"

// checkMemory walks the tasks in a legal order and keeps, for every segment of memory, its last writer and who read it
// since. Each access is compared with those alone: an earlier one is before the last writer, and the relations are
// transitive. Whatever legal order is walked, the verdict is the same, because two conflicting accesses that no relation
// orders are found from whichever comes second.
func (p *proof) checkMemory() {
	f := p.flat
	p.startClocks()
	s := sweep{p: p, pos: f.Lo, weak: p.clock.weak, task: -1}
	s.polled = make([]int32, len(f.Tasks))
	s.waits = make([]int32, len(f.Counters))
	for _, t := range p.order {
		hb, fb, ok := p.begin(t)
		if !ok {
			return
		}
		s.start(t, hb, fb)
		all := p.accesses[p.first[t]:p.first[t+1]]
		for i := 0; i < len(all); {
			op := all[i].op
			for ; i < len(all) && all[i].op == op && !all[i].write; i++ {
				s.access(&all[i])
			}
			s.joinPolls()
			for ; i < len(all) && all[i].op == op; i++ {
				s.access(&all[i])
			}
		}
		s.finish()
		p.end(t, s.hb, s.fb)
		if p.full() || p.work.over {
			return
		}
	}
	p.stats.Chains = len(p.clock.length)
}

// sweep is the walk over memory at one task.
type sweep struct {
	p         *proof
	task      int32
	hb, fb    []int32
	pos       int  // initial cache rows are those below it
	tried     bool // pos is one of several that are tried one by one, and is worth naming
	weak      bool
	published bool // the task has written flagged words
	quiet     bool // the view at hand has been reported

	waits  []int32 // for each counter: the last task that waits on it by flag, plus 1
	polled []int32 // for each task: the last task that polled one of its words, plus 1
	fresh  []int32 // writers polled by this op, not yet joined
	counts []int   // for each wait of the task: producers whose words it polled
}

func (s *sweep) start(t int32, hb, fb []int32) {
	s.task, s.hb, s.fb, s.published = t, hb, fb, false
	task := &s.p.flat.Tasks[t]
	s.counts = s.counts[:0]
	for _, w := range task.Waits {
		s.counts = append(s.counts, 0)
		if s.p.flat.Counters[w.Counter].How == ir.Flagged {
			s.waits[w.Counter] = t + 1
		}
	}
}

func (s *sweep) access(a *access) {
	p := s.p
	l := &p.locs[a.loc]
	if l.symbolic {
		s.symbolic(l, a)
		return
	}
	s.quiet = false
	for _, r := range p.runs[a.from:a.to] {
		if !p.spend(&p.work.visits, r.hi-r.lo+1, maxVisits, "comparisons of memory ranges", s.task) {
			return
		}
		for i := r.lo; i < r.hi && !p.full(); i++ {
			s.touch(l, i, a)
		}
	}
}

// touch checks one segment of a view and notes the access, be it wrong or not, so that what follows is judged by itself.
func (s *sweep) touch(l *location, i int, a *access) {
	g, c := &l.segs[i], &s.p.clock
	if a.write {
		s.write(l, i, a)
		g.writer, g.buf = s.task, a.buf
		g.readers.clear()
		s.published = s.published || l.words && s.flagged(s.task)
	} else {
		s.read(l, i, a)
		g.readers.add(c.chain[s.task], c.index[s.task], c)
	}
}

// read checks that a segment holds what was written through this buffer, by a task that is before this one.
func (s *sweep) read(l *location, i int, a *access) {
	g := &l.segs[i]
	s.own(l, i, a)
	w := g.writer
	switch {
	case w < 0:
		if !s.initial(l, i, a) {
			s.undefined(l, i, a)
		}
	case g.buf != a.buf:
		s.clobbered(l, i, a)
	case w != s.task && !s.p.clock.before(w, s.hb) && !(l.words && s.poll(w)):
		s.unordered(l, i, a, w, "reads", "written by")
	case l.words && w != s.task && s.published && !g.readers.has(s.p.clock.chain[s.task], s.p.clock.index[s.task]):
		s.report(l, i, a, CodePollOrder, "polls %s after an earlier op of the task has published words; a task polls first", s.span(l, i, a)).
			Suggest("list the reading op first")
	}
}

// poll reports whether this task polls words of writer w, and notes that it did.
func (s *sweep) poll(w int32) bool {
	c := s.p.flat.Tasks[w].Signal
	if c < 0 || s.waits == nil || s.waits[c] != s.task+1 {
		return false
	}
	if s.polled[w] != s.task+1 {
		s.polled[w] = s.task + 1
		s.fresh = append(s.fresh, w)
	}
	return true
}

// joinPolls adds the fb edges of the words that an op polled: from the join of the counter when all producers were
// polled, else writer by writer.
func (s *sweep) joinPolls() {
	if len(s.fresh) == 0 {
		return
	}
	p := s.p
	for k, w := range p.flat.Tasks[s.task].Waits {
		n := 0
		for _, q := range s.fresh {
			if p.flat.Tasks[q].Signal == w.Counter {
				n++
			}
		}
		if s.counts[k] += n; n > 0 && s.all(k, w.Counter) {
			s.fb = join(s.fb, p.clock.joinFB[w.Counter])
		}
	}
	for _, q := range s.fresh {
		if !p.clock.before(q, s.fb) {
			s.fb = join(s.fb, p.clock.fb[q])
		}
	}
	s.fresh = s.fresh[:0]
	p.clock.fb[s.task] = s.fb
}

// all reports whether every producer of the task's k-th wait is polled or before the task anyway, as one on its SM is.
func (s *sweep) all(k, c int) bool {
	producers := s.p.producers.of(c)
	if 2*s.counts[k] < len(producers) {
		return false // a part of the words: the few edges are added one by one
	}
	for _, q := range producers {
		if s.polled[q] != s.task+1 && !s.p.clock.before(q, s.fb) {
			return false
		}
	}
	return true
}

// finish warns of flagged waits that poll nothing: they order nothing and cost nothing, so they are not what was meant.
func (s *sweep) finish() {
	p := s.p
	for k, w := range p.flat.Tasks[s.task].Waits {
		if s.counts[k] == 0 && p.flat.Counters[w.Counter].How == ir.Flagged && !s.ordered(w.Counter) {
			p.warnf(CodeIdleWait, p.task(s.task), "waits on flagged counter %s but reads no word of its producers: the wait does nothing", p.flat.Counters[w.Counter].Name).
				Suggest("drop it, or realise the counter by counting")
		}
	}
}

// ordered reports whether every producer of a counter is before this task anyway.
func (s *sweep) ordered(c int) bool {
	for _, q := range s.p.producers.of(c) {
		if !s.p.clock.before(q, s.hb) {
			return false
		}
	}
	return true
}

// write checks that the last writer of a segment and all who read it since are before this task.
func (s *sweep) write(l *location, i int, a *access) {
	g, c := &l.segs[i], &s.p.clock
	s.own(l, i, a)
	free := s.hb
	if l.words {
		free = s.fb
	}
	w := g.writer
	if chain, index := g.readers.unordered(free); index > 0 {
		s.unordered(l, i, a, c.taskAt(chain, index), "overwrites", "still read by")
	} else if w < 0 || w == s.task {
		return
	} else if !c.before(w, free) {
		s.unordered(l, i, a, w, "overwrites", "written by")
	} else if l.words && g.readers.none() && !c.before(w, s.hb) {
		s.report(l, i, a, CodeUnread, "overwrites %s, written by %s and read by nobody: two relaxed stores of one word may become visible in either order", s.span(l, i, a), s.p.who(w)).
			Suggest("let a task read it, or realise a counter between the two by counting")
	}
}

// flagged reports whether a task announces its words by a flagged counter.
func (s *sweep) flagged(t int32) bool {
	c := s.p.flat.Tasks[t].Signal
	return c >= 0 && s.p.flat.Counters[c].How == ir.Flagged
}

// initial reports whether a segment that no task has written is defined: cache rows below pos are, from earlier steps.
func (s *sweep) initial(l *location, i int, a *access) bool {
	b := &s.p.flat.Buffers[a.buf]
	if b.Kind != ir.KVCache {
		return false
	}
	d := rowsDim(b)
	return l.bounds[i]/product(b.Shape[d+1:])%b.Shape[d] < s.pos
}
