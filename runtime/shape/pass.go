// Package shape defines the shape of a pass: the number of sequences that it decodes, and the number of rows of each.
// Programs, kernels, builds and messages all use this one type.
//
// It is copied into every launcher. It imports the standard library only, and must not import any other package of
// amkc.
package shape

import (
	"fmt"
	"math"
)

// Pass is what one pass decodes: Rows consecutive tokens of each of Sequences sequences, such as a piece of a prompt,
// or drafts. Token s*Rows + r of the pass is row r of sequence s, at position pos[s] + r. Each sequence has its own
// position and its own caches. The zero value is one token.
type Pass struct {
	Sequences int `json:"sequences"` // 0 means 1
	Rows      int `json:"rows"`      // of each sequence; 0 means 1
}

// MaxTokens is the maximum number of tokens of a pass of the kernel: consecutive ones of one sequence, or the same
// number of each of several.
const MaxTokens = 8

// PassOf returns a pass in normal form: passes of the same shape are equal.
func PassOf(sequences, rows int) Pass {
	p := Pass{sequences, rows}
	for _, n := range []*int{&p.Sequences, &p.Rows} {
		if *n == 1 {
			*n = 0
		}
	}
	return p
}

// Most returns the smallest pass that has at least as many sequences, and as many rows of each, as this and others.
func (p Pass) Most(others ...Pass) Pass {
	for _, o := range others {
		p = PassOf(max(p.NumSequences(), o.NumSequences()), max(p.NumRows(), o.NumRows()))
	}
	return p
}

// NumSequences, NumRows and NumTokens return how many sequences a pass has, how many rows of each, and how many tokens
// in all, at most the largest int.
func (p Pass) NumSequences() int { return max(1, p.Sequences) }
func (p Pass) NumRows() int      { return max(1, p.Rows) }
func (p Pass) NumTokens() int {
	if p.NumRows() > math.MaxInt/p.NumSequences() {
		return math.MaxInt
	}
	return p.NumSequences() * p.NumRows()
}

// Written returns the pass with the numbers that files and reports show: 1 instead of 0.
func (p Pass) Written() Pass {
	for _, n := range []*int{&p.Sequences, &p.Rows} {
		if *n == 0 {
			*n = 1
		}
	}
	return p
}

// HasKernel reports whether a kernel of its own takes such passes of several tokens.
func (p Pass) HasKernel() bool {
	return min(p.Sequences, p.Rows) >= 0 && 1 < p.NumTokens() && p.NumTokens() <= MaxTokens
}

// Follows reports whether a build may have a kernel of such passes right after one of others, or of one token. It has
// kernels of several rows, by their number, then one of a row of each of several sequences at most, and then one of
// several rows of each of as many at most.
func (p Pass) Follows(before Pass) bool {
	switch {
	case before.NumSequences() > 1:
		return before.NumRows() == 1 && p.NumRows() > 1 && p.NumSequences() == before.NumSequences()
	case p.NumSequences() > 1:
		return p.NumRows() == 1
	}
	return p.NumRows() > before.NumRows()
}

// Dir is the directory of a build that holds the kernel; empty for the kernel of one token.
func (p Pass) Dir() (dir string) {
	if n := p.NumSequences(); n > 1 {
		dir = fmt.Sprint("sequences", n)
	}
	if n := p.NumRows(); n > 1 {
		dir += fmt.Sprint("rows", n)
	}
	return dir
}

// String describes the pass.
func (p Pass) String() string {
	switch sequences, rows := p.NumSequences(), p.NumRows(); {
	case rows == 1 && sequences == 1:
		return "1 token"
	case sequences == 1:
		return fmt.Sprint(rows, " rows")
	case rows == 1:
		return fmt.Sprint(sequences, " sequences")
	default:
		return fmt.Sprintf("%d rows of each of %d sequences", rows, sequences)
	}
}
