package kernel

import (
	"slices"
	"strconv"

	"amkc/ir"
)

// The norm of a branch that is added to the residual. A branch may be published in parts, which are added up first.

// AddNorm is add_norm of replicated.cuh: every SM adds the whole norm to its copy of the residual. A layer may multiply
// the sum by a number then.
var AddNorm = declare(&Body{
	Name:    "add_norm",
	Codes:   []string{"RMSNORM ADD"},
	Is:      func(ops []ir.Op) bool { return !withWhole(ops) },
	Place:   EverySM,
	Local:   true,
	Keeps:   WholeResidual,
	Fields:  []Field{normEps, unitOffset, parts},
	Args:    []Arg{page(input), address(norm), address(factor).optional()},
	Buffers: []Buffer{{Name: "L{i}.factor", At: factor, Shape: func(*Facts) []int { return []int{1} }}},
	Read: func(s *Stage, ops []ir.Op) {
		last := &ops[len(ops)-1]
		s.Residual, s.Rounded = name(last.Out, 0), name(last.Out, 1)
		readBranch(s, ops)
	},
	Temps: func(s *Stage) []string { return sumsOf(s, "%sum", "%branch") },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		own, whole := ownResidual(f, s), upTo(f.Hidden)
		ops, branch := sumOfParts(f, s, whole, s.Temps)
		return append(ops, op(ir.RMSNORM, own[1:], views(branch, view(s.Norm, whole)), normParams(s)...),
			op(ir.ADD, own, timesFactor(s, own)))
	},
})

// AddNormRows is add_norm_rows of norm_rows.cuh: owners add their rows of the norm to the residual, and publish them.
// An owner adds up the parts twice: for its rows, and for the norm of the whole branch.
var AddNormRows = declare(&Body{
	Name:     "add_norm_rows",
	Header:   "norm_rows",
	NoPrompt: true, // passes of several tokens alone have it
	Codes:    []string{"RMSNORM ADD"},
	Is:       withWhole,
	Keeps:    OwnRows | BranchRows,
	Buffers: []Buffer{{Name: Named.Branch, At: func(s *Stage) *string { return &s.Branch }},
		{Name: "L{i}.post_attn_norm.weight", Shape: hidden}, {Name: "L{i}.post_mlp_norm.weight", Shape: hidden}},
	Norms:  map[string]string{"attn_add": "post_attn_norm", "mlp_add": "post_mlp_norm"},
	Fields: []Field{rows, grain, rotation, rotationStep, tasks, normEps, unitOffset, parts},
	Args:   []Arg{page(input), address(norm), page(output), address(factor).optional()},
	Read: func(s *Stage, ops []ir.Op) {
		last := &ops[len(ops)-1]
		s.Residual, s.Branch, s.Out = name(last.In, 0), name(find(ops, ir.RMSNORM).Out, 0), name(last.Out, 1)
		readBranch(s, ops)
		s.Parts = 1 + (s.Parts-1)/2
	},
	Temps: func(s *Stage) []string { return append(sumsOf(s, "%own", "%rows"), sumsOf(s, "%sum", "%branch")...) },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		own, kept := view(s.Residual, TaskRows), view(s.Branch, TaskRows)
		ofRows, rows := sumOfParts(f, s, TaskRows, s.Temps)
		ops, branch := sumOfParts(f, s, upTo(f.Hidden), s.Temps[len(ofRows):])
		return append(append(ofRows, ops...),
			op(ir.RMSNORM, views(kept), views(rows, view(s.Norm, TaskRows), branch), normParams(s)...),
			op(ir.ADD, views(own, view(s.Out, TaskRows)), timesFactor(s, views(own, kept))))
	},
})

func factor(s *Stage) *string { return &s.Factor }

// timesFactor are the operands of the sum that a layer ends in: its terms, and what the sum is multiplied by.
func timesFactor(s *Stage, terms []ir.Operand) []ir.Operand {
	if s.Factor != "" {
		return append(slices.Clone(terms), view(s.Factor, upTo(1)))
	}
	return terms
}

// withWhole reports whether a branch is normalised by a mean of more than what is taken of it.
func withWhole(ops []ir.Op) bool { return len(find(ops, ir.RMSNORM).In) == 3 }

// sums is how many ops at the beginning of a stage add up the parts of a branch.
func sums(ops []ir.Op) int {
	n := 0
	for n+1 < len(ops) && ops[n].Code == ir.ADD {
		n++
	}
	return n
}

func readBranch(s *Stage, ops []ir.Op) {
	n := find(ops, ir.RMSNORM)
	s.In, s.Norm, s.Parts = name(ops[0].In, 0), name(n.In, 1), 1+sums(ops)
	s.Factor = name(ops[len(ops)-1].In, 2)
	for i := range s.Parts - 1 {
		s.Temps = append(s.Temps, name(ops[i].Out, 0))
	}
	readNorm(s, n)
}

// sumOfParts adds up the parts of a range of the branch, in temporaries, and returns what that makes: the range itself,
// where the branch is whole.
func sumOfParts(f *Facts, s *Stage, of ir.Range, temps []string) (ops []ir.Op, sum ir.Operand) {
	sum = view(s.In, of)
	for k := 1; k < s.Parts; k++ {
		before := ir.Int(k * f.Hidden)
		part := view(s.In, ir.Span(before.Add(of.Lo), before.Add(of.Hi)))
		to := view(temps[k-1])
		ops, sum = append(ops, op(ir.ADD, views(to), views(sum, part))), to
	}
	return ops, sum
}

// sumsOf is what sums of parts are called, the last of which is all.
func sumsOf(s *Stage, sum, all string) []string {
	out := make([]string, s.Parts-1)
	for k := range out {
		if out[k] = sum + strconv.Itoa(k+1); k == len(out)-1 {
			out[k] = all
		}
	}
	return out
}

func readNorm(s *Stage, n *ir.Op) {
	s.Eps, s.UnitOffset, s.Centred = n.FloatOr("eps", 0), n.IntAt("unit_offset", 0, 0) == 1, n.Code == ir.LAYERNORM
}

// normCode is which norm a stage has, and normParams what it says.
func normCode(s *Stage) ir.Opcode {
	if s.Centred {
		return ir.LAYERNORM
	}
	return ir.RMSNORM
}

func normParams(s *Stage) []ir.Param {
	params := []ir.Param{ir.FloatParam("eps", s.Eps)}
	if s.UnitOffset {
		params = append(params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	return params
}
