package kernel

import "amkc/ir"

// GateHeads is gate_heads of gate.cuh: what attention has made is multiplied by the sigmoids of gates. Its product has
// made these together with queries, keys and values, in an exchange before the last.
var GateHeads = declare(&Body{
	Name:     "gate_heads",
	Header:   "gate",
	Codes:    []string{"SIGMOID MUL"},
	Place:    Spread,
	NoPrompt: true,
	ReadsTwo: true,
	Buffers: []Buffer{{Name: "L{i}.qkvg.weight", Paired: true,
		Shape: func(f *Facts) []int { return []int{f.qkvRows() + f.QueryRows(), f.Hidden} }}},
	Vectors: []Vector{
		{Name: "L{i}.qkvg", Roles: []string{"qkvg"},
			Shape: func(f *Facts) []int { return []int{f.qkvRows() + f.QueryRows()} }},
		{Name: "L{i}.gated_attention", Roles: []string{"gated_attention"},
			Shape: func(f *Facts) []int { return []int{f.QueryRows()} }}},
	Norms: map[string]string{"qkvg": "input_norm"},
	Fields: []Field{rows.wants("as many as its layers have queries", func(f *Facts, s *Stage) bool {
		return s.Rows == f.QueryRows()
	}), grain, rotation, rotationStep, tasks, readsHeld.unless(nil),
		count("kGates", "the first gate of the vector that was kept", func(s *Stage) *int { return &s.FirstGate }).
			wants("those after queries, keys and values", func(f *Facts, s *Stage) bool {
				return s.FirstGate == f.qkvRows()
			})},
	Args: []Arg{page(input), page(func(s *Stage) *string { return &s.Gates }), page(output)},
	Read: func(s *Stage, ops []ir.Op) {
		s.Gates, s.In, s.Out = name(ops[0].In, 0), name(ops[1].In, 0), name(ops[1].Out, 0)
	},
	Derive: func(f *Facts, s *Stage) { s.FirstGate = f.qkvRows() },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		gates := ir.Span(ir.Int(s.FirstGate).Add(spanA), ir.Int(s.FirstGate).Add(spanB))
		return []ir.Op{op(ir.SIGMOID, views(view("%gate")), views(view(s.Gates, gates))),
			op(ir.MUL, views(view(s.Out, TaskRows)), views(view(s.In, TaskRows), view("%gate")))}
	},
})
