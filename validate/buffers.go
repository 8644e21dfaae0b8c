package validate

import (
	"amkc/ir"
	"amkc/ir/format"
	"amkc/ir/op"
)

// maxElements bounds a buffer, so that no product of sizes and offsets overflows.
const maxElements = op.MaxElements

// checkBuffers: shapes are positive, dtype, kind, space and layout exist and fit together. The layouts of the
// exchange fix the element size (a word is half payload, half epoch), and live where SMs exchange; those of weights
// and caches fix the rank.
func (p *Proof) checkBuffers() {
	for i := range p.flat.Buffers {
		if p.Full() {
			return
		}
		b := &p.flat.Buffers[i]
		if len(b.Shape) < 1 || len(b.Shape) > ir.MaxRank {
			p.Errorf(ir.CodeShape, bufferPos(b), "has %d dimensions, want 1 to %d", len(b.Shape), ir.MaxRank)
			continue
		}
		for _, n := range b.Shape {
			if n < 1 || n > maxElements {
				p.Errorf(ir.CodeShape, bufferPos(b), "has shape %v, want positive extents", b.Shape)
				break
			}
		}
		if b.Numel() > maxElements {
			p.Errorf(ir.CodeShape, bufferPos(b), "has shape %v, more than %d elements", b.Shape, maxElements)
			continue
		}
		if b.DType.Bits() == 0 || b.Kind < ir.Weight || b.Kind > ir.Recurrent || b.Space < ir.HBM ||
			b.Space > ir.PeerScratch || b.Layout.Kind < ir.RowMajor || b.Layout.Kind > ir.Tile8x128 {
			p.Errorf(CodeLayout, bufferPos(b), "has dtype %s, kind %s, space %s, layout %s: one of them does not exist",
				b.DType, b.Kind, b.Space, b.Layout)
			continue
		}
		if want := b.LacksAxis(p.flat.Pass); want != "" {
			p.Errorf(ir.CodeShape, bufferPos(b), "is %s of shape %v, want %s", b.Kind, b.Shape, want)
			continue
		}
		p.checkLayout(b)
	}
}

func (p *Proof) checkLayout(b *ir.Buffer) {
	bits, rank, copies := b.DType.Bits(), len(b.Shape), p.flat.Copies(b)
	if b.Space == ir.PeerScratch {
		copies *= 1 + p.flat.Peers
	}
	if b.Layout.Copies < 0 || copies > 64 || b.Layout.Copies > 1 && !b.Layout.Words() {
		p.Errorf(CodeLayout, bufferPos(b), "has %d copies, want 1; exchange words may have up to 64, those of all "+
			"ranks together", copies)
	}
	if b.Space == ir.PeerScratch && !b.Layout.Words() {
		p.Errorf(CodeLayout, bufferPos(b), "is in %s with layout %s; ranks push exchange words", b.Space, b.Layout.Kind)
	}
	switch b.Layout.Kind {
	case ir.Word32, ir.Word64:
		want := 16
		if b.Layout.Kind == ir.Word64 {
			want = 32
		}
		if bits != want {
			p.Errorf(CodeLayout, bufferPos(b), "has %d-bit elements in layout %s, which holds %d-bit values", bits,
				b.Layout.Kind, want)
		}
		if b.Kind != ir.Activation || b.Space != ir.GlobalScratch && b.Space != ir.PeerScratch {
			p.Errorf(CodeLayout, bufferPos(b), "is %s in %s with layout %s; exchange words are ACTIVATION in "+
				"GLOBAL_SCRATCH or PEER_SCRATCH", b.Kind, b.Space, b.Layout.Kind)
		}
	case ir.Tile8x32, ir.Tile8x128:
		if b.Kind != ir.Weight || rank != 2 && rank != 3 || b.Format() == nil {
			p.Errorf(CodeLayout, bufferPos(b), "is %s of %s of rank %d with layout %s; want a WEIGHT matrix, or "+
				"several, in one of %s", b.Kind, b.DType, rank, b.Layout, format.Names())
		}
	case ir.KVBlock16, ir.KVRows16:
		if b.Kind != ir.KVCache || !b.IsCache() {
			p.Errorf(CodeLayout, bufferPos(b), "is %s of shape %v with layout %s, which is for KV_CACHE [heads, "+
				"rows, 2, head_dim], or one for each sequence", b.Kind, b.Shape, b.Layout.Kind)
		}
	}
	if b.Kind == ir.KVCache && rank < 3 {
		p.Errorf(CodeLayout, bufferPos(b), "is a KV_CACHE of shape %v, want [rows, heads, head_dim], or a dimension "+
			"before the rows", b.Shape)
	}
	if (b.Space == ir.SMEM || b.Space == ir.Register) && (b.Kind != ir.Activation || b.Layout.Kind != ir.RowMajor) {
		p.Errorf(CodeLayout, bufferPos(b), "is %s with layout %s in %s, where only row-major ACTIVATION can be", b.Kind,
			b.Layout.Kind, b.Space)
	}
}

// bufferPos is the position of a diagnostic about a buffer.
func bufferPos(b *ir.Buffer) string { return "buffer " + b.Name }

// checkPages: a page that a buffer names exists, is in the buffer's space, has its layout and copies, and holds it.
// Buffers start at offset 0, and one layout a page makes bytes of different buffers comparable: in the linear layouts
// (rowmajor and the exchange words) an element is a run of bytes.
func (p *Proof) checkPages() {
	pageName := func(i int) string { return p.flat.Pages[i].Name }
	p.names.reset(len(p.flat.Pages))
	for i := range p.flat.Pages {
		pg := &p.flat.Pages[i]
		p.names.add(pg.Name, i, pageName)
		linear := pg.Layout.Kind == ir.RowMajor || pg.Layout.Words()
		if pg.Bytes < 0 || pg.Space < ir.HBM || pg.Space > ir.PeerScratch || !linear {
			p.Errorf(ir.CodePage, "page "+pg.Name,
				"has %d bytes in %s with layout %s, want rowmajor or an exchange layout", pg.Bytes, pg.Space, pg.Layout)
		}
	}
	p.mem.pageOf = sized(p.mem.pageOf, len(p.flat.Buffers))
	for i := range p.flat.Buffers {
		p.mem.pageOf[i] = -1
		b := &p.flat.Buffers[i]
		if len(b.Pages) == 0 {
			continue
		}
		if len(b.Pages) > 1 {
			p.Errorf(ir.CodePage, bufferPos(b), "is on %d pages; a buffer of an unrolled program is on one at most",
				len(b.Pages))
			continue
		}
		at := p.names.index(b.Pages[0], pageName)
		if at < 0 {
			p.Errorf(ir.CodePage, bufferPos(b), "is on page %s, which does not exist; want one of the %d pages "+
				"of the program", b.Pages[0], len(p.flat.Pages))
			continue
		}
		p.mem.pageOf[i] = int32(at)
		pg := &p.flat.Pages[at]
		switch {
		case b.Kind != ir.Activation:
			p.Errorf(ir.CodePage, bufferPos(b), "is %s on page %s; only ACTIVATION can share memory", b.Kind, pg.Name)
		case b.DType.Bits() < 8:
			p.Errorf(ir.CodePage, bufferPos(b), "is of %s on page %s; what shares memory has elements of whole bytes",
				b.DType, pg.Name)
		case pg.Space != b.Space:
			p.Errorf(ir.CodePage, bufferPos(b), "is in %s, its page %s is in %s", b.Space, pg.Name, pg.Space)
		case pg.Layout.Kind != b.Layout.Kind || max(1, pg.Layout.Copies) != max(1, b.Layout.Copies):
			p.Errorf(ir.CodePage, bufferPos(b), "has layout %s, its page %s has %s; a page holds one word format "+
				"and one number of copies", b.Layout, pg.Name, pg.Layout)
		case b.Bytes() > pg.Bytes:
			p.Errorf(ir.CodePage, bufferPos(b), "needs %d bytes per copy, its page %s has %d", b.Bytes(), pg.Name,
				pg.Bytes).Suggest("make the page %d bytes, or use another page", b.Bytes())
		}
	}
}
