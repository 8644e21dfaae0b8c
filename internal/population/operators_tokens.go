package population

import (
	"regexp"
	"slices"
	"strings"

	"amkc/ir"
)

// Passes of several tokens: rows of a pass, and sequences, that are taken for one another. Nothing of a program of one
// token is changed by these.
var tokenOperators = []Operator{
	tokenOperator("cache-of-another-sequence", ruleProvenance, func(d *draft) bool {
		x, ok := d.findView(d.cacheOfOne)
		if ok {
			nextOf(&d.ownView(x.viewAt).Dims[0], x.buf.Shape[0])
		}
		return ok
	}),
	tokenOperator("one-cache-for-all-sequences", ruleRace, func(d *draft) bool {
		x, ok := d.findView(func(x use) bool {
			return d.cacheOfOne(x) && !x.dims[0].Lo.Equal(ir.Int(0))
		})
		if ok {
			d.everyView(x.unit, func(v *ir.Operand, buf int) {
				if buf == x.of {
					v.Dims[0] = ir.Index(ir.Int(0))
				}
			})
		}
		return ok
	}),
	tokenOperator("position-of-another-sequence", ruleStep, func(d *draft) bool {
		if d.pass().NumSequences() < 2 {
			return false
		}
		x, k, ok := d.findPos(anyUse)
		if ok {
			r := &d.ownView(x.viewAt).Dims[k]
			r.Lo, r.Hi = d.ofNextSequence(r.Lo), d.ofNextSequence(r.Hi)
		}
		return ok
	}),
	tokenOperator("row-of-another-sequence", ruleOperands, func(d *draft) bool {
		at, ok := d.findOp(func(o *ir.Op) bool { return d.pass().NumSequences() > 1 && rowParam(o) >= 0 })
		if ok {
			o := d.own(at)
			i := rowParam(o)
			o.Params[i].Int = d.ofNextSequence(o.Params[i].Int)
		}
		return ok
	}),
	tokenOperator("mask-off-by-one", ruleRace, func(d *draft) bool {
		by := ir.Int(1 - 2*d.r.IntN(2))
		x, k, ok := d.findPos(func(x use) bool {
			return x.op.Code == ir.ATTENTION && !x.write && x.arg == 1 && x.buf.Kind == ir.KVCache
		})
		if !ok {
			return false
		}
		o := d.own(x.opAt)
		if i := rowParam(o); i >= 0 && d.r.IntN(3) == 0 { // what each row sees, and not what the operands show of it
			o.Params[i].Int = o.Params[i].Int.Add(by)
			return true
		}
		lower := d.r.IntN(3) == 0
		for _, i := range []int{1, 2} { // keys and values go together
			if k >= len(o.In[i].Dims) {
				continue
			}
			if r := &o.In[i].Dims[k]; lower {
				r.Lo = r.Lo.Add(by)
			} else {
				r.Hi = r.Hi.Add(by)
			}
		}
		return true
	}),
	tokenOperator("operand-of-another-token", ruleProvenance, func(d *draft) bool {
		x, k, ok := d.findTokens(someTokens)
		if ok {
			nextOf(&d.ownView(x.viewAt).Dims[k], x.buf.Shape[k])
		}
		return ok
	}),
	tokenOperator("tokens-shifted", ruleProvenance, func(d *draft) bool {
		x, k, ok := d.findTokens(anyTokens)
		if ok {
			shift(&d.ownView(x.viewAt).Dims[k], pick(d.r, []int{-1, 1, d.pass().NumRows()}))
		}
		return ok
	}),
	tokenOperator("a-token-less", ruleProvenance, func(d *draft) bool {
		x, k, ok := d.findTokens(anyTokens)
		if !ok {
			return false
		}
		old, first := x.dims[k], d.r.IntN(2) == 0
		d.everyView(x.unit, func(v *ir.Operand, _ int) {
			for i := range v.Dims {
				switch r := &v.Dims[i]; {
				case !r.Lo.Equal(old.Lo) || !r.Hi.Equal(old.Hi):
				case first:
					r.Lo = r.Lo.Add(ir.Int(1))
				default:
					r.Hi = r.Hi.Sub(ir.Int(1))
				}
			}
		})
		return true
	}),
	tokenOperator("row-not-appended", ruleStep, func(d *draft) bool {
		x, k, ok := d.findPos(func(x use) bool { return x.op.Code == ir.KVAppend && x.write })
		if !ok {
			return false
		}
		o, first := d.own(x.opAt), d.r.IntN(2) == 0
		ranges := []*ir.Range{&o.Out[0].Dims[k]}
		if len(o.In[0].Dims) > 0 { // not the rows of a temporary, which has as many as its op
			ranges = append(ranges, &o.In[0].Dims[0])
		}
		for _, r := range ranges {
			if first {
				r.Lo = r.Lo.Add(ir.Int(1))
			} else {
				r.Hi = r.Hi.Sub(ir.Int(1))
			}
		}
		return true
	}),
	tokenOperator("rows-of-one-split", ruleStep, func(d *draft) bool {
		return d.changeShare(func(r *ir.Range) {
			mine, _ := r.Part.IsConst()
			r.Part = ir.Int((mine + 1) % r.Parts)
		})
	}),
	tokenOperator("rows-of-every-split", ruleRace, func(d *draft) bool {
		return d.changeShare(func(r *ir.Range) { *r = ir.Span(r.Lo, r.Hi) })
	}),
	tokenOperator("unit-left-out", ruleProvenance, func(d *draft) bool {
		u := d.findStage(func(u int) bool {
			return d.stages[u].Dist.Kind == ir.ByUnit && d.stages[u].Dist.Extent > 1 && d.stages[u].Signal != ""
		})
		if u < 0 {
			return false
		}
		d.stages[u].Dist.Extent--
		for _, s := range d.stages { // nobody waits for it
			s.Waits = slices.Clone(s.Waits)
			for k := range s.Waits {
				if s.Waits[k].Counter == d.stages[u].Signal {
					s.Waits[k].Threshold--
				}
			}
		}
		return true
	}),
	tokenOperator("pass-of-another-form", ruleStructure, func(d *draft) bool {
		p := d.pass()
		s, r := p.NumSequences(), p.NumRows()
		forms := slices.DeleteFunc([]ir.Pass{ir.PassOf(r, s), ir.PassOf(s+1, r), ir.PassOf(s, r+1),
			ir.PassOf(max(1, s-1), r), ir.PassOf(s, max(1, r-1)), ir.PassOf(1, s*r)},
			func(q ir.Pass) bool { return q == *p })
		*p = pick(d.r, forms)
		return true
	}),
}

// tokenOperator is an operator on passes of several tokens.
func tokenOperator(name, rule string, change func(*draft) bool) Operator {
	return operator(name, rule, func(d *draft) bool { return d.pass().NumTokens() > 1 && change(d) })
}

func (d *draft) pass() *ir.Pass {
	if d.flat != nil {
		return &d.flat.Pass
	}
	return &d.prog.Pass
}

// cacheOfOne reports whether a view is one of the cache of one of several sequences.
func (d *draft) cacheOfOne(x use) bool {
	n := d.pass().NumSequences()
	return n > 1 && x.buf.Kind == ir.KVCache && x.buf.Shape[0] == n && len(x.dims) == len(x.buf.Shape)
}

// findTokens returns a view with a dimension of the pass's tokens, or of the rows of one sequence, whose range ok
// takes, and that dimension.
func (d *draft) findTokens(ok func(r *ir.Range, extent int) bool) (use, int, bool) {
	tokens := func(x use) int {
		fixed := x.buf.Kind == ir.KVCache || x.buf.Kind.ReadOnly() && x.buf.Role != ir.RoleToken
		if fixed || len(x.dims) != len(x.buf.Shape) {
			return -1
		}
		k := -1
		if n := d.pass().NumTokens(); x.buf.Shape[0] == n {
			k = 0
		} else if n := d.pass().NumRows(); n > 1 && len(x.dims) > 2 && x.buf.Shape[1] == n { // of partial results
			k = 1
		}
		if k < 0 || !ok(&x.dims[k], x.buf.Shape[k]) {
			return -1
		}
		return k
	}
	x, found := d.findView(func(x use) bool { return tokens(x) >= 0 })
	if !found {
		return x, 0, false
	}
	return x, tokens(x), true
}

func anyTokens(*ir.Range, int) bool { return true }

// someTokens reports whether a range is not all tokens, so that there are others.
func someTokens(r *ir.Range, extent int) bool {
	n, isConst := r.Hi.Sub(r.Lo).IsConst()
	return !isConst || n < extent
}

// nextOf makes a range that many elements further on, and the last one the first.
func nextOf(r *ir.Range, extent int) {
	length := r.Hi.Sub(r.Lo)
	if n, ok := length.IsConst(); ok && n < extent && n > 0 && extent%n == 0 {
		r.Lo = r.Lo.Add(ir.Int(n)).Mod(extent)
	} else {
		r.Lo = r.Lo.Add(ir.Int(1)).Mod(extent)
	}
	r.Hi = r.Lo.Add(length)
}

// everyView changes the views of buffers that a unit has.
func (d *draft) everyView(unit int, change func(v *ir.Operand, buf int)) {
	for k := range d.ops(unit) {
		o := d.own(opAt{unit, k})
		for i := range o.In {
			if b := d.bufferOf(viewAt{opAt{unit, k}, false, i}); b >= 0 {
				change(&o.In[i], b)
			}
		}
		for i := range o.Out {
			if b := d.bufferOf(viewAt{opAt{unit, k}, true, i}); b >= 0 {
				change(&o.Out[i], b)
			}
		}
	}
}

// changeShare changes what part of the rows of a cache a unit appends.
func (d *draft) changeShare(change func(*ir.Range)) bool {
	x, ok := d.findView(func(x use) bool {
		return x.write && x.buf.Kind == ir.KVCache && slices.ContainsFunc(x.dims, ir.Range.Shared)
	})
	if ok {
		v := d.ownView(x.viewAt)
		change(&v.Dims[slices.IndexFunc(v.Dims, ir.Range.Shared)])
	}
	return ok
}

// rowParam is the parameter of an op that each row has for itself, or -1.
func rowParam(o *ir.Op) int {
	return slices.IndexFunc(o.Params, func(p ir.Param) bool {
		return !p.IsFloat && p.Int.Uses(ir.Pos) && (p.Key == "row" || p.Key == "pos")
	})
}

var positionText = regexp.MustCompile(`pos\[[^]]*\]|pos`)

// ofNextSequence makes positions those of the next sequence, and of the last one those of the first.
func (d *draft) ofNextSequence(e ir.Expr) ir.Expr {
	n := d.pass().NumSequences()
	text := positionText.ReplaceAllStringFunc(e.String(), func(pos string) string {
		sequence := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pos, "pos"), "["), "]")
		if sequence == "" {
			sequence = "0"
		}
		s, err := ir.ParseExpr(sequence)
		if err != nil {
			panic("population: " + sequence + ": " + err.Error()) // it was printed by package ir
		}
		return ir.PosOf(s.Add(ir.Int(1)).Mod(n)).String()
	})
	next, err := ir.ParseExpr(text)
	if err != nil {
		panic("population: " + text + ": " + err.Error())
	}
	return next
}
