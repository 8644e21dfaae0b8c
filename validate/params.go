package validate

import (
	"fmt"

	"amkc/ir"
)

// checkParameters: parameters lie in the ranges that their opcode gives a meaning to, at every position. What sizes and
// divides (heads, groups, splits, blocks) is a positive constant: operands could not agree with it otherwise.
func (p *proof) checkParameters() {
	for t := range p.flat.Tasks {
		if p.full() {
			return
		}
		if p.rootOf(t) != t {
			continue
		}
		found := p.errors
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			for i := range op.Params {
				p.checkParameter(int32(t), op, &op.Params[i])
			}
		}
		p.settle(t, found)
	}
}

// interval holds the values that an integer parameter may have.
type interval struct{ lo, hi int }

// legal returns the interval of an integer parameter, which is the same for all opcodes that have it.
func legal(key string) interval {
	switch key {
	case "head_dim", "n_heads", "n_kv_heads", "group", "splits", "block", "parts":
		return interval{1, maxPosition}
	case "order", "partial":
		return interval{0, 1}
	case "part", "first", "limit", "row", "pos":
		return interval{0, maxPosition}
	}
	return interval{-maxPosition, maxPosition} // flags, of which unknown ones say nothing, and recipe
}

func (p *proof) checkParameter(t int32, op *ir.FlatOp, prm *ir.Param) {
	fail := func(want string, args ...any) { // value, then what would be accepted
		value := prm.Int.String()
		if prm.IsFloat {
			value = formatFloat(prm.Float)
		}
		p.errorf(CodeParameter, p.task(t), "%s has %s=%s; want "+want,
			append([]any{op.Code, prm.Key, value}, args...)...)
	}
	_, constant := prm.Int.IsConst()
	constant = constant || prm.IsFloat
	if !constant && prm.Key != "pos" && prm.Key != "row" {
		fail("a constant, only row and pos may depend on the position")
		return
	}
	switch prm.Key {
	case "eps", "scale", "theta":
		v := prm.Float
		if !prm.IsFloat {
			v = float64(prm.Int.At(0))
		}
		switch {
		case !ir.IsSingle(v):
			fail("%s", ir.SingleWant)
		case prm.Key == "eps" && v < 0:
			fail("0 or more, which is added to a mean of squares")
		case prm.Key == "theta" && v <= 0:
			fail("a positive number, which is raised to powers")
		}
	case "qdtype":
		if q := ir.DType(prm.Int.At(0)); q != ir.I8 && q != ir.I4 {
			fail("%d (%s) or %d (%s)", ir.I8, ir.I8, ir.I4, ir.I4)
		}
	default:
		r := legal(prm.Key)
		if at, ok := p.within(t, prm.Int, r); !ok {
			where := ""
			if !constant {
				where = fmt.Sprintf(" (it is %d at pos %d)", prm.Int.At(at), at)
			}
			fail("%d to %d%s", r.lo, r.hi, where)
		}
	}
}

// within reports whether an expression lies in an interval at every position, or else a position where it does not.
func (p *proof) within(t int32, e ir.Expr, r interval) (int, bool) {
	if n, ok := e.IsConst(); ok {
		return p.flat.Lo, r.lo <= n && n <= r.hi
	}
	in := func(pos int) bool { v := e.At(pos); return r.lo <= v && v <= r.hi }
	lo, hi := p.flat.Lo, p.flat.Hi
	if !in(lo) {
		return lo, false
	}
	if _, _, ok := e.Affine(); ok || lo == hi {
		return hi, in(hi)
	}
	for pos := lo + 1; pos <= hi; pos++ {
		if !p.spend(&p.work.evals, 1, maxEvals, "evaluations of a parameter that is not affine in pos", t) {
			return pos, true // refused by the budget
		}
		if !in(pos) {
			return pos, false
		}
	}
	return 0, true
}
