package validate

import "amkc/ir"

// measure tries every position for a view whose bounds do not say at once that its length stays the same, and notes
// what it finds. It reports whether every dimension but free has one length, which then counts. Only what would be
// refused otherwise is measured.
func (p *Proof) measure(o *ir.Operand, v *view, free int) bool {
	v.rows, v.last, v.ext, v.dim = 1, 1, fixed, -1
	for d := range o.Dims {
		n, ext := p.lengths(&o.Dims[d])
		if d == free {
			n, ext, v.dim = 1, fixed, d
		}
		v.ext = max(v.ext, ext)
		if d == len(o.Dims)-1 {
			v.last = n
		} else {
			v.rows *= n
		}
	}
	steady := v.ext == fixed
	if free >= 0 {
		v.ext = varying
	}
	return steady
}

// alwaysEmpty reports whether a view has no element at any position.
func (p *Proof) alwaysEmpty(o *ir.Operand) bool {
	for pos := p.flat.Lo; pos <= p.flat.Hi; pos++ {
		n := 1
		for d := range o.Dims {
			n = min(n, o.Dims[d].Len(pos))
		}
		if n > 0 || !p.spend(&p.work.evals, 1, maxEvals, "evaluations of the length of a view that depends on pos",
			noTask) {
			return false
		}
	}
	return true
}

// lengths evaluates the length of a range at every position: the length, if it is always the same, or 1.
func (p *Proof) lengths(r *ir.Range) (int, extent) {
	shortest, longest := r.Len(p.flat.Lo), r.Len(p.flat.Lo)
	if !moves(r) {
		return longest, fixed
	}
	for pos := p.flat.Lo + 1; pos <= p.flat.Hi; pos++ {
		if !p.spend(&p.work.evals, 1, maxEvals, "evaluations of the length of a view that depends on pos", noTask) {
			return 1, varying
		}
		n := r.Len(pos)
		shortest, longest = min(shortest, n), max(longest, n)
	}
	switch {
	case shortest == longest:
		return longest, fixed
	case longest <= 1:
		return 1, optional
	}
	return 1, varying
}

// moves reports whether a range depends on pos.
func moves(r *ir.Range) bool {
	return r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) || r.Shared() && r.Part.Uses(ir.Pos)
}
