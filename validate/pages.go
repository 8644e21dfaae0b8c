package validate

import "amkc/ir"

// checkPages: a page that a buffer names exists, is in the buffer's space, has its layout and copies, and holds it.
// Buffers start at offset 0, and one layout a page makes bytes of different buffers comparable: in the linear layouts
// (rowmajor and the exchange words) an element is a run of bytes.
func (p *proof) checkPages() {
	pages := make(map[string]*ir.Page, len(p.flat.Pages))
	for i := range p.flat.Pages {
		pg := &p.flat.Pages[i]
		pages[pg.Name] = pg
		linear := pg.Layout.Kind == ir.RowMajor || pg.Layout.Words()
		if pg.Bytes < 0 || pg.Space < ir.HBM || pg.Space > ir.Register || !linear {
			p.errorf(ir.CodePage, "page "+pg.Name, "has %d bytes in %s with layout %s, want rowmajor or an exchange layout", pg.Bytes, pg.Space, pg.Layout)
		}
	}
	for i := range p.flat.Buffers {
		b := &p.flat.Buffers[i]
		if len(b.Pages) == 0 {
			continue
		}
		at := "buffer " + b.Name
		if len(b.Pages) > 1 {
			p.errorf(ir.CodePage, at, "is on %d pages; a buffer of an unrolled program is on one at most", len(b.Pages))
			continue
		}
		pg := pages[b.Pages[0]]
		switch {
		case pg == nil:
			p.errorf(ir.CodePage, at, "is on page %s, which does not exist; want one of the %d pages of the program", b.Pages[0], len(p.flat.Pages))
		case b.Kind != ir.Activation:
			p.errorf(ir.CodePage, at, "is %s on page %s; only ACTIVATION can share memory", b.Kind, pg.Name)
		case b.DType.Bits() < 8:
			p.errorf(ir.CodePage, at, "is of %s on page %s; what shares memory has elements of whole bytes", b.DType, pg.Name)
		case pg.Space != b.Space:
			p.errorf(ir.CodePage, at, "is in %s, its page %s is in %s", b.Space, pg.Name, pg.Space)
		case pg.Layout.Kind != b.Layout.Kind || max(1, pg.Layout.Copies) != max(1, b.Layout.Copies):
			p.errorf(ir.CodePage, at, "has layout %s, its page %s has %s; a page holds one word format and one number of copies", b.Layout, pg.Name, pg.Layout)
		case b.Bytes() > pg.Bytes:
			p.errorf(ir.CodePage, at, "needs %d bytes a copy, its page %s has %d", b.Bytes(), pg.Name, pg.Bytes).Suggest("make the page %d bytes, or use another page", b.Bytes())
		}
	}
}
