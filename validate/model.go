package validate

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// checkModel: generated code takes the sizes of heads, caches and vectors and the type of their elements from the model's facts,
// and the proof takes them from views and buffers. For the kernel the two agree: otherwise it would touch other memory than was
// proved.
func (p *proof) checkModel(m *ir.Model) {
	if p.backend != Kernel {
		return
	}
	caches := 0
	for i := range p.flat.Buffers {
		b := &p.flat.Buffers[i]
		if (b.Kind == ir.Weight || b.Kind == ir.KVCache || b.Layout.Kind == ir.Word32) && b.DType != m.DType && !p.full() {
			p.disagree("buffer "+b.Name, "holds %s", b.DType).Suggest("what the model's kernel streams and exchanges is %s", m.DType)
		}
		if b.Kind != ir.KVCache {
			continue
		}
		caches++
		if s := b.Shape; len(s) != 4 || s[0] != m.KVHeads || s[1] != m.MaxSeq || s[3] != m.HeadDim {
			p.disagree("buffer "+b.Name, "has shape %v", s).Suggest("the model's caches are [%d, %d, 2, %d]", m.KVHeads, m.MaxSeq, m.HeadDim)
		}
	}
	if caches != m.Layers {
		p.disagree("", "there are %d caches", caches).Suggest("the model has %d layers, with one cache each", m.Layers)
	}
	for t := range p.flat.Tasks {
		for k := range p.flat.Tasks[t].Ops {
			if p.full() {
				return
			}
			p.checkFacts(int32(t), &p.flat.Tasks[t].Ops[k], m)
		}
	}
}

func (p *proof) disagree(at, format string, args ...any) *diag.Diagnostic {
	return p.errorf(CodeModel, at, format, args...)
}

// checkFacts compares the sizes that one op takes from the model.
func (p *proof) checkFacts(t int32, op *ir.FlatOp, m *ir.Model) {
	want := func(what string, have, want int) {
		if have != want {
			p.disagree(p.task(t), "%s has %s %d", op.Code, what, have).Suggest("by the model's facts it is %d", want)
		}
	}
	length := func(i, d int) int { return op.In[i].Dims[d].Len(p.flat.Lo) }
	switch op.Code {
	case ir.ATTENTION:
		want("head_dim", op.IntAt("head_dim", 0, 0), m.HeadDim)
		want("n_kv_heads", op.IntAt("n_kv_heads", 0, 0), 1)
		want("n_heads", op.IntAt("n_heads", 0, 0), m.Heads/max(1, m.KVHeads))
	case ir.ROPE:
		want("head_dim", op.IntAt("head_dim", 0, 0), m.HeadDim)
	case ir.RMSNORM:
		if len(op.In[1].Dims) == 1 {
			want("a weight of length", length(1, 0), m.Hidden)
		}
	case ir.EMBED:
		if len(op.In[1].Dims) == 2 {
			want("a table of height", length(1, 0), m.Vocab)
		}
	}
}
