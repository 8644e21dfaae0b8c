package validate

import "amkc/ir"

// sharedReaders are the tasks that have read one run of segments as a whole since it was written. All SMs read the
// vector that all SMs wrote: segment by segment that is SMs x SMs comparisons for every exchange. Kept together, the
// first reader walks the run. For every other reader of the same run through the same buffer, the only question is
// whether the writers of the run are before it. It is asked once for each writer, or once for all of them if they are
// the producers of a counter that it waits for.
//
// Why the verdict is that of the walk: while no segment of the run is written, the outcome of reading it depends on the
// writers and the buffer that the first reader found, and on the clock of the reader. Whatever the short way cannot
// answer with "in order" (a writer that is not before the reader, a read after the task has published, on-chip memory,
// a run with a finding) goes the long way, which reports. A segment's readers are its own and those of its run; a
// segment that is written leaves the run, which then takes no more readers (whole is false), but still speaks for the
// segments left.
type sharedReaders struct {
	run     run
	buf     int32
	whole   bool  // no segment has left
	left    int32 // segments that have not
	counter int32 // the writers are all producers of this counter; -1 if not
	writers []int32
	readers readers
	seen    copySet // the copies of the words that they have polled
	passed  int32   // the last task that all readers were found to be before, plus 1
	joined  int32   // a counter whose join all readers are in, since a segment has left; noBase for none
}

// wide reports whether a run has so many segments that keeping its readers together pays.
func (r run) wide() bool { return r.hi-r.lo >= 2 }

// sharedSets are used again when their last segment has left.
type sharedSets struct {
	all  []sharedReaders
	free []int32
}

func (s *sharedSets) reset() { s.all, s.free = s.all[:0], s.free[:0] }

// joinReaders reads a run as one of its shared readers. It reports false, and has done nothing, where the run must be
// walked.
func (s *sweep) joinReaders(l *location, r run, a *access) bool {
	k := l.segs[r.lo].shared
	if k < 0 || s.published && l.words {
		return false
	}
	u := &s.shared.all[k]
	if !u.whole || u.run != r || u.buf != a.buf || l.words && s.p.words.several(a.buf) || !s.seesWriters(l, u) {
		return false
	}
	u.readers.add(s.p.clock.chain[s.task], s.p.clock.index[s.task], &s.p.clock)
	u.seen |= l.copies.of(s.p.flat.Tasks[s.task].SM)
	return true
}

// seesWriters reports whether every writer of the run is before the current task, or polled by it. If one is not, the
// writers that were noted as polled are still polled: the walk that follows comes to the same.
func (s *sweep) seesWriters(l *location, u *sharedReaders) bool {
	if c := u.counter; c >= 0 && s.waitsFor(c) && (!l.pushed || s.p.ofAllRanks(int(c))) {
		switch {
		case s.p.flat.Counters[c].How == ir.ByCounter:
			return true // the wait is a join: every producer happens before the task
		case l.words:
			s.pollAll(c)
			return true
		}
	}
	if !s.p.spend(&s.p.work.visits, len(u.writers), maxVisits, "comparisons of memory ranges", s.task) {
		return false
	}
	for _, w := range u.writers {
		if !s.knows(l, w) && !(l.words && s.poll(l, w)) || l.words && !s.finds(l, w) {
			return false
		}
	}
	return true
}

// startReaders makes the first task that has walked a run, and found it in order, the first of its shared readers. It
// reports false if readers are to be noted segment by segment: the run is on-chip, overlaps another run with shared
// readers, or holds words of the task itself, which is not a reader of them.
func (s *sweep) startReaders(l *location, r run, a *access) bool {
	if l.onChip() || s.quiet || s.tried {
		return false
	}
	segs := l.segs[r.lo:r.hi]
	for i := range segs {
		if segs[i].shared >= 0 || s.atHand(l, &segs[i]) {
			return false
		}
	}
	p := s.p
	all := &s.shared
	var k int32
	if n := len(all.free); n > 0 {
		k, all.free = all.free[n-1], all.free[:n-1]
	} else if k = int32(len(all.all)); int(k) < cap(all.all) {
		all.all = all.all[:k+1]
	} else {
		all.all = append(all.all, sharedReaders{})
	}
	u := &all.all[k]
	*u = sharedReaders{run: r, buf: a.buf, whole: true, left: int32(len(segs)), joined: noBase, writers: u.writers[:0]}
	s.mark++
	for i := range segs {
		segs[i].shared = k
		if w := segs[i].writer; w >= 0 && s.marks[w] != s.mark {
			s.marks[w] = s.mark
			u.writers = append(u.writers, w)
		}
	}
	u.counter = p.counters.common(p.flat, u.writers)
	u.readers.add(p.clock.chain[s.task], p.clock.index[s.task], &p.clock)
	u.seen = l.copies.of(p.flat.Tasks[s.task].SM)
	return true
}

// leaveReaders takes a segment that is being written out of its run.
func (s *sweep) leaveReaders(g *segment) {
	if g.shared < 0 {
		return
	}
	u := &s.shared.all[g.shared]
	if u.whole, u.left = false, u.left-1; u.left == 0 {
		u.readers.clear(&s.p.clock)
		s.shared.free = append(s.shared.free, g.shared)
	}
	g.shared = -1
}

// unread returns a reader of a segment that is not before the task with the given clock: one of its own or of its
// run, on the lowest chain; index 0 means that there is none.
func (s *sweep) unread(l *location, g *segment, clock []int32) (chain, index int32) {
	c := &s.p.clock
	chain, index = s.late(l, &g.readers, clock)
	if g.shared < 0 {
		return chain, index
	}
	u := &s.shared.all[g.shared]
	walker := s.p.peers.twin(s.task) + 1
	if u.passed == walker {
		return chain, index // a clock only grows while its task runs
	}
	base := c.deltas.base
	if !s.p.sound() || s.tried || c.weak && !l.words {
		base = noBase // the clock is not the one that the difference is of
	}
	if base != noBase && base == u.joined {
		return chain, index
	}
	k, i := s.late(l, &u.readers, clock)
	if i == 0 {
		u.passed = walker
		if base != noBase {
			if _, late := s.late(l, &u.readers, c.joinFB[base]); late == 0 {
				u.joined = base
			}
		}
	} else if index == 0 || k < chain || k == chain && i > index {
		return k, i
	}
	return chain, index
}

// late returns a reader that is not before the task with the given clock, as unread does. One that read what is pushed
// must be before it on every rank.
func (s *sweep) late(l *location, r *readers, clock []int32) (chain, index int32) {
	c := &s.p.clock
	if !l.pushed {
		return r.unordered(clock, c)
	}
	if chain, index = r.unordered(clock[:min(c.half, len(clock))], c); index > 0 || r.n == 0 && r.many == 0 {
		return chain, index
	}
	return r.unordered(clock[min(c.half, len(clock)):], c)
}

// hasRead reports whether the current task has read a segment since it was written.
func (s *sweep) hasRead(g *segment) bool {
	c := &s.p.clock
	chain, index := c.chain[s.task], c.index[s.task]
	return g.readers.has(chain, index, c) || g.shared >= 0 &&
		s.shared.all[g.shared].readers.has(chain, index, c)
}
