package codegen

import (
	"fmt"

	"amkc/ir"
	"amkc/ir/diag"
)

// The norm of a branch that is added to the residual: the constants of its descriptor, and add_norm_rows of
// norm_rows.cuh, by which owners of the residual add their rows of it (replicated.go has add_norm, by which every SM
// adds all of it).

// branchFields are the constants of the norm and of what it takes.
func branchFields(s *ir.Stage) []field {
	norm := op(s, ir.RMSNORM)
	eps := norm.FloatOr("eps", 0)
	fs := []field{{"float", "kNormEps", hexFloat(eps), decimal(eps)},
		{"bool", "kUnitOffset", fmt.Sprint(norm.IntAt("unit_offset", 0, 0) == 1), "times 1 + weight"}}
	if parts := branchParts(s); parts > 1 {
		fs = append(fs, field{"int", "kParts", itoa(parts), "that the branch is the sum of"})
	}
	return fs
}

// branchParams are the parameters of the norm.
func branchParams(s *ir.Stage) []ir.Param {
	norm := op(s, ir.RMSNORM)
	params := []ir.Param{ir.FloatParam("eps", norm.FloatOr("eps", 0))}
	if norm.IntAt("unit_offset", 0, 0) == 1 {
		params = append(params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	return params
}

// mostParts is the most parts that a branch has whose norm is added to the residual.
func (b *builder) mostParts() int {
	most := 1
	for _, st := range b.d.Descriptors {
		if st.Body == bodyAddNorm || st.Body == bodyAddNormRows {
			most = max(most, branchParts(st.IR))
		}
	}
	return most
}

// normRowsOps are what add_norm_rows computes: the sum of its rows of the residual and of the branch, normalised and
// rounded, which it keeps and hands over.
func (b *builder) normRowsOps(s *ir.Stage) []ir.Op {
	hidden, last := b.p.Model.Hidden, &s.Ops[len(s.Ops)-1]
	norm, residual := op(s, ir.RMSNORM), view(buf(last.In, 0), taskRows)
	kept := view(buf(norm.Out, 0), taskRows)
	ops, rows := partsOf(s, 0, taskRows, hidden)
	sums, branch := partsOf(s, len(ops), upTo(hidden), hidden)
	return append(append(ops, sums...),
		ir.Op{Code: ir.RMSNORM, Out: []ir.Operand{kept}, Params: branchParams(s),
			In: []ir.Operand{rows, view(buf(norm.In, 1), taskRows), branch}},
		ir.Op{Code: ir.ADD, Out: []ir.Operand{residual, view(buf(last.Out, 1), taskRows)},
			In: []ir.Operand{residual, kept}})
}

// checkNormRows holds what owners add to the residual to one buffer for the whole step: the kernel has it in registers.
func (b *builder) checkNormRows(s *ir.Stage) error {
	if err := b.checkResidual(s, operand(s.Ops[len(s.Ops)-1].In, 0)); err != nil {
		return err
	}
	o := operand(op(s, ir.RMSNORM).Out, 0)
	buf := b.buffer(o.Buf, site{})
	if ir.IsFamily(o.Buf) || buf == nil || buf.Count > 0 || buf.Space != ir.SMEM || buf.Name == b.residual ||
		buf.DType != b.p.Model.Activations || len(buf.Shape) != 1 {
		return diag.Errorf(codeStructure, "buffer "+o.Buf, "is what stage %s adds to the residual: want one buffer of "+
			"%s in SMEM for the whole step, [hidden]", s.Name, b.p.Model.Activations)
	}
	if b.normed == "" {
		b.normed = buf.Name
	}
	if buf.Name != b.normed {
		return diag.Errorf(codeStructure, "buffer "+buf.Name, "is what stage %s adds to the residual, and other "+
			"stages %s: want one for the whole step", s.Name, b.normed)
	}
	return nil
}

// checkOwnRows bounds what a thread reads of a branch where owners add rows of it, as norm_rows.cuh counts: it has a
// bit for each group of columns, and one for each part of a row of a token that it adds. rows are those of an SM.
func (b *builder) checkOwnRows(rows int) error {
	if !b.d.NormRows {
		return nil
	}
	const bits, threads = 32, consumerWarps * 32
	parts, hidden := b.mostParts(), b.p.Model.Hidden
	if most := ir.MaxReplicated(&b.p.Model); hidden > most/parts {
		return diag.Errorf(codeLimit, "program", "branches of %d values in %d parts are added to the residual; want "+
			"at most %d values in all", hidden, parts, most)
	}
	if (b.tokens*rows+threads-1)/threads*parts > bits {
		return diag.Errorf(codeLimit, "program", "an SM adds branches of %d parts to %d rows of the residual of each "+
			"of %d tokens; want at most %d rows, by more SMs or passes of fewer tokens", parts, rows, b.tokens,
			bits/parts*threads/b.tokens)
	}
	return nil
}
