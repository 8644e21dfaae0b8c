package population

import (
	"math/rand/v2"
	"strconv"

	"amkc/ir"
)

// Native makes a small random program in native form, of the kind that amkc compiles models to: a token is embedded,
// a loop of stages hands vectors from SM to SM in exchange words, the last vector becomes logits and the next token.
// It is well formed. Whether it is safe is another matter: about half of them are made with care, the others with
// slips, in which pages are shared too soon, waits are missing, words are polled late or by nobody, and flagged
// counters are trusted with plain memory.
func Native(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 'n'))
	slips := 0
	if r.IntN(100) < 80 {
		slips = 40 + r.IntN(120)
	}
	return Case{Name: "native/" + strconv.FormatUint(seed, 10), Class: "native", Program: makeNative(r, slips)}
}

// NativeFlat is the first variant of Native, unrolled.
func NativeFlat(seed uint64) Case {
	c := Native(seed)
	c.Name = "native-flat/" + strconv.FormatUint(seed, 10)
	return unrolled(c)
}

// unrolled replaces the native program of a case, which is well formed, by its first variant.
func unrolled(c Case) Case {
	flat, diags := ir.Unroll(c.Program, &c.Program.Variants[0])
	if flat == nil {
		panic(c.Name + " does not unroll: " + diags.Error())
	}
	c.Flat, c.Target, c.Program = flat, c.Program.Target, nil
	return c
}

// The symbols of views.
var (
	symA   = ir.Symbol(ir.SpanA)
	symB   = ir.Symbol(ir.SpanB)
	symPos = ir.Symbol(ir.Pos)
	symSM  = ir.Symbol(ir.OnSM)
)

// native is a program in the making. What its variants share is drawn first, then each variant.
type native struct {
	r     *rand.Rand
	slips int // of 1000 choices, how many are made without care
	prog  *ir.Program

	sms    int
	width  int // elements of the carried vector x
	layers int
	vocab  int
	dtype  ir.DType // of exchanged vectors
	how    ir.Realisation
	uneven bool   // vectors on shared pages are read in parts, and late
	links  []link // of an iteration, in chain order; the last one writes the next iteration's x
	pages  int    // that vectors share one after another; 0: every vector has memory of its own
	tail   int
	watch  bool // an SM beside the chain reads x as well
	resid  bool // an SMEM buffer carries the sum

	variant *ir.Variant
	home    ir.Dist // of embed and of every stage that adds to the residual
}

// weightRows and weightCols are enough for every stage: spans are at most 16 rows, vectors at most 8 words.
const (
	weightRows = 16
	weightCols = 8
)

func makeNative(r *rand.Rand, slips int) *ir.Program {
	g := &native{r: r, slips: slips}
	g.sms = g.pick(65, 25, 10) + 2
	g.width = 2 + r.IntN(5)
	g.layers = min(g.pick(8, 52, 28, 12), 6/g.sms) // a dozen tasks, not a hundred
	g.vocab = 2 + r.IntN(3)
	g.dtype = []ir.DType{ir.F16, ir.BF16, ir.F32}[r.IntN(3)]
	g.how = ir.Flagged
	if r.IntN(4) == 0 {
		g.how = ir.ByCounter
	}
	g.tail = g.pick(20, 20, 60)
	g.resid = r.IntN(2) == 0
	g.uneven = slips > 0 && r.IntN(5) < 3
	g.drawPages()
	g.drawLinks()
	g.watch = g.layers > 0 && (r.IntN(5) == 0 && (g.pages == 0 || g.uneven))
	maxSeq := 2 + r.IntN(3)
	g.prog = &ir.Program{Model: ir.Model{Name: "small", Architecture: "LlamaForCausalLM", DTypes: ir.Uniform(g.dtype),
		Layers: max(1, g.layers), Hidden: g.width,
		Intermediate: g.width, Heads: 1, KVHeads: 1, HeadDim: 1, Vocab: g.vocab, MaxSeq: maxSeq, Eps: 1e-5}}
	if r.IntN(3) > 0 {
		g.prog.Target = &ir.Target{Name: "toy", Arch: "sm_90a", SMs: g.sms, SMemOptin: 1 << 10, L2Bytes: 1 << 20,
			HBMBytes: 1 << 30, HBMGBs: 100}
	}
	g.buffers()
	cut := maxSeq
	if r.IntN(5) == 0 {
		cut = 1 + r.IntN(maxSeq-1)
	}
	g.draw("short", 0, cut-1)
	if cut < maxSeq {
		g.draw("long", cut, maxSeq-1)
	}
	ir.NameRoles(g.prog)
	return g.prog
}

// draw adds a variant.
func (g *native) draw(name string, lo, hi int) {
	g.prog.Variants = append(g.prog.Variants, ir.Variant{Name: name, Lo: lo, Hi: hi})
	g.variant = &g.prog.Variants[len(g.prog.Variants)-1]
	g.home = g.spans(g.width, 1, false)
	x := g.embed()
	if g.layers > 0 {
		loop := &ir.Loop{Name: "layers", Count: g.layers}
		loop.Body = g.iteration(x)
		g.variant.Body = append(g.variant.Body, loop)
	}
	x.name = "L" + twoDigits(g.layers) + ".x"
	x.counter = x.name
	g.finish(x)
}

// slip reports whether the choice at hand is to be made without care.
func (g *native) slip() bool { return g.slips > 0 && g.r.IntN(1000) < g.slips }

// pick returns an index with a probability in proportion to its weight.
func (g *native) pick(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := g.r.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

func twoDigits(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// counter declares a counter with the usual realisation, now and then the other; plain says that it orders memory which
// is no exchange words, so that care demands counting.
func (g *native) counter(name string, count int, plain bool) {
	how := g.how
	if g.r.IntN(7) == 0 {
		how = ir.Flagged + ir.ByCounter - how
	}
	if plain && !g.slip() {
		how = ir.ByCounter
	}
	g.variant.Counters = append(g.variant.Counters, ir.Counter{Name: name, Count: count, How: how})
}

func viewOf(buf string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: buf, Dims: dims} }
func tempOf(name string) ir.Operand                  { return ir.Operand{Buf: name} }
func extent(n int) ir.Range                          { return ir.Span(ir.Int(0), ir.Int(n)) }
func span() ir.Range                                 { return ir.Span(symA, symB) }

func newOp(code ir.Opcode, out, in []ir.Operand, params ...ir.Param) ir.Op {
	return ir.Op{Code: code, Out: out, In: in, Params: params}
}

func views(v ...ir.Operand) []ir.Operand { return v }
