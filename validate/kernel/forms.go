package kernel

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/validate"
)

// storage is how the elements of an operand are laid out in memory.
type storage struct {
	dtype  ir.DType
	layout ir.LayoutKind
}

func (s storage) String() string { return fmt.Sprintf("%s %s", s.dtype, s.layout) }

var (
	sums   = &storage{ir.F32, ir.RowMajor}
	number = &storage{ir.I32, ir.RowMajor}
	exact  = &storage{ir.F32, ir.RowMajor} // weights too, whatever others are
	// What travels in 32 bits whatever the model's type: partial results of attention and best values, and which ones
	// these are.
	partial = &storage{ir.F32, ir.Word64}
	which   = &storage{ir.I32, ir.Word64}
	inputs  = &storage{ir.F32, ir.KVRows16} // of a convolution
	kept    = &storage{ir.F32, ir.RowMajor} // states
)

// checkForms: a stage body of the kernel has each operand in one form, and looks at no declaration. In another form
// it would read other values than those that were written, or touch bytes beyond those that were proved.
func (p *contract) checkForms(m *ir.Model) {
	layout := ir.LayoutKind(-1)
	for i := range p.flat.Buffers {
		b := &p.flat.Buffers[i]
		if b.Kind != ir.KVCache {
			continue
		}
		if ofConvolution(b) {
			continue // in plain rows: see below
		}
		if layout < 0 {
			layout = b.Layout.Kind
		}
		if b.Layout.Kind != layout || layout != ir.KVBlock16 && layout != ir.KVRows16 {
			p.Errorf(validate.CodeBackend, "buffer "+b.Name, "is a cache in layout %s; the kernel has all of them in "+
				"%s, or all in %s", b.Layout.Kind, ir.KVBlock16, ir.KVRows16).
				Suggest("give all caches one of these layouts")
			return
		}
	}
	forms := formsOf(m, p.flat.Buffers, p.scores())
	for t := range p.flat.Tasks {
		if p.Root(t) != t {
			continue
		}
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			in, out := forms(op)
			if !p.inForm(int32(t), op, "input", op.InBuf, in) || !p.inForm(int32(t), op, "output", op.OutBuf, out) {
				return
			}
		}
	}
}

// inForm holds the operands of an op to their forms, as far as they are buffers.
func (p *contract) inForm(t int32, op *ir.FlatOp, side string, buffers []int, want []*storage) bool {
	for i, n := range buffers {
		if n < 0 || i >= len(want) || want[i] == nil {
			continue
		}
		b := &p.flat.Buffers[n]
		have := storage{b.DType, b.Layout.Kind}
		quantisable := side == "input" && i == 1 && (multiplies(op.Code) || op.Code == ir.SELECTED ||
			op.Code == ir.EMBED)
		if have.layout == ir.Tile8x128 && quantisable && b.Format() != nil {
			continue // the stage's descriptor names the format
		}
		if (b.Kind == ir.Weight && want[i] != exact) || b.Layout.Kind == ir.Word32 {
			have.dtype = want[i].dtype // checkFacts compares these with the type of the model
		}
		if have != *want[i] {
			p.Errorf(validate.CodeBackend, p.Task(t), "%s %d of %s is %s, which is %s; the kernel has it as %s",
				side, i+1, op.Code, b.Name, have, want[i]).
				Suggest("declare the buffer %s", want[i])
			return false
		}
	}
	return true
}

// ofConvolution reports whether a cache holds what a convolution convolves, and no keys and values.
func ofConvolution(b *ir.Buffer) bool { return b.Kind == ir.KVCache && b.Shape[len(b.Shape)-2] == 1 }

// keepsHidden reports whether an op is the norm that makes the last hidden state for the host.
func keepsHidden(op *ir.FlatOp, buffers []ir.Buffer) bool {
	return op.OutBuf[0] >= 0 && buffers[op.OutBuf[0]].HasRole(ir.RoleHidden)
}

// scores are the vectors that a router chooses by. They are of float32 whatever others are.
func (p *contract) scores() map[int]bool {
	out := map[int]bool{}
	for t := range p.flat.Tasks {
		ops := p.flat.Tasks[t].Ops
		for k := range ops {
			if first := ops[0].InBuf; ops[k].Code == ir.TOPK && len(first) > 0 && first[0] >= 0 {
				out[first[0]] = true
			}
		}
	}
	return out
}

// exact are the weights of float32 whatever others are: those that are added to scores for a choice alone, and those of
// decays.
func (p *contract) exact() map[int]bool {
	out := map[int]bool{}
	for t := range p.flat.Tasks {
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			if (op.Code == ir.TOPK || op.Code == ir.DECAY) && len(op.InBuf) > 1 {
				for _, b := range op.InBuf[1:] {
					out[b] = true
				}
			}
		}
	}
	return out
}

// formsOf returns the forms that the kernel has the inputs and outputs of an op in; nil if any form is
// accepted, or if another rule checks it.
func formsOf(m *ir.Model, buffers []ir.Buffer, scores map[int]bool) func(op *ir.FlatOp) (in, out []*storage) {
	word := ir.Word32
	if m.Activations.Bits() == 32 {
		word = ir.Word64
	}
	vector := &storage{m.Activations, word}
	matrix, gains := &storage{m.Weights, ir.Tile8x32}, &storage{m.Weights, ir.RowMajor}
	rounded := &storage{m.Activations, ir.RowMajor} // as every SM has it, where all have the whole residual
	shared := func(list []int, i int) bool {
		return i < len(list) && list[i] >= 0 && buffers[list[i]].Space == ir.SMEM
	}
	of := func(list []int, i int) *storage { // the residual of an SM, or what SMs exchange
		if shared(list, i) {
			return rounded
		}
		return vector
	}
	rows := func(op *ir.FlatOp) []*storage { // as they are published, or kept
		switch n := op.OutBuf[0]; {
		case n < 0 || !buffers[n].Layout.Words():
			return []*storage{sums}
		case scores[n], buffers[n].Space == ir.PeerScratch: // a sum that other GPUs add to theirs
			return []*storage{partial}
		}
		return []*storage{vector}
	}
	return func(op *ir.FlatOp) (in, out []*storage) {
		switch op.Code {
		case ir.SIGMOID:
			if n := op.InBuf[0]; n >= 0 && !scores[n] { // of a gate, or of how much of a state is replaced
				return []*storage{vector}, nil
			}
			return []*storage{partial}, []*storage{sums}
		case ir.SILU, ir.L2NORM:
			return []*storage{vector}, nil
		case ir.DECAY:
			return []*storage{vector, exact, exact}, nil
		case ir.StateConv:
			return []*storage{vector, kept, gains}, []*storage{nil, kept}
		case ir.RECURRENCE:
			return []*storage{nil, nil, nil, nil, nil, kept, kept}, []*storage{nil, kept, kept}
		case ir.SOFTMAX, ir.TOPK, ir.RENORMALISE: // of scores, and what is chosen by them
			return []*storage{partial, exact}, []*storage{sums, number}
		case ir.SELECTED:
			return []*storage{vector, matrix, number, gains, sums}, rows(op)
		case ir.ScaleBlocks:
			return []*storage{sums, sums}, []*storage{vector}
		case ir.SumRows:
			return nil, rows(op)
		case ir.ALLREDUCE: // of what GPUs have pushed
			return slices.Repeat([]*storage{partial}, len(op.In)), []*storage{sums}
		case ir.EMBED:
			return []*storage{number, matrix, sums}, []*storage{sums, of(op.OutBuf, 1)}
		case ir.RMSNORM:
			if keepsHidden(op, buffers) {
				return []*storage{of(op.InBuf, 0), gains, vector}, []*storage{sums}
			}
			// of a vector, of heads, perhaps of a whole that is normalised, or of a branch
			return []*storage{of(op.InBuf, 0), gains, vector}, []*storage{of(op.OutBuf, 0)}
		case ir.LAYERNORM:
			return []*storage{vector, gains, gains}, []*storage{sums}
		case ir.GEMV, ir.GEMM:
			return []*storage{of(op.InBuf, 0), matrix}, rows(op)
		case ir.ROPE:
			return []*storage{nil, sums}, []*storage{vector}
		case ir.ADD:
			switch n := op.InBuf[1]; {
			case len(op.OutBuf) == 1 && n >= 0 && buffers[n].Layout.Words(): // parts of a branch
				return []*storage{vector, vector}, nil
			case len(op.OutBuf) == 1: // with a bias
				return []*storage{sums, gains}, rows(op)
			case shared(op.InBuf, 1): // the norm of a branch, and what multiplies the sum
				return []*storage{sums, rounded, gains}, []*storage{sums, of(op.OutBuf, 1)}
			case n >= 0 && len(buffers[n].Shape) == 2: // a row of a table of positions
				return []*storage{sums, matrix}, []*storage{sums, vector}
			}
			return []*storage{sums, gains, gains}, []*storage{sums, of(op.OutBuf, 1)}
		case ir.KVAppend:
			return []*storage{vector}, nil
		case ir.ShortConv:
			return []*storage{vector, inputs, gains, gains}, []*storage{vector}
		case ir.MUL:
			if len(op.In) == 2 { // of two vectors, and not by a number
				return []*storage{vector, vector}, []*storage{vector}
			}
			return nil, nil
		case ir.ATTENTION:
			in = []*storage{vector, nil, nil, vector, vector, gains}
			if op.IntAt("parts", 0, 1) > 1 {
				return in, []*storage{partial}
			}
			return in, []*storage{vector}
		case ir.AttentionCombine:
			return []*storage{partial, partial}, []*storage{vector}
		case ir.SAMPLE:
			if op.IntAt("partial", 0, 0) != 0 {
				return []*storage{sums, number}, []*storage{partial, which}
			}
			return []*storage{partial, which, number}, []*storage{number}
		case ir.STOP:
			return []*storage{number, number, number}, []*storage{number}
		}
		switch spec := ir.Ops[op.Code]; {
		case spec.Gated():
			return nil, []*storage{vector}
		case spec.Finisher != nil:
			return []*storage{sums, gains}, rows(op)
		}
		return nil, nil
	}
}
