package kernel

import (
	"slices"

	"amkc/ir"
)

// Combine is combine.cuh. Unit a is Width elements of the attention vector of a token, all of one head. Units are
// ordered by token. Splits are ordered by sequence, and each has a row for every row of its sequence.
var Combine = declare(&Body{
	Name:  "combine",
	Codes: []string{"ATTENTION_COMBINE"},
	Place: ByUnit,
	// For each split of an element three words in three loads: its value, the maximum and the sum. The lanes of a warp
	// hold the splits of a few elements: a sector of 32 bytes serves two of them.
	Polls: 3 * 32 / 2,
	Fields: []Field{units, rotation, rotationStep, tasks,
		count("kSplits", "", func(s *Stage) *int { return &s.Splits }),
		count("kWidth", "elements of a unit", func(s *Stage) *int { return &s.Width }).
			wants("pieces that a head is cut into", func(f *Facts, s *Stage) bool {
				return s.Width > 0 && f.HeadDim%s.Width == 0
			}),
		ownHeads, ownKVHeads, ownHeadDim},
	Args: []Arg{page(input), page(output)},
	Read: func(s *Stage, ops []ir.Op) {
		c := &ops[0]
		s.In, s.Out, s.Splits = name(c.In, 0), name(c.Out, 0), c.IntAt("splits", 0, 1)
	},
	Derive: func(f *Facts, s *Stage) { s.Width = f.Pass.NumTokens() * f.Heads * f.HeadDim / max(1, s.Units) },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		perHead := max(1, f.HeadDim/max(1, s.Width))
		perToken, rows := f.Heads*perHead, f.Pass.NumRows()
		unit := spanA
		var token, partial []ir.Range
		if f.Pass.NumTokens() > 1 {
			unit, token = spanA.Mod(perToken), []ir.Range{ir.Index(spanA.Div(perToken))}
		}
		kvHead := unit.Div(perHead * f.Group())
		if f.Pass.NumSequences() > 1 {
			kvHead = spanA.Div(perToken).Div(rows).Mul(f.KVHeads).Add(kvHead)
		}
		if rows > 1 {
			partial = []ir.Range{ir.Index(spanA.Div(perToken).Mod(rows))}
		}
		splits := ir.Span(kvHead.Mul(s.Splits), kvHead.Add(ir.Int(1)).Mul(s.Splits))
		inGroup, elements := ir.Index(unit.Div(perHead).Mod(f.Group())), block(unit.Mod(perHead), s.Width, 0)
		if f.Group() == 1 {
			inGroup = firstOnly
		}
		if perHead == 1 {
			elements = upTo(f.HeadDim)
		}
		of := func(elements ir.Range) ir.Operand {
			return view(s.In, slices.Concat([]ir.Range{splits}, partial, []ir.Range{inGroup, elements})...)
		}
		return []ir.Op{op(ir.AttentionCombine, views(view(s.Out, append(token, block(unit, s.Width, 0))...)),
			views(of(elements), of(ir.Span(ir.Int(f.HeadDim), ir.Int(f.HeadDim+2)))),
			ir.IntParam("splits", ir.Int(s.Splits)))}
	},
})
