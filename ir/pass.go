package ir

import (
	"fmt"

	"amkc/runtime/shape"
)

// Pass is what one pass of a program decodes. In a pass of several tokens, a buffer with a value per token has a
// leading axis of tokens; in a pass of several sequences, a cache has a leading axis of sequences (docs/ir.md).
type Pass = shape.Pass

// Limits of a pass. A row is a row of a product; a sequence is a symbol of the proof and a block of every cache.
const (
	MaxSequences = 64
	MaxRows      = 256
	MaxTokens    = 1024
)

// PassOf returns a pass as programs hold it.
func PassOf(sequences, rows int) Pass { return shape.PassOf(sequences, rows) }

// passFields are those of a pass as the forms name them.
func passFields(p *Pass) []field { return []field{{"sequences", &p.Sequences}, {"rows", &p.Rows}} }

// LacksAxis returns the leading axis that the buffer lacks in a pass, or "": inputs and outputs of the host have a row
// for each token, and each sequence has a cache.
func (b *Buffer) LacksAxis(p Pass) string {
	n, what := 1, ""
	switch {
	case b.Kind == Output, b.Role == RoleToken, b.Role == RoleEmbeddings:
		n, what = p.NumTokens(), "tokens"
	case b.Kind.OfSequences():
		n, what = p.NumSequences(), "sequences"
	}
	if n == 1 || len(b.Shape) > 0 && b.Shape[0] == n {
		return ""
	}
	return fmt.Sprintf("the %d %s of a pass as its first dimension", n, what)
}

// pass checks the line pass, and every buffer against it.
func (c *checker) pass() {
	p := &c.p.Pass
	c.numbers("pass", "pass", passFields(p))
	if n := p.NumTokens(); n > MaxTokens {
		c.fail(CodeRange, "pass", "%d rows of %d sequences are %d tokens, want at most %d", p.NumRows(),
			p.NumSequences(), n, MaxTokens)
	}
	for i := range c.p.Buffers {
		b := &c.p.Buffers[i]
		if want := b.LacksAxis(*p); want != "" {
			c.fail(CodeShape, "buffer "+b.Name, "%v of shape %v, want %s", b.Kind, b.Shape, want)
		}
	}
}
