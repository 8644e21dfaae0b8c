package interchange

import (
	"encoding/json"
	"fmt"

	"amkc/ir"
	"amkc/runtime/infile"
)

// scratchTypes are the element types that a recipe may give its scratch, as it spells them, with one exception: the
// flat form has no float64.
var scratchTypes = map[string]ir.DType{"float32": ir.F32, "float16": ir.F16, "bfloat16": ir.BF16, "int8": ir.I8,
	"int32": ir.I32}

// maxSteps bounds a recipe, which becomes one task.
const maxSteps = 256

// A recipeStep is one primitive instruction of a FUSED task:
//
//	{"op": 11, "args": [{"in": 0}, {"s": 3}], "out": 4, "params": {}, "out_shape": [1, 64], "out_dtype": "float32"}
//
// An argument is an input of the task or a piece of scratch that an earlier step wrote; out is scratch, or "final"
// (also -1) for the output of the task.
type recipeStep struct {
	Op   *int `json:"op"`
	Args []struct {
		In *int `json:"in"`
		S  *int `json:"s"`
	} `json:"args"`
	Out      json.RawMessage `json:"out"`
	Params   json.RawMessage `json:"params"`
	OutShape []*int          `json:"out_shape"`
	OutDType *string         `json:"out_dtype"`
}

// recipe returns the ops of a FUSED task, in the order of the recipe's steps. Every piece of scratch becomes a buffer
// in registers, which no other task can touch.
func (s *opStep) recipe(task string) []ir.FlatOp {
	if !s.arity() {
		return nil
	}
	var steps []json.RawMessage
	if json.Unmarshal(fieldsOf(s.params["recipe"])["steps"], &steps); len(steps) == 0 {
		s.fail(codeRecipe, `needs the parameter recipe: an object whose "steps" are a list of at least one step`)
		return nil
	}
	if len(steps) > maxSteps {
		s.fail(codeSize, "has a recipe of %d steps; up to %d are accepted", len(steps), maxSteps)
		return nil
	}
	x := recipeReader{task: task, whole: s, scratch: map[int]int{}}
	var ops []ir.FlatOp
	for i, step := range steps {
		ops = append(ops, x.step(i, step)...)
		if s.failed {
			return nil
		}
	}
	if !x.final {
		s.fail(codeRecipe, `writes no output: a step with "out": "final" is accepted`)
	}
	return ops
}

// A recipeReader keeps what the steps so far have written.
type recipeReader struct {
	task    string
	whole   *opStep
	scratch map[int]int // piece of scratch -> its buffer
	final   bool
}

func (x *recipeReader) fail(i int, format string, args ...any) {
	x.whole.fail(codeRecipe, "step %d %s", i, fmt.Sprintf(format, args...))
}

func (x *recipeReader) step(i int, raw json.RawMessage) []ir.FlatOp {
	var r recipeStep
	if err := infile.Unmarshal(raw, &r); err != nil {
		x.fail(i, "is %s: %v", describe(raw), err)
		return nil
	}
	if r.Op == nil || *r.Op < 0 || *r.Op >= int(ir.FUSED) {
		x.fail(i, "has op %s; the code of an opcode other than FUSED, 0 to %d, is accepted",
			describe(fieldsOf(raw)["op"]), ir.FUSED-1)
		return nil
	}
	s := opStep{f: x.whole.f, pos: x.whole.pos, op: ir.Opcode(*r.Op), params: fieldsOf(r.Params)}
	if r.Params != nil && s.params == nil {
		x.fail(i, "has params %s; an object is accepted", describe(r.Params))
		return nil
	}
	for _, arg := range r.Args {
		buf, ok := 0, false
		switch {
		case arg.In != nil && *arg.In >= 0 && *arg.In < len(x.whole.in):
			buf, ok = x.whole.in[*arg.In], true
		case arg.In == nil && arg.S != nil:
			buf, ok = x.scratch[*arg.S]
		}
		if !ok {
			x.fail(i, `has an argument that is neither {"in": k} with an input of the task, 0 to %d, nor {"s": j} `+
				`with scratch that an earlier step wrote`, len(x.whole.in)-1)
			return nil
		}
		s.in = append(s.in, buf)
	}
	j, isInt := intOf(r.Out)
	switch {
	case string(r.Out) == `"final"`, isInt && j == -1:
		x.final = true
		s.out = x.whole.out
	case !isInt:
		x.fail(i, `has out %s; a number of scratch or "final" is accepted`, describe(r.Out))
		return nil
	default:
		b, ok := x.scratchBuffer(i, &r, s.in)
		if !ok {
			return nil
		}
		f := x.whole.f
		b.Name = f.bufferNames.take(fmt.Sprintf("%s.step%d", x.task, i), "step", i)
		x.scratch[j] = len(f.flat.Buffers)
		f.flat.Buffers = append(f.flat.Buffers, b)
		s.out = []int{x.scratch[j]}
	}
	ops := s.translate()
	x.whole.failed = x.whole.failed || s.failed
	return ops
}

// scratchBuffer has the shape and dtype that the step gives, or those of its first argument.
func (x *recipeReader) scratchBuffer(i int, r *recipeStep, args []int) (ir.Buffer, bool) {
	b := ir.Buffer{Kind: ir.Activation, Space: ir.Register}
	if len(args) > 0 {
		first := &x.whole.f.flat.Buffers[args[0]]
		b.Shape, b.DType = first.Shape, first.DType
	}
	if r.OutShape != nil {
		b.Shape = make([]int, len(r.OutShape))
		for d, n := range r.OutShape {
			if n == nil {
				x.fail(i, "has an out_shape with null; integers are accepted")
				return b, false
			}
			b.Shape[d] = *n
		}
	}
	if len(b.Shape) == 0 || len(b.Shape) > MaxRank {
		x.fail(i, "has scratch of %d dimensions; an out_shape of 1 to %d is accepted", len(b.Shape), MaxRank)
		return b, false
	}
	if r.OutDType != nil {
		t, ok := scratchTypes[*r.OutDType]
		if !ok {
			x.fail(i, "has out_dtype %.40q; float32, float16, bfloat16, int32 and int8 are accepted", *r.OutDType)
			return b, false
		}
		b.DType = t
	}
	return b, true
}
