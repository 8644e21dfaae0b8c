package validate

import "amkc/ir"

// observedWords is what the current task has seen of exchange words: whose words it polled, by its flagged waits.
type observedWords struct {
	waits  []int32    // for each counter: the last task that waits on it, plus 1
	polled []int32    // for each task: the last task that polled one of its words, plus 1
	pushed []int32    // the same for words that it pushed
	heard  []heard    // for each task: how many ranks' words of it are polled
	all    []int32    // for each counter: the last task that polled words of all its producers at once, plus 1
	fresh  []producer // writers polled by this op, not yet joined
	joined []int32    // counters polled as a whole by this op, not yet joined
	tally  []int32    // for each counter: how many of fresh signal it; zero between ops
	counts []int      // for each wait of the task: producers whose words it polled
}

// producer is a task with the counter that it signals.
type producer struct {
	task, counter int32
	pushed        bool // the words that are polled
}

// heard is a number of ranks whose words of a task are polled by a task, plus 1.
type heard struct{ by, ranks int32 }

func (s *observedWords) reset(tasks, counters int) {
	s.waits, s.all, s.tally = sized(s.waits, counters), sized(s.all, counters), sized(s.tally, counters)
	s.polled, s.pushed, s.heard = sized(s.polled, tasks), sized(s.pushed, tasks), sized(s.heard, tasks)
	s.fresh, s.joined = s.fresh[:0], s.joined[:0]
}

func (s *sweep) startPolls() {
	q := &s.observed
	q.counts = q.counts[:0]
	for _, w := range s.p.flat.Tasks[s.task].Waits {
		q.counts = append(q.counts, 0)
		q.waits[w.Counter] = s.task + 1
	}
}

// waitsFor reports whether the current task waits on a counter.
func (s *sweep) waitsFor(c int32) bool { return !s.tried && s.observed.waits[c] == s.task+1 }

// finds reports whether the backend finds the words that task w wrote where the current task polls. A word that is
// pushed is another rank's on all ranks but one, and the exchange that it waits for must be one of all ranks.
func (s *sweep) finds(l *location, w int32) bool {
	if s.p.contract == nil || w == s.task && !l.pushed {
		return true
	}
	return s.p.contract.Finds(s.task, w) && (!l.pushed || s.p.ofAllRanks(s.p.flat.Tasks[w].Signal))
}

// poll reports whether this task polls words of writer w, and notes that it did.
func (s *sweep) poll(l *location, w int32) bool {
	q := &s.observed
	polled := q.polled
	if l.pushed {
		polled = q.pushed
	}
	if s.tried || polled[w] == s.task+1 {
		return !s.tried
	}
	c := s.p.flat.Tasks[w].Signal
	if c < 0 || !s.waitsFor(int32(c)) || s.p.flat.Counters[c].How != ir.Flagged || l.pushed && !s.p.ofAllRanks(c) {
		return false
	}
	if q.all[c] != s.task+1 {
		polled[w] = s.task + 1
		q.fresh = append(q.fresh, producer{w, int32(c), l.pushed})
		if h := &q.heard[s.p.peers.twin(w)]; l.pushed {
			if h.by != s.task+1 {
				*h = heard{by: s.task + 1}
			}
			h.ranks++
		}
	}
	return true
}

// hears reports whether this task polls words that every rank's task of a place pushed. Only then does each rank learn
// the same of its peers: a task that polled those of some ranks would know more on these than on others.
func (s *sweep) hears(w int32) bool {
	h := s.observed.heard[s.p.peers.twin(w)]
	return h.by == s.task+1 && int(h.ranks) == s.p.Ranks()
}

// pollAll notes that this task polls words of every producer of a flagged counter that it waits on. Producers that are
// before it anyway would not be noted one by one; their edges are there already, and to add them again changes nothing.
func (s *sweep) pollAll(c int32) {
	if q := &s.observed; q.all[c] != s.task+1 {
		q.all[c] = s.task + 1
		q.joined = append(q.joined, c)
	}
}

// joinPolls adds the fb edges of the words that an op polled: from the join of the counter when all producers were
// polled, else writer by writer.
func (s *sweep) joinPolls() {
	p, q := s.p, &s.observed
	if len(q.fresh) == 0 && len(q.joined) == 0 {
		return
	}
	if !p.sound() {
		p.clock.deltas.restart(noBase)
	}
	for _, w := range q.fresh {
		q.tally[w.counter]++
	}
	for _, c := range q.joined {
		q.tally[c] += int32(len(p.counters.producers.of(int(c))))
	}
	for k, w := range p.flat.Tasks[s.task].Waits {
		n := int(q.tally[w.Counter])
		if q.counts[k] += n; n > 0 && s.all(k, w.Counter) {
			s.fb = p.clock.joinCounter(s.fb, w.Counter, p.clock.chain[s.task])
		}
	}
	for _, w := range q.fresh {
		q.tally[w.counter] = 0
		switch {
		case !w.pushed && !p.clock.before(w.task, s.fb):
			s.fb = p.clock.joinTask(s.fb, w.task)
		case w.pushed && s.hears(w.task) && !p.clock.beforeOnAll(w.task, s.fb):
			s.fb = p.clock.joinRanks(s.fb, p.peers.twin(w.task))
		}
	}
	for _, c := range q.joined {
		q.tally[c] = 0
	}
	q.fresh, q.joined = q.fresh[:0], q.joined[:0]
}

// all reports whether every producer of the task's k-th wait is polled or before the task anyway, as one on its SM is.
func (s *sweep) all(k, c int) bool {
	producers, q := s.p.counters.producers.of(c), &s.observed
	if q.all[c] == s.task+1 {
		return true
	}
	if 2*q.counts[k] < len(producers) ||
		!s.p.spend(&s.p.work.visits, len(producers), maxVisits, "comparisons of memory ranges", s.task) {
		return false // a part of the words: the few edges are added one by one
	}
	for _, w := range producers {
		if q.polled[w] != s.task+1 && !s.hears(w) && !s.p.clock.before(w, s.fb) {
			return false
		}
	}
	return true
}

// finish warns of flagged waits that poll nothing: they order nothing and cost nothing, so they are not what was meant.
func (s *sweep) finish() {
	p := s.p
	for k, w := range p.flat.Tasks[s.task].Waits {
		if s.observed.counts[k] == 0 && p.flat.Counters[w.Counter].How == ir.Flagged && !s.ordered(w.Counter) {
			p.warnf(CodeIdleWait, p.Task(s.task),
				"waits on flagged counter %s but reads no word of its producers: the wait does nothing",
				p.flat.Counters[w.Counter].Name).
				Suggest("drop it, or realise the counter by counting")
		}
	}
}

// ordered reports whether every producer of a counter is before this task anyway.
func (s *sweep) ordered(c int) bool {
	producers := s.p.counters.producers.of(c)
	if !s.p.spend(&s.p.work.visits, len(producers), maxVisits, "comparisons of memory ranges", s.task) {
		return true
	}
	for _, q := range producers {
		if !s.p.clock.before(q, s.hb) {
			return false
		}
	}
	return true
}

// A buffer of exchange words may be used by one exchange after another, each with a flagged counter of its own. A
// wait on such a counter polls the words that its producers wrote; when somebody has rewritten them by then, the
// poll may never end, be the newer words in order before the task or not. So a task that waits for an exchange and
// reads words of it finds them as that exchange left them: their last writer is its producer.

// noteExchanges notes for every buffer the exchange that writes its words, or that there are several.
func (p *Proof) noteExchanges() {
	p.words.exchangeOf = sized(p.words.exchangeOf, len(p.flat.Buffers))
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		if !a.write || !p.mem.locs[a.loc].words {
			continue
		}
		exchange := int32(p.flat.Tasks[a.task].Signal) + 2 // 1 for a task that signals nothing
		if seen := &p.words.exchangeOf[a.buf]; *seen == 0 {
			*seen = exchange
		} else if *seen != exchange {
			*seen = -1
		}
	}
}

// several reports whether several exchanges use a buffer. Where one does, each of its words has one writer
// (checkSingleWrites).
func (w *exchangeWords) several(buf int32) bool { return w.exchangeOf[buf] < 0 }

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
		for _, q := range p.counters.producers.of(wait.Counter) {
			if !p.spend(&p.work.visits, 1+int(p.mem.first[q+1]-p.mem.first[q]), maxVisits,
				"comparisons of memory ranges", s.task) {
				return
			}
			for k := p.mem.first[q]; k < p.mem.first[q+1]; k++ {
				b := &p.mem.accesses[k]
				if !b.write || b.buf != a.buf || !p.spend(&p.work.visits, int(b.to-b.from), maxVisits,
					"comparisons of memory ranges", s.task) {
					continue
				}
				for _, r := range p.segments.runs[b.from:b.to] {
					if r.lo <= i && i < r.hi {
						d := s.report(l, i, a, CodeStale, "waits on %s and so polls %s for the words of %s, but %s "+
							"has rewritten them", p.flat.Counters[wait.Counter].Name, s.span(l, i, a), p.Who(q),
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
