package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
)

// finishers are the ops that a finisher may have: how each is emitted, as a call of amk/finish.cuh, and the op that the
// call carries out, which the stage is held to.
var finishers = map[ir.Opcode]func(w *productWriter, o *ir.Op){
	ir.ROPE: finishRope, ir.ADD: finishAdd, ir.SiluMul: finishSiluMul, ir.ArgMax: finishArgMax,
}

// finishingOps lists them for messages.
func finishingOps() string {
	var names []string
	for code := range finishers {
		names = append(names, code.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// finishRope: rotation pairs side by side, below a limit, by this position's angles.
func finishRope(w *productWriter, o *ir.Op) {
	hd, limit, in := w.b.p.Model.HeadDim, o.IntAt("limit", 0, 0), buf(o.In, 0)
	w.f.numbers = append(w.f.numbers, field{Type: "int", Name: "limit of stage " + w.s.Name, Value: itoa(limit)})
	if w.halved {
		w.fail("rotates after two rows have become one; want %s before", ir.ROPE)
	}
	out := w.define(o, "rotated", fmt.Sprintf("rope<%d>(c, r, %s)", limit, w.value(o.In, 0)))
	w.want = append(w.want, ir.Op{Code: ir.ROPE, Out: out, In: []ir.Operand{view(in), view(buf(o.In, 1), upTo(hd/2))},
		Params: []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("order", ir.Int(1)),
			ir.IntParam("first", spanA), ir.IntParam("limit", ir.Int(limit)), ir.IntParam("pos", position)}})
}

// finishAdd: the residual and a row, or a row and a bias.
func finishAdd(w *productWriter, o *ir.Op) {
	if operand(o.In, 0).IsTemp() {
		finishBias(w, o)
		return
	}
	stream, in := buf(o.In, 0), buf(o.In, 1)
	if w.halved {
		w.fail("adds to the residual after two rows have become one; want a row for each")
	}
	out := w.define(o, "sum", fmt.Sprintf("residual(c, r) + %s", w.value(o.In, 1)))
	w.want = append(w.want, ir.Op{Code: ir.ADD, Out: out, In: []ir.Operand{view(stream, taskRows), view(in)}})
}

// finishBias: a row and a weight of its own.
func finishBias(w *productWriter, o *ir.Op) {
	in, bias := buf(o.In, 0), buf(o.In, 1)
	if w.halved {
		w.fail("adds a bias after two rows have become one; want it before")
	}
	w.param("const u8*", "bias", argument{bias, true})
	if w.f.args[len(w.f.args)-1].buffer != bias {
		w.fail("adds %s too; the kernel adds one bias in each stage", bias)
	}
	w.opening = append(w.opening, fmt.Sprintf("  const RowWeights<%s> biases(c, bias);", w.f.Struct))
	out := w.define(o, "biased", fmt.Sprintf("biases.of(r) + %s", w.value(o.In, 0)))
	w.want = append(w.want, ir.Op{Code: ir.ADD, Out: out, In: []ir.Operand{view(in), view(bias, taskRows)}})
}

// finishSiluMul: rows of gate and up, interleaved.
func finishSiluMul(w *productWriter, o *ir.Op) {
	if w.halved {
		w.fail("has two of %s; the kernel has one for each stage", ir.SiluMul)
	}
	w.halved = true
	in := buf(o.In, 0)
	out := w.define(o, "act", fmt.Sprintf("silu_mul(r, %s)", w.value(o.In, 0)))
	w.want = append(w.want, ir.Op{Code: ir.SiluMul, Out: out, In: []ir.Operand{view(in)}})
}

// finishArgMax: the largest logit of this SM's rows, which the stage returns.
func finishArgMax(w *productWriter, o *ir.Op) {
	in := buf(o.In, 0)
	w.chain = append(w.chain, fmt.Sprintf("    best.offer_row(r, %s);", w.value(o.In, 0)))
	w.best = true
	logits := view(in)
	if !logits.IsTemp() {
		logits.Dims = []ir.Range{taskRows}
	}
	w.want = append(w.want, ir.Op{Code: ir.ArgMax,
		Out:    []ir.Operand{view(buf(o.Out, 0), ownSM), view(buf(o.Out, 1), ownSM)},
		In:     []ir.Operand{logits},
		Params: []ir.Param{ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", spanA)}})
}
