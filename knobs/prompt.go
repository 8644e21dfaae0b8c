package knobs

import (
	"amkc/ir/diag"
)

const (
	promptTile  = 64 // tokens that a block multiplies at once
	promptShare = 64 // of the target's memory, one part
)

// promptThatFits is the default of prompt.tokens. The vectors of a token are the residual, what the stages of a layer
// hand over, and, where a long context is split, the shares of the splits.
func promptThatFits(c *Case, _ string) int {
	tokens := c.rows[PromptTokens].Default
	if c.Target == nil || c.Target.HBMBytes <= 0 {
		return tokens
	}
	fit := c.Target.HBMBytes / promptShare / max(1, promptTokenBytes(c))
	return max(promptTile, min(tokens, fit/promptTile*promptTile))
}

// promptTokenBytes is an estimate from above of what a token takes of the workspace of a pass, as stages of each kind
// have their pages in as many copies as the exchanges of a step, with a word of 4 bytes for a pair of elements.
func promptTokenBytes(c *Case) int {
	m := c.Model
	heads, copies := m.Heads*m.HeadDim, c.Of(Copies)
	bytes := 4*m.Hidden + 4*m.HeadDim + 2*max(m.Hidden, heads, m.Intermediate)
	bytes += copies * 2 * (2*m.Hidden + 2*heads + 2*m.KVHeads*m.HeadDim + m.Intermediate)
	if c.Of(SplitFrom) < m.MaxSeq {
		splits := min(c.Of(MaxSplits), max(1, c.Target.SMs/max(1, m.KVHeads)))
		bytes += 4 * m.Heads * (m.HeadDim + 2) * splits
	}
	return bytes
}

// checkPrompt refuses a number of tokens for a kernel that the target, or the dtype, has none of.
func checkPrompt(c *Case) *diag.Diagnostic {
	t, m := c.Target, c.Model
	if t == nil || c.Of(PromptTokens) == promptThatFits(c, "") || c.Of(PromptTokens) == 0 {
		return nil
	}
	if !t.RunsOnTensorCores(m.Weights) {
		return c.idle(PromptTokens, "passes over prompts multiply 16-bit elements on tensor cores, and %s has none "+
			"for %s; want 0", t.Name, m.Weights)
	}
	return nil
}
