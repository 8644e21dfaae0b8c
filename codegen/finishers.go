package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
)

// A finisher emits an op on finished rows, as a call of amk/finish.cuh, and states the op that the call carries out,
// which the stage is held to.
type finisher func(w *productWriter, o *ir.Op)

// stageFinishers are those of ops that need more of the stage than a row: its step, its weights, its residual, or what
// it returns. The calls of all others are declared with their ops.
var stageFinishers = map[ir.Opcode]finisher{ir.ROPE: finishRope, ir.ADD: finishAdd, ir.SAMPLE: finishSample}

// finisherOf returns nil for an op that no finisher may have.
func finisherOf(code ir.Opcode) finisher {
	if ir.Ops[code].Finisher != nil {
		return finishRow
	}
	return stageFinishers[code]
}

// finishingOps lists them for messages.
func finishingOps() string {
	var names []string
	for code, spec := range ir.Ops {
		if finisherOf(ir.Opcode(code)) != nil {
			names = append(names, spec.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// finishRow: a row, by the call that the op's declaration names.
func finishRow(w *productWriter, o *ir.Op) {
	f := ir.Ops[o.Code].Finisher
	if f.Halves && w.halved {
		w.fail("makes one row of two twice, with %s the second time; the kernel does it once in each stage", o.Code)
	}
	w.halved = w.halved || f.Halves
	in := buf(o.In, 0)
	args := []string{w.value(o.In, 0)}
	if f.Row {
		args = slices.Insert(args, 0, "r")
	}
	want := []ir.Operand{view(in)}
	if !want[0].IsTemp() {
		want[0].Dims = []ir.Range{taskRows}
	}
	if f.Shape != "" {
		weights := buf(o.In, 1)
		w.param("const u8*", "curve", argument{weights, true})
		w.opening = append(w.opening, fmt.Sprintf("  const %s shape(curve);", f.Shape))
		if w.f.args[len(w.f.args)-1].buffer != weights || w.shaped {
			w.fail("has %s a second time; the kernel has one activation with weights in each stage", o.Code)
		}
		args, want, w.shaped = append(args, "shape"), append(want, view(weights, upTo(f.Weights))), true
	}
	var params []ir.Param
	for _, key := range f.Args {
		if !o.Has(key) {
			w.fail("has %s without %s; want a number, which the kernel's %s takes", o.Code, key, f.Func)
		}
		v := o.FloatOr(key, 0)
		args, params = append(args, hexFloat(v)), append(params, ir.FloatParam(key, v))
		w.f.numbers = append(w.f.numbers, field{Type: "float", Name: key + " of stage " + w.s.Name, Value: hexFloat(v)})
	}
	out := w.define(o, f.Result, fmt.Sprintf("%s(%s)", f.Func, strings.Join(args, ", ")))
	w.want = append(w.want, ir.Op{Code: o.Code, Out: out, In: want, Params: params})
}

// finishRope: rotation pairs side by side, below a limit, by this position's angles.
func finishRope(w *productWriter, o *ir.Op) {
	hd, limit, in := w.b.p.Model.HeadDim, o.IntAt("limit", 0, 0), buf(o.In, 0)
	w.f.numbers = append(w.f.numbers, field{Type: "int", Name: "limit of stage " + w.s.Name, Value: itoa(limit)})
	by := w.b.rotationOf(o, w.at)
	table := itoa(limit)
	if by.number > 0 {
		table += ", " + itoa(by.number)
	}
	if w.halved {
		w.fail("rotates after two rows have become one; want %s before", ir.ROPE)
	}
	out := w.define(o, "rotated", fmt.Sprintf("rope<%s>(c, r, %s)", table, w.value(o.In, 0)))
	w.want = append(w.want, ir.Op{Code: ir.ROPE, Out: out,
		In: []ir.Operand{view(in), view(buf(o.In, 1), upTo(by.pairs))},
		Params: append([]ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("order", ir.Int(1)),
			ir.IntParam("first", spanA), ir.IntParam("limit", ir.Int(limit)), ir.IntParam("pos", position)},
			by.scale...)})
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

// finishSample: the largest logit of this SM's rows, which the stage returns. What the settings say beyond that is done
// with the logits behind it (publish_best of ending.cuh).
func finishSample(w *productWriter, o *ir.Op) {
	in := buf(o.In, 0)
	w.chain = append(w.chain, fmt.Sprintf("    best.offer_row(r, %s);", w.value(o.In, 0)))
	w.best = true
	logits := view(in)
	if !logits.IsTemp() {
		logits.Dims = []ir.Range{taskRows}
	}
	if len(o.Out) != 2 || logits.IsTemp() || w.b.role(logits, w.at) != ir.RoleLogits {
		w.fail("chooses by %s among %s; the kernel chooses among the logits that it has stored", o.Code, in)
	}
	w.want = append(w.want, ir.Op{Code: ir.SAMPLE,
		Out: []ir.Operand{view(buf(o.Out, 0), ownSM), view(buf(o.Out, 1), ownSM)},
		In:  []ir.Operand{logits, w.b.settings()},
		Params: []ir.Param{ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", spanA),
			ir.IntParam("pos", position)}})
}
