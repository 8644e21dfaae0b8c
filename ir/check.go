package ir

import (
	"fmt"
	"reflect"
	"slices"

	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/ir/op"
)

// maxBytes bounds one buffer or page: far above any GPU, and low enough that sums of sizes do not overflow.
const maxBytes = 1 << 48

// Check reports whether the program is well-formed: names are accepted by CheckName and defined once, ops match their
// declarations, shapes and distributions are consistent, and the variants cover the positions. It runs after each pass.
// It proves nothing about races, bounds or deadlocks; validate does.
func Check(p *Program) diag.List {
	c := checker{p: p, pages: map[string]*Page{}}
	c.names()
	c.model()
	c.pass()
	c.ranks()
	c.config()
	for i := range p.Pages {
		c.page(&p.Pages[i])
	}
	for i := range p.Buffers {
		c.buffer(&p.Buffers[i])
	}
	c.roles()
	for i := range c.p.Groups {
		c.group(&c.p.Groups[i])
	}
	c.intervals()
	if len(c.diags) > 0 {
		return c.diags // an unrolled form of malformed entities would only repeat these
	}
	for i := range p.Variants {
		c.variant(&p.Variants[i])
	}
	return c.diags
}

type checker struct {
	p     *Program
	pages map[string]*Page
	diags diag.List
	said  map[string]bool // errors that are in diags: variants share buffers, and with them their errors
}

// maxCheckErrors stops a hostile file from producing a diagnostic per line.
const maxCheckErrors = 50

func (c *checker) fail(code *diag.Code, pos, format string, args ...any) {
	if len(c.diags) >= maxCheckErrors {
		return
	}
	c.add(diag.Errorf(code, pos, format, args...))
}

func (c *checker) add(d *diag.Diagnostic) {
	key := d.Error()
	if c.said[key] || len(c.diags) >= maxCheckErrors {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[key] = true
	c.diags.Add(d)
}

func (c *checker) model() {
	m := &c.p.Model
	c.numbers("model", "model", m.fields("arch"))
	if !IsSingle(m.Eps) || m.Eps < 0 {
		c.fail(CodeRange, "model", "eps %v, want 0, or %s", m.Eps, Singles)
	}
	c.layerFacts()
	if t := c.p.Target; t != nil {
		c.numbers("target", "target "+t.Name, t.fields())
		if !(t.HBMGBs == 0 || minGBs <= t.HBMGBs && t.HBMGBs <= maxGBs) {
			c.fail(CodeRange, "target "+t.Name, "hbm_gbs %v, want 0 or %v to %v", t.HBMGBs, minGBs, maxGBs)
		}
	}
}

func (c *checker) page(pg *Page) {
	pos := "page " + pg.Name
	if c.pages[pg.Name] != nil {
		c.fail(CodeName, pos, "is defined twice")
	}
	if IsFamily(pg.Name) {
		c.fail(CodeName, pos, "pages have no families, want a name without braces")
	}
	c.pages[pg.Name] = pg
	if pg.Bytes < 1 || pg.Bytes > maxBytes {
		c.fail(CodeSize, pos, "has %d bytes, want 1 to 2^48", pg.Bytes)
	}
	if !known(spaceNames[:], pg.Space) {
		c.fail(CodeShape, pos, "unknown space %v", pg.Space)
	}
	c.layout(pos, pg.Layout)
}

// known reports whether an enumeration has the code.
func known[T ~int](names []string, code T) bool { return code >= 0 && int(code) < len(names) }

func (c *checker) layout(pos string, l Layout) {
	if !known(layoutNames[:], l.Kind) {
		c.fail(CodeShape, pos, "unknown layout %v", l.Kind)
	}
	if l.Copies < 0 || l.Copies > MaxCopies || l.Copies > 1 && !l.Words() {
		c.fail(CodeShape, pos, "layout %v with %d copies, want one, or up to %d of an exchange layout", l.Kind,
			l.Copies, MaxCopies)
	}
}

func (c *checker) buffer(b *Buffer) {
	pos := "buffer " + b.Name
	if b.Name != "" && b.Name[0] == '%' {
		c.fail(CodeName, pos, "names that start with %% are those of temporaries")
	}
	if !known(kindNames[:], b.Kind) || !known(dtypeNames[:], b.DType) || !known(spaceNames[:], b.Space) {
		c.fail(CodeShape, pos, "unknown kind %v, dtype %v or space %v", b.Kind, b.DType, b.Space)
		return
	}
	if len(b.Shape) < 1 || len(b.Shape) > MaxRank || slices.Min(b.Shape) < 1 {
		c.fail(CodeShape, pos, "shape %v, want one to %d positive dimensions", b.Shape, MaxRank)
		return
	}
	c.layout(pos, b.Layout)
	if b.Numel() > maxBytes/8 || b.Bytes() > maxBytes {
		c.fail(CodeSize, pos, "shape %v, want at most 2^45 elements and 2^48 bytes", b.Shape)
		return
	}
	if want := b.layoutWants(); want != "" {
		c.fail(CodeShape, pos, "layout %v on a %v buffer of shape %v, want %s", b.Layout, b.DType, b.Shape, want)
	}
	c.pieces(pos, b)
	c.onPages(pos, b)
}

// roles checks that buffers have roles that they can have, and each role one buffer.
func (c *checker) roles() {
	of := map[string]string{}
	for i := range c.p.Buffers {
		b := &c.p.Buffers[i]
		if why := b.unfitForRole(); why != "" {
			c.fail(CodeRole, "buffer "+b.Name, "%s", why)
		}
		if first, taken := of[b.Role]; taken && b.Role != "" {
			c.fail(CodeRole, "buffer "+b.Name, "has the role %s, and so has %s; want one", b.Role, first)
		}
		of[b.Role] = b.Name
	}
}

// group checks its name alone: the members are those of the unrolled form.
func (c *checker) group(g *Group) {
	if g.Name != "" && g.Name[0] == '%' {
		c.fail(CodeName, "group "+g.Name, "names that start with %% are those of temporaries")
	}
}

// layoutWants says what the buffer's layout demands that the buffer does not have, or nothing.
func (b *Buffer) layoutWants() string {
	bits := b.DType.Bits()
	switch b.Layout.Kind {
	case Tile8x32, Tile8x128:
		if len(b.Shape) != 2 && len(b.Shape) != 3 || b.Format() == nil {
			return "two dimensions, or three of several matrices, and one of the formats " + format.Names()
		}
	case KVBlock16, KVRows16:
		if !b.IsCache() {
			return "[heads, rows, 2, head size] and whole bytes, or of plain rows [groups, rows, 1, channels] of F32"
		}
	case Word32:
		if bits != 16 {
			return "a 16-bit dtype"
		}
	case Word64:
		if bits != 32 {
			return "a 32-bit dtype"
		}
	}
	return ""
}

func (c *checker) onPages(pos string, b *Buffer) {
	for _, name := range b.Pages {
		pg := c.pages[name]
		switch {
		case pg == nil:
			c.fail(CodeName, pos, "page %s is not defined", clip(name))
		case pg.Space != b.Space:
			c.fail(CodePage, pos, "is in %v, its page %s in %v", b.Space, name, pg.Space)
		case pg.Layout.Kind != b.Layout.Kind || max(1, pg.Layout.Copies) != max(1, b.Layout.Copies):
			c.fail(CodePage, pos, "has layout %v, its page %s has %v", b.Layout, name, pg.Layout)
		case pg.Bytes < b.Bytes():
			c.fail(CodePage, pos, "needs %d bytes, its page %s has %d", b.Bytes(), name, pg.Bytes)
		}
	}
}

// intervals checks that the variants cover every position that the first token of a pass can have. All rows of a pass
// are of one variant: before the first position of one, as many may be left out as a pass has rows beyond its first. A
// program that names no model is for the positions that its variants cover.
func (c *checker) intervals() {
	maxSeq, rows := c.p.Model.MaxSeq, c.p.Pass.NumRows()
	anyModel := reflect.ValueOf(c.p.Model).IsZero() && len(c.p.Variants) > 0
	if maxSeq < rows && !anyModel {
		c.fail(CodeVariants, "model", "max_seq %d, want at least %d", maxSeq, rows)
		return
	}
	names := map[string]bool{}
	next := 0
	for i := range c.p.Variants {
		v := &c.p.Variants[i]
		pos := "variant " + v.Name
		if names[v.Name] {
			c.fail(CodeName, pos, "is defined twice")
		}
		names[v.Name] = true
		if v.Lo < next || v.Lo >= next+rows || v.Hi < v.Lo {
			c.fail(CodeVariants, pos, "covers positions %d to %d, want a non-empty interval from %s on", v.Lo, v.Hi,
				interval(next, next+rows-1))
		}
		next = v.Hi + 1
	}
	if most := op.MaxIndex - rows + 1; anyModel && next-1 > most {
		c.fail(CodeVariants, "program", "the variants end at position %d, want at most %d: positions are of type I32",
			next-1, most)
	}
	if end := maxSeq - rows; !anyModel && (next-1 > end || next-1 <= end-rows) {
		c.fail(CodeVariants, "model", "the variants end at position %d, want %s, max_seq being %d", next-1,
			interval(end-rows+1, end), maxSeq)
	}
}

// interval says which numbers are meant.
func interval(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}
