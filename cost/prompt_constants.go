package cost

// Constants of the kernel that reads prompts (prompt.cu), besides those of a step.
const (
	// promptStep is the cycles that a block without wgmma takes at least for a stage of its operand: to wait for it, to
	// have weights in registers, to multiply and to add up the sums, one after the other. Calibrated, of prompts:
	// products of 2048 columns of Llama-3.2-1B, whose stages have half of the bytes of others, were bound by it on an
	// H100, in an earlier state of the kernel.
	promptStep = 2080

	// promptBlock is how many times as long as in a step a block of cache rows takes: each warp multiplies it by two
	// groups of heads, all warps the same one, and shares are joined. Calibrated, of prompts: eight first tokens on an
	// H200 of 30 November 2026, when it attended by mma, were then 9 % too short to 9 % too long.
	promptBlock = 2.45

	// wideUnit is the cycles that 128 columns of attention by wgmma take besides their blocks of cache rows: to have
	// queries and first blocks, and to store the results. A block takes wideBlock, and wideBlockFragment for each 16
	// elements of a head; bringing a split together takes wideSplitFragment for each 16. Fitted to 26 times of
	// attention alone of three models, by the GPU's clock, at positions 0 to 6,144 with up to 2,048 tokens
	// (docs/cost-model.md): 6 % rms off.
	wideUnit, wideBlock, wideBlockFragment, wideSplitFragment = 14500.0, 730.0, 45.0, 1140.0

	// promptAppend is the bytes per microsecond at which keys and values are read and written where wgmma multiplies.
	// From the same passes.
	promptAppend = 5.5e5

	// promptTile is the microseconds at the ends of a tile: until its first weights are there, a memory latency, and
	// to finish the rows of 64 tokens. Estimated.
	promptTile = 2.0

	// promptProduct is the cycles of a product by wgmma of two groups of warps, each of 64 tokens by 128 rows by 16
	// columns; with 64 rows it takes as long. wideFinish is the microseconds at the end of a tile, and wideWrite the
	// same where its results are the next product's operand, in 16 bits. wideStart is those until a product's first
	// tile has its weights. Fitted to the products of the same passes, of 1,024 to 14,336 columns.
	promptProduct, wideFinish, wideWrite, wideStart = 179, 7.3, 2.6, 4.5

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
