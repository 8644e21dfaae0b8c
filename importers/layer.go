package importers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"amkc/ir"
	"amkc/ir/transform"
)

// A layerForm is what layers of one kind have in common.
type layerForm struct {
	facts   ir.LayerFacts
	mixer   *mixer   // in place of attention; nil: they have attention
	window  int      // positions that attention sees; 0: all
	served  bool     // keys, as they are projected, serve as values
	rope    *ir.Rope // its own; nil: that of the graph
	rotates bool     // queries and keys
}

// layer lists the nodes of a layer.
func (d *decoder) layer(m *ir.Model, names *tensorNames, f *layerForm) []ir.GraphNode {
	var b nodes
	h := m.Hidden
	var stacks []stack
	if d.stacks != nil {
		stacks = d.stacks(m)
	}
	linear := func(name, in string, rows, cols int, biased bool) string {
		return b.add(name, "linear", []int{rows}, []string{in}, d.linear(names, stacks, name, rows, cols, biased)...)
	}
	norm := func(name, in string) string { return d.norm(&b, name, in, h, m.Eps, names.ofLayer(name)) }
	before := norm
	if d.bareBranches {
		before = func(_, in string) string { return in }
	}
	n := before("input_norm", ir.Stream)
	var mixed, last string // what is mixed of several positions, and its last product
	var width int
	var biased bool
	if f.mixer != nil {
		mixed, width = f.mixer.nodes(&b, n, linear)
		last, biased = f.mixer.last, f.mixer.biased
	} else {
		mixed, width = d.attention(&b, m, names, f, n, linear), f.facts.QueryRows()
		last, biased = "o_proj", d.biased.o
	}
	mix := func() string { // what that adds to the stream
		o := linear(last, mixed, h, width, biased)
		o = b.scaled("attn_scale", o, h, d.branchScale)
		if d.postNorms {
			o = norm("post_attn_norm", o)
		}
		return b.add("attn_add", "add", []int{h}, []string{ir.Stream, o})
	}
	x := ir.Stream
	if !d.parallel {
		x = mix()
	}
	if f.facts.Experts > 0 {
		d.mixture(&b, m, names, &f.facts, x)
		return b
	}
	act := d.middle(&b, before("post_norm", x), h, f.facts.Intermediate, linear)
	if d.parallel { // after the first half of the MLP, which needs nothing of it and fills the wait for it
		x = mix()
	}
	down := linear("down_proj", act, h, f.facts.Intermediate, d.biased.mlp)
	down = b.scaled("mlp_scale", down, h, d.branchScale)
	if d.postNorms {
		down = norm("post_mlp_norm", down)
	}
	b.add("mlp_add", "add", []int{h}, []string{x, down}, d.factorOf(names)...)
	return b
}

// attention appends what attention computes of a vector before its last product.
func (d *decoder) attention(b *nodes, m *ir.Model, names *tensorNames, form *layerForm, n string,
	linear linearNode) string {
	f, h, hd := &form.facts, m.Hidden, form.facts.HeadDim
	qd, kd := f.QueryRows(), f.KeyRows()
	q, k := linear("q_proj", n, qd, h, d.biased.heads), linear("k_proj", n, kd, h, d.biased.heads)
	v, gate := linear("v_proj", n, kd, h, d.biased.heads), ""
	if form.served { // by a product of its own, whose rows are not in the pairs of a rotation
		rows := *b
		rows[len(rows)-1].Weights = slices.Clone(rows[len(rows)-2].Weights)
	}
	if d.gatedHeads {
		gate = linear("g_proj", n, qd, h, d.biased.heads)
	}
	q, k, v = d.clipped(b, "q_clip", q, qd), d.clipped(b, "k_clip", k, kd), d.clipped(b, "v_clip", v, kd)
	if d.normedHeads {
		q = d.normHeads(b, "q_norm", q, qd, hd, m.Eps, names.ofLayer("q_norm"))
		k = d.normHeads(b, "k_norm", k, kd, hd, m.Eps, names.ofLayer("k_norm"))
	}
	if d.normedValues {
		v = b.add("v_norm", "rmsnorm", []int{kd}, []string{v})
		b.param(ir.FloatParam("eps", m.Eps), ir.IntParam("head_dim", ir.Int(hd)))
	}
	if d.normedAll {
		q = d.norm(b, "q_norm", q, qd, m.Eps, names.ofLayer("q_norm"))
		k = d.norm(b, "k_norm", k, kd, m.Eps, names.ofLayer("k_norm"))
	}
	if form.rotates {
		q, k = b.add("q_rope", "rope", []int{qd}, []string{q}), b.add("k_rope", "rope", []int{kd}, []string{k})
	}
	if d.normedRotated {
		q = d.normHeads(b, "q_norm", q, qd, hd, m.Eps, names.ofLayer("q_norm"))
		k = d.normHeads(b, "k_norm", k, kd, hd, m.Eps, names.ofLayer("k_norm"))
	}
	att := b.add("attention", "attention", []int{qd}, []string{q, k, v}, d.sinksOf(names, f)...)
	b.param(ir.FloatParam("scale", cmp.Or(d.attnScale, 1/math.Sqrt(float64(hd)))),
		ir.IntParam("window", ir.Int(form.window)))
	if d.attnCap > 0 {
		b.param(ir.FloatParam("cap", d.attnCap))
	}
	b.add("k_append", "kv_append", []int{kd}, []string{k})
	b.add("v_append", "kv_append", []int{kd}, []string{v})
	if gate != "" {
		att = b.add("gated_attention", "gated_attention", []int{qd}, []string{att, gate})
	}
	return att
}

// middle appends what an MLP computes of a vector before its last product.
func (d *decoder) middle(b *nodes, in string, hidden, width int, linear linearNode) string {
	up := func(name string) string { return linear(name, in, width, hidden, d.biased.mlp) }
	if d.act != "" {
		return b.add(d.act, d.act, []int{width}, []string{up("up_proj")}, d.actWeights...)
	}
	mul := cmp.Or(d.gate, "silu_mul")
	return b.add(mul, mul, []int{width}, []string{up("gate_proj"), up("up_proj")})
}

// factorOf is what the last sum of a layer is multiplied by, where the family has that.
func (d *decoder) factorOf(names *tensorNames) []ir.GraphWeight {
	if d.layerFactor == "" {
		return nil
	}
	return []ir.GraphWeight{weight(names.inLayer(d.layerFactor), 1)}
}

// sinksOf are the sinks of the heads of a layer, where the family has any.
func (d *decoder) sinksOf(names *tensorNames, f *ir.LayerFacts) []ir.GraphWeight {
	if !d.sinks {
		return nil
	}
	return []ir.GraphWeight{weight(names.inLayer("self_attn.sinks"), f.Heads)}
}

// A linearNode appends a product of a vector with the matrix of a name, and returns its own.
type linearNode func(name, in string, rows, cols int, biased bool) string

// A stack is a tensor that the checkpoint stores the rows of several linears in. Rows of a linear that are apart have a
// stack each, in order.
type stack struct {
	part string // as of tensorNames
	rows int
	of   map[string][]int // by linear, its rows, as transform rows takes them
}

// linear is the matrix of a linear, and its bias if it has one, as the checkpoint has them.
func (d *decoder) linear(names *tensorNames, stacks []stack, name string, rows, cols int,
	biased bool) []ir.GraphWeight {
	w := d.tensor(names.ofLayer(name)+".weight", rows, rows, cols, nil)
	bias := weight(names.ofLayer(name)+".bias", rows)
	var parts []ir.GraphWeight
	for _, s := range stacks {
		of := s.of[name]
		if of == nil {
			continue
		}
		chain, path, taken := transform.Of(transform.Rows, of...), names.inLayer(s.part), of[1]-of[0]
		if len(of) == 3 {
			taken *= s.rows / of[2]
		}
		parts = append(parts, d.tensor(path+".weight", taken, s.rows, cols, chain))
		bias = ir.GraphWeight{Key: path + ".bias", Shape: []int{rows}, Stored: []int{s.rows}, Chain: chain}
	}
	switch len(parts) {
	case 0:
	case 1:
		w = parts[0]
	default:
		w = ir.GraphWeight{Shape: []int{rows, cols}, Parts: parts}
	}
	if !biased {
		return []ir.GraphWeight{w}
	}
	return []ir.GraphWeight{w, bias}
}

// tensor is a matrix of n rows, which chain takes of those that the checkpoint has; nil: it has the same.
func (d *decoder) tensor(key string, n, stored, cols int, chain transform.Chain) ir.GraphWeight {
	w := weight(key, n, cols)
	if chain != nil {
		w.Stored, w.Chain = []int{stored, cols}, chain
	}
	if d.transposed {
		w.Stored, w.Chain = []int{cols, stored}, transform.Of(transform.Transpose).Then(chain...)
	}
	return w
}

func weight(key string, shape ...int) ir.GraphWeight { return ir.GraphWeight{Key: key, Shape: shape} }

// exactWeight is stored in float32, whatever others are.
func exactWeight(key string, shape ...int) ir.GraphWeight {
	return ir.GraphWeight{Key: key, Shape: shape, Storage: &ir.Storage{DType: ir.F32}}
}

// nodes are those of one body, in execution order.
type nodes []ir.GraphNode

// add appends a node and returns its name.
func (b *nodes) add(name, op string, shape []int, inputs []string, weights ...ir.GraphWeight) string {
	*b = append(*b, ir.GraphNode{Name: name, Op: op, Inputs: inputs, Weights: weights, Shape: shape})
	return name
}

// param gives the last node parameters.
func (b nodes) param(params ...ir.Param) {
	last := &b[len(b)-1]
	last.Params = append(last.Params, params...)
}

// scaled appends a multiplication of a vector of n elements, unless the factor is 0, which stands for none, or 1.
func (b *nodes) scaled(name, in string, n int, factor float64) string {
	if factor == 0 || factor == 1 {
		return in
	}
	b.add(name, "scale", []int{n}, []string{in})
	b.param(ir.FloatParam("scale", factor))
	return name
}

// clipped appends the bounds of a vector of n elements, if there are any.
func (d *decoder) clipped(b *nodes, name, in string, n int) string {
	if d.clip == 0 {
		return in
	}
	b.add(name, "clip", []int{n}, []string{in})
	b.param(ir.FloatParam("cap", d.clip))
	return name
}

// norm appends a norm of a vector of n elements.
func (d *decoder) norm(b *nodes, name, in string, n int, eps float64, path string) string {
	op, weights := "rmsnorm", []ir.GraphWeight{weight(path+".weight", n)}
	if of := d.layerNorm; of != nil {
		op = "layernorm"
		if of.biased {
			weights = append(weights, weight(path+".bias", n))
		}
		if of.bare {
			weights = nil
		}
	}
	b.add(name, op, []int{n}, []string{in}, weights...)
	b.param(ir.FloatParam("eps", eps))
	if d.unitOffset {
		b.param(ir.IntParam("unit_offset", ir.Int(1)))
	}
	return name
}

// normHeads appends a norm of each head of a vector of n elements, be it a single one.
func (d *decoder) normHeads(b *nodes, name, in string, n, hd int, eps float64, path string) string {
	d.norm(b, name, in, n, eps, path)
	last := &(*b)[len(*b)-1]
	if !d.headNorms.biased {
		last.Weights = last.Weights[:1]
	}
	for i := range last.Weights {
		switch w := &last.Weights[i]; d.headNorms.gains {
		case sharedGains:
			w.Shape = []int{hd}
		case stackedGains:
			w.Stored = []int{n / hd, hd}
		case separateGains:
			w.Key = ""
			for head := range n / hd {
				w.Parts = append(w.Parts, weight(fmt.Sprintf("%s.norms.%d.weight", path, head), hd))
			}
		}
	}
	b.param(ir.IntParam("head_dim", ir.Int(hd)))
	return name
}
