package validate

import "amkc/ir"

// undefined reports a read of memory that no task before it has written and that is not initial state.
func (s *sweep) undefined(l *location, i int, a *access) {
	if s.quiet {
		return
	}
	if w := s.laterWriter(l, i, a); w >= 0 {
		s.unordered(l, i, a, w, "reads", "written by")
		return
	}
	hint := "; no task writes it earlier in the step"
	if s.p.flat.Buffers[a.buf].Kind == ir.KVCache {
		hint = "; only rows below pos are initial state, and no task writes this one earlier in the step"
	}
	s.report(l, i, a, CodeUndefined, "reads %s, which is undefined%s", s.span(l, i, a), hint)
}

// laterWriter returns a task that writes a segment through the same buffer, comes later in the order of the walk, and
// could as well come earlier: the read is not before it. -1 if there is none. It is only asked for messages.
func (s *sweep) laterWriter(l *location, i int, a *access) int32 {
	var x expander
	for k := range s.p.accesses {
		b := &s.p.accesses[k]
		if b.buf != a.buf || !b.write || b.task == s.task {
			continue
		}
		for _, r := range x.expand(&s.p.flat.Buffers[b.buf], b.dims(s.p.flat), s.pos, l.paged) {
			if r.lo <= l.bounds[i] && l.bounds[i] < r.hi && !s.p.leadsTo(s.task, b.task) {
				return b.task
			}
		}
	}
	return -1
}

// leadsTo reports whether a path of queue and counter edges goes from one task to another. It is only asked for messages.
func (p *proof) leadsTo(from, to int32) bool {
	before := p.queueBefore()
	seen := map[int32]bool{to: true}
	joined := map[int]bool{}
	for stack := []int32{to}; len(stack) > 0; {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t == from {
			return true
		}
		next := []int32{}
		if before[t] >= 0 {
			next = append(next, before[t])
		}
		for _, w := range p.flat.Tasks[t].Waits {
			if !joined[w.Counter] {
				joined[w.Counter] = true
				next = append(next, p.producers.of(w.Counter)...)
			}
		}
		for _, q := range next {
			if !seen[q] {
				seen[q] = true
				stack = append(stack, q)
			}
		}
	}
	return false
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
	s.report(l, i, a, CodeClobbered, "reads %s, but there %s has written %s: the two are live together and cannot share a page",
		s.span(l, i, a), s.p.who(g.writer), s.p.flat.Buffers[g.buf].Name)
}
