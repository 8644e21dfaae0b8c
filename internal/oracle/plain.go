package oracle

import "amkc/ir"

// read looks at a plain cell.
func (s *state) read(t, c int, a access) {
	m := s.m
	w := int(s.writer[c])
	switch {
	case w < 0:
		if !m.cells[c].initial {
			s.fail(Undefined, t, "reads %s, which nobody has written", m.where(c, a.buf))
		}
	case w != t && !s.known.of(t).has(w):
		s.fail(Race, t, "reads %s, written by %s, of which it does not know", m.where(c, a.buf), m.tasks[w].name)
	case *s.through[c] != a.buf.Name:
		s.fail(Clobbered, t, "reads %s, where %s has written %s", m.where(c, a.buf), m.tasks[w].name, *s.through[c])
	case a.buf.Kind != ir.KVCache && m.tasks[w].step != m.tasks[t].step:
		s.fail(Undefined, t, "reads %s, written in the step before", m.where(c, a.buf))
	}
	s.readers.of(c).add(t)
}

// write changes a plain cell.
func (s *state) write(t, c int, a access) {
	m := s.m
	if w := int(s.writer[c]); w >= 0 && w != t && !s.known.of(t).has(w) {
		s.fail(Race, t, "writes %s, written by %s, of which it does not know", m.where(c, a.buf), m.tasks[w].name)
	}
	if r := s.readers.of(c).firstOutside(s.known.of(t), t); r >= 0 {
		s.fail(Race, t, "writes %s, read by %s, of which it does not know", m.where(c, a.buf), m.tasks[r].name)
	}
	s.writer[c], s.through[c] = int32(t), &a.buf.Name
	clear(s.readers.of(c))
}
