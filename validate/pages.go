package validate

import "amkc/ir"

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
		if pg.Bytes < 0 || pg.Space < ir.HBM || pg.Space > ir.Register || !linear {
			p.Errorf(ir.CodePage, "page "+pg.Name,
				"has %d bytes in %s with layout %s, want rowmajor or an exchange layout", pg.Bytes, pg.Space, pg.Layout)
		}
	}
	p.pageOf = sized(p.pageOf, len(p.flat.Buffers))
	for i := range p.flat.Buffers {
		p.pageOf[i] = -1
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
		p.pageOf[i] = int32(at)
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
			p.Errorf(ir.CodePage, bufferPos(b), "needs %d bytes a copy, its page %s has %d", b.Bytes(), pg.Name,
				pg.Bytes).Suggest("make the page %d bytes, or use another page", b.Bytes())
		}
	}
}
