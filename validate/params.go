package validate

import (
	"fmt"

	"amkc/ir"
	"amkc/ir/op"
)

// checkParameters: parameters have the values that their op declares, at every position. What sizes and
// divides (heads, groups, splits, blocks) is a positive constant: operands could not agree with it otherwise.
func (p *Proof) checkParameters() {
	for t := range p.flat.Tasks {
		if p.Full() {
			return
		}
		if p.Root(t) != t {
			continue
		}
		found := p.errors
		for k := range p.flat.Tasks[t].Ops {
			op := &p.flat.Tasks[t].Ops[k]
			for i := range op.Params {
				p.checkParameter(int32(t), op, &op.Params[i])
			}
		}
		p.bodies.settle(t, p.errors == found)
	}
}

func (p *Proof) checkParameter(t int32, o *ir.FlatOp, prm *ir.Param) {
	declared := ir.Ops[o.Code].Param(prm.Key)
	fail := func(want, where string) { // value, then what would be accepted
		value := prm.Int.String()
		if prm.IsFloat {
			value = formatFloat(prm.Float)
		}
		p.Errorf(CodeParameter, p.Task(t), "%s has %s=%s; want %s%s", o.Code, prm.Key, value, want, where)
	}
	_, constant := prm.Int.IsConst()
	constant = constant || prm.IsFloat
	switch {
	case declared == nil: // structure.go refuses it
	case !constant && !declared.Moves:
		fail("a constant, only row and pos may depend on the position", "")
	case declared.Real:
		v := prm.Float
		if !prm.IsFloat {
			v = float64(prm.Int.At(0))
		}
		if !ir.IsSingle(v) {
			fail(ir.SingleWant, "")
		} else if !declared.AllowsReal(v) {
			fail(declared.Want(), ", which "+declared.Doc)
		}
	case constant:
		if n, _ := prm.Int.IsConst(); !declared.Allows(n) {
			fail(declared.Want(), "")
		}
	default:
		p.checkRows(t, prm.Int, declared, fail)
	}
}

// checkRows: a parameter that moves has a value that it may have in every row that a pass can have, and in each of them
// it depends on the position of one sequence.
func (p *Proof) checkRows(t int32, e ir.Expr, declared *op.Param, fail func(want, where string)) {
	rows, in := 1, ""
	if p.ops.declared == declared && p.ops.moving.Equal(e) {
		return // another task of a stage has it
	}
	if e.Uses(ir.Row) {
		rows = p.flat.Pass.NumTokens()
	}
	for row := range rows {
		of := e
		if e.Uses(ir.Row) {
			of, in = e.With(ir.Row, ir.Int(row)), fmt.Sprintf(" in row %d", row)
			if !p.spend(&p.work.evals, 1, maxEvals, "parameters of single rows", t) {
				return
			}
		}
		if s, known := of.Sequence(); !known || s >= p.flat.Pass.NumSequences() {
			fail(fmt.Sprintf("the position of one of %d sequences", p.flat.Pass.NumSequences()), in)
			return
		}
		if at, ok := p.within(t, of, declared); !ok {
			fail(declared.Want(), fmt.Sprintf(" (it is %d at pos %d%s)", of.At(at), at, in))
			return
		}
	}
	p.ops.declared, p.ops.moving = declared, e
}

// within reports whether a parameter has a value that it may have at every position, or else a position where not.
func (p *Proof) within(t int32, e ir.Expr, declared *op.Param) (int, bool) {
	if n, ok := e.IsConst(); ok {
		return p.flat.Lo, declared.Allows(n)
	}
	in := func(pos int) bool { return declared.Allows(e.At(pos)) }
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
