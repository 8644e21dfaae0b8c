// Package transform declares the transforms between a tensor of the checkpoint and the rows of a packed buffer: rows of
// a fused tensor, rows in another order, a transpose, a number added to each element or multiplied with it. A transform
// is one entry of the table in declared.go: its name, its legal arguments, the shape of its result, and its meaning.
// Parsing, printing, the structural check, the tables of docs/ir.md and everything that loads weights use the table.
//
// The code for reference.cu is separate on purpose: codegen/reference_weights.go counts rows independently.
//
// The package imports nothing of amkc.
package transform

import (
	"slices"
	"strconv"
)

// A Kind is which transform it is. Kinds are numbered from 0 on in the order of the table.
type Kind int

// The transforms of the table. A result is described by its rows r and the rows of the tensor that it is made of.
const (
	Rows      Kind = iota // rows of a fused tensor
	Pairs                 // rotary halves to pairs side by side
	Halves                // pairs side by side to rotary halves
	Even                  // every other row of the buffer, from the first on
	Odd                   // and those between them
	Transpose             // columns as rows
	Plus                  // a number added to each element
	Times                 // a number multiplied with each element
	Share                 // the rows of a rank
)

// A Transform is one step from a tensor to the rows of a buffer.
type Transform struct {
	Kind Kind
	Ints []int   // as its declaration lists them
	By   float64 // the number of Plus and Times
}

// Spec returns the declaration, or nil for a kind that does not exist.
func (t *Transform) Spec() *Spec {
	if t.Kind < 0 || int(t.Kind) >= len(table) {
		return nil
	}
	return &table[t.Kind]
}

// ByName returns the kind with the given name.
func ByName(name string) (Kind, bool) {
	i := slices.IndexFunc(table[:], func(s Spec) bool { return s.Name == name })
	return Kind(i), i >= 0
}

// All returns every declaration in the order of kinds.
func All() []Spec { return slices.Clone(table[:]) }

// String is the transform as the text form has it: its name, and its arguments after colons.
func (t Transform) String() string {
	s := t.Spec()
	if s == nil {
		return "#" + strconv.Itoa(int(t.Kind))
	}
	out := s.Name
	for _, n := range t.Ints {
		out += ":" + strconv.Itoa(n)
	}
	if s.Real != "" {
		out += ":" + strconv.FormatFloat(t.By, 'g', -1, 64)
	}
	return out
}

// Illegal says why the transform's arguments cannot be used, with what would be accepted, or nothing.
func (t *Transform) Illegal() string {
	s := t.Spec()
	switch {
	case s == nil:
		return "is unknown, want one of " + Names()
	case len(t.Ints) > len(s.Ints) || len(t.Ints) < len(s.Ints)-s.Optional:
		return "has " + strconv.Itoa(len(t.Ints)) + " integers, want " + s.Usage()
	case s.Real == "" && t.By != 0:
		return "has a number with a fraction, want " + s.Usage()
	case s.Real != "" && !usable(t.By):
		return "wants a magnitude that float32 holds as a normal number"
	}
	for _, n := range t.Ints {
		if n < 0 || n > maxRows {
			return "wants integers from 0 to " + strconv.Itoa(maxRows)
		}
	}
	if s.Legal == nil {
		return ""
	}
	return s.Legal(t.Ints)
}

// Names lists the transforms, for messages.
func Names() string {
	out := ""
	for i := range table {
		if i > 0 {
			out += ", "
		}
		out += table[i].Name
	}
	return out
}

// maxRows bounds the integers of transforms. No tensor that is packed has as many rows, and products of two fit an int.
const maxRows = 1 << 28

// MaxChain is the most transforms of one piece.
const MaxChain = 8

// A Chain leads from a tensor to rows of a buffer. The first transform applies to the tensor; an empty chain takes its
// rows as they are. Programs share chains, so that nobody changes one.
type Chain []Transform

// Of returns a chain of one transform with integers.
func Of(k Kind, ints ...int) Chain { return Chain{{Kind: k, Ints: ints}} }

// Then returns the chain with others after it.
func (c Chain) Then(others ...Transform) Chain { return append(slices.Clone(c), others...) }

// Equal reports whether two chains are the same.
func (c Chain) Equal(d Chain) bool {
	return slices.EqualFunc(c, d, func(t, u Transform) bool {
		return t.Kind == u.Kind && t.By == u.By && slices.Equal(t.Ints, u.Ints)
	})
}

// String is the chain around KEY, as the text form has it. Without transforms it is the rows as they are.
func (c Chain) String() string { return c.Around("KEY") }

// Around is the chain around a name.
func (c Chain) Around(name string) string {
	if len(c) == 0 {
		return table[Rows].Name + "(" + name + ")"
	}
	for i := range c {
		name = c[i].String() + "(" + name + ")"
	}
	return name
}

// interleaved returns which rows of its stretch of the buffer the chain's result takes: step is 2 for the even ones
// (offset 0) and the odd ones (offset 1), and 1 for all.
func (c Chain) interleaved() (offset, step int) {
	if len(c) > 0 {
		switch c[len(c)-1].Kind {
		case Even:
			return 0, 2
		case Odd:
			return 1, 2
		}
	}
	return 0, 1
}
