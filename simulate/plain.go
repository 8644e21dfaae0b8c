package simulate

// read looks at a plain cell.
func (s *state) read(t int32, c int, a access) {
	m := s.m
	w := s.writer[c]
	switch {
	case w < 0:
		if !m.cells[c].initial {
			s.unwritten(t, c, a)
		}
	case w != t && !s.known.of(int(t)).has(m.homes[w]):
		s.fail(Race, t, w, "reads %s, which %s writes, and nothing orders the two", m.where(c, a.buf), m.tasks[w].name)
	case *s.through[c] != a.buf.Name:
		s.fail(Clobbered, t, w, "reads %s, where %s has written %s", m.where(c, a.buf), m.tasks[w].name, *s.through[c])
	case !a.buf.Kind.OfSequences() && m.tasks[w].step != m.tasks[t].step:
		s.fail(Undefined, t, -1, "reads %s, written in the step before", m.where(c, a.buf))
	}
	if was := s.readers[c]; was == nil || was.task != t {
		s.readers[c] = &reader{t, was}
	}
}

// unwritten notes a read of what nobody has written, and who may have been meant to.
func (s *state) unwritten(t int32, c int, a access) {
	if s.hazard != nil {
		return
	}
	m := s.m
	for w := range m.tasks {
		if int32(w) == t || m.tasks[w].step != m.tasks[t].step {
			continue
		}
		for k := range m.tasks[w].ops {
			for _, b := range m.tasks[w].ops[k].writes {
				if b.buf == a.buf && b.lo <= c && c < b.hi {
					s.fail(Undefined, t, int32(w), "reads %s before %s has written it", m.where(c, a.buf),
						m.tasks[w].name)
					return
				}
			}
		}
	}
	s.fail(Undefined, t, -1, "reads %s, which nobody has written", m.where(c, a.buf))
}

// write changes a plain cell.
func (s *state) write(t int32, c int, a access) {
	m, known := s.m, s.known.of(int(t))
	if w := s.writer[c]; w >= 0 && w != t && !known.has(m.homes[w]) {
		s.fail(Race, t, w, "writes %s, as %s does, and nothing orders the two", m.where(c, a.buf), m.tasks[w].name)
	}
	for r := s.readers[c]; r != nil; r = r.next {
		if r.task != t && !known.has(m.homes[r.task]) {
			s.fail(Race, t, r.task, "writes %s, which %s reads, and nothing orders the two", m.where(c, a.buf),
				m.tasks[r.task].name)
		}
	}
	s.writer[c], s.through[c], s.readers[c] = t, &a.buf.Name, nil
}
