package passes

import (
	"math"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// Lower is the pass that turns the graph into a program: one stage for each node, undistributed, with every value in a
// buffer of its own and every counter undecided.
//
// A value has the dtype of the model if the finished schedule exchanges it, and is F32 if fusion will keep it on
// chip, so that rounding happens in the same places before and after. The residual is a chain of such values, one for
// each sum; that they can be one buffer, updated in place, is for pass loop to find. Rows of q and k are placed in
// rotation pairs here, because the rotation that follows them takes its two elements side by side.
var Lower = Pass{
	Name:  "lower",
	Doc:   "turn operators into whole-op stages, with a buffer and a counter for every value",
	After: []string{"import"},
	Run:   runLower,
}

func runLower(s *State) error {
	config, diags := knobs.Resolve(s.Config, &s.Graph.Model, s.Target)
	var bad *diag.Diagnostic
	config.FusionGrouping, bad = fusionOf(config.FusionGrouping, s.Graph)
	diags.Add(bad)
	config.SMAssignment, bad = assignmentOf(config.SMAssignment, s.Target)
	diags.Add(bad)
	if err := diags.Err(); err != nil {
		return err
	}
	p := &ir.Program{Model: s.Graph.Model, Target: s.Target, Config: config}
	l := &lowerer{g: s.Graph, m: &p.Model, buffers: newBuffers(p), declared: map[string]bool{},
		value: map[string]string{}, rotated: map[string]bool{}, exchanged: map[string]bool{}}
	for _, n := range slices.Backward(s.Graph.Nodes) {
		l.readers(&n)
	}
	l.buffer("token", ir.Input, ir.I32, ir.HBM, 1)
	l.buffer("logits", ir.Output, ir.F32, ir.HBM, p.Model.Vocab)
	l.buffer("next", ir.Output, ir.I32, ir.HBM, 1)
	l.buffer(invFreqBuffer, ir.Const, ir.F32, ir.HBM, p.Model.HeadDim/2).Pieces = []ir.Piece{{Key: invFreqKey}}
	for i := range s.Graph.Nodes {
		if err := l.node(&s.Graph.Nodes[i]); err != nil {
			return err
		}
	}
	setThresholds(l.stages)
	v := ir.Variant{Name: "all", Lo: 0, Hi: p.Model.MaxSeq - 1, Counters: l.counters}
	setStages(&v, l.stages)
	p.Variants = []ir.Variant{v}
	prune(p)
	s.Program = p
	return nil
}

const (
	invFreqBuffer = "rope.inv_freq"
	invFreqKey    = "@inv_freq"
	stepCounter   = "step" // every task that announces nothing within the step

	residual    = "residual"     // role of the sum as a layer finds it
	residualMid = "residual_mid" // and between its two halves
)

type lowerer struct {
	g         *ir.Graph
	m         *ir.Model
	buffers   buffers
	stages    []*ir.Stage
	counters  []ir.Counter
	declared  map[string]bool   // counters
	value     map[string]string // node -> buffer that holds its value
	residual  string            // buffer that holds the residual as it is now
	rotated   map[string]bool   // nodes whose value a rotation reads, of the elements as they are or normalised
	exchanged map[string]bool   // nodes whose value attention reads, and so another SM than has computed it
}

// readers notes what a node means for the ones that it reads, which come before it.
func (l *lowerer) readers(n *ir.GraphNode) {
	switch n.Op {
	case "rope":
		l.rotated[n.Inputs[0]] = true
	case "rmsnorm_heads":
		// It needs whole heads, which attention has: the kernel computes it there.
		l.rotated[n.Inputs[0]], l.exchanged[n.Inputs[0]] = l.rotated[n.Name], true
	case "attention":
		for _, in := range n.Inputs {
			l.exchanged[in] = true
		}
	}
}

// buffer declares a row-major buffer unless it is there already.
func (l *lowerer) buffer(name string, kind ir.BufferKind, dtype ir.DType, space ir.Space, shape ...int) *ir.Buffer {
	if b := l.buffers.find(name); b != nil {
		return b
	}
	return l.buffers.add(ir.Buffer{Name: name, Kind: kind, DType: dtype, Shape: shape, Space: space})
}

// scratch declares the buffer of a value.
func (l *lowerer) scratch(name string, dtype ir.DType, n int) string {
	l.buffer(name, ir.Activation, dtype, ir.GlobalScratch, n)
	return name
}

// weights declares the buffer that a node's tensor is packed into.
func (l *lowerer) weights(name, key string, order ir.Arrange, arg int, shape ...int) string {
	l.buffer(name, ir.Weight, l.m.DType, ir.HBM, shape...).Pieces = []ir.Piece{{Key: key, Order: order, Arg: arg}}
	return name
}

// stage appends a stage that reads the values of the node's inputs and signals the counter.
func (l *lowerer) stage(n *ir.GraphNode, counter string, dist ir.Dist, ops ...ir.Op) {
	s := &ir.Stage{Name: n.Name, Dist: dist, Ops: ops, Signal: counter}
	for _, in := range n.Inputs {
		s.Waits = append(s.Waits, ir.Wait{Counter: l.value[in]})
	}
	l.stages = append(l.stages, s)
	l.counters = declare(l.counters, l.declared, counter)
}

// whole is a distribution of one task over an axis; n is 1 for a node whose result needs all of its input at once.
func whole(n int) ir.Dist { return ir.Dist{Kind: ir.Whole, Extent: n} }

// perHead is one task a KV head: the cache is stored head by head, and so is attention.
func perHead(heads int) ir.Dist { return ir.Dist{Kind: ir.Tiled, Extent: heads, Grain: 1} }

func (l *lowerer) node(n *ir.GraphNode) error {
	prefix := ""
	if n.Layer >= 0 {
		prefix = layerPrefix(n.Layer)
	}
	in := func(i int) string { return l.value[n.Inputs[i]] }
	size := n.Shape[0]
	switch n.Op {
	case "embed":
		l.embed(n)
	case "rmsnorm":
		w := l.weights(n.Name+".weight", n.Weights[0], ir.Rows, 0, size)
		out := l.scratch(n.Name, ir.F32, size)
		l.value[n.Name] = out
		l.stage(n, out, whole(1), ir.Op{Code: ir.RMSNORM, Out: []ir.Operand{view(out, upTo(size))},
			In:     []ir.Operand{view(in(0), upTo(size)), view(w, upTo(size))},
			Params: []ir.Param{ir.FloatParam("eps", l.m.Eps)}})
	case "rmsnorm_heads":
		order, arg := l.order(n)
		hd := l.m.HeadDim
		w := l.weights(n.Name+".weight", n.Weights[0], order, arg, hd)
		out := l.scratch(n.Name, ir.F32, size)
		l.value[n.Name] = out
		l.stage(n, out, whole(size), ir.Op{Code: ir.RMSNORM, Out: []ir.Operand{view(out, upTo(size))},
			In:     []ir.Operand{view(in(0), upTo(size)), view(w, upTo(hd))},
			Params: []ir.Param{ir.FloatParam("eps", l.m.Eps), ir.IntParam("head_dim", ir.Int(hd))}})
	case "linear":
		l.linear(n, in(0))
	case "rope":
		out := l.scratch(n.Name, l.m.DType, size)
		l.value[n.Name] = out
		hd := l.m.HeadDim
		l.stage(n, out, whole(size), ir.Op{Code: ir.ROPE, Out: []ir.Operand{view(out, task)},
			In: []ir.Operand{view(in(0), task), view(invFreqBuffer, upTo(hd/2))},
			Params: []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("order", ir.Int(1)),
				ir.IntParam("first", spanA),
				ir.IntParam("limit", ir.Int(size)), ir.IntParam("pos", pos)}})
	case "attention":
		out := l.scratch(prefix+"attn", l.m.DType, size)
		l.value[n.Name] = out
		l.buffer(prefix+"kv", ir.KVCache, l.m.DType, ir.HBM, l.m.KVHeads, l.m.MaxSeq, 2, l.m.HeadDim)
		l.stage(n, out, perHead(l.m.KVHeads), attentionOp(l.m, out, prefix+"kv", in(0), in(1), in(2)))
	case "kv_append":
		hd, isV := l.m.HeadDim, 0
		if n.Name == prefix+"v_append" {
			isV = 1
		}
		l.stage(n, stepCounter, perHead(l.m.KVHeads), ir.Op{Code: ir.KVAppend,
			Out: []ir.Operand{view(prefix+"kv", ir.Index(spanA), ir.Index(pos), ir.Index(ir.Int(isV)), upTo(hd))},
			In:  []ir.Operand{view(in(0), at(spanA, hd, 0))}})
	case "add":
		// The sum is kept exact for the next sum, and rounded for the stage that reads it.
		out, sum := prefix+"h", prefix+residualMid
		if n.Name == prefix+"mlp_add" {
			next := layerPrefix(n.Layer + 1)
			out, sum = next+"x", next+residual
		}
		l.value[n.Name] = l.scratch(out, l.m.DType, size)
		before := l.residual
		l.residual = l.scratch(sum, ir.F32, size)
		l.stage(n, out, whole(size), ir.Op{Code: ir.ADD, Out: []ir.Operand{view(sum, task), view(out, task)},
			In: []ir.Operand{view(before, task), view(in(1), task)}})
	case "silu_mul":
		out := l.scratch(prefix+"act", l.m.DType, size)
		l.value[n.Name] = out
		l.stage(n, out, whole(size), ir.Op{Code: ir.SiluMul, Out: []ir.Operand{view(out, task)},
			In: []ir.Operand{view(in(0), task), view(in(1), task)}})
	case "argmax":
		l.stage(n, stepCounter, whole(1), ir.Op{Code: ir.ArgMax, Out: []ir.Operand{view("next", ir.Index(ir.Int(0)))},
			In: []ir.Operand{view(in(0), upTo(l.m.Vocab))}})
	default:
		return diag.Errorf(codeOrder, "pass lower", "node %s: no stage for op %q", n.Name, n.Op)
	}
	return nil
}

func (l *lowerer) embed(n *ir.GraphNode) {
	table := "embed.weight"
	if l.m.Tied {
		table = "lm_head.weight"
	}
	l.weights(table, n.Weights[0], ir.Rows, 0, l.m.Vocab, l.m.Hidden)
	x := l.scratch(layerPrefix(0)+"x", l.m.DType, l.m.Hidden)
	l.value[n.Name] = x
	l.residual = l.scratch(layerPrefix(0)+residual, ir.F32, l.m.Hidden)
	l.stage(n, x, whole(l.m.Hidden), ir.Op{Code: ir.EMBED, Out: []ir.Operand{view(l.residual, task), view(x, task)},
		In: []ir.Operand{view("token", ir.Index(ir.Int(0))), view(table, upTo(l.m.Vocab), task)}})
}

// order is how the rows of a node's weights are packed.
func (l *lowerer) order(n *ir.GraphNode) (order ir.Arrange, arg int) {
	if l.rotated[n.Name] {
		return ir.Pairs, l.m.HeadDim
	}
	return ir.Rows, 0
}

func (l *lowerer) linear(n *ir.GraphNode, in string) {
	rows := n.Shape[0]
	cols := l.buffers.find(in).Numel()
	order, arg := l.order(n)
	dtype := ir.F32
	if l.exchanged[n.Name] {
		dtype = l.m.DType
	}
	w := l.weights(n.Name+".weight", n.Weights[0], order, arg, rows, cols)
	out := n.Name
	if n.Name == "lm_head" {
		out = "logits"
	} else {
		l.scratch(out, dtype, rows)
	}
	l.value[n.Name] = out
	product := ir.Op{Code: ir.GEMV, Out: []ir.Operand{view(out, task)},
		In: []ir.Operand{view(in, upTo(cols)), view(w, task, upTo(cols))}}
	if len(n.Weights) == 1 {
		l.stage(n, out, whole(rows), product)
		return
	}
	// The elements of a bias lie in the order of the matrix's rows.
	bias := l.weights(n.Name+".bias", n.Weights[1], order, arg, rows)
	product.Out = []ir.Operand{temp("%y")}
	l.stage(n, out, whole(rows), product, ir.Op{Code: ir.ADD, Out: []ir.Operand{view(out, task)},
		In: []ir.Operand{temp("%y"), view(bias, task)}})
}

// attentionOp is attention of one KV head, the task's: its group of query heads over the rows of the cache below pos,
// and the row of this step as an operand.
func attentionOp(m *ir.Model, out, kv, q, k, v string) ir.Op {
	hd, group := m.HeadDim, m.Heads/m.KVHeads
	cache := func(isV int) ir.Operand {
		return view(kv, ir.Index(spanA), ir.Span(ir.Int(0), pos), ir.Index(ir.Int(isV)), upTo(hd))
	}
	return ir.Op{Code: ir.ATTENTION, Out: []ir.Operand{view(out, at(spanA, group*hd, 0))},
		In: []ir.Operand{view(q, at(spanA, group*hd, 0)), cache(0), cache(1), view(k, at(spanA, hd, 0)),
			view(v, at(spanA, hd, 0))},
		Params: append(attentionParams(m), ir.IntParam("row", pos))}
}

func attentionParams(m *ir.Model) []ir.Param {
	return []ir.Param{ir.IntParam("head_dim", ir.Int(m.HeadDim)), ir.IntParam("n_heads", ir.Int(m.Heads/m.KVHeads)),
		ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", 1/math.Sqrt(float64(m.HeadDim)))}
}
