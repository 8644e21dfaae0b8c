package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/kernel"
)

// A finisher emits an op on finished rows, as a call of amk/finish.cuh, and states the op of the call,
// with which the stage is compared.
type finisher func(w *productWriter, o *ir.Op)

// stageFinishers are those of ops that need more of the stage than a row: its step, its weights, its residual, or what
// it returns. The calls of all others are declared with their ops.
var stageFinishers = map[ir.Opcode]finisher{ir.ROPE: finishRope, ir.ADD: finishAdd, ir.SAMPLE: finishSample,
	ir.ScaleBlocks: finishByExpert}

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
	in := view(buf(o.In, 0))
	args := []string{w.value(o.In, 0)}
	if f.Row {
		args = slices.Insert(args, 0, "r")
	}
	if !in.IsTemp() {
		in.Dims = []ir.Range{kernel.TaskRows}
	}
	if f.Shape != "" {
		if !w.param("curve", buf(o.In, 1)) {
			w.fail("has %s a second time; the kernel has one activation with weights in each stage", o.Code)
		}
		w.opening = append(w.opening, fmt.Sprintf("  const %s shape(curve);", f.Shape))
		args = append(args, "shape")
	}
	var numbers []float64
	for _, key := range f.Args {
		if !o.Has(key) {
			w.fail("has %s without %s; want a number, which the kernel's %s takes", o.Code, key, f.Func)
		}
		v := o.FloatOr(key, 0)
		args, numbers = append(args, hexFloat(v)), append(numbers, v)
		w.f.numbers = append(w.f.numbers, field{Type: "float", Name: key + " of stage " + w.s.Name, Value: hexFloat(v)})
	}
	w.define(o, kernel.Finish(w.k, o.Code, in, numbers...), f.Result,
		fmt.Sprintf("%s(%s)", f.Func, strings.Join(args, ", ")))
}

// finishRope: rotation pairs side by side, below a limit, by this position's angles.
func finishRope(w *productWriter, o *ir.Op) {
	limit := o.IntAt("limit", 0, 0)
	w.f.numbers = append(w.f.numbers, field{Type: "int", Name: "limit of stage " + w.s.Name, Value: itoa(limit)})
	by := w.b.rotationOf(o, w.at)
	table := itoa(limit)
	differ := w.b.p.Model.Differ(ir.HeadDimOf)
	if by.number > 0 || differ {
		table += ", " + itoa(by.number)
	}
	if differ {
		table += ", " + itoa(w.k.HeadDim)
	}
	if w.halved {
		w.fail("rotates after two rows have become one; want %s before", ir.ROPE)
	}
	angles := by.Angles
	angles.Frequencies = buf(o.In, 1)
	w.define(o, kernel.RopeOf(w.b.factsOf(w.s, w.at), &angles, limit, view(buf(o.In, 0))), "rotated",
		fmt.Sprintf("rope<%s>(c, r, %s)", table, w.value(o.In, 0)))
}

// finishByExpert: what two rows of an expert have become, and its weight; or a row of the expert that every token has,
// and its gate.
func finishByExpert(w *productWriter, o *ir.Op) {
	if w.k.Ids == "" && !w.halved {
		w.define(o, kernel.ByGate(w.k, view(buf(o.In, 0))), "gated", fmt.Sprintf("by_gate(c, r, %s)", w.value(o.In, 0)))
		return
	}
	if !w.halved || w.k.Selected < 2 {
		w.fail("has %s of other rows than those of experts, gate and up in turn; the kernel weighs what these have "+
			"become", o.Code)
	}
	rows := w.k.Rows / max(1, w.k.Selected)
	w.f.numbers = append(w.f.numbers, field{Type: "int", Name: "rows of an expert of stage " + w.s.Name,
		Value: itoa(rows)})
	w.define(o, kernel.ByExpert(w.b.factsOf(w.s, w.at), w.k, view(buf(o.In, 0))), "weighed",
		fmt.Sprintf("by_expert<%d>(c, r, %s)", rows, w.value(o.In, 0)))
}

// finishAdd: the residual and a row, or a row and a bias.
func finishAdd(w *productWriter, o *ir.Op) {
	if operand(o.In, 0).IsTemp() {
		finishBias(w, o)
		return
	}
	if w.halved {
		w.fail("adds to the residual after two rows have become one; want a row for each")
	}
	w.define(o, kernel.AddResidual(w.k, view(buf(o.In, 1))), "sum",
		fmt.Sprintf("residual(c, r) + %s", w.value(o.In, 1)))
}

// finishBias: a row and a weight of its own.
func finishBias(w *productWriter, o *ir.Op) {
	if w.halved {
		w.fail("adds a bias after two rows have become one; want it before")
	}
	w.biases(buf(o.In, 1))
	w.define(o, kernel.AddBias(w.k, view(buf(o.In, 0))), "biased",
		fmt.Sprintf("biases.of(r) + %s", w.value(o.In, 0)))
}

// biases declares the weights that are added to finished rows.
func (w *productWriter) biases(of string) {
	if !w.param("bias", of) {
		w.fail("adds %s too; the kernel adds one bias in each stage", of)
	}
	w.opening = append(w.opening, fmt.Sprintf("  const RowWeights<%s> biases(c, bias);", w.f.Struct))
}

// finishSample: the largest logit of this SM's rows, which the stage returns. What the settings say beyond that is done
// with the logits behind it (publish_best of ending.cuh).
func finishSample(w *productWriter, o *ir.Op) {
	in := buf(o.In, 0)
	w.chain = append(w.chain, fmt.Sprintf("    best.offer_row(r, %s);", w.value(o.In, 0)))
	w.best = true
	logits := view(in)
	if !logits.IsTemp() {
		logits.Dims = []ir.Range{kernel.TaskRows}
	}
	if len(o.Out) != 2 || logits.IsTemp() || w.b.role(logits, w.at) != ir.RoleLogits {
		w.fail("chooses by %s among %s; the kernel chooses among the logits that it has stored", o.Code, in)
	}
	w.want = append(w.want, kernel.Choose(w.b.facts, w.k, logits))
}
