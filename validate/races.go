package validate

import (
	"fmt"

	"amkc/ir"
	"amkc/ir/diag"
)

// unordered reports two conflicting accesses that nothing orders, with the smallest edge that would. The walk goes on
// as if that edge were there, so that its consequences are not reported as well.
func (s *sweep) unordered(l *location, i int, a *access, other int32, does, was string) {
	if !s.quiet {
		s.reportUnordered(l, i, a, other, does, was)
	}
	if c := &s.p.clock; !s.tried && c.index[other] > 0 { // it is over
		other = s.p.peers.twin(other)
		s.fb, s.hb = c.joinDone(s.fb, other), c.joinDone(s.hb, other)
		if l.pushed {
			c.both(s.fb)
			c.both(s.hb)
		}
	}
}

func (s *sweep) reportUnordered(l *location, i int, a *access, other int32, does, was string) {
	code := CodeReadRace
	switch {
	case a.write && was == "written by":
		code = CodeWriteRace
	case a.write:
		code = CodeOverwriteRace
	case !l.words && s.waitsOnSignal(other) && s.flagged(other):
		code = CodeFlaggedPlain
	}
	d := s.report(l, i, a, code, "%s %s, %s %s, and nothing orders the two", does, s.span(l, i, a), was, s.p.Who(other))
	d.Other = s.p.flat.Tasks[other].Name
	d.Suggest("%s", s.fix(code, l, other)+s.elsewhere(l, i, a))
}

// fix names the smallest change that would order the other task before this one: the edge that is missing.
func (s *sweep) fix(code *diag.Code, l *location, other int32) string {
	p := s.p
	c := p.flat.Tasks[other].Signal
	switch {
	case code == CodeFlaggedPlain:
		return fmt.Sprintf("flagged counter %s orders its exchange words only: realise it as a counter",
			p.flat.Counters[c].Name)
	case c < 0:
		return fmt.Sprintf("let %s signal a counter and wait for it", p.flat.Tasks[other].Name)
	case s.waitsOnSignal(other):
		return fmt.Sprintf("%s is waited for, but as a flagged counter it orders only the words that are polled",
			p.flat.Counters[c].Name)
	case c == p.flat.Tasks[s.task].Signal:
		return fmt.Sprintf("both signal %s, so no wait can order them: signal two counters, or run both on one SM",
			p.flat.Counters[c].Name)
	case p.reachability(p.peers.twin(s.task)).leadsTo(p.counters.producers.of(c)):
		return fmt.Sprintf("%s is not complete before this task has run: let %s signal a counter of its own "+
			"and wait for it", p.flat.Counters[c].Name, p.flat.Tasks[other].Name)
	}
	total := p.flat.Counters[c].Init + len(p.counters.producers.of(c))
	note := ""
	if p.flat.Counters[c].How == ir.Flagged && !l.words {
		note = ", and realise it as a counter"
	}
	return fmt.Sprintf("missing: wait %s >= %d%s", p.flat.Counters[c].Name, total, note)
}

// elsewhere names the other way out where two buffers share a page.
func (s *sweep) elsewhere(l *location, i int, a *access) string {
	g := &l.segs[i]
	if !a.write || !l.paged || g.writer < 0 || g.buf == a.buf {
		return ""
	}
	return fmt.Sprintf(", or put %s on another page than %s", s.p.flat.Buffers[a.buf].Name,
		s.p.flat.Buffers[g.buf].Name)
}

func (s *sweep) waitsOnSignal(other int32) bool {
	c := s.p.flat.Tasks[other].Signal
	for _, w := range s.p.flat.Tasks[s.task].Waits {
		if w.Counter == c {
			return true
		}
	}
	return false
}

// undefined reports a read of memory that no task before it has written and that is not initial state.
func (s *sweep) undefined(l *location, i int, a *access) {
	if s.quiet {
		return
	}
	if w := s.laterWriter(l, i, a); w >= 0 {
		s.unordered(l, i, a, w, "reads", "written by")
		return
	}
	hint := "no task writes it earlier in the step"
	if s.p.flat.Buffers[a.buf].Kind == ir.KVCache {
		hint = "only rows below pos are initial state, and no task writes this one earlier in the step"
	}
	d := s.report(l, i, a, CodeUndefined, "reads %s, which is undefined: %s", s.span(l, i, a), hint)
	if w := s.writerOf(l, i, a); w >= 0 {
		d.Other = s.p.flat.Tasks[w].Name
		d.Suggest("%s writes it, but after this task: let it come first", s.p.Who(w))
		return
	}
	d.Suggest("let a task write it before, or leave it out of the view")
}

// laterWriter returns a task that writes a segment through the same buffer and is neither before nor after this one: in
// another legal order than that of the walk it would come first. -1 if there is none. It is only asked for messages.
func (s *sweep) laterWriter(l *location, i int, a *access) int32 {
	twin := s.p.peers.twin
	k := s.p.reachability(twin(s.task))
	return s.findWriter(l, i, a, func(t int32) bool { return !k.before[twin(t)] && !k.after[twin(t)] })
}

// writerOf returns a task that writes a segment through the same buffer, whenever that is. It is only asked for
// messages.
func (s *sweep) writerOf(l *location, i int, a *access) int32 {
	return s.findWriter(l, i, a, func(int32) bool { return true })
}

func (s *sweep) findWriter(l *location, i int, a *access, accept func(t int32) bool) int32 {
	var x expander
	for k := range s.p.mem.accesses {
		b := &s.p.mem.accesses[k]
		if b.buf != a.buf || !b.write || b.task == s.task || !accept(b.task) {
			continue
		}
		runs := x.expand(&s.p.flat.Buffers[b.buf], b.dims(s.p.flat), s.pos, l.paged)
		if s.p.related.hints += 1 + len(runs) + x.dropped; s.p.related.hints > maxHints {
			return -1
		}
		for _, r := range runs {
			if r.lo <= l.bounds[i] && l.bounds[i] < r.hi {
				return b.task
			}
		}
	}
	return -1
}

// clobbered reports a read of a buffer whose memory was last written through another buffer on the same page.
func (s *sweep) clobbered(l *location, i int, a *access) {
	if s.quiet {
		return
	}
	if w := s.laterWriter(l, i, a); w >= 0 {
		s.unordered(l, i, a, w, "reads", "written by")
		return
	}
	g := &l.segs[i]
	if k := s.p.reachability(s.p.peers.twin(s.task)); g.writer != s.task && !k.before[g.writer] && !k.after[g.writer] {
		s.overwritten(l, i, a)
		return
	}
	d := s.report(l, i, a, CodeClobbered, "reads %s, but there %s has written %s: the two are live together",
		s.span(l, i, a), s.p.Who(g.writer), s.p.flat.Buffers[g.buf].Name)
	d.Other = s.p.flat.Tasks[g.writer].Name
	d.Suggest("put %s on another page than %s", s.p.flat.Buffers[g.buf].Name, s.p.flat.Buffers[a.buf].Name)
}

// overwritten reports a read of a buffer while another one on its page may be written: the walk saw the write first.
func (s *sweep) overwritten(l *location, i int, a *access) {
	p, w := s.p, l.segs[i].writer
	d := s.report(l, i, a, CodeOverwriteRace, "reads %s, where %s writes %s, and nothing orders the two",
		s.span(l, i, a), p.Who(w), p.flat.Buffers[l.segs[i].buf].Name)
	d.Other = p.flat.Tasks[w].Name
	other := fmt.Sprintf("put %s on another page than %s", p.flat.Buffers[l.segs[i].buf].Name,
		p.flat.Buffers[a.buf].Name)
	c := p.flat.Tasks[s.task].Signal
	if c < 0 || c == p.flat.Tasks[w].Signal || p.reachability(p.peers.twin(w)).leadsTo(p.counters.producers.of(c)) {
		d.Suggest("%s", other)
		return
	}
	d.Suggest("missing: wait %s >= %d in %s, or %s", p.flat.Counters[c].Name,
		p.flat.Counters[c].Init+len(p.counters.producers.of(c)), p.flat.Tasks[w].Name, other)
}
