package kernel

import "amkc/validate"

// maxTokens is how many tokens a pass of the kernel has at most: each of its eight consumer warps chooses the token
// after one of them.
const maxTokens = 8

// checkPass: a pass has as many tokens as the stage bodies take.
func (p *contract) checkPass() {
	if of := p.flat.Pass; of.NumTokens() > maxTokens {
		p.Errorf(CodeTokens, "", "a pass takes %d rows of %d sequences, and the kernel takes at most %d tokens",
			of.NumRows(), of.NumSequences(), maxTokens).
			Suggest(otherwise, validate.Reference)
	}
}

// otherwise is what may be done about a pass that the kernel does not take.
const otherwise = "lower the model for one token per pass, or prove the program for backend %s"
