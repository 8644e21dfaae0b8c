package simulate

import "amkc/ir"

// read looks at a plain cell.
func (s *state) read(t int32, c int, a access) {
	m := s.m
	w := s.writer[c]
	switch {
	case w < 0:
		if !m.cells[c].initial {
			s.fail(Undefined, t, "reads %s, which nobody has written", m.where(c, a.buf))
		}
	case w != t && !s.known.of(int(t)).has(m.homes[w]):
		s.fail(Race, t, "reads %s, written by %s, of which it does not know", m.where(c, a.buf), m.tasks[w].name)
	case *s.through[c] != a.buf.Name:
		s.fail(Clobbered, t, "reads %s, where %s has written %s", m.where(c, a.buf), m.tasks[w].name, *s.through[c])
	case a.buf.Kind != ir.KVCache && m.tasks[w].step != m.tasks[t].step:
		s.fail(Undefined, t, "reads %s, written in the step before", m.where(c, a.buf))
	}
	if was := s.readers[c]; was == nil || was.task != t {
		s.readers[c] = &reader{t, was}
	}
}

// write changes a plain cell.
func (s *state) write(t int32, c int, a access) {
	m, known := s.m, s.known.of(int(t))
	if w := s.writer[c]; w >= 0 && w != t && !known.has(m.homes[w]) {
		s.fail(Race, t, "writes %s, written by %s, of which it does not know", m.where(c, a.buf), m.tasks[w].name)
	}
	for r := s.readers[c]; r != nil; r = r.next {
		if r.task != t && !known.has(m.homes[r.task]) {
			s.fail(Race, t, "writes %s, read by %s, of which it does not know", m.where(c, a.buf), m.tasks[r.task].name)
		}
	}
	s.writer[c], s.through[c], s.readers[c] = t, &a.buf.Name, nil
}
