package kernel

import "amkc/ir"

// KeepHidden is keep_hidden of hidden.cuh: in launches that ask for it, the first SM computes the final norm, the input
// of the head, and stores it for the host. Its operand is a published vector, or the residual of the SM.
var KeepHidden = declare(&Body{
	Name:          "keep_hidden",
	Codes:         []string{"RMSNORM", "LAYERNORM"},
	Place:         FirstSM,
	Local:         true,
	Asked:         true,
	ReadsResidual: true,
	Fields: []Field{normEps, unitOffset,
		of("kCentred", "the mean is taken off", func(s *Stage) *bool { return &s.Centred }),
		of("kNormWeights", "one to multiply by, and one to add", func(s *Stage) *int { return &s.NormWeights }).
			wants("0 to 2 of a norm that takes the mean off, and 1 of another", func(_ *Facts, s *Stage) bool {
				return s.NormWeights == 1 || s.Centred && s.NormWeights <= 2
			})},
	Args: []Arg{page(input).when(func(s *Stage) bool { return !s.Resident }),
		address(norm).when(func(s *Stage) bool { return s.NormWeights > 0 }),
		address(shift).when(func(s *Stage) bool { return s.NormWeights > 1 })},
	Read: func(s *Stage, ops []ir.Op) {
		n := &ops[0]
		s.In, s.Rounded, s.Norm, s.Shift = name(n.In, 0), name(n.In, 0), name(n.In, 1), name(n.In, 2)
		s.NormWeights = len(n.In) - 1
		readNorm(s, n)
	},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		s.Columns = f.Hidden
		n := NormOf(s)
		n.Out = views(view(f.LastHidden, upTo(f.Hidden)))
		return []ir.Op{n}
	},
})
