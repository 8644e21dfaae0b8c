package passes

import (
	"cmp"
	"math"

	"amkc/ir"
	"amkc/ir/transform"
)

// layer lists the nodes of a layer of which attention sees so many positions, or all of them if window is 0.
func (d *decoder) layer(m *ir.Model, names string, window int) []ir.GraphNode {
	var b nodes
	h, hd := m.Hidden, m.HeadDim
	qd, kd := m.Heads*hd, m.KVHeads*hd
	part := func(name string) string { return names + "layers.{i}." + name }
	linear := func(name, path, in string, rows, cols int, biased bool) string {
		weights := []ir.GraphWeight{weight(part(path+".weight"), rows, cols)}
		if biased {
			weights = append(weights, weight(part(path+".bias"), rows))
		}
		return b.add(name, "linear", []int{rows}, []string{in}, weights...)
	}
	fused := func(name, path, in string, first, rows, of int) string { // of a matrix that others are stored in too
		w := weight(part(path+".weight"), rows, h)
		w.Stored, w.Chain = []int{of, h}, transform.Of(transform.Rows, first, first+rows)
		return b.add(name, "linear", []int{rows}, []string{in}, w)
	}
	norm := func(name, path, in string) string { return d.norm(&b, name, in, h, m.Eps, part(path+".weight")) }
	n := norm("input_norm", "input_layernorm", ir.Stream)
	heads := func(name string, first, rows int) string {
		if d.fused {
			return fused(name, "self_attn.qkv_proj", n, first, rows, qd+2*kd)
		}
		return linear(name, "self_attn."+name, n, rows, h, d.biased.heads)
	}
	q, k, v := heads("q_proj", 0, qd), heads("k_proj", qd, kd), heads("v_proj", qd+kd, kd)
	if d.normedHeads {
		q = d.normHeads(&b, "q_norm", q, qd, m, part("self_attn.q_norm.weight"))
		k = d.normHeads(&b, "k_norm", k, kd, m, part("self_attn.k_norm.weight"))
	}
	q, k = b.add("q_rope", "rope", []int{qd}, []string{q}), b.add("k_rope", "rope", []int{kd}, []string{k})
	att := b.add("attention", "attention", []int{qd}, []string{q, k, v})
	b.param(ir.FloatParam("scale", cmp.Or(d.attnScale, 1/math.Sqrt(float64(hd)))),
		ir.IntParam("window", ir.Int(window)))
	if d.attnCap > 0 {
		b.param(ir.FloatParam("cap", d.attnCap))
	}
	b.add("k_append", "kv_append", []int{kd}, []string{k})
	b.add("v_append", "kv_append", []int{kd}, []string{v})
	o := linear("o_proj", "self_attn.o_proj", att, h, qd, d.biased.o)
	before := "post_attention_layernorm" // of the MLP
	o = b.scaled("attn_scale", o, h, d.branchScale)
	if d.postNorms {
		o = norm("post_attn_norm", before, o)
		before = "pre_feedforward_layernorm"
	}
	x := b.add("attn_add", "add", []int{h}, []string{ir.Stream, o})
	n = norm("post_norm", before, x)
	branch := func(name string, first int) string {
		if d.fused {
			return fused(name, "mlp.gate_up_proj", n, first, m.Intermediate, 2*m.Intermediate)
		}
		return linear(name, "mlp."+name, n, m.Intermediate, h, d.biased.mlp)
	}
	gate, up := branch("gate_proj", 0), branch("up_proj", m.Intermediate)
	mul := cmp.Or(d.gate, "silu_mul")
	act := b.add(mul, mul, []int{m.Intermediate}, []string{gate, up})
	down := linear("down_proj", "mlp.down_proj", act, h, m.Intermediate, d.biased.mlp)
	down = b.scaled("mlp_scale", down, h, d.branchScale)
	if d.postNorms {
		down = norm("post_mlp_norm", "post_feedforward_layernorm", down)
	}
	b.add("mlp_add", "add", []int{h}, []string{x, down})
	return b
}

func weight(key string, shape ...int) ir.GraphWeight { return ir.GraphWeight{Key: key, Shape: shape} }

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

// norm appends an RMSNorm of a vector of n elements.
func (d *decoder) norm(b *nodes, name, in string, n int, eps float64, key string) string {
	b.add(name, "rmsnorm", []int{n}, []string{in}, weight(key, n))
	b.param(ir.FloatParam("eps", eps))
	if d.unitOffset {
		b.param(ir.IntParam("unit_offset", ir.Int(1)))
	}
	return name
}

// normHeads appends an RMSNorm of each head of a vector of n elements, be it a single one.
func (d *decoder) normHeads(b *nodes, name, in string, n int, m *ir.Model, key string) string {
	d.norm(b, name, in, n, m.Eps, key)
	(*b)[len(*b)-1].Weights[0].Shape = []int{m.HeadDim}
	b.param(ir.IntParam("head_dim", ir.Int(m.HeadDim)))
	return name
}
