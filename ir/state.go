package ir

import "fmt"

// A State is what a layer keeps from step to step, of one sequence: rows that are addressed by the position, one of K
// and one of V for each, of every kv head. A row that a step has written and that is not accepted is written again
// before anything reads it. The elements have the type of the model's cache.
type State struct {
	Heads    int // that have rows of their own
	Elements int // of a row of K, and of V
}

// Shape is that of its buffer, for n positions.
func (s State) Shape(n int) []int { return []int{s.Heads, n, 2, s.Elements} }

// Spell is the shape in words.
func (s State) Spell(positions int) string {
	return fmt.Sprintf("[%d, %d, 2, %d]", s.Heads, positions, s.Elements)
}

// Has reports whether a buffer of a shape holds it for a number of positions, of one sequence or of each of several.
func (s State) Has(shape []int, positions int) bool {
	n := len(shape)
	return n >= 4 && shape[n-4] == s.Heads && shape[n-3] == positions && shape[n-2] == 2 && shape[n-1] == s.Elements
}

// StateRows is how many rows of K, and of V, a block of a state has.
const StateRows = 16

// Block is the bytes of a block: rows of K of a head, and those of V.
func (s State) Block(d DType) int { return CacheBlock(d, s.Elements) }

// Bytes is what it takes for a number of positions. Blocks of a head are side by side.
func (s State) Bytes(d DType, positions int) int {
	return satMul(satMul(s.Heads, roundUp(positions, StateRows)/StateRows), s.Block(d))
}
