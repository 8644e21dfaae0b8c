package kernel

import "amkc/ir"

// Convolve is convolve of convolution.cuh: a gated short convolution. Unit a is a group of Width channels of a
// sequence. B, C and x of the step are read from the exchange, one vector after another. B·x is convolved with those of
// the positions before, which are rows of the layer's state, and C multiplies the result. The unit appends its own B·x.
// It reads rows of the steps before as soon as its SM is in the stage: all consumers have passed the join of those.
var Convolve = declare(&Body{
	Name:     "convolve",
	Header:   "convolution",
	Codes:    []string{"MUL SHORT_CONV MUL KV_APPEND"},
	Place:    ByUnit,
	NoPrompt: true,
	Buffers: []Buffer{
		{Name: Named.Inputs, At: func(s *Stage) *string { return &s.Inputs }, State: (*ir.LayerFacts).Convolved},
		{Name: "L{i}.short_conv.weight", At: taps,
			Shape: func(f *Facts) []int { return []int{f.Channels * f.Taps} }},
		{Name: "L{i}.short_conv.bias", At: tapsBias, Shape: func(f *Facts) []int { return []int{f.Channels} }},
		{Name: "L{i}.bcx.weight", Shape: func(f *Facts) []int { return []int{3 * f.Channels, f.Hidden} }},
		{Name: "L{i}.conv_out.weight", Shape: func(f *Facts) []int { return []int{f.Hidden, f.Channels} }}},
	Vectors: []Vector{
		{Name: "L{i}.bcx", Roles: []string{"bcx"}, Shape: func(f *Facts) []int { return []int{3 * f.Channels} }},
		{Name: "L{i}.short_conv", Roles: []string{"short_conv"},
			Shape: func(f *Facts) []int { return []int{f.Channels} }}},
	Norms: map[string]string{"bcx": "input_norm"},
	Fields: []Field{units, rotation, rotationStep, tasks,
		count("kWidth", "channels of a unit", func(s *Stage) *int { return &s.Width }).
			wants("as many as a row of its state has", func(f *Facts, s *Stage) bool {
				return s.Width == f.Convolved().Elements && s.Units == f.Pass.NumSequences()*f.Convolved().Heads
			}),
		count("kTaps", "positions that it sees", func(s *Stage) *int { return &s.Taps }).atMost(MaxTaps).
			wants("as many as its layers have", func(f *Facts, s *Stage) bool { return s.Taps == f.Taps })},
	Args: []Arg{page(input), address(taps), page(output), address(tapsBias).optional()},
	Read: func(s *Stage, ops []ir.Op) {
		y := &ops[1]
		s.In, s.Inputs, s.TapsOf, s.TapsBias = name(ops[0].In, 0), name(y.In, 1), name(y.In, 2), name(y.In, 3)
		s.Taps, s.Out = y.IntAt("taps", 0, 1), name(ops[2].Out, 0)
	},
	Derive: func(f *Facts, s *Stage) { s.Width = f.Convolved().Elements },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		n, x, y := s.Width, view("%x"), view("%y")
		rows := func(r ir.Range) ir.Operand { return view(s.Inputs, ir.Index(spanA), r, firstOnly, upTo(n)) }
		in := func(k int) ir.Operand { return view(s.In, block(spanA, n, k*f.Channels)) }
		conv := op(ir.ShortConv, views(y),
			views(x, rows(ir.Span(windowStart(s.Taps), position)), view(s.TapsOf, block(spanA, n*s.Taps, 0))),
			ir.IntParam("taps", ir.Int(s.Taps)))
		if s.TapsBias != "" {
			conv.In = append(conv.In, view(s.TapsBias, block(spanA, n, 0)))
		}
		return []ir.Op{op(ir.MUL, views(x), views(in(2), in(0))), conv,
			op(ir.MUL, views(view(s.Out, block(spanA, n, 0))), views(y, in(1))),
			op(ir.KVAppend, views(rows(ir.Index(position))), views(x))}
	},
})

// MaxTaps bounds the positions that a convolution sees: a thread keeps what it convolves of them in registers.
const MaxTaps = 8

func taps(s *Stage) *string     { return &s.TapsOf }
func tapsBias(s *Stage) *string { return &s.TapsBias }

// States are the buffers of what a stage keeps from step to step.
func (b *Body) States(s *Stage) (names []string) {
	for i := range b.Buffers {
		if b.Buffers[i].State != nil || b.Buffers[i].Keeps != nil {
			names = append(names, *b.Buffers[i].At(s))
		}
	}
	return names
}
