package amk

import "fmt"

// layer emits one decoder layer and returns the residual stream after it.
func (b *builder) layer(index int, resid tensor) tensor {
	l := &layer{b, index, fmt.Sprintf("L%d.", index)}
	an := b.rmsnorm(l.name+"input_norm", l.name+"an", b.keys.inputNorm(index), resid)
	attn := l.attention(an)
	o := l.attnProjection("o", "o", b.Shape.Hidden, b.Shape.NHeads*b.Shape.HeadDim, attn)
	resid = l.residual("attn", resid, o)
	mn := b.rmsnorm(l.name+"post_norm", l.name+"mn", b.keys.postNorm(index), resid)
	return l.residual("mlp", resid, l.mlp(mn))
}

// A layer is one decoder layer being emitted.
type layer struct {
	*builder
	index int
	name  string // prefix of names and labels: "L0."
}

func (b *builder) rmsnorm(label, out, key string, x tensor) tensor {
	hidden := b.Shape.Hidden
	id := b.activation(out, b.Batch, hidden)
	return b.single(Task{
		Op:       RMSNorm,
		Inputs:   []int{x.buf, b.weight(key, hidden)},
		Outputs:  []int{id},
		Waits:    []Wait{x.ready},
		Params:   object(kv("eps", Float(b.Shape.RMSEps)), kv("hidden", Int(hidden))),
		EstBytes: Int(b.Batch * b.DType.Bytes(hidden)),
		EstFLOPs: Int(4 * b.Batch * hidden),
		Label:    label,
	})
}

func (l *layer) attnProjection(name, out string, n, k int, x tensor) tensor {
	return l.project(projection{
		label: l.name + name + "_proj", out: l.name + out, kind: Activation,
		key: l.keys.attnProjection(l.index, name), n: n, k: k,
	}, x)
}

func (l *layer) mlpProjection(name, out string, n, k int, x tensor) tensor {
	return l.project(projection{
		label: l.name + name + "_proj", out: l.name + out, kind: Activation,
		key: l.keys.mlpProjection(l.index, name), n: n, k: k,
	}, x)
}

// residual adds the output of a block ("attn" or "mlp") to the residual stream.
func (l *layer) residual(block string, resid, x tensor) tensor {
	elements := l.Batch * l.Shape.Hidden
	return l.single(Task{
		Op:       Add,
		Inputs:   []int{resid.buf, x.buf},
		Outputs:  []int{l.activation(l.name+"h_"+block, l.Batch, l.Shape.Hidden)},
		Waits:    []Wait{resid.ready, x.ready},
		EstBytes: Int(l.DType.Bytes(elements)),
		EstFLOPs: Int(elements),
		Label:    l.name + block + "_residual",
	})
}

func (l *layer) mlp(x tensor) tensor {
	hidden, inter := l.Shape.Hidden, l.Shape.Intermediate
	gate := l.mlpProjection("gate", "gate", inter, hidden, x)
	up := l.mlpProjection("up", "up", inter, hidden, x)
	act := l.single(Task{
		Op:       SiluMul,
		Inputs:   []int{gate.buf, up.buf},
		Outputs:  []int{l.activation(l.name+"act", l.Batch, inter)},
		Waits:    []Wait{gate.ready, up.ready},
		EstBytes: Int(l.Batch * l.DType.Bytes(inter)),
		EstFLOPs: Int(3 * l.Batch * inter),
		Label:    l.name + "swiglu",
	})
	return l.mlpProjection("down", "d", hidden, inter, act)
}
