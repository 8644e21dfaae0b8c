package op

// gated declares the middle of a gated MLP: an activation of the gate, times up. function computes it in the device
// runtime. An activation is one op here, one function in refvm, and two in the device runtime.
func gated(code int, name, function, doc string) *Spec {
	return declare(Spec{
		Code:      code,
		Name:      name,
		Doc:       doc,
		Pointwise: true,
		Kernel:    true,
		Finisher:  &Finisher{Func: function, Row: true, Result: "act", Halves: true},
		Forms: []Form{{
			When:  "with one operand",
			If:    func(inputs int, _ Args) bool { return inputs == 1 },
			In:    []Operand{{Name: "x", Shape: "[B,2n*]"}},
			Out:   results("[B,n]"),
			Shape: interleaved,
		}, {
			When:  "with two operands",
			In:    []Operand{{Name: "gate", Shape: "[n*]"}, {Name: "up", Shape: "[n]"}},
			Out:   results("[n]"),
			Shape: same,
		}},
	})
}

// interleaved is the shape rule of a gate and what it is multiplied with in one operand.
func interleaved(c *Call) (n, last int) {
	if last = c.In[0].Last; last%2 != 0 {
		c.Fail("one interleaved operand has rows of %d elements, want an even number", last)
	}
	return c.In[0].N() / 2, last / 2
}

// Gated reports whether the op is an activation of a gate, times up, of which one operand may hold the two interleaved.
func (s *Spec) Gated() bool { return s.Finisher != nil && s.Finisher.Halves }
