package codegen

import "amkc/ir"

// promptFile has the kernel that reads prompts: the stages of megakernel.cu, each for all tokens of a pass before the
// next one begins.
const promptFile = "prompt.cu"

// promptTokens is how many tokens such a pass takes at most. Products are cut into tiles of 128 rows and 64 tokens: of
// 512 tokens, the smallest matrices of common models still have tiles for all SMs.
const promptTokens = 512

// PromptTokens is how many tokens of a prompt the program's kernel for prompts takes at most; 0: there is none. It
// multiplies 16-bit elements on tensor cores.
func (b *builder) promptTokens() int {
	switch {
	case b.tokens > 1 || !b.usesMMA() || !b.p.Target.AsyncCopy || b.uneven:
		return 0
	case b.p.Model.Cache != b.p.Model.Weights && b.p.Model.Cache != ir.I8:
		return 0
	}
	return promptTokens
}

// WGMMA reports whether the architecture multiplies by wgmma, which those after it do not.
func (d *cudaData) WGMMA() bool { return d.arch == "sm_90a" }
