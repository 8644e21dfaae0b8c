package kernel

import "amkc/ir"

// Route is route of router.cuh: every SM chooses the experts of a token by the scores that the router's product has
// published, and keeps them for the stages of its experts. Scores become a softmax over all or sigmoids, or are as they
// are, and the chosen are then weighed by a softmax over these. A bias may be added for the choice alone, which may be
// from the best groups of experts; the weights may be divided by their sum and multiplied. The score after those of the
// experts makes the gate of the expert that every token has.
//
// The producer of the SM waits for the choice before it streams what is selected. It streams in the order of the
// stages, so that whatever a choice needs comes before that.
var Route = declare(&Body{
	Name:   "route",
	Header: "router",
	Codes:  routes(),
	Place:  EverySM,
	Local:  true,
	Keeps:  Choice,
	Buffers: []Buffer{{Name: Named.Ids, At: ids}, {Name: Named.Shares, At: shares}, {Name: Named.Gate, At: gate},
		{Name: "L{i}.choosing.weight", At: choosing, Exact: true,
			Shape: func(f *Facts) []int { return []int{f.Experts} }}},
	Fields: []Field{holds, readsHeld,
		count("kExperts", "", func(s *Stage) *int { return &s.Experts }).
			wants("as many as its layers have", func(f *Facts, s *Stage) bool { return s.Experts == f.Experts }),
		count("kChosen", "of them, for a token", func(s *Stage) *int { return &s.Chosen }).
			wants("as many as a token has", func(f *Facts, s *Stage) bool { return s.Chosen == f.PerToken }),
		of("kOfChosen", "weighed by a softmax over the chosen", func(s *Stage) *bool { return &s.OfChosen }).
			wants("false where scores are sigmoids", func(_ *Facts, s *Stage) bool {
				return !s.OfChosen || !s.Sigmoid
			}),
		of("kRenormalised", "their weights add up to 1", func(s *Stage) *bool { return &s.Renormalised }).
			wants("false where only the chosen are weighed", func(_ *Facts, s *Stage) bool {
				return !s.Renormalised || !s.OfChosen
			}),
		of("kSigmoid", "scores are sigmoids", sigmoid).unless(false),
		of("kBiased", "a bias is added for the choice", biased).unless(false).
			wants("false where the scores are as they are", func(_ *Facts, s *Stage) bool {
				return !s.Biased || !s.OfChosen
			}),
		count("kGroups", "of experts", func(s *Stage) *int { return &s.Groups }).unless(1).atMost(32).
			wants("groups of as many experts, at least two", func(_ *Facts, s *Stage) bool {
				return s.Groups == 1 || s.Experts%s.Groups == 0 && s.Experts/s.Groups > 1 && !s.OfChosen
			}),
		count("kTopGroups", "that are chosen from", func(s *Stage) *int { return &s.TopGroups }).unless(1).
			wants("enough for a token, and at most all", func(_ *Facts, s *Stage) bool {
				return s.TopGroups <= s.Groups && s.Chosen <= s.Experts/s.Groups*s.TopGroups
			}),
		of("kExtra", "added to the sum of the weights", func(s *Stage) *float64 { return &s.Extra }).unless(0.0),
		of("kLeast", "the sum at least", func(s *Stage) *float64 { return &s.Least }).unless(0.0),
		of("kScale", "of the weights", scale).opens(func(s *Stage) *bool { return &s.Scaled }),
		of("kGated", "makes a gate too", func(s *Stage) *bool { return &s.Gated }).unless(false).
			wants("as its layers have", func(f *Facts, s *Stage) bool { return s.Gated == (f.SharedGates > 0) })},
	Args: []Arg{page(input), address(choosing).when(func(s *Stage) bool { return s.Biased })},
	Read: func(s *Stage, ops []ir.Op) {
		if last := len(ops) - 1; ops[last].Code == ir.SIGMOID && last > 0 {
			s.Gated, s.Gate, ops = true, name(ops[last].Out, 0), ops[:last]
		}
		choose, sum, last := find(ops, ir.TOPK), find(ops, ir.RENORMALISE), &ops[len(ops)-1]
		s.In, s.Ids, s.Shares = name(ops[0].In, 0), name(choose.Out, 1), name(last.Out, 0)
		s.Choosing = name(choose.In, 1)
		s.Sigmoid, s.OfChosen = ops[0].Code == ir.SIGMOID, ops[0].Code == ir.TOPK
		s.Chosen, s.Biased = choose.IntAt("k", 0, 1), s.Choosing != ""
		s.Groups, s.TopGroups = choose.IntAt("groups", 0, 1), choose.IntAt("top_groups", 0, 1)
		s.Renormalised = sum.In != nil
		s.Extra, s.Least = sum.FloatOr("extra", 0), sum.FloatOr("least", 0)
		s.Scaled, s.Scale = last.Code == ir.MUL, last.FloatOr("scale", 1)
		if dims := ops[0].In[0].Dims; len(dims) > 0 {
			s.Experts = dims[len(dims)-1].Hi.At(0)
		}
		for _, o := range ops[:len(ops)-1] {
			s.Temps = append(s.Temps, name(o.Out, 0))
		}
	},
	Temps: func(s *Stage) (temps []string) {
		if !s.OfChosen {
			temps = []string{"%p"}
		}
		if s.OfChosen || s.Renormalised || s.Scaled {
			temps = append(temps, "%best")
		}
		if (s.OfChosen || s.Renormalised) && s.Scaled {
			temps = append(temps, "%shares")
		}
		return temps
	},
	Ops: func(f *Facts, s *Stage) (ops []ir.Op) {
		x := view(s.In, upTo(s.Experts))
		add := func(code ir.Opcode, in []ir.Operand, params ...ir.Param) {
			x = view("")
			if len(ops) < len(s.Temps) {
				x = view(s.Temps[len(ops)])
			}
			ops = append(ops, op(code, views(x), in, params...))
		}
		switch {
		case s.Sigmoid:
			add(ir.SIGMOID, views(x))
		case !s.OfChosen:
			add(ir.SOFTMAX, views(x))
		}
		in, params := views(x), []ir.Param{ir.IntParam("k", ir.Int(s.Chosen))}
		if s.Biased {
			in = append(in, view(s.Choosing, upTo(s.Experts)))
		}
		if s.Groups > 1 {
			params = append(params, ir.IntParam("groups", ir.Int(s.Groups)),
				ir.IntParam("top_groups", ir.Int(s.TopGroups)))
		}
		add(ir.TOPK, in, params...)
		choose := &ops[len(ops)-1]
		choose.Out = append(choose.Out, view(s.Ids, ownSM, upTo(s.Chosen)))
		switch {
		case s.OfChosen:
			add(ir.SOFTMAX, views(x))
		case s.Renormalised:
			add(ir.RENORMALISE, views(x), positive("extra", s.Extra, "least", s.Least)...)
		}
		if s.Scaled {
			add(ir.MUL, views(x), ir.FloatParam("scale", s.Scale))
		}
		ops[len(ops)-1].Out[0] = view(s.Shares, ownSM, upTo(s.Chosen))
		if s.Gated {
			score := view(s.In, ir.Span(ir.Int(s.Experts), ir.Int(s.Experts+1)))
			ops = append(ops, op(ir.SIGMOID, views(view(s.Gate, ownSM, upTo(1))), views(score)))
		}
		return ops
	},
})

// routes are the sequences of ops that a router may have.
func routes() (codes []string) {
	for _, choose := range []string{"SOFTMAX TOPK", "SOFTMAX TOPK RENORMALISE", "SIGMOID TOPK",
		"SIGMOID TOPK RENORMALISE", "TOPK SOFTMAX"} {
		codes = append(codes, choose, choose+" MUL", choose+" SIGMOID", choose+" MUL SIGMOID")
	}
	return codes
}

// positive are the parameters, each a key and its value, that are not 0.
func positive(pairs ...any) (params []ir.Param) {
	for i := 0; i < len(pairs); i += 2 {
		if value := pairs[i+1].(float64); value > 0 {
			params = append(params, ir.FloatParam(pairs[i].(string), value))
		}
	}
	return params
}

func ids(s *Stage) *string      { return &s.Ids }
func shares(s *Stage) *string   { return &s.Shares }
func gate(s *Stage) *string     { return &s.Gate }
func sigmoid(s *Stage) *bool    { return &s.Sigmoid }
func biased(s *Stage) *bool     { return &s.Biased }
func choosing(s *Stage) *string { return &s.Choosing }
