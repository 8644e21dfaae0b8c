package validate

import "amkc/ir"

// dtypes: indices are I32, everything else is a float; quantised elements are for weights that a qdtype describes. A
// temporary holds F32, or I32 where its op yields indices.
func (s *shaper) dtypes() {
	for i := range s.in {
		d := s.in[i].dtype
		switch {
		case s.indexInput(i):
			if d != ir.I32 {
				s.failType("input %d is %s, want I32", i+1, d)
			}
		case s.quantisedInput(i):
			if int(d) != s.param("qdtype", 0) {
				s.failType("input %d is %s, want %s, which is what qdtype says", i+1, d, ir.DType(s.param("qdtype", 0)))
			}
		case s.anyInput(i):
		default:
			if !isFloat(d) {
				s.failType("input %d is %s, want F32, F16 or BF16", i+1, d)
			}
		}
	}
	for i := range s.out {
		if s.out[i].buf < 0 {
			continue
		}
		d := s.out[i].dtype
		switch {
		case s.op.Code == ir.COPY:
			if (d == ir.I32) != (s.in[0].dtype == ir.I32) {
				s.failType("copies %s to %s", s.in[0].dtype, d)
			}
		case yieldsIndices(s.op, i):
			if d != ir.I32 {
				s.failType("output %d is %s, want I32", i+1, d)
			}
		case s.op.Code == ir.FUSED:
		default:
			if !isFloat(d) {
				s.failType("output %d is %s, want F32, F16 or BF16", i+1, d)
			}
		}
	}
}

// yieldsIndices reports whether output i of an op holds numbers of elements.
func yieldsIndices(op *ir.FlatOp, i int) bool {
	return op.Code == ir.ArgMax && (i == 1 || op.IntAt("partial", 0, 0) == 0)
}

// temporaryType is what a temporary holds that is output i of an op.
func temporaryType(op *ir.FlatOp, i int, in []view) ir.DType {
	if yieldsIndices(op, i) || op.Code == ir.COPY && in[0].dtype == ir.I32 {
		return ir.I32
	}
	return ir.F32
}

func (s *shaper) failType(format string, args ...any) {
	if s.problem == "" {
		s.dtype = true
		s.fail(format, args...)
	}
}

// indexInput: the ids of EMBED, the positions of the AMK rotation, the indices of the second argmax step.
func (s *shaper) indexInput(i int) bool {
	switch s.op.Code {
	case ir.EMBED:
		return i == 0
	case ir.ROPE:
		return i == 1 && s.param("order", 0) == 0
	case ir.ArgMax:
		return i == 1
	}
	return false
}

// quantisedInput: the matrix whose elements qdtype describes.
func (s *shaper) quantisedInput(i int) bool {
	switch s.op.Code {
	case ir.GEMV, ir.GEMM:
		return i == 1 && s.op.Has("qdtype")
	case ir.DEQUANT:
		return i == 0
	}
	return false
}

// anyInput: operands of which the dtype is free: what is copied or fused, and the zeros of quantised weights.
func (s *shaper) anyInput(i int) bool {
	switch s.op.Code {
	case ir.COPY, ir.FUSED:
		return true
	case ir.GEMV, ir.GEMM:
		return s.op.Has("qdtype") && i == 3
	case ir.DEQUANT:
		return i == 2
	}
	return false
}

func isFloat(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }
