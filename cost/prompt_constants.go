package cost

// Constants of the kernel that reads prompts (prompt.cu), besides those of a step.
const (
	// promptStep is the cycles that a block without wgmma takes at least for a stage of its operand: to wait for it, to
	// have weights in registers, to multiply and to add up the sums, one after the other. Calibrated, of prompts:
	// products of 2048 columns of Llama-3.2-1B, whose stages have half of the bytes of others, were bound by it on an
	// H100, in an earlier state of the kernel.
	promptStep = 2080

	// promptBlock is how many times as long as in a step a block of cache rows takes: each warp multiplies it by two
	// groups of heads, all warps the same one, and shares are joined. Calibrated, of prompts: the eight first tokens on
	// an H200 of 30 November 2026 that internal/costcheck has are then 9 % too short to 9 % too long.
	promptBlock = 2.45

	// wideBlock is the instructions of a warp for a block of cache rows in attention by wgmma, wideShare those at
	// the end of a share of a split, which is a warp's of a step, and wideSplit those at the end of a split.
	// wideIssue is the cycles of an SM for an instruction: each scheduler has two warps that compute, and stalls
	// take 1.4 times as long. Estimated: the instructions are those of the kernel for Llama-3.1-8B, and none was
	// timed.
	wideBlock, wideShare, wideSplit, wideIssue = 182.0, 222.0, 930.0, 2.8

	// promptTile is the microseconds at the ends of a tile: until its first weights are there, a memory latency, and
	// to finish the rows of 64 tokens. Estimated.
	promptTile = 2.0

	// promptChain is the cycles that two groups of warps take for a chain of products by wgmma besides the products:
	// until the slots are there and the turn comes, and to add the sums up. promptProduct is those of a product of each
	// group, of 64 tokens by 128 rows by 16 columns. 2,048 tokens of Llama-3.1-8B on an H200, whose chains have eight
	// products, took 1,600 cycles a chain, and the four of chains of half that length in a probe (docs/performance.md)
	// 19 % more a product.
	promptChain, promptProduct = 300, 162

	// widePromptTile is the microseconds until the first slot of a tile is there, and to finish its rows. The same
	// prompt, from products of 4,096 columns whose tiles are many (1.9) and few (5.5).
	widePromptTile = 3.0

	// promptVector is the bytes per microsecond of operands that are read and written, with what goes with them: norms,
	// residuals, finished rows and appends. docs/performance.md: they take 4 ms for 2,048 tokens of Llama-3.1-8B on an
	// H200, which has 7.0 GB of operands.
	promptVector = 1.75e6

	// wideQuad, wideByteQuad and wideFloatQuad are the cycles that wgmma takes for a quad of int4, int8 and fp8, 128
	// rows by 64 tokens, and wideQuadTile the microseconds at the ends of a tile. 2,048 tokens by the products of
	// Llama-3.1-8B with 4,096 and 14,336 columns in a prototype of the kernel on an H200, 30 November 2026, at 1.98 GHz
	// at most (docs/performance.md).
	wideQuad, wideByteQuad, wideFloatQuad, wideQuadTile = 2250.0, 2730.0, 2520.0, 4.4

	// plainQuad is the cycles that a block takes at least for a quad of each warp in a stage of its operand where it
	// multiplies by mma. docs/performance.md: four passes of 512 tokens of Llama-3.1-8B took 197 ms
	// by mma and 177 by wgmma, on an H100.
	plainQuad = 690

	// integerQuad is the same for integers, which are scaled every 32 columns. docs/performance.md: 2,048 tokens of
	// Llama-3.1-8B took 313.9 ms in int8 and 359.4 in int4, on an H100, with an earlier state of the kernel.
	integerQuad = 1300
)

// The kernel's sizes: prompt_gemm.cuh, prompt_attention.cuh, and Session.Feed of the launcher.
const (
	promptRows                       = 128      // of a tile
	promptTokens                     = 64       // of a tile
	widePromptRows, widePromptTokens = 128, 128 // with wgmma
	promptColumns                    = 128      // heads of tokens that a block attends for at once
	promptParts                      = 4        // that the columns of a quad are multiplied in
	promptLeast                      = 8        // tokens for which there is a pass; for fewer there are steps

	shortestMeasured = 512 // tokens of a prompt
)
