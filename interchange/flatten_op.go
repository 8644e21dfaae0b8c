package interchange

import (
	"encoding/json"
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
)

// An opStep is one instruction on its way into the flat form: the instruction of a task, or one step of a recipe.
type opStep struct {
	f       *flattener
	pos     string
	op      ir.Opcode
	in, out []int // indices of flat buffers
	params  map[string]json.RawMessage
	failed  bool
}

func (s *opStep) fail(code *diag.Code, format string, args ...any) {
	s.failed = true
	s.f.fail(code, s.pos, s.op.String()+" "+format, args...)
}

// want reports an operand or a parameter that contradicts another one.
func (s *opStep) want(ok bool, format string, args ...any) bool {
	if !ok && !s.failed {
		s.fail(codeContradiction, format, args...)
	}
	return ok
}

// translate returns the op of the flat form, or none after an error.
func (s *opStep) translate() []ir.FlatOp {
	if s.op < 0 || int(s.op) >= len(arities) {
		s.fail(codeNoCounterpart, "is not an opcode of the registry")
		return nil
	}
	if !s.arity() {
		return nil
	}
	op := ir.FlatOp{Op: ir.Op{Code: s.op}, InBuf: s.in, OutBuf: s.out}
	for _, b := range s.in {
		op.In = append(op.In, s.whole(b))
	}
	for _, b := range s.out {
		op.Out = append(op.Out, s.whole(b))
	}
	switch s.op {
	case ir.EMBED:
		s.embed()
	case ir.RMSNORM, ir.LAYERNORM:
		s.norm(&op)
	case ir.GEMV, ir.GEMM:
		s.matmul(&op)
	case ir.ATTENTION:
		s.attention(&op)
	case ir.ROPE:
		s.rope(&op)
	case ir.MUL:
		if len(s.in) == 1 {
			op.Params = append(op.Params, ir.FloatParam("scale", s.floatOr("scale", 1)))
		}
	case ir.DEQUANT:
		op.Params = append(op.Params, s.copyInt("qdtype"), s.copyInt("group"))
	case ir.SOFTMAX:
		last := len(s.shape(s.in[0])) - 1
		if d := s.intOr("dim", -1); d != -1 && d != last {
			s.fail(codeNoCounterpart, "over dimension %d; the last one, %d or -1, is accepted", d, last)
		}
	case ir.KVAppend:
		s.kvAppend(&op)
	case ir.AttentionCombine:
		s.combine(&op)
	}
	if s.failed {
		return nil
	}
	return []ir.FlatOp{op}
}

// arities are the least and the most inputs of each opcode, -1 for as many as the records hold, and its outputs.
var arities = [...][3]int{
	ir.NOP: {0, 0, 0}, ir.COPY: {1, 1, 1}, ir.EMBED: {2, 2, 1}, ir.RMSNORM: {2, 2, 1}, ir.LAYERNORM: {2, 3, 1},
	ir.GEMV: {2, 3, 1}, ir.GEMM: {2, 3, 1}, ir.ATTENTION: {3, 4, 1}, ir.ROPE: {2, 2, 1}, ir.SiluMul: {2, 2, 1},
	ir.GELU: {1, 1, 1}, ir.ADD: {2, 2, 1}, ir.MUL: {1, 2, 1}, ir.DEQUANT: {2, 3, 1}, ir.SOFTMAX: {1, 1, 1},
	ir.ALLREDUCE: {1, 8, 1}, ir.KVAppend: {2, 2, 1}, ir.ArgMax: {1, 1, 1}, ir.AttentionCombine: {2, 8, 1},
	ir.FUSED: {1, -1, 1},
}

// arity checks the operand counts. A quantised weight may bring scales and zeros, one operand more than the registry
// has.
func (s *opStep) arity() bool {
	least, most, outputs := arities[s.op][0], arities[s.op][1], arities[s.op][2]
	if s.quantised() {
		most = 4
	}
	if n := len(s.in); n < least || most >= 0 && n > most {
		s.fail(codeArity, "has %d inputs; %s are accepted", n, between(least, most))
		return false
	}
	if n := len(s.out); n != outputs {
		s.fail(codeArity, "has %d outputs; %d are accepted", n, outputs)
		return false
	}
	return true
}

func between(lo, hi int) string {
	switch {
	case hi < 0:
		return fmt.Sprintf("%d to %d", lo, MaxInputs)
	case lo == hi:
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

func (s *opStep) shape(buf int) []int { return s.f.flat.Buffers[buf].Shape }

// dim returns a dimension of a buffer; negative ones count from the last.
func (s *opStep) dim(buf, d int) int {
	shape := s.shape(buf)
	if d < 0 {
		d += len(shape)
	}
	if d < 0 || d >= len(shape) {
		return 0
	}
	return shape[d]
}

func (s *opStep) numel(buf int) int { return s.f.flat.Buffers[buf].Numel() }

// whole is the view of all of a buffer.
func (s *opStep) whole(buf int) ir.Operand {
	b := &s.f.flat.Buffers[buf]
	v := ir.Operand{Buf: b.Name, Dims: make([]ir.Range, len(b.Shape))}
	for d, n := range b.Shape {
		v.Dims[d] = ir.Span(ir.Int(0), ir.Int(n))
	}
	return v
}

// window is n elements from lo on. Both come from int32 parameters, so that the sum cannot overflow.
func window(lo, n int) ir.Range { return ir.Span(ir.Int(lo), ir.Int(lo+n)) }

// int reads an integer parameter that the op cannot do without.
func (s *opStep) int(key string) int {
	if _, there := s.params[key]; !there {
		s.fail(codeParameter, "lacks the parameter %s", key)
		return 0
	}
	return s.intOr(key, 0)
}

// intOr reads an integer parameter, or returns absent. Parameters travel to the device as int32.
func (s *opStep) intOr(key string, absent int) int {
	v, there := s.params[key]
	if !there {
		return absent
	}
	n, ok := intOf(v)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		s.fail(codeParameter, "has %s=%s; an integer of 32 bits is accepted", key, describe(v))
		return absent
	}
	return n
}

func (s *opStep) copyInt(key string) ir.Param { return ir.IntParam(key, ir.Int(s.int(key))) }

// float reads a number that the op cannot do without.
func (s *opStep) float(key string) float64 {
	if _, there := s.params[key]; !there {
		s.fail(codeParameter, "lacks the parameter %s", key)
	}
	return s.floatOr(key, 0)
}

func (s *opStep) floatOr(key string, absent float64) float64 {
	v, there := s.params[key]
	if !there {
		return absent
	}
	var x float64
	if json.Unmarshal(v, &x) != nil || string(v) == "null" || !ir.IsSingle(x) {
		s.fail(codeParameter, "has %s=%s; accepted is %s", key, describe(v), ir.SingleWant)
		return absent
	}
	return x
}
