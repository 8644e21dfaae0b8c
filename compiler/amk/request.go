package amk

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// A Scheme names the weights of a model.
type Scheme string

const (
	SchemeToy     Scheme = "toy"
	SchemeHFLlama Scheme = "hf-llama"
)

// A Shape is what the lowering has to know of a Llama-like decoder. Sizes are in elements.
type Shape struct {
	Vocab        int
	Hidden       int
	NLayers      int
	NHeads       int
	NKVHeads     int
	HeadDim      int
	Intermediate int
	RMSEps       float64
	RopeTheta    float64
	MaxSeq       int // rows of the KV cache
}

// A Quant is weight-only quantisation: Bits is 8 or 4, Group the elements of a row that share a scale. Without
// Symmetric there is a zero point to every scale.
type Quant struct {
	Bits      int
	Group     int
	Symmetric bool
}

// A Request is what a program is lowered from: a model shape, and one decode step of it.
type Request struct {
	Shape  Shape
	Scheme Scheme
	Tied   bool    // lm_head reads the embedding table; only with SchemeHFLlama
	Target *Target // nil: none given
	Config *Config // nil: none given; of its fields only three under Tiling change the program
	Pos    int     // position of the token being decoded
	DType  DType   // F32, F16 or BF16
	Batch  int
	Quant  *Quant // nil: weights in DType
}

// Upper bounds of a request, above any model, that keep every product of the cost annotations inside 64 bits. A layer
// becomes some 500 tasks, so that the layers bound the size of what is lowered.
const (
	maxVocab  = 1 << 24
	maxWidth  = 1 << 20 // hidden, intermediate, heads x head_dim
	maxLayers = 1 << 8
	maxRows   = 1 << 24
	maxBatch  = 1 << 10
)

// check returns what makes the request impossible to lower, or nil.
func (q *Request) check() *diag.Diagnostic {
	refuse := func(format string, args ...any) *diag.Diagnostic {
		return diag.Errorf(codeRequest, "request", format, args...)
	}
	s := q.Shape
	for _, f := range []struct {
		name             string
		value, low, high int
	}{
		{"shape.vocab", s.Vocab, 1, maxVocab},
		{"shape.hidden", s.Hidden, 1, maxWidth},
		{"shape.n_layers", s.NLayers, 1, maxLayers},
		{"shape.n_heads", s.NHeads, 1, maxWidth},
		{"shape.n_kv_heads", s.NKVHeads, 1, maxWidth},
		{"shape.head_dim", s.HeadDim, 1, maxWidth / max(s.NHeads, s.NKVHeads, 1)},
		{"shape.intermediate", s.Intermediate, 1, maxWidth},
		{"shape.max_seq", s.MaxSeq, 1, maxRows},
		{"pos", q.Pos, 0, s.MaxSeq - 1},
		{"batch", q.Batch, 1, maxBatch},
	} {
		if f.value < f.low || f.value > f.high {
			return refuse("%s is %d; %d to %d is accepted", f.name, f.value, f.low, f.high)
		}
	}
	switch {
	case s.NHeads%s.NKVHeads != 0:
		return refuse("shape.n_heads %d is not a multiple of shape.n_kv_heads %d", s.NHeads, s.NKVHeads)
	case !(s.RMSEps >= 0) || !ir.IsSingle(s.RMSEps):
		return refuse("shape.rms_eps is %s; accepted are 0, and %s", Float(s.RMSEps), ir.Singles)
	case !(s.RopeTheta > 0) || !ir.IsSingle(s.RopeTheta):
		return refuse("shape.rope_theta is %s; accepted are %s", Float(s.RopeTheta), ir.Singles)
	case q.Scheme != SchemeToy && q.Scheme != SchemeHFLlama:
		return refuse("scheme is %q; %q and %q are accepted", q.Scheme, SchemeToy, SchemeHFLlama)
	case q.DType > BF16:
		return refuse("dtype is %s; F32, F16 and BF16 are accepted", q.DType)
	}
	if z := q.Quant; z != nil {
		switch {
		case z.Bits != 8 && z.Bits != 4:
			return refuse("quant.bits is %d; 8 and 4 are accepted", z.Bits)
		case z.Group < 1 || z.Group > maxWidth:
			return refuse("quant.group is %d; 1 to %d is accepted", z.Group, maxWidth)
		case q.Batch > 1:
			return refuse("quantised weights with a batch of %d; the format has them for a batch of 1 only", q.Batch)
		}
	}
	return nil
}
