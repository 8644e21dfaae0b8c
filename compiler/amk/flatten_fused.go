package amk

import (
	"fmt"

	"amkc/ir"
)

// scratchTypes are the element types that a recipe may give its scratch, as it spells them, with one exception: the
// flat form has no float64.
var scratchTypes = map[string]DType{"float32": F32, "float16": F16, "bfloat16": BF16, "int8": I8, "int32": I32}

// maxSteps bounds a recipe, which becomes one task.
const maxSteps = 256

// recipe returns the ops of a FUSED task, in the order of the recipe's steps:
//
//	{"steps": [{"op": 11, "args": [{"in": 0}, {"s": 3}], "out": 4, "params": {}, "out_shape": [1, 64],
//	  "out_dtype": "float32"}, ...]}
//
// An argument is an input of the task or a piece of scratch that an earlier step wrote; out is scratch, or "final"
// (also -1) for the output of the task. Every piece of scratch becomes a buffer in registers, which no other task can
// touch.
func (s *opStep) recipe(task string) []ir.FlatOp {
	if !s.arity() {
		return nil
	}
	v, _ := s.params.Get("recipe")
	r, _ := v.(*Object)
	var steps Array
	if r != nil {
		v, _ = r.Get("steps")
		steps, _ = v.(Array)
	}
	if len(steps) == 0 {
		s.fail(codeRecipe, `needs the parameter recipe: an object whose "steps" are a list of at least one step`)
		return nil
	}
	if len(steps) > maxSteps {
		s.fail(codeSize, "has a recipe of %d steps; up to %d are accepted", len(steps), maxSteps)
		return nil
	}
	x := recipeReader{task: task, whole: s, scratch: map[int64]int{}}
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
	scratch map[int64]int // piece of scratch -> its buffer
	final   bool
}

func (x *recipeReader) fail(i int, format string, args ...any) {
	x.whole.fail(codeRecipe, "step %d %s", i, fmt.Sprintf(format, args...))
}

func (x *recipeReader) step(i int, v Value) []ir.FlatOp {
	o, ok := v.(*Object)
	if !ok {
		x.fail(i, "is %s; an object is accepted", describe(v))
		return nil
	}
	code, ok := o.Int("op")
	if !ok || code < 0 || code >= int64(Fused) {
		v, _ := o.Get("op")
		x.fail(i, "has op %s; the code of an opcode other than FUSED, 0 to %d, is accepted", describe(v), Fused-1)
		return nil
	}
	s := opStep{f: x.whole.f, pos: x.whole.pos, op: Op(code), params: &Object{}}
	s.in, ok = x.args(i, o)
	if !ok {
		return nil
	}
	if v, there := o.Get("params"); there {
		if s.params, ok = v.(*Object); !ok {
			x.fail(i, "has params %s; an object is accepted", describe(v))
			return nil
		}
	}
	if s.out, ok = x.out(i, o, s.in); !ok {
		return nil
	}
	ops := s.translate()
	x.whole.failed = x.whole.failed || s.failed
	return ops
}

// args resolves the arguments of a step to buffers.
func (x *recipeReader) args(i int, step *Object) ([]int, bool) {
	v, _ := step.Get("args")
	list, isList := v.(Array)
	if v != nil && !isList {
		x.fail(i, "has args %s; a list is accepted", describe(v))
		return nil, false
	}
	var bufs []int
	for _, v := range list {
		ref, _ := v.(*Object)
		if ref == nil {
			ref = &Object{}
		}
		k, isIn := ref.Int("in")
		j, isScratch := ref.Int("s")
		buf, written := x.scratch[j]
		switch {
		case isIn && k >= 0 && k < int64(len(x.whole.in)):
			bufs = append(bufs, x.whole.in[k])
		case !isIn && isScratch && written:
			bufs = append(bufs, buf)
		default:
			x.fail(i, `has an argument that is neither {"in": k} with an input of the task, 0 to %d, nor {"s": j} `+
				`with scratch that an earlier step wrote`, len(x.whole.in)-1)
			return nil, false
		}
	}
	return bufs, true
}

// out returns the buffer that a step writes.
func (x *recipeReader) out(i int, step *Object, args []int) ([]int, bool) {
	v, _ := step.Get("out")
	j, isInt := step.Int("out")
	switch {
	case v == String("final"), isInt && j == -1:
		x.final = true
		return x.whole.out, true
	case !isInt:
		x.fail(i, `has out %s; a number of scratch or "final" is accepted`, describe(v))
		return nil, false
	}
	b, ok := x.scratchBuffer(i, step, args)
	if !ok {
		return nil, false
	}
	f := x.whole.f
	b.Name = f.bufferNames.take(fmt.Sprintf("%s.step%d", x.task, i), "step", i)
	x.scratch[j] = len(f.flat.Buffers)
	f.flat.Buffers = append(f.flat.Buffers, b)
	return []int{x.scratch[j]}, true
}

// scratchBuffer has the shape and dtype that the step gives, or those of its first argument.
func (x *recipeReader) scratchBuffer(i int, step *Object, args []int) (ir.Buffer, bool) {
	b := ir.Buffer{Kind: ir.Activation, Space: ir.Register}
	if len(args) > 0 {
		first := &x.whole.f.flat.Buffers[args[0]]
		b.Shape, b.DType = first.Shape, first.DType
	}
	if v, _ := step.Get("out_shape"); v != nil {
		list, _ := v.(Array)
		b.Shape = make([]int, len(list))
		for d, v := range list {
			num, _ := v.(Number)
			n, ok := num.Int64()
			if !ok || num == "" {
				x.fail(i, "has an out_shape with %s; integers are accepted", describe(v))
				return b, false
			}
			b.Shape[d] = int(n)
		}
	}
	if len(b.Shape) == 0 || len(b.Shape) > MaxRank {
		x.fail(i, "has scratch of %d dimensions; an out_shape of 1 to %d is accepted", len(b.Shape), MaxRank)
		return b, false
	}
	if v, _ := step.Get("out_dtype"); v != nil {
		name, _ := v.(String)
		t, ok := scratchTypes[string(name)]
		if !ok {
			x.fail(i, "has out_dtype %s; float32, float16, bfloat16, int32 and int8 are accepted", describe(v))
			return b, false
		}
		b.DType = ir.DType(t)
	}
	return b, true
}
