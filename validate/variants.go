package validate

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
)

// checkVariants: the variants have names of their own and cover every position that the model can decode, each once, so
// that a step always has exactly one program.
func checkVariants(prog *ir.Program) diag.List {
	var diags diag.List
	if len(prog.Variants) == 0 {
		diags.Add(diag.Errorf(ir.CodeVariants, "",
			"the program has no variant, want one for each interval of positions"))
		return diags
	}
	byLo := make([]*ir.Variant, len(prog.Variants))
	names := map[string]bool{}
	for i := range prog.Variants {
		v := &prog.Variants[i]
		byLo[i] = v
		if names[v.Name] {
			diags.Add(diag.Errorf(ir.CodeVariants, "variant "+v.Name, "is defined twice"))
		}
		names[v.Name] = true
	}
	slices.SortStableFunc(byLo, func(a, b *ir.Variant) int { return cmp.Compare(a.Lo, b.Lo) })
	next := 0
	for _, v := range byLo {
		if v.Lo != next {
			diags.Add(diag.Errorf(ir.CodeVariants, "variant "+v.Name,
				"starts at position %d, want %d: variants follow each other without gap or overlap from 0", v.Lo, next))
		}
		next = v.Hi + 1
	}
	if n := prog.Model.MaxSeq; n > 0 && next != n {
		diags.Add(diag.Errorf(ir.CodeVariants, "variant "+byLo[len(byLo)-1].Name,
			"the variants end at position %d, want %d, the last that the model can decode", next-1, n-1))
	}
	return diags
}
