package passes

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// Lower is the pass that turns the graph into a program: one stage for each node, undistributed, with every value in a
// separate buffer and every counter undecided.
//
// A value has the dtype of the model if the finished schedule exchanges it, and is F32 if fusion will keep it on chip,
// so that rounding happens in the same places before and after. In a pass of several tokens it has a row for each of
// them. The residual is one buffer, which every sum updates in place; the stage that reads it gets a rounded copy. Rows
// of q and k are ordered in rotation pairs here, because the rotation needs its two elements adjacent.
//
// The layers are one loop, whose body depends on the kind of the layer.
var Lower = Pass{
	Name:  "lower",
	Doc:   "turn operators into whole-op stages, with a buffer and a counter for every value",
	After: []string{"import", "quantise", "shard"},
	Run:   runLower,
}

func runLower(s *State) error {
	config, diags := knobs.Resolve(s.Config, &s.Graph.Model, s.Target, knobs.Build{Kept: keptBy(s.Graph),
		Format: mostStreamed(s.Graph), Most: s.Most, Windows: hasWindows(s.Graph), Ranks: s.Ranks})
	var bad *diag.Diagnostic
	config.SMAssignment, bad = assignmentOf(config.SMAssignment, s.Target)
	diags.Add(bad)
	if err := diags.Err(); err != nil {
		return err
	}
	if rows := s.Pass.NumRows(); rows > s.Graph.Model.MaxSeq {
		return diag.Errorf(ir.CodeVariants, "pass lower", "a pass takes %d rows of a sequence, which has %d "+
			"positions; want at most as many", rows, s.Graph.Model.MaxSeq)
	}
	p := &ir.Program{Model: s.Graph.Model, Target: s.Target, Pass: s.Pass, Ranks: s.Ranks, Config: config}
	l := &lowerer{g: s.Graph, m: &p.Model, buffers: rewrite.NewBuffers(p), tokens: tokensOf(p.Pass),
		config: &p.Config, most: s.Most.NumRows(), facts: p.Model.Of(0), ranks: p.NumRanks()}
	l.buffer(token, ir.Input, ir.I32, ir.HBM, p.Pass.NumTokens()).Role = ir.RoleToken
	l.buffer(embeddings, ir.Input, ir.F32, ir.HBM, l.tokens.shape(p.Model.Hidden)...).Role = ir.RoleEmbeddings
	l.buffer(hidden, ir.Output, ir.F32, ir.HBM, l.tokens.shape(p.Model.Hidden)...).Role = ir.RoleHidden
	l.buffer(logits, ir.Output, ir.F32, ir.HBM, l.tokens.shape(l.vocab())...).Role = ir.RoleLogits
	l.buffer(next, ir.Output, ir.I32, ir.HBM, p.Pass.NumTokens()).Role = ir.RoleNext
	for kind := range l.g.Kinds {
		l.frequencies(kind)
	}
	l.buffer(residual, ir.Activation, ir.F32, ir.GlobalScratch, l.tokens.shape(p.Model.Hidden)...)
	v := ir.Variant{Name: "all", Lo: 0, Hi: p.Model.MaxSeq - p.Pass.NumRows()}
	if err := cmp.Or(l.graph(&v), l.differs); err != nil {
		return err
	}
	declareCounters(&v, l.buffers)
	for k := range v.Counters {
		if c := &v.Counters[k]; c.Name == stepCounter {
			c.Role = ir.RoleStep
			if p.NumRanks() > 1 { // a step ends on all of them
				c.Scope = ir.ScopeSystem
			}
		}
	}
	if err := setThresholds(p, &v); err != nil {
		return err
	}
	p.Variants = []ir.Variant{v}
	rewrite.Prune(p)
	s.Program = p
	return nil
}

// Names that passes give.
const (
	token, logits = "token", "logits"
	embeddings    = "embeddings" // what the host gives instead of rows of tokens
	hidden        = "hidden"     // the last hidden state, for the host
	invFreqBuffer = "rope.inv_freq"
	invFreqKey    = "@inv_freq"
	stepCounter   = "step" // whose completion ends a step
	residual      = "residual"
	stream        = "x" // the residual stream as a layer finds it, rounded
)

// The layer of what stands in the loop over the layers, and the one after it.
var (
	noLayer   = ir.Layer{}
	thisLayer = ir.Layer{Known: true, Index: true}
	nextLayer = ir.Layer{Known: true, Index: true, N: 1}
)

// invFreqOfKind stands for the frequencies of a kind of layers that has its own.
func invFreqOfKind(kind int) string { return fmt.Sprintf("%s.kind%d", invFreqKey, kind) }

type lowerer struct {
	g       *ir.Graph
	m       *ir.Model
	buffers rewrite.Buffers
	tokens  tokens
	config  *ir.ScheduleConfig
	ranks   int      // that share the model
	most    int      // rows of a sequence that a pass of the build has at most
	tables  []string // the keys of the frequencies that have a buffer
	differs error    // a buffer that two layers would have in two shapes

	// Of the body in hand:
	nodes  []ir.GraphNode
	stages []*ir.Stage
	layer  ir.Layer          // that it is of
	layers []int             // all of those, which are of one kind
	first  int               // of them
	facts  *ir.LayerFacts    // of each of them
	rope   *ir.Rope          // that it rotates by
	angles string            // the buffer of its frequencies
	value  map[string]string // node -> buffer that holds its value
	sum    string            // the node whose sum the residual is now
	// nodes whose value a rotation reads, of the elements as they are or normalised, or one of other layers would
	rotated map[string]bool
	// nodes whose value attention reads, and so another SM than has computed it
	exchanged map[string]bool
	summed    map[string]bool // nodes whose value is added to the residual by those who have computed it
	pushed    map[string]bool // nodes whose value is the sum of what all ranks push
	read      map[string]bool // nodes whose value is read otherwise than by a sum that goes on from it
	chosen    string          // the node whose largest value is the next token
}

// named is the name of what a node makes, in the layer in hand.
func (l *lowerer) named(name string) string { return ir.NameIn(l.layer, name) }

// readers notes what a node means for the ones that it reads, which come before it.
func (l *lowerer) readers(n *ir.GraphNode) {
	for i, in := range n.Inputs {
		l.read[in] = l.read[in] || n.Op != "add" || i > 0
	}
	switch {
	case n.Op == "rope":
		l.rotated[n.Inputs[0]] = true
	case len(n.Inputs) == 1 && ir.FinishedBy(n.Op) != nil: // rows stay where they are
		l.rotated[n.Inputs[0]] = l.rotated[n.Inputs[0]] || l.rotated[n.Name]
	case normsHeads(n), n.Op == "rmsnorm" && l.rotated[n.Name]:
		// It needs whole heads, or the mean of all, which attention has: the kernel computes it there.
		l.rotated[n.Inputs[0]], l.exchanged[n.Inputs[0]] = l.rotated[n.Name], true
	case isNorm(n):
		l.exchanged[n.Inputs[0]] = true // by those who have its elements
	case n.Op == "add" && l.isNorm(n.Inputs[1]):
		l.exchanged[n.Inputs[1]] = true
	case n.Op == "add":
		l.summed[n.Inputs[1]] = true
	case n.Op == "attention":
		for _, in := range n.Inputs {
			l.exchanged[in] = true
		}
		// Layers without a rotation have the rows of q and k in the same order as the others: scores do not care.
		l.rotated[n.Inputs[0]], l.rotated[n.Inputs[1]] = true, true
	case n.Op == "short_conv", n.Op == "delta_rule", n.Op == "gated_attention":
		// They are read by other SMs than those that have computed them.
		for _, in := range n.Inputs {
			l.exchanged[in] = true
		}
	case n.Op == "argmax":
		l.chosen = n.Inputs[0]
	}
}

// isNorm reports whether a node of the body in hand is a norm of a whole vector.
func (l *lowerer) isNorm(name string) bool {
	return slices.ContainsFunc(l.nodes, func(n ir.GraphNode) bool {
		return n.Name == name && isNorm(&n) && !normsHeads(&n)
	})
}

func isNorm(n *ir.GraphNode) bool { return n.Op == "rmsnorm" || n.Op == "layernorm" }

// normsHeads reports whether a node is a norm of each head on its own.
func normsHeads(n *ir.GraphNode) bool { return isNorm(n) && n.IntOr("head_dim", 0) > 0 }

// graph lowers the bodies of the graph.
func (l *lowerer) graph(v *ir.Variant) error {
	if err := l.body(l.g.Before, noLayer, ""); err != nil {
		return err
	}
	setStages(v, l.stages)
	layers := &ir.Loop{Name: "layers", Count: len(l.g.Layers), Kinds: kindsOf(l.g)}
	for k, kind := range l.g.Kinds {
		l.rope, l.angles = l.g.RopeOf(k), l.frequencies(k)
		l.layers = l.g.Of(k)
		l.first, l.facts = l.layers[0], l.m.Of(l.layers[0])
		if err := l.body(kind.Nodes, thisLayer, ir.NameIn(thisLayer, stream)); err != nil {
			return err
		}
		for _, st := range l.stages {
			if len(layers.Kinds) > 0 {
				st.Kind = k + 1
			}
			layers.Body = append(layers.Body, st)
		}
	}
	v.Body = append(v.Body, layers)
	if err := l.body(l.g.After, noLayer, l.stream(len(l.g.Layers))); err != nil {
		return err
	}
	l.end()
	for _, st := range l.stages {
		v.Body = append(v.Body, st)
	}
	return nil
}

// kindsOf returns the kinds of layers as a loop has them: from 1 on, the shortest list that repeats; none if all layers
// are of one.
func kindsOf(g *ir.Graph) []int {
	if len(g.Kinds) < 2 {
		return nil
	}
	kinds := make([]int, len(g.Layers))
	for layer, k := range g.Layers {
		kinds[layer] = k + 1
	}
	return ir.Repeating(kinds)
}

// body lowers the nodes of one body into stages. from holds the residual stream as they find it.
func (l *lowerer) body(nodes []ir.GraphNode, layer ir.Layer, from string) error {
	l.nodes, l.layer, l.stages = nodes, layer, nil
	l.value, l.sum = map[string]string{ir.Stream: from}, ir.Stream
	l.rotated, l.exchanged, l.summed, l.chosen = map[string]bool{}, map[string]bool{}, map[string]bool{}, ""
	l.read, l.pushed = map[string]bool{}, map[string]bool{}
	for _, n := range slices.Backward(nodes) {
		l.readers(&n)
	}
	for i := range nodes {
		if err := l.node(&nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// stage appends a stage that reads the values of the node's inputs and signals the counter.
func (l *lowerer) stage(n *ir.GraphNode, counter string, dist ir.Dist, ops ...ir.Op) {
	s := &ir.Stage{Name: l.named(n.Name), Role: n.Name, Layer: l.layer, Dist: dist, Ops: ops, Signal: counter}
	for _, in := range n.Inputs {
		s.Waits = append(s.Waits, ir.Wait{Counter: l.value[in]})
	}
	l.stages = append(l.stages, s)
}

// whole is a distribution of one task over an axis; n is 1 for a node whose result needs all of its input at once.
func whole(n int) ir.Dist { return ir.Dist{Kind: ir.Whole, Extent: n} }

// single is a distribution of one task that other stages wait for: a whole of one element stands for what ends a step.
func single() ir.Dist { return ir.Dist{Kind: ir.Tiled, Extent: 1, Grain: 1} }

// ofRows is that of a product with n rows.
func ofRows(n int) ir.Dist {
	if n == 1 {
		return single()
	}
	return whole(n)
}

func (l *lowerer) node(n *ir.GraphNode) error {
	in := func(i int) string { return l.value[n.Inputs[i]] }
	size := n.Shape[0]
	switch n.Op {
	case "embed":
		return l.embed(n)
	case "rmsnorm":
		l.norm(n, ir.RMSNORM, in(0))
	case "layernorm":
		l.norm(n, ir.LAYERNORM, in(0))
	case "linear":
		l.linear(n, in(0))
	case "rope":
		out := l.scratch(l.named(n.Name), l.m.Activations, size)
		l.value[n.Name] = out
		hd := l.facts.HeadDim
		params := []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("order", ir.Int(1)),
			ir.IntParam("first", spanA), ir.IntParam("limit", ir.Int(size)),
			ir.IntParam("pos", l.tokens.position())}
		if scale := l.rope.Scale; scale != 1 {
			params = append(params, ir.FloatParam("scale", scale))
		}
		l.stage(n, out, whole(size), ir.Op{Code: ir.ROPE, Out: []ir.Operand{l.tokens.view(out, task)},
			In:     []ir.Operand{l.tokens.view(in(0), task), view(l.angles, upTo(len(l.rope.InvFreq)))},
			Params: params})
	case "attention":
		out := l.scratch(l.named("attn"), l.m.Activations, size)
		l.value[n.Name] = out
		kv := l.named("kv")
		b := ir.Buffer{Name: kv, Count: len(l.g.Layers), Kind: ir.KVCache, DType: l.m.Cache, Space: ir.HBM,
			Shape: l.tokens.caches(l.facts.Attended().Shape(l.m.MaxSeq))}
		if l.m.Cache == ir.I8 {
			b.Layout.Kind = ir.KVRows16 // whose blocks have scales; pass tile says in which order the elements are
		}
		l.declare(b)
		l.stage(n, out, l.perHead(), l.attention(n, out, kv, in(0), in(1), in(2)))
	case "kv_append":
		return l.append(n, in(0))
	case "route":
		l.route(n, in(0))
	case "experts_up":
		l.expertsUp(n, in(0), in(1))
	case "experts_down":
		l.expertsDown(n, in(0), in(1))
	case "short_conv":
		l.shortConv(n)
	case "delta_rule":
		l.deltaRule(n)
	case "gated_attention":
		l.gatedAttention(n, in(0), in(1))
	case "gated_by":
		l.gatedBy(n, in(0))
	case "add":
		return l.add(n)
	case "argmax":
		l.choose(n, in(0))
	default:
		return l.finisher(n)
	}
	return nil
}

// finisher is an op that declares its call on finished rows. Its result is exchanged, unless it is
// added to the residual or rotated.
func (l *lowerer) finisher(n *ir.GraphNode) error {
	spec := ir.FinishedBy(n.Op)
	if spec == nil {
		return diag.Errorf(codeOrder, "pass lower", "node %s: no stage for op %q", l.named(n.Name), n.Op)
	}
	out := logits
	switch {
	case l.summed[n.Name]:
		out = l.scratch(l.named(n.Name), ir.F32, n.Shape[0])
	case l.exchanged[n.Name]: // by attention
		out = l.scratch(l.named(n.Name), l.m.Activations, n.Shape[0])
	case l.rotated[n.Name]:
		out = l.scratch(l.named(n.Name), ir.F32, n.Shape[0])
	case n.Name != l.chosen:
		out = l.scratch(l.named(spec.Finisher.Result), l.m.Activations, n.Shape[0])
	}
	l.value[n.Name] = out
	o := ir.Op{Code: ir.Opcode(spec.Code), Out: []ir.Operand{l.tokens.view(out, task)}, Params: n.Params}
	for _, in := range n.Inputs {
		o.In = append(o.In, l.tokens.view(l.value[in], task))
	}
	if len(n.Weights) > 0 {
		name := l.weights(l.named(n.Name)+".weight", n.Weights[0])
		o.In = append(o.In, view(name, upTo(spec.Finisher.Weights)))
	}
	l.stage(n, out, whole(n.Shape[0]), o)
	return nil
}

// embed looks up the tokens, or takes what the host gives in their place, and adds the row of its position to each
// where the model has learned one for each.
func (l *lowerer) embed(n *ir.GraphNode) error {
	table := "embed.weight"
	if l.m.Tied {
		table = "lm_head.weight"
	}
	l.weights(table, n.Weights[0])
	x := l.stream(0)
	l.value[n.Name] = x
	var ops []ir.Op
	for _, part := range l.tokens.positioned(len(n.Weights) > 1) {
		out := []ir.Operand{part.view(residual, task), part.view(x, task)}
		op := ir.Op{Code: ir.EMBED, Out: out,
			In: []ir.Operand{view(token, part.rows), view(table, upTo(l.m.Vocab), task), part.view(embeddings, task)}}
		if scale := n.FloatOr("scale", 1); scale != 1 {
			op.Params = []ir.Param{ir.FloatParam("scale", scale)}
		}
		if len(n.Weights) == 1 {
			ops = append(ops, op)
			continue
		}
		op.Out = []ir.Operand{temp(part.temp)}
		offset := ir.Int(n.IntOr("offset", 0))
		rows := ir.Span(part.pos.Add(offset), part.pos.Add(offset).Add(ir.Int(l.tokens.NumRows())))
		ops = append(ops, op, ir.Op{Code: ir.ADD, Out: out,
			In: []ir.Operand{temp(part.temp), view(l.weights("positions.weight", n.Weights[1]), rows, task)}})
	}
	l.stage(n, x, whole(l.m.Hidden), ops...)
	return nil
}

// stream returns the name of the stream as a layer finds it, and declares the family.
func (l *lowerer) stream(layer int) string {
	family := ir.NameIn(thisLayer, stream)
	l.buffer(family, ir.Activation, l.m.Activations, ir.GlobalScratch, l.tokens.shape(l.m.Hidden)...)
	name, _ := ir.Resolve(family, layer)
	return name
}

// add is a sum with the residual. It is kept exact for the next sum, and rounded for the stage that reads it, if any
// does: of two branches that read the same vector, the sum with the first is read by the sum with the second alone.
func (l *lowerer) add(n *ir.GraphNode) error {
	if n.Inputs[0] != l.sum {
		return diag.Errorf(codeOrder, "pass lower", "node %s adds to %s; want %s, which the residual is then",
			l.named(n.Name), n.Inputs[0], l.sum)
	}
	var out string // or the counter alone
	sums := []ir.Operand{l.tokens.view(residual, task)}
	switch {
	case n == &l.nodes[len(l.nodes)-1]:
		out = ir.NameIn(nextLayer, stream) // the last one of a layer makes the next one's
	case l.read[n.Name]:
		out = l.scratch(l.named("h"), l.m.Activations, l.m.Hidden)
	default:
		out = l.named(n.Name)
	}
	if l.buffers.Find(out, 0) != nil {
		sums = append(sums, l.tokens.view(out, task))
	}
	branch := l.tokens.view(l.value[n.Inputs[1]], task)
	var ops []ir.Op
	if l.pushed[n.Inputs[1]] {
		op := l.sumOfRanks(branch.Buf)
		ops, branch = append(ops, op), op.Out[0]
	}
	l.sum, l.value[n.Name] = n.Name, out
	terms := []ir.Operand{l.tokens.view(residual, task), branch}
	if len(n.Weights) > 0 { // what the sum is multiplied by
		terms = append(terms, view(l.weights(l.named("factor"), n.Weights[0]), upTo(1)))
	}
	l.stage(n, out, whole(n.Shape[0]), append(ops, ir.Op{Code: ir.ADD, Out: sums, In: terms})...)
	return nil
}
