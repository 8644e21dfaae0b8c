package validate

import (
	"fmt"

	"amkc/ir"
)

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
	k := s.p.kin(s.task)
	return s.findWriter(l, i, a, func(t int32) bool { return !k.before[t] && !k.after[t] })
}

// writerOf returns a task that writes a segment through the same buffer, whenever that is. It is only asked for
// messages.
func (s *sweep) writerOf(l *location, i int, a *access) int32 {
	return s.findWriter(l, i, a, func(int32) bool { return true })
}

func (s *sweep) findWriter(l *location, i int, a *access, accept func(t int32) bool) int32 {
	var x expander
	for k := range s.p.accesses {
		b := &s.p.accesses[k]
		if b.buf != a.buf || !b.write || b.task == s.task || !accept(b.task) {
			continue
		}
		runs := x.expand(&s.p.flat.Buffers[b.buf], b.dims(s.p.flat), s.pos, l.paged)
		if s.p.hints += 1 + len(runs) + x.dropped; s.p.hints > maxHints {
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
	if k := s.p.kin(s.task); g.writer != s.task && !k.before[g.writer] && !k.after[g.writer] {
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
	if c < 0 || c == p.flat.Tasks[w].Signal || p.kin(w).any(p.producers.of(c)) {
		d.Suggest("%s", other)
		return
	}
	d.Suggest("missing: wait %s >= %d in %s, or %s", p.flat.Counters[c].Name,
		p.flat.Counters[c].Init+len(p.producers.of(c)), p.flat.Tasks[w].Name, other)
}
