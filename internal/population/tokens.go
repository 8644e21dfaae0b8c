package population

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"amkc/ir"
)

// Tokens makes a small native program that takes several sequences, or several rows of each, in a pass: tokens are
// embedded, keys are rotated each to its position, each head of each sequence attends and appends, and every token gets
// logits and a next one, by plain memory or by exchange words. Two in three have a slip, in which sequences, rows or
// positions are taken for one another; the class says which.
func Tokens(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 'p'))
	g := &tokens{Rand: r, slip: noSlip}
	if !chance(r, 3) {
		g.slip = slip(r.IntN(len(slipNames)))
	}
	class := "tokens"
	if g.slip != noSlip {
		class += ": " + slipNames[g.slip]
	}
	return Case{Name: "tokens/" + strconv.FormatUint(seed, 10), Class: class, Program: g.program()}
}

// makeTokens makes such a program, with a slip or without one.
func makeTokens(r *rand.Rand, slips bool) *ir.Program {
	g := &tokens{Rand: r, slip: noSlip}
	if slips {
		g.slip = slip(r.IntN(len(slipNames)))
	}
	return g.program()
}

// slip is what is wrong with such a program.
type slip int

const (
	noSlip slip = iota - 1
	otherCache
	otherRows
	otherAppend
	fewerAppended
	laterAppended
	sameAppended
	unwritten
	noWait
	fewerLogits
	otherRow
	otherQueries // a wrong result, and no hazard
	noLowerBound
	mixed
	missedPart
	allParts
)

// slipNames say what they are, in the record.
var slipNames = [...]string{
	otherCache:    "keys of another cache",
	otherRows:     "rows below another position",
	otherAppend:   "appended at another position",
	fewerAppended: "a row not appended",
	laterAppended: "appended further on",
	sameAppended:  "all rows appended to one",
	unwritten:     "attends to a row to come",
	noWait:        "attends without a wait",
	fewerLogits:   "a token without logits",
	otherRow:      "masked as another sequence",
	otherQueries:  "queries of another sequence",
	noLowerBound:  "window below the first row",
	mixed:         "memory by two positions",
	missedPart:    "rows of a split not appended",
	allParts:      "rows appended by every split",
}

// tokens is such a program while it is made. Heads have two elements; keys are queries and values too.
type tokens struct {
	*rand.Rand
	slip         slip
	words        bool // tokens are handed on in exchange words, else in plain memory behind counters
	prog         *ir.Program
	heads        int
	parts, block int // that the rows of a cache are dealt out to, and in
}

const tokenWidth, tokenVocab, tokenSMs = 2, 3, 2

func (g *tokens) program() *ir.Program {
	pass := ir.PassOf(1+g.IntN(3), 1+g.IntN(3))
	if pass.NumTokens() == 1 || g.sequencesOnly() {
		pass = ir.PassOf(2, 1+g.IntN(2))
	}
	g.heads, g.parts, g.block = 1+g.IntN(2), 1, 1+g.IntN(2)
	g.words = chance(g.Rand, 2)
	if chance(g.Rand, 3) || g.slip == missedPart || g.slip == allParts {
		g.parts = 2
	}
	// The last position of a pass. Of several rows there may be positions between two variants.
	between := g.IntN(pass.NumRows())
	last := 1 + between + g.IntN(3)
	g.prog = &ir.Program{Pass: pass, Model: ir.Model{Name: "small", Architecture: "LlamaForCausalLM",
		DTypes: ir.Uniform(ir.F32), Layers: 1, Hidden: tokenWidth, Heads: g.heads, KVHeads: g.heads, HeadDim: 2,
		Vocab: tokenVocab, MaxSeq: last + pass.NumRows(), Eps: 1e-5}}
	g.buffers()
	if chance(g.Rand, 3) {
		g.variant("short", 0, 0, chance(g.Rand, 2))
		g.variant("long", 1+between, last, true)
	} else {
		g.variant("all", 0, last, true)
	}
	return g.prog
}

// sequencesOnly reports whether the slip needs several sequences.
func (g *tokens) sequencesOnly() bool {
	return slices.Contains([]slip{otherCache, otherRows, otherAppend, otherRow, otherQueries, mixed}, g.slip)
}

func (g *tokens) buffers() {
	n, m := g.prog.Pass.NumTokens(), &g.prog.Model
	add := func(name string, kind ir.BufferKind, d ir.DType, shape ...int) *ir.Buffer {
		g.prog.Buffers = append(g.prog.Buffers, ir.Buffer{Name: name, Kind: kind, DType: d, Shape: shape})
		return &g.prog.Buffers[len(g.prog.Buffers)-1]
	}
	add("token", ir.Input, ir.I32, n).Role = ir.RoleToken
	add("logits", ir.Output, ir.F32, n, tokenVocab).Role = ir.RoleLogits
	add("next", ir.Output, ir.I32, n).Role = ir.RoleNext
	add("embed.weight", ir.Weight, ir.F32, tokenVocab, tokenWidth)
	add("k.weight", ir.Weight, ir.F32, 2*g.heads, tokenWidth)
	add("head.weight", ir.Weight, ir.F32, tokenVocab, 2*g.heads)
	add("angles", ir.Const, ir.F32, 1)
	cache := []int{g.heads, m.MaxSeq, 2, 2}
	if s := g.prog.Pass.NumSequences(); s > 1 {
		cache = append([]int{s}, cache...)
	}
	add("kv", ir.KVCache, ir.F32, cache...)
	exchange := func(name string, shape ...int) {
		if b := add(name, ir.Activation, ir.F32, shape...); g.words {
			b.Space, b.Layout.Kind = ir.GlobalScratch, ir.Word64
		}
	}
	exchange("x", n, tokenWidth)
	exchange("k", n, 2*g.heads)
	exchange("attn", n, 2*g.heads)
	if g.parts > 1 {
		exchange("part", g.units(), g.prog.Pass.NumRows(), 1, 4)
	}
	add("marks", ir.Activation, ir.F32, m.MaxSeq+g.prog.Pass.NumSequences())
}

// variant adds one; without a slip it is right whatever the program's slip is.
func (g *tokens) variant(name string, lo, hi int, slips bool) {
	slip := g.slip
	if !slips {
		g.slip = noSlip
	}
	v := ir.Variant{Name: name, Lo: lo, Hi: hi}
	stages := []*ir.Stage{g.embed(), g.keys(), g.attention()}
	if g.parts > 1 {
		stages = append(stages, g.combine())
	}
	stages = append(stages, g.head())
	how := ir.ByCounter
	if g.words { // which show that a token is there, and not that who handed it on is done
		how = ir.Flagged
		stages = append(stages, &ir.Stage{Name: "join", Signal: "step", Dist: ir.Dist{Kind: ir.Spread, Extent: tokenSMs,
			Grain: 1, SMs: tokenSMs}, Ops: []ir.Op{newOp(ir.NOP, nil, nil)}})
	}
	for _, s := range stages {
		v.Body = append(v.Body, s)
		if s.Signal != "" {
			v.Counters = append(v.Counters, ir.Counter{Name: s.Signal, How: how})
		}
	}
	step := &v.Counters[len(v.Counters)-1]
	step.How, step.Role = ir.ByCounter, ir.RoleStep
	g.prog.Variants = append(g.prog.Variants, v)
	g.slip = slip
}

// wait adds a wait for all producers of a counter.
func (g *tokens) wait(s *ir.Stage, counter string, producers int) *ir.Stage {
	s.Waits = append(s.Waits, ir.Wait{Counter: counter, Threshold: producers})
	return s
}

func (g *tokens) all() ir.Range { return extent(g.prog.Pass.NumTokens()) }

func (g *tokens) embed() *ir.Stage {
	return &ir.Stage{Name: "embed", Signal: "x", Dist: ir.Dist{Kind: ir.Spread, Extent: tokenWidth, Grain: 1,
		SMs: tokenSMs}, Ops: []ir.Op{newOp(ir.EMBED, views(viewOf("x", g.all(), span())),
		views(viewOf("token", g.all()), viewOf("embed.weight", extent(tokenVocab), span())))}}
}

func (g *tokens) keys() *ir.Stage {
	row, rows := ir.Symbol(ir.Row), g.prog.Pass.NumRows()
	s := &ir.Stage{Name: "k", Signal: "k", Dist: ir.Dist{Kind: ir.Spread, Extent: 2 * g.heads, Grain: 2,
		SMs: g.heads}, Ops: []ir.Op{
		newOp(ir.GEMM, views(tempOf("%k")), views(viewOf("x", g.all(), extent(tokenWidth)),
			viewOf("k.weight", span(), extent(tokenWidth)))),
		newOp(ir.ROPE, views(viewOf("k", g.all(), span())), views(tempOf("%k"), viewOf("angles", extent(1))),
			intParam("head_dim", 2), intParam("order", 1), ir.IntParam("first", symA),
			ir.IntParam("pos", ir.PosOf(row.Div(rows)).Add(row.Mod(rows))))}}
	return g.wait(s, "x", tokenSMs)
}

// units is how many there are: parts of a head of a sequence.
func (g *tokens) units() int { return g.prog.Pass.NumSequences() * g.heads * g.parts }

// attention is a unit for each part of each head of each sequence.
func (g *tokens) attention() *ir.Stage {
	pass := g.prog.Pass
	number := symA.Div(g.heads * g.parts)
	head, other := symA.Div(g.parts).Mod(g.heads), number.Add(ir.Int(1)).Mod(pass.NumSequences())
	out, mine := "attn", symA.Mod(g.parts)
	pos := ir.PosOf(number)
	or := func(slip slip, e, wrong ir.Expr) ir.Expr {
		if g.slip == slip {
			return wrong
		}
		return e
	}
	rows := func(sequence ir.Expr, from, to int) ir.Range {
		first := sequence.Mul(pass.NumRows())
		return ir.Span(first.Add(ir.Int(from)), first.Add(ir.Int(to)))
	}
	cache := func(sequence ir.Expr, r ir.Range, isV int) ir.Operand {
		if g.parts > 1 {
			r = ir.Share(r.Lo, r.Hi, g.block, mine, g.parts)
		}
		dims := []ir.Range{ir.Index(head), r, ir.Index(ir.Int(isV)), extent(2)}
		if pass.NumSequences() > 1 {
			dims = append([]ir.Range{ir.Index(sequence)}, dims...)
		}
		return viewOf("kv", dims...)
	}
	part := func(r ir.Range) ir.Operand { return viewOf("k", r, ir.Span(head.Mul(2), head.Mul(2).Add(ir.Int(2)))) }
	own := rows(number, 0, pass.NumRows())
	seen := ir.Span(ir.Int(0), or(otherRows, pos, ir.PosOf(other)))
	params := []ir.Param{intParam("head_dim", 2), intParam("n_heads", 1), intParam("n_kv_heads", 1),
		ir.FloatParam("scale", 0.5),
		ir.IntParam("row", or(otherRow, pos, ir.PosOf(other)).Add(ir.Symbol(ir.Row)))}
	switch {
	case g.slip == noLowerBound:
		seen.Lo = pos.Sub(ir.Int(1))
	case chance(g.Rand, 2):
		window := 1 + g.IntN(3)
		seen.Lo = ir.Int(0).Max(seen.Hi.Sub(ir.Int(window - 1)))
		params = append(params, intParam("window", window))
	}
	if g.slip == unwritten {
		seen.Hi = seen.Hi.Add(ir.Int(1))
	}
	in := views(part(rows(or(otherQueries, number, other), 0, pass.NumRows())),
		cache(or(otherCache, number, other), seen, 0), cache(number, seen, 1), part(own), part(own))
	to := viewOf("attn", own, ir.Span(head.Mul(2), head.Mul(2).Add(ir.Int(2))))
	if g.parts > 1 {
		out, to = "part", viewOf("part", ir.Index(symA), extent(pass.NumRows()), extent(1), extent(4))
		params = append(params, intParam("flags", 2), intParam("block", g.block), ir.IntParam("part", mine),
			intParam("parts", g.parts))
	}
	ops := []ir.Op{newOp(ir.ATTENTION, views(to), in, params...)}
	for isV := range 2 {
		ops = append(ops, g.append(func(from, to int) ir.Operand {
			at := or(otherAppend, pos, ir.PosOf(other))
			v := cache(number, ir.Span(at.Add(ir.Int(from)), at.Add(ir.Int(to))), isV)
			switch r := &v.Dims[len(v.Dims)-3]; g.slip {
			case missedPart:
				r.Part = ir.Int(0)
			case allParts:
				*r = ir.Span(r.Lo, r.Hi)
			}
			return v
		}, func(from, to int) ir.Operand { return part(rows(number, from, to)) })...)
	}
	if g.slip == mixed { // each unit marks where its sequence is, and reads the mark of another
		mark := func(sequence ir.Expr) ir.Operand {
			return viewOf("marks", ir.Index(ir.PosOf(sequence).Add(sequence)))
		}
		ops = append(ops, newOp(ir.COPY, views(mark(number)), views(viewOf("angles", extent(1)))))
		if chance(g.Rand, 2) {
			ops = append(ops, newOp(ir.COPY, views(tempOf("%mark")), views(mark(other))))
		}
	}
	s := &ir.Stage{Name: out, Signal: out, Dist: ir.Dist{Kind: ir.ByUnit, Extent: g.units(), Grain: 1, SMs: tokenSMs},
		Ops: ops}
	if g.slip == noWait {
		return s
	}
	return g.wait(s, "k", g.heads)
}

// combine is a unit for each head of each token.
func (g *tokens) combine() *ir.Stage {
	pass := g.prog.Pass
	token, head := symA.Div(g.heads), symA.Mod(g.heads)
	unit := token.Div(pass.NumRows()).Mul(g.heads).Add(head)
	parts := ir.Span(unit.Mul(g.parts), unit.Add(ir.Int(1)).Mul(g.parts))
	of := func(r ir.Range) ir.Operand {
		return viewOf("part", parts, ir.Index(token.Mod(pass.NumRows())), extent(1), r)
	}
	s := &ir.Stage{Name: "attn", Signal: "attn", Dist: ir.Dist{Kind: ir.ByUnit, Extent: pass.NumTokens() * g.heads,
		Grain: 1, SMs: tokenSMs}, Ops: []ir.Op{newOp(ir.AttentionCombine,
		views(viewOf("attn", ir.Index(token), ir.Span(head.Mul(2), head.Mul(2).Add(ir.Int(2))))),
		views(of(extent(2)), of(ir.Span(ir.Int(2), ir.Int(4)))), intParam("splits", g.parts))}}
	return g.wait(s, "part", g.units())
}

// append is the rows of a pass, all at once or one by one.
func (g *tokens) append(to, from func(a, b int) ir.Operand) []ir.Op {
	n := g.prog.Pass.NumRows()
	one := func(a, b, later int) ir.Op {
		return newOp(ir.KVAppend, views(to(a+later, b+later)), views(from(a, b)))
	}
	switch {
	case g.slip == fewerAppended && n == 1:
		return nil
	case g.slip == fewerAppended:
		return []ir.Op{one(0, n-1, 0)}
	case g.slip == laterAppended:
		return []ir.Op{one(0, n, 1)}
	case g.slip == sameAppended:
		var ops []ir.Op
		for r := range n {
			ops = append(ops, one(r, r+1, -r))
		}
		return ops
	case chance(g.Rand, 2):
		var ops []ir.Op
		for r := range n {
			ops = append(ops, one(r, r+1, 0))
		}
		return ops
	}
	return []ir.Op{one(0, n, 0)}
}

func (g *tokens) head() *ir.Stage {
	rows := g.all()
	if g.slip == fewerLogits {
		rows = ir.Span(ir.Int(g.IntN(2)), ir.Int(g.prog.Pass.NumTokens()-1))
	}
	logits := viewOf("logits", rows, extent(tokenVocab))
	s := &ir.Stage{Name: "head", Dist: ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{B: 1}}},
		Ops: []ir.Op{
			newOp(ir.GEMM, views(logits), views(viewOf("attn", rows, extent(2*g.heads)),
				viewOf("head.weight", extent(tokenVocab), extent(2*g.heads)))),
			newOp(ir.ArgMax, views(viewOf("next", rows)), views(logits))}}
	if !g.words {
		s.Signal = "step"
	}
	if g.parts > 1 {
		return g.wait(s, "attn", g.prog.Pass.NumTokens()*g.heads)
	}
	return g.wait(s, "attn", g.units())
}
