package population

import (
	"slices"

	"amkc/ir"
)

// A linkKind is how a stage of the chain makes its vector from the one before.
type linkKind int

const (
	gemvLink   linkKind = iota // all of the vector, times a matrix
	normLink                   // the same behind a norm
	siluLink                   // pairs of rows become one
	addLink                    // the same, added to the residual of the SM
	halfLink                   // one half of the vector: the other half may stay unread
	ownLink                    // the span that the task writes, and no other word
	nextLink                   // the word beside its own
	secondLink                 // an earlier vector of the iteration as well
	leakLink                   // plain memory beside the words, which the next stage reads
	qkvLink                    // operands of attention
	attnLink                   // attention by head, the cache with it
	splitLink                  // partial attention by share of the rows, then combine
)

// A link is one stage of the chain, and the vector that it writes.
type link struct {
	kind  linkKind
	name  string // of the vector, and of the stage and the counter
	n     int    // elements of the vector
	plain bool   // the vector is ordinary memory, not exchange words
}

// drawPages chooses how many pages the vectors of the chain share. When every task reads all words of the vector
// before, a vector may take the page of the last but one.
func (g *native) drawPages() {
	g.pages = []int{0, 2, 2, 3, 3, 4}[g.r.IntN(6)]
	if g.uneven {
		g.pages = 2 + g.r.IntN(2)
	}
	if g.slip() && g.r.IntN(3) == 0 {
		g.pages = 1
	}
}

func (g *native) drawLinks() {
	if g.layers == 0 {
		return
	}
	count := 1 + g.pick(45, 35, 12, 8)
	if g.layers > 1 {
		count = min(count, 2)
	}
	attention := g.r.IntN(4) == 0
	names := [...]string{"L{i}.u", "L{i}.v", "L{i}.w", "L{i}.y", "L{i}.z"}
	n := g.width
	add := func(kind linkKind, out int) {
		g.links = append(g.links, link{kind, names[len(g.links)], out, g.r.IntN(12) == 0})
		n = out
	}
	if attention {
		kind := attnLink
		if g.r.IntN(3) == 0 {
			kind = splitLink
		}
		add(qkvLink, 3*attnWidth)
		add(kind, attnWidth)
		if g.pages > 0 && !g.uneven { // a reader of some heads frees nothing but what their writers have read
			g.pages = max(g.pages, 3)
		}
		count = min(count, 2)
	}
	for i := range count {
		kind := g.drawKind()
		out := 2 + g.r.IntN(5)
		if i == count-1 {
			out = g.width
		}
		switch pointwise := kind == ownLink || kind == nextLink; {
		case pointwise && i < count-1:
			out = n
		case pointwise && out != n, kind == addLink && (out != g.width || !g.resid),
			kind == secondLink && len(g.links) == 0:
			kind = gemvLink
		}
		add(kind, out)
	}
	g.links[len(g.links)-1].name = "L{i+1}.x"
	g.links[len(g.links)-1].plain = false // x is written by embed, too
}

func (g *native) drawKind() linkKind {
	if g.pages > 0 && !g.uneven { // words shared one after another: everybody reads all of them
		return []linkKind{gemvLink, gemvLink, normLink, siluLink, addLink, leakLink}[g.r.IntN(6)]
	}
	return []linkKind{gemvLink, normLink, addLink, halfLink, ownLink, nextLink, secondLink, secondLink,
		leakLink}[g.r.IntN(9)]
}

// buffers declares what all variants share.
func (g *native) buffers() {
	l := g.layers
	g.ends()
	if l > 0 {
		g.add(ir.Buffer{Name: "L{i}.norm", Count: l, Kind: ir.Weight, DType: g.dtype, Shape: []int{weightCols}})
		g.add(ir.Buffer{Name: "L{i}.weight", Count: l, Kind: ir.Weight, DType: g.dtype,
			Shape: []int{weightRows, weightCols}})
	}
	if g.resid {
		g.add(ir.Buffer{Name: "residual", Kind: ir.Activation, DType: ir.F32, Shape: []int{g.width}, Space: ir.SMEM})
	}
	for p := range g.pages {
		g.prog.Pages = append(g.prog.Pages, ir.Page{Name: "page" + string(rune('0'+p)), Space: ir.GlobalScratch,
			Layout: g.words(g.dtype), Bytes: 8 * g.dtype.Bits() / 4})
	}
	g.vector(0, "L{i}.x", l+1, g.width, false)
	for j := range g.links {
		s := &g.links[j]
		if j < len(g.links)-1 {
			g.vector(j+1, s.name, l, s.n, s.plain)
		}
		switch s.kind {
		case leakLink:
			g.add(ir.Buffer{Name: leakName(j), Count: l, Kind: ir.Activation, DType: ir.F32, Shape: []int{s.n},
				Space: ir.GlobalScratch})
		case attnLink, splitLink:
			g.attentionMemory(s)
		}
	}
	if g.tail == fullTail && g.pages > 1 && g.dtype == ir.F32 && g.r.IntN(2) == 0 {
		best := slices.IndexFunc(g.prog.Buffers, func(b ir.Buffer) bool { return b.Name == "best.value" })
		// anywhere but on the last x, which is being read
		g.prog.Buffers[best].Pages = []string{g.page(l*len(g.links) + 1)}
	}
}

// ends declares what the first stage and the last ones of a program have of their own.
func (g *native) ends() {
	g.add(ir.Buffer{Name: "token", Kind: ir.Input, DType: ir.I32, Shape: []int{1}})
	g.add(ir.Buffer{Name: "logits", Kind: ir.Output, DType: ir.F32, Shape: []int{g.vocab}})
	g.add(ir.Buffer{Name: "next", Kind: ir.Output, DType: ir.I32, Shape: []int{1}})
	g.add(ir.Buffer{Name: "embed.weight", Kind: ir.Weight, DType: g.dtype, Shape: []int{g.vocab, g.width}})
	g.add(ir.Buffer{Name: "head.weight", Kind: ir.Weight, DType: g.dtype, Shape: []int{g.vocab, g.width}})
	if g.tail == fullTail {
		g.add(ir.Buffer{Name: "best.value", Kind: ir.Activation, DType: ir.F32, Shape: []int{g.sms},
			Space: ir.GlobalScratch, Layout: g.words(ir.F32)})
		g.add(ir.Buffer{Name: "best.index", Kind: ir.Activation, DType: ir.I32, Shape: []int{g.sms},
			Space: ir.GlobalScratch, Layout: g.words(ir.I32)})
		for _, name := range []string{"next.sm", "stop"} {
			g.add(ir.Buffer{Name: name, Kind: ir.Activation, DType: ir.I32, Shape: []int{g.sms}, Space: ir.SMEM})
		}
		g.add(ir.Buffer{Name: "stop.ids", Kind: ir.Input, DType: ir.I32, Shape: []int{stopIDs}})
		g.add(ir.Buffer{Name: "sampling", Kind: ir.Input, DType: ir.I32, Shape: []int{ir.SamplingWords}})
		g.add(ir.Buffer{Name: "stop.last", Kind: ir.Input, DType: ir.I32, Shape: []int{1}})
	}
}

func (g *native) add(b ir.Buffer) { g.prog.Buffers = append(g.prog.Buffers, b) }

func (g *native) words(t ir.DType) ir.Layout {
	if t.Bits() == 16 {
		return ir.Layout{Kind: ir.Word32}
	}
	return ir.Layout{Kind: ir.Word64}
}

// vector declares the family of the j-th vector of an iteration. The chain goes round the pages: member i is the
// (i*links+j)-th vector of the step.
func (g *native) vector(j int, name string, count, n int, plain bool) {
	b := ir.Buffer{Name: name, Count: count, Kind: ir.Activation, DType: g.dtype, Shape: []int{n},
		Space: ir.GlobalScratch}
	if plain {
		g.add(b)
		return
	}
	b.Layout = g.words(g.dtype)
	switch links := max(1, len(g.links)); {
	case g.pages == 0:
	case g.pages > 2 && g.slip():
		b.Pages = []string{g.page(j), g.page(j + 2)}
	case links%g.pages == 0:
		b.Pages = []string{g.page(j)}
	default:
		for i := range g.pages {
			b.Pages = append(b.Pages, g.page(i*links+j))
		}
	}
	g.add(b)
}

func (g *native) page(k int) string { return g.prog.Pages[k%g.pages].Name }

// leakName is the plain memory that the j-th link of an iteration leaves beside its words.
func leakName(j int) string { return "L{i}.leak" + string(rune('0'+j)) }
