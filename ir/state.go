package ir

import "fmt"

// A State is what a layer keeps from step to step, of one sequence: rows that are addressed by the position. Attention
// keeps one of K and one of V for each position, of every kv head, in the type of the model's cache. A short
// convolution keeps what it convolves: one row for each position, in float32, of every group of channels. A row that a
// step has written and that is not accepted is written again before anything reads it.
type State struct {
	Heads    int  // or groups, that have rows of their own
	Elements int  // of a row
	Inputs   bool // of a convolution
}

// Rows is how many there are for each position.
func (s State) Rows() int {
	if s.Inputs {
		return 1
	}
	return 2
}

// Type is that of its elements, in a model whose cache has a type.
func (s State) Type(cache DType) DType {
	if s.Inputs {
		return F32
	}
	return cache
}

// Shape is that of its buffer, for n positions.
func (s State) Shape(n int) []int { return []int{s.Heads, n, s.Rows(), s.Elements} }

// Spell is the shape in words.
func (s State) Spell(positions int) string {
	return fmt.Sprintf("[%d, %d, %d, %d]", s.Heads, positions, s.Rows(), s.Elements)
}

// Has reports whether a buffer of a shape holds it for a number of positions, of one sequence or of each of several.
func (s State) Has(shape []int, positions int) bool {
	n := len(shape)
	return n >= 4 && shape[n-4] == s.Heads && shape[n-3] == positions && shape[n-2] == s.Rows() &&
		shape[n-1] == s.Elements
}

// StateRows is how many positions a block of a state has the rows of.
const StateRows = 16

// Block is the bytes of a block of a head, in a model whose cache has a type: rows of K, those of V, and for I8 a
// 16-bit scale for each row; or rows of a convolution.
func (s State) Block(cache DType) int {
	d := s.Type(cache)
	bytes := d.Bytes(satMul(s.Rows()*StateRows, roundUp(s.Elements, 16)))
	if d == I8 {
		bytes += s.Rows() * StateRows * BF16.Bytes(1)
	}
	return bytes
}

// Bytes is what it takes for a number of positions. Blocks of a head are side by side.
func (s State) Bytes(cache DType, positions int) int {
	return satMul(satMul(s.Heads, roundUp(positions, StateRows)/StateRows), s.Block(cache))
}
