package population

import (
	"math/rand/v2"
	"strconv"

	"amkc/ir"
)

// Indices makes a small random program that computes rows of tables: tasks choose among values, some of them of an
// empty view or with a shift, choose among what others have chosen, hand indices on, and select rows of tables by
// them; what one step leaves selects in the next. Tasks follow each other in one order. A third of the programs are
// made with care, so that each table has the row; in the others it often has one too few.
func Indices(seed uint64) Case {
	x := &indexing{Rand: rand.New(rand.NewPCG(seed, 0x1d8))}
	x.slips = !chance(x.Rand, 3)
	x.declare()
	cut := 1 + x.IntN(3)
	x.variant("short", 0, cut-1)
	if chance(x.Rand, 3) {
		x.variant("long", cut, cut+1)
		cut += 2
	}
	x.prog.Model.MaxSeq = cut
	ir.NameRoles(x.prog)
	return Case{Name: "indices/" + strconv.FormatUint(seed, 10), Class: "indices", Program: x.prog}
}

const (
	indexBuffers  = 3 // of two indices each
	indexValues   = 8 // to choose among
	indexTables   = 7 // of 1 to 7 rows
	noSuchIndex   = -1
	anythingAtAll = 1 << 20 // that no table has a row for
)

// indexing is such a program while it is made.
type indexing struct {
	*rand.Rand
	prog   *ir.Program
	stages []ir.Node // of the variant at hand
	slips  bool
	held   [indexBuffers][2]int // the largest index of each element; noSuchIndex before it is written
	best   [indexBuffers]bool   // whether they are those of partial results, in a buffer of values beside them
	tokens int                  // rows that every step has for its token
}

func (x *indexing) declare() {
	x.tokens = 2 + x.IntN(indexTables-1)
	x.prog = &ir.Program{Model: ir.Model{Name: "indices", Architecture: "LlamaForCausalLM",
		DTypes: ir.Uniform(ir.F32), Layers: 1,
		Hidden: 2, Intermediate: 2,
		Heads: 1, KVHeads: 1, HeadDim: 2, Vocab: x.tokens, Eps: 1e-5}}
	add := func(name string, kind ir.BufferKind, d ir.DType, shape ...int) {
		x.prog.Buffers = append(x.prog.Buffers, ir.Buffer{Name: name, Kind: kind, DType: d, Shape: shape})
	}
	add("token", ir.Input, ir.I32, 1)
	add("given", ir.Input, ir.I32, 2)
	add("next", ir.Output, ir.I32, 1)
	add("w", ir.Weight, ir.F32, indexValues)
	add("fixed", ir.Const, ir.I32, 2)
	for i := range indexBuffers {
		add("i"+strconv.Itoa(i), ir.Activation, ir.I32, 2)
		add("v"+strconv.Itoa(i), ir.Activation, ir.F32, 2)
	}
	for rows := 1; rows <= indexTables; rows++ {
		add("t"+strconv.Itoa(rows), ir.Weight, ir.F32, rows, 2)
	}
}

func (x *indexing) variant(name string, lo, hi int) {
	x.stages, x.held, x.best = nil, [indexBuffers][2]int{}, [indexBuffers]bool{}
	for i := range x.held {
		x.held[i] = [2]int{noSuchIndex, noSuchIndex}
	}
	if !chance(x.Rand, 4) {
		x.embed("token", 0, x.tokens-1)
	}
	for range 2 + x.IntN(6) {
		x.op()
	}
	x.last()
	v := ir.Variant{Name: name, Lo: lo, Hi: hi, Body: x.stages,
		Counters: []ir.Counter{{Name: "step", How: ir.ByCounter}}}
	for i := range x.stages[1:] {
		v.Counters = append(v.Counters, ir.Counter{Name: "c" + strconv.Itoa(i), How: ir.ByCounter})
	}
	x.prog.Variants = append(x.prog.Variants, v)
}

// task adds a task that waits for the one before it.
func (x *indexing) task(ops ...ir.Op) {
	n := len(x.stages)
	s := &ir.Stage{Name: "s" + strconv.Itoa(n), Signal: "step", Ops: ops,
		Dist: ir.Dist{Kind: ir.Explicit, Spans: []ir.TaskSpan{{SM: x.IntN(2), B: 1}}}}
	if n > 0 {
		before := x.stages[n-1].(*ir.Stage)
		before.Signal = "c" + strconv.Itoa(n-1)
		s.Waits = []ir.Wait{{Counter: before.Signal, Threshold: 1}}
	}
	x.stages = append(x.stages, s)
}

func (x *indexing) op() {
	to, at := x.IntN(indexBuffers), x.IntN(2)
	n := 1 + x.IntN(indexValues-1)
	values := viewOf("w", ir.Span(ir.Int(indexValues-n), ir.Int(indexValues)))
	switch x.IntN(6) {
	case 0:
		choose := newOp(ir.ArgMax, views(indexAt("i", to, at)), views(values))
		if n == 2 { // 0 or 1, as STOP says too
			choose.Code, choose.In = ir.STOP, views(viewOf("token", ir.Index(ir.Int(0))), viewOf("given", extent(2)),
				viewOf("given", ir.Index(ir.Int(0))))
		}
		x.task(choose)
		x.set(to, at, n-1, false)
	case 1:
		first := x.IntN(3)
		if chance(x.Rand, 4) { // of nothing
			n, values = 0, viewOf("w", ir.Span(ir.Int(2), ir.Int(2)))
		}
		x.task(newOp(ir.ArgMax, views(indexAt("v", to, at), indexAt("i", to, at)), views(values),
			ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", ir.Int(first))))
		if n == 0 {
			x.set(to, at, noSuchIndex, true)
		} else {
			x.set(to, at, first+n-1, true)
		}
	case 2:
		from := x.IntN(indexBuffers)
		if b := x.held[from]; from != to && x.best[from] && max(b[0], b[1]) > noSuchIndex {
			both := func(name string) ir.Operand { return viewOf(name+strconv.Itoa(from), extent(2)) }
			x.task(newOp(ir.ArgMax, views(indexAt("i", to, at)), views(both("v"), both("i"))))
			x.set(to, at, max(b[0], b[1]), false)
		}
	case 3:
		if from := x.IntN(indexBuffers); from != to && x.held[from][at] > noSuchIndex {
			x.task(newOp(ir.COPY, views(indexAt("i", to, at)), views(indexAt("i", from, at))))
			x.set(to, at, x.held[from][at], x.best[from])
		}
	case 4:
		if x.slips && chance(x.Rand, 3) {
			x.task(newOp(ir.COPY, views(indexAt("i", to, at)), views(viewOf("fixed", ir.Index(ir.Int(at))))))
			x.set(to, at, anythingAtAll, false)
			return
		}
		x.task(newOp(ir.EMBED, views(tempOf("%row")), views(viewOf("given", ir.Index(ir.Int(at))), x.table(max(2, n)))))
	default:
		if hi := x.held[to][at]; hi > noSuchIndex && (!x.best[to] || x.slips && chance(x.Rand, 8)) {
			x.embed("i"+strconv.Itoa(to), at, hi)
		}
	}
}

// set notes what an element holds from now on, and whether it may be the mark of a partial result that found nothing.
func (x *indexing) set(buf, at, hi int, partial bool) {
	x.held[buf][at], x.best[buf] = hi, partial
}

// embed selects a row by an element that reaches up to hi.
func (x *indexing) embed(name string, at, hi int) {
	rows := hi + 1 + x.IntN(2)
	if x.slips && chance(x.Rand, 3) {
		rows = hi
	}
	x.task(newOp(ir.EMBED, views(tempOf("%row")), views(viewOf(name, ir.Index(ir.Int(at))), x.table(rows))))
}

// table is a view with so many rows, or as many as there can be.
func (x *indexing) table(rows int) ir.Operand {
	rows = max(1, min(rows, indexTables))
	of := rows + x.IntN(indexTables-rows+1)
	return viewOf("t"+strconv.Itoa(of), ir.Span(ir.Int(of-rows), ir.Int(of)), extent(2))
}

// last leaves a token for the next step, mostly one that every step has a row for.
func (x *indexing) last() {
	next := views(viewOf("next", ir.Index(ir.Int(0))))
	for i, h := range x.held {
		for at, hi := range h {
			if hi > noSuchIndex && !x.best[i] && (hi < x.tokens || x.slips && chance(x.Rand, 3)) {
				x.task(newOp(ir.COPY, next, views(indexAt("i", i, at))))
				return
			}
		}
	}
	switch n := x.tokens; {
	case chance(x.Rand, 3):
		x.task(newOp(ir.COPY, next, views(viewOf("token", ir.Index(ir.Int(0))))))
	default:
		if x.slips && chance(x.Rand, 3) {
			n++
		}
		x.task(newOp(ir.ArgMax, next, views(viewOf("w", extent(min(n, indexValues))))))
	}
}

func indexAt(kind string, buf, at int) ir.Operand {
	return viewOf(kind+strconv.Itoa(buf), ir.Index(ir.Int(at)))
}
