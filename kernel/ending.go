package kernel

import "amkc/ir"

// Endings are the bodies of the four stages that end a step, which are calls of ending.cuh, in this order: every SM
// samples the next token and checks whether it ends the run, the first SM emits the token, and every SM joins.
var Endings = []*Body{Sample, Stop, Emit, JoinStep}

// Sample chooses among the best logits of all SMs.
var Sample = declare(&Body{
	Name:     "sample",
	Codes:    []string{"SAMPLE"},
	Place:    EverySM,
	Unlisted: true,
	Args:     []Arg{page(bestValue), page(bestIndex)},
	Buffers: []Buffer{{Name: Named.BestValue, At: bestValue}, {Name: Named.BestIndex, At: bestIndex},
		{Name: Named.NextOnSM, At: func(s *Stage) *string { return &s.NextOnSM }}},
	Vectors: []Vector{{Name: Named.BestValue, Shape: ofSMs}, {Name: Named.BestIndex, Shape: ofSMs}},
	Read: func(s *Stage, ops []ir.Op) {
		s.BestValue, s.BestIndex = name(ops[0].In, 0), name(ops[0].In, 1)
		s.NextOnSM = name(ops[0].Out, 0)
	},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		all := f.allBest()
		return []ir.Op{op(ir.SAMPLE, views(view(s.NextOnSM, TaskRows)),
			views(view(s.BestValue, all), view(s.BestIndex, all), settings(f)), ir.IntParam("pos", position))}
	},
})

func bestValue(s *Stage) *string { return &s.BestValue }
func bestIndex(s *Stage) *string { return &s.BestIndex }
func ofSMs(f *Facts) []int       { return []int{f.NumRanks() * f.SMs} }

// settings are those by which the kernel chooses: Launch::sampling.
func settings(f *Facts) ir.Operand { return view(f.Sampling, upTo(ir.SamplingWords)) }

// Stop checks whether the token is one of those that end the run. NextOnSM is the result of sample.
var Stop = declare(&Body{
	Name:     "stop",
	Codes:    []string{"STOP"},
	Place:    EverySM,
	Unlisted: true,
	Brief:    true,
	Buffers:  []Buffer{{Name: Named.StopSM, At: func(s *Stage) *string { return &s.StopSM }}},
	Read:     func(s *Stage, ops []ir.Op) { s.StopSM = name(ops[0].Out, 0) },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		return []ir.Op{op(ir.STOP, views(view(s.StopSM, TaskRows)), views(view(s.NextOnSM, TaskRows),
			view(f.StopIDs, upTo(ir.MaxStopIDs)), view(f.StopLast, firstOnly)))}
	},
})

// Emit hands the token to the host.
var Emit = declare(&Body{
	Name:     "emit",
	Codes:    []string{"COPY"},
	Place:    FirstSM,
	Unlisted: true,
	Read:     func(*Stage, []ir.Op) {},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		return []ir.Op{op(ir.COPY, views(view(f.Next, firstOnly)), views(view(s.NextOnSM, firstOnly)))}
	},
})

// JoinStep ends the step, and Arrive and Join are the halves of a barrier that ends a layer.
var (
	JoinStep = barrier("join_step", "")
	Arrive   = barrier("arrive", "barrier", "NOP")
	Join     = barrier("join", "barrier")
)

func barrier(name, header string, codes ...string) *Body {
	return declare(&Body{Name: name, Header: header, Codes: codes, Place: EverySM, Unlisted: true,
		Brief: name == "join_step",
		Read:  func(*Stage, []ir.Op) {},
		Ops:   func(*Facts, *Stage) []ir.Op { return []ir.Op{op(ir.NOP, nil, nil)} }})
}
