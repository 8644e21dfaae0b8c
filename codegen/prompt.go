package codegen

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/knobs"
)

// promptFile has the kernel that reads prompts: the stages of megakernel.cu, each for all tokens of a pass before the
// next one begins.
const promptFile = "prompt.cu"

// Constants of the kernel (prompt_digits.cuh, prompt_gemm.cuh, prompt.cuh, context.cuh). prompt.cu asserts the
// workspace that follows from them, and PromptRing that two stages fit.
const (
	tokenTile         = 64                                // tokens that a block multiplies at once
	promptStages      = 2                                 // of operands at least, in shared memory
	promptResultBytes = kernel.Warps * tokenTile * 17 * 4 // finished sums: 16 rows of a warp, and one for the banks
	partSubs          = 4                                 // quads of a part of a quantised matrix's operand
	promptAlign       = 1024                              // bytes
	promptScratch     = 1024                              // bytes, without what is known of tiles of experts
	promptSlots       = 7                                 // of the ring, with wgmma
	promptSlotBytes   = 32768                             // of 64 columns
	promptMatrix      = 128                               // bytes of what is known of a matrix, and of a tensor map
)

// A promptProduct is what the kernel for prompts needs to know of a matrix stage.
type promptProduct struct {
	*kernel.Cut // of a part of the columns, as a step multiplies it
	of          *kernel.Stage
	parts       int // that the columns are cut into
	added       int // parts of these that are added up
}

// promptTokens is how many tokens the program's kernel for prompts takes at most; 0: there is none. It multiplies
// 16-bit elements on tensor cores, and keeps two stages of operands at least in shared memory. Schedules with barriers
// between layers, which others are measured against, have none, nor have those whose owners of the residual add norms
// of branches, as passes make them for several tokens alone, those that add up parts of columns, and those of loops
// whose index is not the layer.
func (b *builder) promptTokens() int {
	tokens, m := knobs.PromptTokens.Of(&b.p.Config), &b.p.Model
	switch {
	case b.pass.NumTokens() > 1 || !b.usesMMA() || !b.p.Target.AsyncCopy || b.barriers > 0,
		slices.ContainsFunc(b.d.Bodies, func(of *kernel.Body) bool { return of.NoPrompt }),
		m.Cache != m.Weights && m.Cache != ir.I8,
		len(matricesOf(&b.p.Variants[0])) > promptMatrices(m), !b.sameMatrices(), b.attendsInPlace(),
		b.countsOtherwise():
		return 0
	}
	shared := knobs.BlockBytes(&b.p.Config, b.p.Target) / 256 * 256 // kPromptSharedBytes
	shared -= promptScratch + aligned(2*b.listTiles(tokens), 256)
	if shared < m.Most(func(f *ir.LayerFacts) int { return promptAttention(f, m.Cache) }) {
		return 0
	}
	for _, p := range b.products {
		need := promptResultBytes + promptStages*b.promptShape(p).stageBytes()
		if b.wide(p) {
			need = promptSlots * promptSlotBytes
		}
		if p.added > 1 || p.Columns%4 != 0 || shared < need {
			return 0
		}
	}
	return tokens
}

// promptAttention is the shared memory that attention of a prompt needs at least: values of the splits that the columns
// of a block have joined, and two blocks of the cache (prompt_cache.cuh).
func promptAttention(f *ir.LayerFacts, cache ir.DType) int {
	padded, columns := (f.HeadDim+15)/16*16, 16*kernel.Warps
	if padded > 128 {
		columns /= 2
	}
	return 4*columns*padded + 2*f.Attended().Block(cache)
}

// WGMMA reports whether the architecture has wgmma, which later architectures do not have.
func (d *cudaData) WGMMA() bool { return d.arch == "sm_90a" }

// Experts reports whether layers have experts.
func (d *cudaData) Experts() bool { return d.Model.Most(ir.ExpertsOf) > 0 }

// wide reports whether wgmma multiplies the matrix of a product: kWideMatrix of prompt_halves.cuh.
func (b *builder) wide(p promptProduct) bool {
	q, quantised := p.Matrix.(format.Quantised)
	if !b.d.WGMMA() || !quantised {
		return b.d.WGMMA()
	}
	scales := q.Scales()
	return slices.Contains([]string{"I4", "I8", "F8E4M3", "F4E2M1"}, q.DType()) && !format.InHalves(q) &&
		!scales.Mins && !scales.Steps
}

// promptMatrices is how many matrices a step may read (kMostMatrices).
func promptMatrices(m *ir.Model) int { return 8*m.Layers + 16 }

// matricesOf are the matrices that a step of a variant reads, in order: the operand of a stage, and the iteration.
func matricesOf(v *ir.Variant) []string {
	var out []string
	for _, section := range sections(v) {
		at := site{loop: section.loop}
		for _, i := range at.indices() {
			for _, s := range section.stages {
				if o := kernel.ProductOf(s.Ops); len(o.In) >= 2 && slices.Contains(at.indicesOf(s), i) {
					out = append(out, fmt.Sprintf("%s %d", o.In[1].Buf, i))
				}
			}
		}
	}
	return out
}

// sameMatrices reports whether every variant reads the matrices of the first in its order: the host lists them once.
func (b *builder) sameMatrices() bool {
	for i := range b.p.Variants {
		if !slices.Equal(matricesOf(&b.p.Variants[i]), matricesOf(&b.p.Variants[0])) {
			return false
		}
	}
	return true
}

// A promptShape is how the operand of a product lies: PromptShape of prompt_shape.cuh. It is parts, one after another.
type promptShape struct {
	parts      int // of a tile of tokens
	partBytes  int
	stageParts int // that pass through shared memory together
}

func (b *builder) promptShape(p promptProduct) promptShape {
	members := min(p.Warps, (p.Columns+format.QuadColumns-1)/format.QuadColumns) // warps that have a quad
	const quarters = 4
	_, quantised := p.Matrix.(format.Quantised)
	switch {
	case quantised && b.wide(p): // whole quads of every warp: activations in fp16, and scales
		activations, scales := 1, 1
		if format.InFixedPoint(p.Matrix) {
			activations = 2 // parts of each
			if p.Matrix.DType() == "I4" {
				scales = 2
			}
		}
		return promptShape{parts: members * p.Quads(), stageParts: 1,
			partBytes: tokenTile * (format.QuadColumns*2*activations + 4*scales)}
	case quantised:
		each := tokenTile*64 + tokenTile*8 // digits of 32 columns, and of each token a scale and a sum
		if format.InHalves(p.Matrix) {
			each += tokenTile * 8 // of each half
		}
		if !format.InFixedPoint(p.Matrix) {
			each = tokenTile*64 + tokenTile*4 // halves, and a scale
		}
		return promptShape{parts: members * quarters * ((p.Quads() + partSubs - 1) / partSubs),
			partBytes: partSubs * each, stageParts: 1}
	case b.wide(p): // whole quads of every warp
		return promptShape{parts: members * p.Quads(), partBytes: tokenTile * format.QuadColumns * 2, stageParts: 1}
	}
	slabSubs := p.SlabQuads()
	s := promptShape{parts: members * p.Slabs() * quarters, stageParts: 1,
		partBytes: tokenTile * slabSubs * format.QuadColumns / quarters * 2}
	if slabSubs <= 2 {
		s.stageParts = quarters / slabSubs
	}
	return s
}

// columns are those of an operand in 16 bits, with places that no quad is in.
func (s promptShape) columns() int { return s.parts * s.partBytes / tokenTile / 2 }

func (s promptShape) stageBytes() int { return s.stageParts * s.partBytes }

// attendsInPlace reports whether attention publishes on the page that it reads. A unit of a step may, if nobody else
// reads what it overwrites; blocks of a prompt's pass read the rows of one token while others write those of another.
func (b *builder) attendsInPlace() (found bool) {
	for i := range b.p.Variants {
		b.p.Variants[i].Each(func(s *ir.Stage, l *ir.Loop) {
			at, a := site{loop: l}, op(s, ir.ATTENTION)
			if len(a.Out) == 0 {
				return
			}
			in, out := b.buffer(s.Ops[0].In[0].Buf, at), b.buffer(a.Out[0].Buf, at)
			found = found || in != nil && out != nil && slices.ContainsFunc(out.Pages, func(page string) bool {
				return slices.Contains(in.Pages, page)
			})
		})
	}
	return found
}

// countsOtherwise reports whether a loop attends for another layer than the last where its index is that of the last
// one. By the index a pass knows that what it computes of most tokens from there on is read by nobody (first_wanted).
func (b *builder) countsOtherwise() (found bool) {
	last := b.p.Model.Layers - 1
	for i := range b.p.Variants {
		b.p.Variants[i].Each(func(s *ir.Stage, l *ir.Loop) {
			at := site{loop: l}
			if l != nil && len(op(s, ir.ATTENTION).Out) > 0 && slices.Contains(at.indicesOf(s), last) {
				layer, _ := s.Layer.At(last)
				found = found || layer != last
			}
		})
	}
	return found
}

// stepPages are the pages of vectors that a pass over a prompt has none of: splits of attention, which it joins as it
// computes them, and what a token is chosen by.
func (b *builder) stepPages() (names []string) {
	ofSteps := map[int]bool{} // buffers
	for i := range b.p.Variants {
		for _, section := range sections(&b.p.Variants[i]) {
			for _, s := range section.stages {
				out := op(s, ir.SAMPLE).Out
				if a := op(s, ir.ATTENTION); a.IntAt("parts", 0, 1) > 1 {
					out = a.Out
				}
				for _, n := range (site{loop: section.loop}).indicesOf(s) {
					for _, o := range out {
						if m, err := b.names.At(o.Buf, n); err == nil {
							ofSteps[m.Declared] = true
						}
					}
				}
			}
		}
	}
	needed := map[string]bool{}
	for k := range b.p.Buffers {
		for _, page := range b.p.Buffers[k].Pages {
			needed[page] = needed[page] || !ofSteps[k]
		}
	}
	for i, page := range b.p.Pages {
		if !needed[page.Name] {
			names = append(names, b.d.Pages[i].Name)
		}
	}
	return names
}

// promptBytes is the workspace of a pass of that many tokens: PromptPlaces of prompt.cuh.
func (b *builder) promptBytes(tokens int) int {
	if tokens == 0 {
		return 0
	}
	m, operand, sums, bytes := &b.p.Model, 0, 0, b.exchangeBytes
	for _, p := range b.d.Pages {
		if slices.Contains(b.d.StepPages, p.Name) {
			bytes -= p.Bytes * p.Copies
		}
	}
	matrices, maps, tile := promptMatrix*promptMatrices(m), 0, b.mostTile()
	if b.d.WGMMA() {
		maps = matrices
	}
	experts, chosen := m.Most(ir.ExpertsOf), m.Most(ir.PerTokenOf)
	for _, p := range b.products {
		places, of := aligned(tokens, tile), p.of
		if ranks := of.Selected * of.Summed; ranks > 1 {
			places = (tokens*ranks/tile + experts) * tile
		}
		if !slices.ContainsFunc(b.d.Operands, func(o promptOperand) bool { return o.of == of }) {
			operand = max(operand, places*b.promptShape(p).columns()*2*p.parts)
		}
		if of.Summed > 1 {
			sums = max(sums, tokens*of.Summed*of.Rows*4)
		}
	}
	choices, list := 0, 0
	if experts > 0 {
		choices, list = 4*tokens*(2*chosen+1), 4*tile*b.listTiles(tokens)
	}
	at := promptAlign // the counter of joins
	angles := max(1, len(b.d.Rotations)) * tokens * m.Most(ir.HeadDimOf)
	for _, n := range []int{matrices, maps, 4 * tokens, 4 * angles, tokens * m.Hidden * 4, operand,
		tokens * (bytes / 2), choices, list, sums} {
		at = aligned(at+n, promptAlign)
	}
	return at
}

// mostTile is how many tokens the largest tiles of products have.
func (b *builder) mostTile() int {
	if b.d.WGMMA() {
		return 2 * tokenTile
	}
	return tokenTile
}

// listTiles is how many tiles the list of the tokens by expert has at most: kListTiles of context.cuh.
func (b *builder) listTiles(tokens int) int {
	m := &b.p.Model
	return tokens*m.Most(ir.PerTokenOf)/b.mostTile() + m.Most(ir.ExpertsOf)
}

func aligned(n, to int) int { return (n + to - 1) / to * to }
