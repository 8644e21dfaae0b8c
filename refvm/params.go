package refvm

import (
	"fmt"
	"math"
	"slices"

	"amkc/ir"
)

// maxInt is the largest value of an integer parameter, a block or a number of parts: what an int32 holds.
const maxInt = math.MaxInt32

// checkParams says what is wrong with the parameters of an op; "" if nothing is. It returns those that depend on the
// position, which each step checks.
func checkParams(op *ir.Op) (moving []ir.Param, problem string) {
	spec := ir.Ops[op.Code]
	for i := range spec.Params {
		if p := &spec.Params[i]; p.Needed && !op.Has(p.Key) {
			return nil, "lacks the parameter " + p.Key
		}
	}
	for i, p := range op.Params {
		if spec.Param(p.Key) == nil {
			return nil, fmt.Sprintf("has no parameter %q", p.Key)
		}
		if slices.ContainsFunc(op.Params[:i], func(q ir.Param) bool { return q.Key == p.Key }) {
			return nil, fmt.Sprintf("has the parameter %s twice", p.Key)
		}
		if p.Key == "eps" || p.Key == "scale" || p.Key == "theta" {
			if problem := checkFloat(op, p); problem != "" {
				return nil, problem
			}
			continue
		}
		if p.IsFloat {
			return nil, fmt.Sprintf("has %s=%g, want an integer", p.Key, p.Float)
		}
		if p.Int.Uses(ir.SpanA) || p.Int.Uses(ir.SpanB) || p.Int.Uses(ir.OnSM) {
			return nil, fmt.Sprintf("has %s=%s, want no symbol but pos", p.Key, p.Int)
		}
		if n, constant := p.Int.IsConst(); constant {
			if problem := checkInt(p.Key, n); problem != "" {
				return nil, problem
			}
		} else if p.Key == "row" || p.Key == "pos" {
			moving = append(moving, p)
		} else {
			return nil, fmt.Sprintf("has %s=%s, want a constant", p.Key, p.Int)
		}
	}
	if op.Has("qdtype") && !op.Has("group") {
		return nil, "has a qdtype, and lacks the parameter group"
	}
	return moving, ""
}

// checkFloat checks a parameter that may be a fraction.
func checkFloat(op *ir.Op, p ir.Param) string {
	if _, constant := p.Int.IsConst(); !p.IsFloat && !constant {
		return fmt.Sprintf("has %s=%s, want a constant", p.Key, p.Int)
	}
	v := op.FloatOr(p.Key, 0)
	if math.IsNaN(v) || math.IsInf(v, 0) || p.Key == "eps" && v < 0 || p.Key == "theta" && v <= 0 {
		return fmt.Sprintf("has %s=%g, want a finite number, eps not below 0 and theta above it", p.Key, v)
	}
	return ""
}

// checkInt checks the value of an integer parameter.
func checkInt(key string, n int) string {
	lo, hi := 0, maxInt
	switch key {
	case "head_dim", "n_heads", "n_kv_heads", "group", "splits", "block", "parts":
		lo = 1
	case "order", "partial":
		hi = 1
	case "flags", "recipe":
		lo = -maxInt
	case "qdtype":
		if t := ir.DType(n); t != ir.I8 && t != ir.I4 {
			return fmt.Sprintf("has qdtype=%d, want %d (I8) or %d (I4)", n, ir.I8, ir.I4)
		}
	}
	if n < lo || n > hi {
		return fmt.Sprintf("has %s=%d, want %d to %d", key, n, lo, hi)
	}
	return ""
}
