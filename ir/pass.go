package ir

import "fmt"

// Pass is what one pass of a program decodes: Rows consecutive tokens of each of Sequences sequences, such as a piece
// of a prompt, or drafts. Token s*Rows + r of the pass is row r of sequence s, at position pos[s] + r. Each sequence
// has its own position and its own caches.
//
// In a pass of several tokens, a buffer with a value per token has a leading axis of tokens; in a pass of several
// sequences, a cache has a leading axis of sequences (docs/ir.md).
type Pass struct {
	Sequences int `json:"sequences"` // 0 means 1
	Rows      int `json:"rows"`      // of each sequence; 0 means 1
}

// Limits of a pass. A row is a row of a product; a sequence is a symbol of the proof and a block of every cache.
const (
	MaxSequences = 64
	MaxRows      = 256
	MaxTokens    = 1024
)

// PassOf returns a pass as programs hold it.
func PassOf(sequences, rows int) Pass { return Pass{oneAsZero(sequences), oneAsZero(rows)} }

// Most returns the smallest pass that has at least as many sequences, and as many rows of each, as each of these.
func Most(passes ...Pass) (most Pass) {
	for _, p := range passes {
		most = PassOf(max(most.NumSequences(), p.NumSequences()), max(most.NumRows(), p.NumRows()))
	}
	return most
}

// NumSequences, NumRows and NumTokens return how many sequences a pass has, how many rows of each, and how many tokens
// in all.
func (p Pass) NumSequences() int { return max(1, p.Sequences) }
func (p Pass) NumRows() int      { return max(1, p.Rows) }
func (p Pass) NumTokens() int    { return satMul(p.NumSequences(), p.NumRows()) }

// fields of a pass.
func (p *Pass) fields() []field { return []field{{"sequences", &p.Sequences}, {"rows", &p.Rows}} }

// written returns the pass with the numbers that the forms show.
func (p Pass) written() Pass {
	for _, f := range p.fields() {
		if n := f.ptr.(*int); *n == 0 {
			*n = 1
		}
	}
	return p
}

// Wants says which leading axis a buffer lacks in this pass, or nothing: the tokens that come from the host and what
// goes there is a row for each token, and each sequence has a cache.
func (p Pass) Wants(b *Buffer) string {
	n, what := 1, ""
	switch {
	case b.Kind == Output, b.Role == RoleToken, b.Role == RoleEmbeddings:
		n, what = p.NumTokens(), "tokens"
	case b.Kind == KVCache:
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
	c.numbers("pass", "pass", p.fields())
	if n := p.NumTokens(); n > MaxTokens {
		c.fail(CodeRange, "pass", "%d rows of %d sequences are %d tokens, want at most %d", p.NumRows(),
			p.NumSequences(), n, MaxTokens)
	}
	for i := range c.p.Buffers {
		b := &c.p.Buffers[i]
		if want := p.Wants(b); want != "" {
			c.fail(CodeShape, "buffer "+b.Name, "%v of shape %v, want %s", b.Kind, b.Shape, want)
		}
	}
}
