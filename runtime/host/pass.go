package host

import (
	"fmt"
	"slices"
)

// Pass is a kernel of the build that decodes several tokens in a step: consecutive positions of a sequence, or of each
// of several sequences. Its files are in a directory of their own, [Pass.Dir].
type Pass struct {
	Rows      int      `json:"rows"` // of each sequence
	Sequences int      `json:"sequences,omitempty"`
	Stages    []string `json:"stages"` // as those of [Facts]
}

// Tokens is the number of tokens that a step decodes.
func (p Pass) Tokens() int { return p.Rows * max(1, p.Sequences) }

// Valid reports whether a kernel takes such passes.
func (p Pass) Valid() bool {
	if p.Sequences == 0 {
		return 2 <= p.Rows && p.Rows <= MaxPassTokens
	}
	return p.Rows >= 1 && p.Sequences >= 2 && p.Rows <= MaxPassTokens && p.Sequences <= MaxPassTokens/p.Rows
}

// follows reports whether a build may have a pass after another one.
func (p Pass) follows(before Pass) bool {
	switch {
	case p.Sequences == 0:
		return before.Sequences == 0 && p.Rows > before.Rows
	case p.Rows == 1:
		return before.Sequences == 0
	}
	return before.Rows == 1 && p.Sequences == before.Sequences
}

// Dir is the directory of the build that holds the kernel; empty for the kernel of one token.
func (p Pass) Dir() string {
	switch {
	case p.Sequences > 1 && p.Rows > 1:
		return fmt.Sprintf("sequences%drows%d", p.Sequences, p.Rows)
	case p.Sequences > 1:
		return fmt.Sprintf("sequences%d", p.Sequences)
	case p.Rows > 1:
		return fmt.Sprintf("rows%d", p.Rows)
	}
	return ""
}

// String describes the pass.
func (p Pass) String() string {
	switch {
	case p.Sequences > 0 && p.Rows > 1:
		return fmt.Sprintf("%d rows of each of %d sequences", p.Rows, p.Sequences)
	case p.Sequences > 0:
		return fmt.Sprintf("%d sequences", p.Sequences)
	}
	return fmt.Sprintf("%d rows", p.Rows)
}

// MaxPassTokens is the maximum number of tokens of a pass: consecutive ones of one sequence, or the same number of each
// of several.
const MaxPassTokens = 8

// MaxSequences is the maximum number of sequences of a pass.
const MaxSequences = MaxPassTokens

// VerifiesDrafts reports whether the build has a kernel that verifies drafts: of one sequence, or of several at a time.
func (f *Facts) VerifiesDrafts(several bool) bool {
	return slices.ContainsFunc(f.Passes, func(p Pass) bool { return p.Rows > 1 && (p.Sequences > 1) == several })
}
