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
		s.fb, s.hb = c.joinDone(s.fb, other), c.joinDone(s.hb, other)
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
	case p.kin(s.task).any(p.producers.of(c)):
		return fmt.Sprintf("%s is not complete before this task has run: let %s signal a counter of its own "+
			"and wait for it", p.flat.Counters[c].Name, p.flat.Tasks[other].Name)
	}
	total := p.flat.Counters[c].Init + len(p.producers.of(c))
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
