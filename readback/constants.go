package readback

import (
	"math"

	"amkc/ir/diag"
	"amkc/knobs"
)

// A reader collects what is wrong with the constants of one header.
type reader struct {
	*block
	diags *diag.List
}

// maxFindings is how many findings are reported: a header of other names has tens of thousands.
const maxFindings = 50

func (r *reader) fail(at pos, format string, args ...any) {
	if len(*r.diags) >= maxFindings {
		return
	}
	r.diags.Add(diag.Errorf(codeConstants, r.spell(at), format, args...))
}

// limits are the largest values of the integer types; a literal beyond would be another number in the kernel.
var limits = map[string]int{"int": math.MaxInt32, "unsigned": math.MaxUint32, "size_t": 1 << 53}

// take returns a constant of a scope. One that is missing is reported; what comes back then is zero.
func (r *reader) take(s *scope, name, typ string, kind valueKind) value {
	c := s.byName[name]
	s.taken[name] = true
	switch {
	case c == nil && s.name == "":
		r.fail(s.at, "no constant %s; want constexpr %s %s", name, typ, name)
	case c == nil:
		r.fail(s.at, "struct %s has no constant %s; want static constexpr %s %s", s.name, name, typ, name)
	case c.typ != typ || c.array:
		r.fail(c.at, "%s is declared as %s; want %s", name, c.typ, typ)
	case c.value.kind != kind:
		r.fail(c.value.at, "%s is %s; want %s", name, kindNames[c.value.kind], kindNames[kind])
	case kind == integer && c.value.n > limits[typ]:
		r.fail(c.value.at, "%s is %d, which %s cannot hold; want at most %d", name, c.value.n, typ, limits[typ])
	default:
		return c.value
	}
	return value{}
}

func (r *reader) int(s *scope, name string) int      { return r.take(s, name, "int", integer).n }
func (r *reader) unsigned(s *scope, name string) int { return r.take(s, name, "unsigned", integer).n }
func (r *reader) bool(s *scope, name string) bool    { return r.take(s, name, "bool", boolean).n == 1 }
func (r *reader) float(s *scope, name string) float64 {
	return r.take(s, name, "float", float).f
}

// positive is int for what counts something that is there.
func (r *reader) positive(s *scope, name string) int {
	n := r.int(s, name)
	if n == 0 {
		r.wrong(s, name, "0; want at least 1")
	}
	return max(1, n)
}

// knob is the constant of a knob. What is not legal is reported; what comes back then is the default.
func (r *reader) knob(s *scope, row *knobs.Row) int {
	n := r.take(s, row.Constant.Name, row.Constant.Type, integer).n
	if row.Legal.Has(n) {
		return n
	}
	r.wrong(s, row.Constant.Name, "%d; want %v", n, row.Legal)
	return row.Default
}

// wrong reports a constant of a scope, which is there unless it has been reported as missing.
func (r *reader) wrong(s *scope, name, format string, args ...any) {
	if c := s.byName[name]; c != nil {
		r.fail(c.value.at, name+" is "+format, args...)
	}
}

// same reports a constant of the header that is not what follows from the others.
func (r *reader) same(s *scope, name string, got, want int, why string) {
	if got != want {
		r.wrong(s, name, "%d; want %d, %s", got, want, why)
	}
}

// rest reports the constants that nobody has taken.
func (r *reader) rest(s *scope) {
	for _, c := range s.order {
		if !s.taken[c.name] {
			r.fail(c.at, "%s is not a constant that is known here", c.name)
		}
	}
}
