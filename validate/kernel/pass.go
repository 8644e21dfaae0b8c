package kernel

import "amkc/validate"

// maxTokens is how many tokens a pass of the kernel has at most: each of its eight consumer warps chooses the token
// after one of them.
const maxTokens = 8

// checkPass: a pass has one token, or is one that the stage bodies for several take: rows of one sequence, or a row of
// each of several.
func (p *contract) checkPass() {
	of := p.flat.Pass
	if of.NumSequences() > 1 && of.NumRows() > 1 || of.NumTokens() > maxTokens {
		p.Errorf(CodeTokens, "", "a pass takes %d rows of %d sequences, and the kernel takes at most %d rows of one, "+
			"or one row of each of %d", of.NumRows(), of.NumSequences(), maxTokens, maxTokens).
			Suggest(otherwise, validate.Reference)
	}
}

// otherwise is what may be done about a pass that the kernel does not take.
const otherwise = "lower the model for one token per pass, or prove the program for backend %s"
