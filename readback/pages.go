package readback

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// A vector is what one stage publishes for others, by the constant of its page.
type vector struct {
	constant string
	*kernel.Vector
}

// vectors are all that are declared: kAttn is L{i}.attn.
var vectors = func() []vector {
	var out []vector
	for i := range kernel.Vectors {
		out = append(out, vector{constantFor(kernel.Vectors[i].Name), &kernel.Vectors[i]})
	}
	return out
}()

// maxPages bounds the pages of the exchange area, and those that one vector goes round.
const maxPages = 1 << 12

// placePages reads pages.h: constants with an offset are pages, those with a name of a page, or several, are vectors.
func (b *builder) placePages() {
	r := &b.pages
	pages := map[string]int{}
	offsets := []int{}
	for _, c := range r.order {
		if c.typ != "Page" || c.array || c.value.kind != list {
			continue
		}
		r.taken[c.name] = true
		if len(b.p.Pages) == maxPages {
			r.fail(c.at, "%s is one page too many; want at most %d", c.name, maxPages)
			return
		}
		var n [3]int
		for i, v := range c.value.list {
			if i >= len(n) || v.kind != integer || v.n > limits["unsigned"] {
				r.fail(c.value.at, "%s is not {offset, bytes, copies}", c.name)
				return
			}
			n[i] = v.n
		}
		if len(c.value.list) != len(n) || len(c.name) < 2 || n[2] < 1 {
			r.fail(c.value.at, "%s is not {offset, bytes, copies}", c.name)
			return
		}
		pages[c.name] = len(b.p.Pages)
		offsets = append(offsets, n[0])
		b.p.Pages = append(b.p.Pages, ir.Page{Name: snake(c.name[1:]), Space: ir.GlobalScratch, Bytes: n[1],
			Layout: ir.Layout{Copies: n[2]}})
	}
	for _, v := range vectors {
		if c := r.byName[v.constant]; c != nil && !(b.unrolled && ir.IsFamily(v.Name)) {
			r.taken[v.constant] = true
			b.vector(v, 0, c, pages)
		}
	}
	for _, c := range r.order {
		if layer, rest, single := layerOf(strings.TrimPrefix(c.name, "k")); single && b.unrolled &&
			layer <= b.facts.layers {
			for _, v := range vectors {
				if v.constant == "k"+rest && ir.IsFamily(v.Name) {
					r.taken[c.name] = true
					member := *v.Vector
					member.Name, _ = ir.Resolve(v.Name, layer)
					b.vector(vector{v.constant, &member}, layer, c, pages)
				}
			}
		}
	}
	b.checkPlaces(offsets)
}

// vector declares an exchanged vector, or the one of a layer. Its words are as wide as the elements that its writers
// publish: those of the model, but fp32 for partial results of attention, and a pair of value and index for the best
// logit.
func (b *builder) vector(v vector, layer int, c *constant, pages map[string]int) {
	m := &b.facts
	words := ir.Word32
	if m.dtypes.Activations == ir.F32 {
		words = ir.Word64
	}
	buf := ir.Buffer{Name: v.Name, Count: m.layers, Kind: ir.Activation, DType: m.dtypes.Activations,
		Space: ir.GlobalScratch, Layout: ir.Layout{Kind: words}, Shape: v.Shape(b.factsOf(layer))}
	if v.Exact {
		buf.DType, buf.Layout.Kind = ir.F32, ir.Word64
	}
	if b.pushed(v.Name) {
		buf.DType, buf.Layout.Kind, buf.Space = ir.F32, ir.Word64, ir.PeerScratch
	}
	switch v.constant {
	case "kX":
		buf.Count++
	case "kO", "kDown":
		if buf.Shape[0] *= b.partsHandedOver(v.constant); buf.Space == ir.PeerScratch {
			buf.Shape = slices.Insert(buf.Shape, 0, m.NumRanks())
		}
	case "kBestValue":
		buf.Count, buf.DType, buf.Layout.Kind = 0, ir.F32, ir.Word64
	case "kBestIndex":
		buf.Count, buf.DType, buf.Layout.Kind = 0, ir.I32, ir.Word64
	}
	if b.unrolled {
		buf.Count = 0
	}
	on := []value{c.value}
	if c.array {
		on = c.value.list
	}
	if c.typ != "Page" || len(on) == 0 || c.array && len(on) < 2 {
		b.pages.fail(c.at, "%s is not the page of a vector, or a list of several", c.name)
	}
	if len(on) > maxPages {
		b.pages.fail(c.at, "%s is on %d pages; want at most %d", c.name, len(on), maxPages)
		return
	}
	for i, e := range on {
		k, known := pages[e.name]
		if e.kind != name || !known {
			b.pages.fail(e.at, "%s is on no page; want the name of one", c.name)
			return
		}
		page := &b.p.Pages[k]
		if i > 0 && page.Layout.Copies != buf.Layout.Copies {
			b.pages.fail(e.at, "%s is on pages with different numbers of copies", c.name)
		}
		buf.Pages, buf.Layout.Copies = append(buf.Pages, page.Name), page.Layout.Copies
		page.Space = buf.Space
	}
	b.p.Buffers = append(b.p.Buffers, buf)
	if buf.Count != m.layers || len(b.p.Model.Kinds) == 0 {
		return
	}
	layers, has := ir.Loop{Count: m.layers, Kinds: b.kinds}, false
	for i := range m.layers { // one family for each run of layers that have it in one length, and others between
		last, shape := &b.p.Buffers[len(b.p.Buffers)-1], v.Shape(b.factsOf(i))
		if v.constant == "kO" || v.constant == "kDown" || !b.publishes(v.Name, layers.Kind(i)) ||
			slices.Equal(shape, last.Shape) {
			has = has || b.publishes(v.Name, layers.Kind(i))
			continue
		}
		if !has { // the first of them
			last.Shape, has = shape, true
			continue
		}
		last.Count = i - last.First
		buf.First, buf.Count, buf.Shape = i, m.layers-i, shape
		b.p.Buffers = append(b.p.Buffers, buf)
	}
}

// pageAlign is the alignment of the pages of the exchange area, in bytes.
const pageAlign = 256

func aligned(n int) int { return (n + pageAlign - 1) / pageAlign * pageAlign }

// checkPlaces checks the pages of the area: adjacent, each with room for its largest vector, and the counters
// after them. A page of the program is as large as that vector of all tokens.
func (b *builder) checkPlaces(offsets []int) {
	r, s := &b.pages, b.pages.scope
	largest := map[string]*ir.Buffer{}
	for i := range b.p.Buffers {
		buf := &b.p.Buffers[i]
		for _, name := range buf.Pages {
			if before := largest[name]; before == nil || buf.Bytes() > before.Bytes() {
				largest[name] = buf
			}
		}
	}
	end, k := 0, 0
	for _, c := range s.order {
		if c.value.kind != list || c.array || c.typ != "Page" {
			continue
		}
		page := &b.p.Pages[k]
		bytes := page.Bytes
		page.Bytes = 0
		if buf := largest[page.Name]; buf != nil {
			page.Bytes, page.Layout.Kind = b.facts.Pass.NumTokens()*buf.Bytes(), buf.Layout.Kind
		}
		if offsets[k] != end || bytes != aligned(page.Bytes) {
			r.fail(c.value.at, "%s has offset %d and %d bytes; want offset %d, where the page before it ends, and "+
				"%d bytes, which its vectors take",
				c.name, offsets[k], bytes, end, aligned(page.Bytes))
		}
		end += bytes * page.Layout.Copies
		k++
	}
	sched := &b.schedule
	counters := sched.unsigned(sched.scope, "kCounterOffset")
	sched.same(sched.scope, "kCounterOffset", counters, end, "where the last page ends")
	n := sched.int(sched.scope, "kExchangesPerStep")
	last := n + 1
	if b.barriers {
		last++
	}
	sched.same(sched.scope, "kExchangeBytes", sched.unsigned(sched.scope, "kExchangeBytes"), end+aligned(last*4),
		"the pages and a counter for each exchange, the step and the barriers")
}
