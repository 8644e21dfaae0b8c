package population

import (
	"math/rand/v2"
	"strconv"

	"amkc/ir"
)

// Looped makes a small program of loops in all the forms that there are: several loops after each other, bodies of
// one layer or of two alternating kinds, layers before and after them that stand by themselves; operands that are
// constant, strided or ragged; values that one iteration leaves for the next in a buffer of its own, on one page or
// alternating between two, in place or in buffers of any names; and values that are stored in every iteration and read
// later. About half of them are made with care, the others with slips.
func Looped(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 'l'))
	slips := 0
	if r.IntN(100) < 60 {
		slips = 40 + r.IntN(160)
	}
	return Case{Name: "looped/" + strconv.FormatUint(seed, 10), Class: "looped", Program: makeLooped(r, slips)}
}

// A chainForm is where the vector x lies that layer after layer reads and writes.
type chainForm int

const (
	chainApart  chainForm = iota // a family, every member in memory of its own
	chainDouble                  // a family on two alternating pages
	chainSingle                  // a family on one page
	chainPlain                   // one plain buffer
	chainRagged                  // buffers of any names, some of them several times, by groups
)

// A segment is a loop, or a single layer.
type segment struct {
	name   string // what its names begin with
	first  int    // index of the first layer
	period int    // layers of an iteration
	count  int    // iterations; 0: one layer without a loop
	layers []layer
}

// A layer is one of an iteration.
type layer struct {
	kind    linkKind // gemvLink, normLink or addLink
	wide    bool     // two stages with a vector u between them, so that x is written when all have read it
	weights form
	stores  bool // a part of x, for later
	recalls bool // what an earlier segment has stored
}

// A form is how the iterations of a loop name what they read.
type form int

const (
	strided form = iota
	ragged
	constant
)

// looped is a program of loops in the making.
type looped struct {
	native
	segments []segment
	chain    chainForm
	plain    bool     // vectors are ordinary memory
	ring     []string // of chainRagged: the buffer of each x
	stored   []string // buffers that segments so far have stored
}

func makeLooped(r *rand.Rand, slips int) *ir.Program {
	g := &looped{native: native{r: r, slips: slips}}
	g.sms = 2 + g.pick(85, 15)
	g.width = 2 + r.IntN(3)
	g.vocab = 2 + r.IntN(2)
	g.dtype = []ir.DType{ir.F16, ir.BF16, ir.F32}[r.IntN(3)]
	g.how = ir.Flagged
	if r.IntN(3) == 0 {
		g.how = ir.ByCounter
	}
	g.tail = g.pick(25, 20, 55)
	g.resid = r.IntN(2) == 0
	g.plain = r.IntN(4) == 0
	g.chain = chainForm(g.pick(20, 25, 20, 10, 25))
	g.drawSegments()
	g.prog = &ir.Program{Model: ir.Model{Name: "small", Architecture: "LlamaForCausalLM", DTypes: ir.Uniform(g.dtype),
		Layers: g.layers, Hidden: g.width,
		Intermediate: g.width, Heads: 1, KVHeads: 1, HeadDim: 1, Vocab: g.vocab, MaxSeq: 1 + r.IntN(2), Eps: 1e-5}}
	g.prog.Variants = []ir.Variant{{Name: "all", Hi: g.prog.Model.MaxSeq - 1}}
	g.variant = &g.prog.Variants[0]
	g.home = g.spans(g.width, 1, false)
	g.ends()
	g.vectors()
	g.start()
	for i := range g.segments {
		g.segment(&g.segments[i])
	}
	g.recallAll()
	g.finish(vector{name: g.x(g.layers), counter: "L" + twoDigits(g.layers) + ".x", n: g.width,
		tasks: tasksOf(&g.home)})
	ir.NameRoles(g.prog)
	return g.prog
}

// drawSegments draws which layers stand in loops, and what each is.
func (g *looped) drawSegments() {
	add := func(period, count int) {
		s := segment{name: string(rune('A' + len(g.segments))), first: g.layers, period: period, count: count}
		for range period {
			l := layer{kind: []linkKind{gemvLink, normLink, addLink}[g.r.IntN(3)], weights: form(g.r.IntN(3))}
			if l.kind == addLink && !g.resid {
				l.kind = gemvLink
			}
			l.wide = g.chain == chainSingle || g.chain == chainPlain
			if g.r.IntN(4) == 0 || g.slip() {
				l.wide = !l.wide && g.chain != chainSingle && g.chain != chainPlain || l.wide && !g.slip()
			}
			l.stores = g.r.IntN(4) == 0
			l.recalls = g.r.IntN(2) == 0
			s.layers = append(s.layers, l)
		}
		g.segments = append(g.segments, s)
		g.layers += period * max(1, count)
	}
	if g.r.IntN(4) == 0 {
		add(1, 0)
	}
	switch g.pick(30, 30, 25, 15) {
	case 0:
		add(1, 2+g.r.IntN(2))
	case 1:
		add(2, 2)
	case 2:
		add(1, 2)
		add(1, 2)
	default:
		add(2, 2)
		add(1, 2)
	}
	if g.r.IntN(4) == 0 {
		add(1, 0)
	}
}

// stores reports whether some layer does.
func (g *looped) stores() bool {
	for _, s := range g.segments {
		for _, l := range s.layers {
			if l.stores {
				return true
			}
		}
	}
	return false
}

// vectors declares what the chain of layers lies in, and what all loops share.
func (g *looped) vectors() {
	for _, name := range []string{"shared.weight", "pool0.weight", "pool1.weight"} {
		g.add(ir.Buffer{Name: name, Kind: ir.Weight, DType: g.dtype, Shape: []int{g.width, g.width}})
	}
	if g.resid {
		g.add(ir.Buffer{Name: "residual", Kind: ir.Activation, DType: ir.F32, Shape: []int{g.width}, Space: ir.SMEM})
	}
	x := g.activation("L{i}.x")
	x.Count = g.layers + 1
	switch g.chain {
	case chainDouble:
		x.Pages = []string{g.newPage("even"), g.newPage("odd")}
		if g.slip() {
			x.Pages = x.Pages[:1]
		}
	case chainSingle:
		x.Pages = []string{g.newPage("one")}
	case chainPlain:
		x.Name, x.Count = "x", 0
	case chainRagged:
		g.drawRing(x)
		return
	}
	g.add(x)
}

// activation is a vector of the chain that lies nowhere yet.
func (g *looped) activation(name string) ir.Buffer {
	b := ir.Buffer{Name: name, Kind: ir.Activation, DType: g.dtype, Shape: []int{g.width}, Space: ir.GlobalScratch}
	if !g.plain {
		b.Layout = g.words(g.dtype)
	}
	return b
}

func (g *looped) newPage(name string) string {
	p := ir.Page{Name: name, Space: ir.GlobalScratch, Bytes: g.width * g.dtype.Bits() / 4}
	if !g.plain {
		p.Layout = g.words(g.dtype)
	}
	g.prog.Pages = append(g.prog.Pages, p)
	return name
}

// drawRing declares the buffers of a ragged chain, and which of them each x is: never that of the x before, which is
// being read, unless a slip makes it so.
func (g *looped) drawRing(x ir.Buffer) {
	names := []string{"a", "c", "f", "h"}[:2+g.r.IntN(3)]
	last := -1
	for range g.layers + 1 {
		k := g.r.IntN(len(names))
		for k == last && !g.slip() {
			k = g.r.IntN(len(names))
		}
		g.ring, last = append(g.ring, names[k]), k
	}
	x.Count = 0
	for _, x.Name = range names {
		g.add(x)
	}
}

// x names the vector between two layers, the index-th of the step.
func (g *looped) x(index int) string {
	switch g.chain {
	case chainPlain:
		return "x"
	case chainRagged:
		return g.ring[index]
	}
	return "L" + twoDigits(index) + ".x"
}

// input and output name what the k-th layer of a segment reads and writes.
func (g *looped) input(s *segment, k int) string  { return g.between(s, ".in{i}", k, 0) }
func (g *looped) output(s *segment, k int) string { return g.between(s, ".out{i}", k, 1) }

func (g *looped) between(s *segment, group string, k, side int) string {
	switch {
	case s.count == 0 || g.chain == chainPlain:
		return g.x(s.first + side)
	case g.chain == chainRagged:
		return shifted(s.name+group, k)
	}
	return shifted("L{i}.x", k+side)
}
