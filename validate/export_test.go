package validate

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// FlatWithout proves as FlatFor does, with the rules of some codes taken away.
func FlatWithout(b Backend, f *ir.Flat, codes ...*diag.Code) Report {
	return flatFor(b, f, taken(codes))
}

// ProgramWithout proves as ProgramFor does, with the rules of some codes taken away.
func ProgramWithout(b Backend, prog *ir.Program, codes ...*diag.Code) Report {
	return programFor(b, prog, taken(codes))
}

func taken(codes []*diag.Code) without {
	w := without{}
	for _, c := range codes {
		w[c.ID] = true
	}
	return w
}
