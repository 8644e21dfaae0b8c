package codegen

import (
	"fmt"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// A site is where a stage is emitted: in no loop, or in the body of one.
type site struct {
	loop   *ir.Loop // nil: in none
	number int      // of the loop in its variant, from 0
}

// indices are the values of {i} at a site; outside of loops a name has none, and one value stands for it.
func (s site) indices() []int {
	if s.loop == nil {
		return []int{0}
	}
	out := make([]int, s.loop.Count)
	for t := range out {
		out[t] = s.loop.Index(t)
	}
	return out
}

// indicesOf are those of them that a stage runs with, where iterations are of several kinds.
func (s site) indicesOf(st *ir.Stage) []int {
	if s.loop == nil {
		return s.indices()
	}
	out := s.loop.Iterations(st)
	for n, k := range out {
		out[n] = s.loop.Index(k)
	}
	return out
}

// members returns what a name stands for at a site: one buffer, or one for each iteration.
func (b *builder) members(name string, at site) ([]ir.Member, error) {
	ms, err := b.names.In(name, at.loop)
	if err != nil {
		return nil, diag.Errorf(codeStructure, "buffer "+name, "%v", err)
	}
	return ms, nil
}

// buffer returns what a name stands for at a site, in the first iteration where that is a buffer; nil if it never is.
func (b *builder) buffer(name string, at site) *ir.Buffer {
	for _, i := range at.indices() {
		if m, err := b.names.At(name, i); err == nil {
			return &b.p.Buffers[m.Declared]
		}
	}
	return nil
}

// matrix is what a product of a stage streams, or what it takes a row of; nil if it has none.
func (b *builder) matrix(s *ir.Stage, at site) *ir.Buffer {
	for _, o := range []*ir.Op{kernel.ProductOf(s.Ops), op(s, ir.EMBED)} {
		if name := buf(o.In, 1); name != "" {
			if m, err := b.names.At(name, at.indicesOf(s)[0]); err == nil {
				return &b.p.Buffers[m.Declared]
			}
		}
	}
	return nil
}

// checkFormats refuses a stage whose matrix is stored in one format in some iterations, and in another in others: its
// descriptor has one.
func (b *builder) checkFormats(s *ir.Stage, at site) error {
	matrix := b.matrix(s, at)
	if matrix == nil {
		return nil
	}
	for _, i := range at.indicesOf(s) {
		m, err := b.names.At(buf(kernel.ProductOf(s.Ops).In, 1), i)
		if err != nil {
			continue
		}
		if other := &b.p.Buffers[m.Declared]; other.Format() != matrix.Format() {
			return diag.Errorf(codeStage, "stage "+s.Name, "streams %s as %s %s, and as %s %s in iteration %d; want "+
				"one format, and iterations of several kinds where there are more", m.Name, matrix.DType,
				matrix.Layout, other.DType, other.Layout, i)
		}
	}
	return nil
}

// steps reports whether values advance by the same number from each to the next one, and by how many; a single
// value counts as advancing by 1.
func steps(values []int) (by int, even bool) {
	by = 1
	if len(values) > 1 {
		by = values[1] - values[0]
	}
	for t := range values {
		if values[t] != values[0]+t*by {
			return 0, false
		}
	}
	return by, true
}

// expression is C++ for a value that is first + by*t in the t-th iteration, by the variable of the loop.
func (s site) expression(variable string, first, by int) string {
	if by == 0 || s.loop == nil {
		return itoa(first)
	}
	plus := func(e string, n int) string {
		switch {
		case n > 0:
			return fmt.Sprintf("%s + %d", e, n)
		case n < 0:
			return fmt.Sprintf("%s - %d", e, -n)
		}
		return e
	}
	step := max(1, s.loop.Step)
	if step == by {
		return plus(variable, first-s.loop.First) // first + by*(variable - First)/step
	}
	e := s.iteration(variable)
	if by != 1 {
		if step == 1 && s.loop.First != 0 {
			e = "(" + e + ")"
		}
		e = fmt.Sprintf("%s * %d", e, by)
	}
	return plus(e, first)
}

// iteration is C++ for the number of the iteration, from 0.
func (s site) iteration(variable string) string {
	e := variable
	if s.loop.First != 0 {
		e = fmt.Sprintf("%s - %d", e, s.loop.First)
	}
	if s.loop.Step > 1 {
		if s.loop.First != 0 {
			e = "(" + e + ")"
		}
		e = fmt.Sprintf("%s / %d", e, s.loop.Step)
	}
	return e
}
