package codegen

import (
	"amkc/ir"
	"amkc/ir/format"
	"amkc/knobs"
)

// promptFile has the kernel that reads prompts: the stages of megakernel.cu, each for all tokens of a pass before the
// next one begins.
const promptFile = "prompt.cu"

// What prompt_shape.cuh, prompt_gemm.cuh and prompt_walk.cuh have of the same names. prompt.cu asserts what is computed
// from them here.
const (
	tokenTile         = 64                                 // tokens that a block multiplies at once
	promptStages      = 2                                  // of operands at least, in shared memory
	promptResultBytes = consumerWarps * tokenTile * 17 * 4 // finished sums: 16 rows of a warp, and one for the banks
	promptAlign       = 1024                               // bytes
)

// A promptProduct is what the kernel for prompts needs to know of a matrix stage.
type promptProduct struct {
	columns int // of a part
	parts   int // that the columns are cut into
	warps   int // that share a tile in a step
}

// promptTokens is how many tokens the program's kernel for prompts takes at most; 0: there is none. It multiplies
// 16-bit elements on tensor cores, those of the cache too, and keeps two stages of operands at least in shared memory.
func (b *builder) promptTokens() int {
	tokens, m := knobs.PromptTokens.Of(&b.p.Config), &b.p.Model
	switch {
	case b.tokens > 1 || !b.usesMMA() || !b.p.Target.AsyncCopy || b.d.Quantised || b.windows,
		m.Cache != m.Weights, b.mostMatrices() > promptMatrices(m):
		return 0
	}
	ring := b.slots*knobs.ChunkBytes.Of(&b.p.Config) - aligned(8*promptMatrices(m)) - promptResultBytes
	for _, p := range b.products {
		if s := b.promptShape(p); p.columns%4 != 0 || ring < promptStages*s.stageBytes() {
			return 0
		}
	}
	return tokens
}

// promptMatrices is how many matrices a step may read (kMostMatrices).
func promptMatrices(m *ir.Model) int { return 8*m.Layers + 16 }

// mostMatrices is how many a step reads.
func (b *builder) mostMatrices() int {
	most := 0
	for i := range b.p.Variants {
		n := 0
		for _, section := range sections(&b.p.Variants[i]) {
			for _, s := range section.stages {
				if len(op(s, ir.GEMV).In) == 2 {
					n += len((site{loop: section.loop}).indicesOf(s))
				}
			}
		}
		most = max(most, n)
	}
	return most
}

// A promptShape is how the columns of a product are walked: PromptShape of prompt_shape.cuh.
type promptShape struct {
	members  int // warps that have a quad
	slabs    int // of each
	slabSubs int // quads of a slab
}

func (b *builder) promptShape(p promptProduct) promptShape {
	g, chunk := ir.MatrixFormat(b.p.Model.Weights).Geometry(), knobs.ChunkBytes.Of(&b.p.Config)
	subs, slabs := ir.QuadsPerWarp(g, p.columns, chunk, p.warps), ir.Slabs(g, p.columns, chunk, p.warps)
	s := promptShape{members: min(p.warps, (p.columns+format.QuadColumns-1)/format.QuadColumns), slabs: slabs,
		slabSubs: subs}
	if slabs > 1 {
		s.slabSubs = ir.SlabQuads(g, chunk, p.warps)
	}
	return s
}

// columns are those of an operand, with places that no quad is in.
func (s promptShape) columns() int { return s.members * s.slabs * s.slabSubs * format.QuadColumns }

// stageBytes are those of a stage of operands: 64 tokens of one quarter of a slab, of two where that is of two quads,
// or of four where it is of one.
func (s promptShape) stageBytes() int {
	quarters := 1
	if s.slabSubs <= 2 {
		quarters = 4 / s.slabSubs
	}
	return quarters * tokenTile * s.slabSubs * format.QuadColumns / 4 * 2
}

// promptBytes is the workspace of a pass of so many tokens: PromptPlaces of prompt.cuh.
func (b *builder) promptBytes(tokens int) int {
	if tokens == 0 {
		return 0
	}
	m, columns := &b.p.Model, 0
	for _, p := range b.products {
		columns = max(columns, b.promptShape(p).columns()*p.parts)
	}
	at := promptAlign // the counter of joins
	for _, bytes := range []int{4 * tokens, max(1, len(b.d.Rotations)) * tokens * m.HeadDim * 4, tokens * m.Hidden * 4,
		tokens * columns * 2, tokens * (b.exchangeBytes / 2)} {
		at = aligned(at + bytes)
	}
	return at
}

func aligned(bytes int) int { return (bytes + promptAlign - 1) / promptAlign * promptAlign }
