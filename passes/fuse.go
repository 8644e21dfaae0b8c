package passes

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// Fuse is the pass that merges the stages of each fusion group into one, which leaves five dependent stages a layer.
// Values that only a group reads become temporaries of its tasks.
var Fuse = Pass{
	Name:  "fuse",
	Doc:   "merge stages along the closed list of fusion groups: five dependent stages a layer",
	After: []string{"lower"},
	Run:   runFuse,
}

// fusionGroups is the closed list: those groups that the kernel has a stage for. A bias goes with its product. A norm
// of heads takes their rotation along to attention, where whole heads are.
func fusionGroups(g *ir.Graph) [][]string {
	qkv := []string{"input_norm", "q_proj", "k_proj", "v_proj"}
	heads, attention := []string{"q_rope", "k_rope"}, []string{"attention", "k_append", "v_append"}
	if slices.ContainsFunc(g.Nodes, func(n ir.GraphNode) bool { return n.Op == "rmsnorm_heads" }) {
		attention = slices.Concat([]string{"q_norm", "k_norm"}, heads, attention)
	} else {
		qkv = append(qkv, heads...)
	}
	return [][]string{
		qkv,
		attention,
		{"o_proj", "attn_add"},
		{"post_norm", "gate_proj", "up_proj", "silu_mul"},
		{"down_proj", "mlp_add"},
		{"final_norm", "lm_head", "argmax"},
	}
}

// fusionOf checks that a configuration asks for the closed list, or for nothing, which means the same.
func fusionOf(want [][]string, g *ir.Graph) ([][]string, *diag.Diagnostic) {
	const where = "config: fusion_grouping"
	groups := fusionGroups(g)
	if len(want) == 0 {
		return groups, nil
	}
	same := func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}
	for _, g := range want {
		if !slices.ContainsFunc(groups, func(known []string) bool { return same(g, known) }) {
			return groups, diag.Errorf(codeFusion, where,
				"[%s] is not a group that the kernel has a stage for; want %s",
				strings.Join(g, " "), spellGroups(groups))
		}
	}
	for _, known := range groups {
		if !slices.ContainsFunc(want, func(g []string) bool { return same(g, known) }) {
			return groups, diag.Errorf(codeFusion, where,
				"without [%s] these stages would stay apart, and the kernel has no stages for them alone; "+
					"want all of %s",
				strings.Join(known, " "), spellGroups(groups))
		}
	}
	return groups, nil
}

func spellGroups(groups [][]string) string {
	spelt := make([]string, len(groups))
	for i, g := range groups {
		spelt[i] = "[" + strings.Join(g, " ") + "]"
	}
	return strings.Join(spelt, ", ")
}

func runFuse(s *State) error {
	p := s.Program
	if len(p.Variants) != 1 {
		return diag.Errorf(codeOrder, "pass fuse", "%d variants; want the one that lower makes", len(p.Variants))
	}
	v := &p.Variants[0]
	stages, err := flatStages("fuse", v)
	if err != nil {
		return err
	}
	f := &fuser{buffers: newBuffers(p), m: &p.Model, left: map[string]*ir.Stage{}}
	for _, st := range stages {
		f.left[st.Name] = st
	}
	f.keep("embed")
	for l := range p.Model.Layers {
		f.layer = layerPrefix(l)
		f.qkv()
		f.attn()
		f.addInto("o", "o_proj", "attn_add")
		f.gateUp()
		f.addInto("down", "down_proj", "mlp_add")
	}
	f.layer = ""
	f.head()
	switch {
	case len(f.missing) > 0:
		return diag.Errorf(codeOrder, "pass fuse", "the program has no stage %s; want one that lower made",
			f.missing[0])
	case len(f.left) > 0:
		return diag.Errorf(codeOrder, "pass fuse",
			"%d stages belong to no fusion group; want a program that lower made", len(f.left))
	}
	setThresholds(f.out)
	setStages(v, f.out)
	v.Counters = nil
	declared := map[string]bool{}
	for _, st := range f.out {
		v.Counters = declare(v.Counters, declared, st.Signal)
	}
	prune(p)
	return nil
}

type fuser struct {
	buffers buffers
	m       *ir.Model
	layer   string // prefix of the names of the layer in hand
	left    map[string]*ir.Stage
	out     []*ir.Stage
	missing []string
}

// take removes a stage of one op of the layer in hand from those left. A stage that is not there is reported at the
// end; a stand-in keeps the code that uses it free of checks.
func (f *fuser) take(role string) *ir.Stage { return f.takeUpTo(role, 1) }

// takeBiased takes a product, and the sum with its bias if it has one.
func (f *fuser) takeBiased(role string) *ir.Stage { return f.takeUpTo(role, 2) }

func (f *fuser) takeUpTo(role string, ops int) *ir.Stage {
	name := f.layer + role
	s, ok := f.left[name]
	delete(f.left, name)
	if !ok || len(s.Ops) == 0 || len(s.Ops) > ops || len(s.Ops[0].Out) == 0 {
		f.missing = append(f.missing, name)
		nothing := view("", ir.Range{}, ir.Range{})
		return &ir.Stage{Ops: []ir.Op{{Out: []ir.Operand{nothing, nothing},
			In: []ir.Operand{nothing, nothing, nothing, nothing, nothing}}}}
	}
	return s
}

func (f *fuser) keep(role string) { f.out = append(f.out, f.take(role)) }

// bias returns the sum of a fused product with the biases of its parts, stacked like their matrices, and what then
// holds the rows. Either all parts have one or none has.
func (f *fuser) bias(name string, linears ...*ir.Stage) (add []ir.Op, rows ir.Operand) {
	stacked := ir.Buffer{Name: name, Kind: ir.Weight, Space: ir.HBM, Shape: []int{0}}
	for _, l := range linears {
		if len(l.Ops) == 1 {
			continue
		}
		b := f.buffers.find(l.Ops[1].In[1].Buf)
		if b == nil || len(b.Shape) != 1 || len(b.Pieces) != 1 {
			f.missing = append(f.missing, l.Name+" with a bias")
			return nil, temp("%y")
		}
		stacked.DType, stacked.Shape[0] = b.DType, stacked.Shape[0]+b.Shape[0]
		stacked.Pieces = append(stacked.Pieces, b.Pieces[0])
	}
	switch len(stacked.Pieces) {
	case 0:
		return nil, temp("%y")
	case len(linears):
		f.buffers.add(stacked)
		return []ir.Op{{Code: ir.ADD, Out: []ir.Operand{temp("%z")},
			In: []ir.Operand{temp("%y"), view(name, task)}}}, temp("%z")
	}
	f.missing = append(f.missing, f.layer+"a bias for each of the products that "+name+" is of")
	return nil, temp("%y")
}

func (f *fuser) stage(role, signal string, extent ir.Dist, waits []string, ops ...ir.Op) {
	s := &ir.Stage{Name: f.layer + role, Dist: extent, Ops: ops, Signal: signal}
	for _, w := range waits {
		s.Waits = append(s.Waits, ir.Wait{Counter: w})
	}
	f.out = append(f.out, s)
}

// stack replaces weight matrices by one that holds the rows of all, in the given order.
func (f *fuser) stack(name string, orders []ir.Arrange, linears ...*ir.Stage) string {
	stacked := ir.Buffer{Name: name, Kind: ir.Weight, Space: ir.HBM, Shape: []int{0, 0}}
	for i, l := range linears {
		b := f.buffers.find(l.Ops[0].In[1].Buf)
		if b == nil || len(b.Shape) != 2 || len(b.Pieces) != 1 {
			f.missing = append(f.missing, l.Name+" with a weight matrix")
			return name
		}
		piece := b.Pieces[0]
		if orders != nil {
			piece.Order = orders[i]
		}
		stacked.DType, stacked.Shape[0], stacked.Shape[1] = b.DType, stacked.Shape[0]+b.Shape[0], b.Shape[1]
		stacked.Pieces = append(stacked.Pieces, piece)
	}
	f.buffers.add(stacked)
	return name
}

// vector declares an exchanged vector.
func (f *fuser) vector(role string, n int) string {
	name := f.layer + role
	if f.buffers.find(name) == nil {
		f.buffers.add(ir.Buffer{Name: name, Kind: ir.Activation, DType: f.m.DType, Shape: []int{n},
			Space: ir.GlobalScratch})
	}
	return name
}

// into returns the op with another result and another first operand.
func into(op ir.Op, out, first ir.Operand) ir.Op {
	op.Out = []ir.Operand{out}
	op.In = append([]ir.Operand{first}, op.In[1:]...)
	return op
}

// gemv is the product of a stacked matrix with the temporary of a norm.
func gemv(linear *ir.Stage, weight string) ir.Op {
	op := into(linear.Ops[0], temp("%y"), temp("%n"))
	op.In[1] = view(weight, task, op.In[1].Dims[1])
	return op
}

func (f *fuser) normed(norm *ir.Stage) ir.Op { return into(norm.Ops[0], temp("%n"), norm.Ops[0].In[0]) }

func (f *fuser) qkv() {
	norm := f.take("input_norm")
	q, k, v := f.takeBiased("q_proj"), f.takeBiased("k_proj"), f.takeBiased("v_proj")
	qd, kd := f.m.Heads*f.m.HeadDim, f.m.KVHeads*f.m.HeadDim
	w := f.stack(f.layer+"qkv.weight", nil, q, k, v)
	out := f.vector("qkv", qd+2*kd)
	biases, rows := f.bias(f.layer+"qkv.bias", q, k, v)
	ops := append([]ir.Op{f.normed(norm), gemv(q, w)}, biases...)
	if f.normsHeads() { // attention rotates, after the norm
		ops[len(ops)-1].Out = []ir.Operand{view(out, task)}
	} else {
		rotate := into(f.take("q_rope").Ops[0], view(out, task), rows)
		f.take("k_rope")
		rotate.Params = slices.Clone(rotate.Params)
		for i := range rotate.Params {
			if rotate.Params[i].Key == "limit" {
				rotate.Params[i].Int = ir.Int(qd + kd) // the rows of v pass through
			}
		}
		ops = append(ops, rotate)
	}
	f.stage("qkv", out, whole(qd+2*kd), []string{norm.Ops[0].In[0].Buf}, ops...)
}

// normsHeads reports whether the heads of the layer in hand have norms.
func (f *fuser) normsHeads() bool { return f.left[f.layer+"q_norm"] != nil }

func (f *fuser) attn() {
	attention, keys, values := f.take("attention"), f.take("k_append"), f.take("v_append")
	qkv, out := f.layer+"qkv", f.layer+"attn"
	hd, group := f.m.HeadDim, f.m.Heads/f.m.KVHeads
	kAt := f.m.Heads * hd
	vAt := kAt + f.m.KVHeads*hd
	row := func(offset int) ir.Operand { return view(qkv, at(spanA, hd, offset)) }
	q, k := view(qkv, at(spanA, group*hd, 0)), row(kAt)
	var heads []ir.Op
	if f.normsHeads() {
		heads = []ir.Op{
			into(f.take("q_norm").Ops[0], temp("%qn"), q),
			into(f.take("k_norm").Ops[0], temp("%kn"), k),
			rotateHeads(f.take("q_rope").Ops[0], temp("%q"), temp("%qn")),
			rotateHeads(f.take("k_rope").Ops[0], temp("%k"), temp("%kn")),
		}
		q, k = temp("%q"), temp("%k")
	}
	op := attention.Ops[0]
	op.In = []ir.Operand{q, op.In[1], op.In[2], k, row(vAt)}
	f.stage("attn", out, perHead(f.m.KVHeads), []string{qkv}, append(heads, op,
		into(keys.Ops[0], keys.Ops[0].Out[0], k), into(values.Ops[0], values.Ops[0].Out[0], row(vAt)))...)
}

// rotateHeads is a rotation of whole heads, where that of a stage is of rows of a vector.
func rotateHeads(rope ir.Op, out, in ir.Operand) ir.Op {
	rope = into(rope, out, in)
	rope.Params = slices.DeleteFunc(slices.Clone(rope.Params), func(p ir.Param) bool {
		return p.Key == "first" || p.Key == "limit"
	})
	return rope
}

// addInto fuses a projection with the residual sum that reads it.
func (f *fuser) addInto(role, linear, sum string) {
	project, add := f.take(linear), f.take(sum)
	op := project.Ops[0]
	w := f.stack(f.layer+role+".weight", nil, project)
	in := op.In[0]
	op = gemv(project, w)
	op.In[0] = in
	plus := add.Ops[0]
	plus.In = []ir.Operand{plus.In[0], temp("%y")}
	f.stage(role, add.Signal, whole(f.m.Hidden), []string{in.Buf}, op, plus)
}

func (f *fuser) gateUp() {
	norm, gate, up, act := f.take("post_norm"), f.take("gate_proj"), f.take("up_proj"), f.take("silu_mul")
	w := f.stack(f.layer+"gate_up.weight", []ir.Arrange{ir.Even, ir.Odd}, gate, up)
	out := f.layer + "act"
	half := act.Ops[0]
	half.Out = []ir.Operand{view(out, ir.Span(spanA.Div(2), spanB.Div(2)))}
	half.In = []ir.Operand{temp("%y")}
	f.stage("gate_up", out, whole(2*f.m.Intermediate), []string{norm.Ops[0].In[0].Buf}, f.normed(norm), gemv(gate, w),
		half)
}

func (f *fuser) head() {
	norm, linear, best := f.take("final_norm"), f.take("lm_head"), f.take("argmax")
	project := into(linear.Ops[0], linear.Ops[0].Out[0], temp("%n"))
	choose := best.Ops[0]
	choose.In = []ir.Operand{view("logits", task)}
	f.stage("lm_head", stepCounter, whole(f.m.Vocab), []string{norm.Ops[0].In[0].Buf}, f.normed(norm), project, choose)
}
