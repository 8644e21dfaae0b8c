package knobs

import (
	"math"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

const (
	promptTile  = 64  // tokens that a block multiplies at once
	listedTile  = 128 // and those of an expert, at most
	promptShare = 64  // of the target's memory, one part
)

// promptThatFits is the default of prompt.tokens. The vectors of a token are the residual, what the stages of a layer
// publish, what each of its experts reads and makes, and, where a long context is split, the shares of the splits.
func promptThatFits(c *Case, _ string) int {
	tokens := max(promptTile, min(c.rows[PromptTokens].Default, countedTokens(c)/promptTile*promptTile))
	if c.Target == nil || c.Target.HBMBytes <= 0 {
		return tokens
	}
	fit := (c.Target.HBMBytes/promptShare - listedBytes(c.Model)) / max(1, promptTokenBytes(c))
	return max(promptTile, min(tokens, fit/promptTile*promptTile))
}

// promptTokenBytes is an estimate from above of what a token takes of the workspace of a pass, as stages of each kind
// have their pages in as many copies as the exchanges of a step, with a word of 4 bytes for a pair of elements. Each of
// a token's experts has the token's vector, and a sum in fp32 for each row of its result.
func promptTokenBytes(c *Case) int {
	m := c.Model
	bytes := 4*m.Hidden + 4*m.Most(ir.HeadDimOf)
	bytes += 2 * max(slices.Max(m.Columns()), m.Most(ir.PerTokenOf)*listedColumns(m))
	bytes += c.Of(Copies) * 2 * m.Most(func(f *ir.LayerFacts) int {
		return 2*m.Hidden + 2*f.QueryRows() + 2*f.KeyRows() + max(1, f.PerToken)*f.Intermediate + f.Shared +
			2*f.Scores()
	})
	bytes += 4 * m.Most(func(f *ir.LayerFacts) int { return f.PerToken * (m.Hidden + 4) })
	return bytes + 4*splitResults(c)
}

// listedBytes is what experts without tokens take of the operand of a product, each a tile.
func listedBytes(m *ir.Model) int { return 2 * listedTile * m.Most(ir.ExpertsOf) * listedColumns(m) }

// listedColumns is the widest vector that the matrices of experts are multiplied by.
func listedColumns(m *ir.Model) int {
	return max(m.Hidden, m.Most(func(f *ir.LayerFacts) int { return min(f.Experts, 1) * f.Intermediate }))
}

// splitResults is how many numbers the splits of a token publish: of each head its result, a maximum and a sum.
func splitResults(c *Case) int {
	m, splits := c.Model, c.Of(MaxSplits)
	if c.Of(SplitFrom) >= m.MaxSeq {
		return 0
	}
	if c.Target != nil {
		splits = min(splits, max(1, c.Target.SMs/max(1, m.Most(ir.KVHeadsOf))))
	}
	return m.Most(func(f *ir.LayerFacts) int { return f.Heads * (f.HeadDim + 2) }) * splits
}

// countedTokens is for how many tokens the kernel can number what their splits publish, in 31 bits.
func countedTokens(c *Case) int { return math.MaxInt32 / max(1, splitResults(c)) }

// checkPrompt refuses more tokens than the kernel can count, and a number of tokens for a kernel that the target, or
// the dtype, has none of.
func checkPrompt(c *Case) *diag.Diagnostic {
	t, m := c.Target, c.Model
	if most := countedTokens(c) / promptTile * promptTile; c.Of(PromptTokens) > most {
		return diag.Errorf(codeRange, where(c.rows[PromptTokens].Path("")), "%d: the splits of a token publish %d "+
			"numbers, of which the kernel can count 2147483647; want 0 to %d, or a smaller attention.max_splits",
			c.Of(PromptTokens), splitResults(c), most)
	}
	if t == nil || c.Of(PromptTokens) == promptThatFits(c, "") || c.Of(PromptTokens) == 0 {
		return nil
	}
	if !t.RunsOnTensorCores(m.Weights) {
		return c.idle(PromptTokens, "passes over prompts multiply 16-bit elements on tensor cores, and %s has none "+
			"for %s; want 0", t.Name, m.Weights)
	}
	return nil
}
