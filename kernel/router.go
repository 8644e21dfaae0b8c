package kernel

import "amkc/ir"

// Route is route of router.cuh: every SM chooses the experts of a token by the scores that the router's product has
// published, and keeps them for the stages of its experts. They are weighed by a softmax over all scores, or over those
// of the chosen ones, and the weights of those of all may be divided by their sum.
//
// The producer of the SM waits for the choice before it streams what is selected. It streams in the order of the
// stages, so that whatever a choice needs comes before that.
var Route = declare(&Body{
	Name:     "route",
	Header:   "router",
	Codes:    []string{"SOFTMAX TOPK", "SOFTMAX TOPK RENORMALISE", "TOPK SOFTMAX"},
	Place:    EverySM,
	Local:    true,
	NoPrompt: true,
	Keeps:    Choice,
	Buffers:  []Buffer{{Name: Named.Ids, At: ids}, {Name: Named.Shares, At: shares}},
	Fields: []Field{
		count("kExperts", "", func(s *Stage) *int { return &s.Experts }).
			wants("as many as its layers have", func(f *Facts, s *Stage) bool { return s.Experts == f.Experts }),
		count("kChosen", "of them, for a token", func(s *Stage) *int { return &s.Chosen }).
			wants("as many as a token has", func(f *Facts, s *Stage) bool { return s.Chosen == f.PerToken }),
		of("kOfChosen", "weighed by a softmax over the chosen", func(s *Stage) *bool { return &s.OfChosen }),
		of("kRenormalised", "their weights add up to 1", func(s *Stage) *bool { return &s.Renormalised }).
			wants("false where only the chosen are weighed", func(_ *Facts, s *Stage) bool {
				return !s.Renormalised || !s.OfChosen
			})},
	Args: []Arg{page(input)},
	Read: func(s *Stage, ops []ir.Op) {
		choose, last := find(ops, ir.TOPK), &ops[len(ops)-1]
		s.In, s.Ids, s.Shares = name(ops[0].In, 0), name(choose.Out, 1), name(last.Out, 0)
		s.OfChosen, s.Renormalised = ops[0].Code == ir.TOPK, last.Code == ir.RENORMALISE
		s.Chosen = choose.IntAt("k", 0, 1)
		if dims := ops[0].In[0].Dims; len(dims) > 0 {
			s.Experts = dims[len(dims)-1].Hi.At(0)
		}
		for _, o := range ops[:len(ops)-1] {
			s.Temps = append(s.Temps, name(o.Out, 0))
		}
	},
	Temps: func(s *Stage) []string {
		switch {
		case s.OfChosen:
			return []string{"%best"}
		case s.Renormalised:
			return []string{"%p", "%best"}
		}
		return []string{"%p"}
	},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		scores := view(s.In, upTo(s.Experts))
		ids, shares := view(s.Ids, ownSM, upTo(s.Chosen)), view(s.Shares, ownSM, upTo(s.Chosen))
		k := ir.IntParam("k", ir.Int(s.Chosen))
		if s.OfChosen {
			best := view(s.Temps[0])
			return []ir.Op{op(ir.TOPK, views(best, ids), views(scores), k),
				op(ir.SOFTMAX, views(shares), views(best))}
		}
		all := view(s.Temps[0])
		ops := []ir.Op{op(ir.SOFTMAX, views(all), views(scores)), op(ir.TOPK, views(shares, ids), views(all), k)}
		if s.Renormalised {
			best := view(s.Temps[1])
			ops[1].Out[0] = best
			ops = append(ops, op(ir.RENORMALISE, views(shares), views(best)))
		}
		return ops
	},
})

func ids(s *Stage) *string    { return &s.Ids }
func shares(s *Stage) *string { return &s.Shares }
