package refvm

import (
	"fmt"
	"math"
	"slices"

	"amkc/ir"
	ops "amkc/ir/op"
)

// maxInt is the largest value of an integer parameter, a block or a number of parts: what an int32 holds.
const maxInt = math.MaxInt32

// A moving parameter depends on a position or on the row: it has a value for each row that an op can have, the last of
// which stands for all after it.
type moving struct {
	declared *ops.Param
	rows     []placed
}

// placed is an expression with the sequence whose position it is of.
type placed struct {
	e        ir.Expr
	sequence int
}

func (p *placed) at(positions []int) int { return p.e.At(positions[p.sequence]) }

// checkParams says what is wrong with the parameters of an op; "" if nothing is. It returns those that depend on a
// position or a row, which each step checks.
func checkParams(op *ir.Op, pass ir.Pass) (list []moving, problem string) {
	spec := ir.Ops[op.Code]
	for i := range spec.Params {
		if p := &spec.Params[i]; p.Needed && !op.Has(p.Key) {
			return nil, "lacks the parameter " + p.Key
		}
	}
	for i, p := range op.Params {
		declared := spec.Param(p.Key)
		if declared == nil {
			return nil, fmt.Sprintf("has no parameter %q", p.Key)
		}
		if slices.ContainsFunc(op.Params[:i], func(q ir.Param) bool { return q.Key == p.Key }) {
			return nil, fmt.Sprintf("has the parameter %s twice", p.Key)
		}
		if declared.Real {
			if problem := checkFloat(op, p, declared); problem != "" {
				return nil, problem
			}
			continue
		}
		if p.IsFloat {
			return nil, fmt.Sprintf("has %s=%g, want an integer", p.Key, p.Float)
		}
		if p.Int.Uses(ir.SpanA) || p.Int.Uses(ir.SpanB) || p.Int.Uses(ir.OnSM) {
			return nil, fmt.Sprintf("has %s=%s, want no symbol but positions and t", p.Key, p.Int)
		}
		if n, constant := p.Int.IsConst(); constant {
			if problem := checkInt(declared, n); problem != "" {
				return nil, problem
			}
		} else if declared.Moves {
			m := moving{declared: declared}
			if m.rows, problem = ofRows(&p, pass); problem != "" {
				return nil, problem
			}
			list = append(list, m)
		} else {
			return nil, fmt.Sprintf("has %s=%s, want a constant", p.Key, p.Int)
		}
	}
	if op.Has("qdtype") && !op.Has("group") {
		return nil, "has a qdtype, and lacks the parameter group"
	}
	return list, ""
}

// ofRows returns what a parameter is for each token of a pass.
func ofRows(p *ir.Param, pass ir.Pass) ([]placed, string) {
	n := 1
	if p.Int.Uses(ir.Row) {
		n = pass.NumTokens()
	}
	rows := make([]placed, n)
	for t := range rows {
		e := p.Int.With(ir.Row, ir.Int(t))
		s, known := e.Sequence()
		if !known || s >= pass.NumSequences() {
			return nil, fmt.Sprintf("has %s=%s in row %d, want the position of one of %d sequences", p.Key, e, t,
				pass.NumSequences())
		}
		rows[t] = placed{e, max(0, s)}
	}
	return rows, ""
}

// checkFloat checks a parameter that may be a fraction.
func checkFloat(op *ir.Op, p ir.Param, declared *ops.Param) string {
	if _, constant := p.Int.IsConst(); !p.IsFloat && !constant {
		return fmt.Sprintf("has %s=%s, want a constant", p.Key, p.Int)
	}
	v := op.FloatOr(p.Key, 0)
	if math.IsNaN(v) || math.IsInf(v, 0) || declared.Sign == ops.NotNegative && v < 0 ||
		declared.Sign == ops.Positive && v <= 0 {
		return fmt.Sprintf("has %s=%g, want %s", p.Key, v, declared.Want())
	}
	return ""
}

// checkInt checks the value of an integer parameter.
func checkInt(declared *ops.Param, n int) string {
	if declared.Values != nil {
		if !slices.ContainsFunc(declared.Values, func(v ops.Named) bool { return v.Value == n }) {
			return fmt.Sprintf("has %s=%d, want %s", declared.Key, n, declared.Want())
		}
	} else if n < declared.Lo || n > declared.Hi {
		return fmt.Sprintf("has %s=%d, want %s", declared.Key, n, declared.Want())
	}
	return ""
}
