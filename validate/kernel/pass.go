package kernel

import (
	"amkc/ir"
	"amkc/validate"
)

// maxTokens is how many tokens a pass of the kernel has at most: each of its eight consumer warps chooses the token
// after one of them.
const maxTokens = 8

// checkPass: a pass has one token, or is one that the stage bodies for several take. A unit of attention has one row of
// one sequence of several, as in a pass of one token, so that what it is held to is for several rows alone.
func (p *contract) checkPass() {
	of := p.flat.Pass
	rows := of.NumRows()
	switch {
	case of.NumTokens() == 1:
		return
	case of.NumSequences() > 1 && rows > 1 || of.NumTokens() > maxTokens:
		p.Errorf(CodeTokens, "", "a pass takes %d rows of %d sequences, and the kernel takes at most %d rows of one, "+
			"or one row of each of %d", rows, of.NumSequences(), maxTokens, maxTokens).
			Suggest(otherwise, validate.Reference)
		return
	}
	for t := range p.flat.Tasks {
		if p.Root(t) != t {
			continue
		}
		if what := ofOneToken(&p.flat.Tasks[t], rows); what != "" {
			p.Errorf(CodeTokens, p.Task(int32(t)), "%s, which the kernel does in passes of one row alone", what).
				Suggest(otherwise, validate.Reference)
			return
		}
	}
}

// otherwise is what may be done about a pass that the kernel does not take.
const otherwise = "lower the model for one token per pass, or prove the program for backend %s"

// ofOneToken says what a task does that the kernel has no stage body for in a pass of several tokens, which are so many
// rows of each sequence; empty if nothing.
func ofOneToken(t *ir.Task, rows int) string {
	embeds := 0
	for k := range t.Ops {
		if t.Ops[k].Code == ir.EMBED {
			embeds++
		}
	}
	if rows == 1 && embeds > 1 {
		return "looks rows of a table up by the positions of several sequences"
	}
	return ""
}
