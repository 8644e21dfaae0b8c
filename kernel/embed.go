package kernel

import "amkc/ir"

// Embed is embed of step.cuh: it stores rows of the token's embedding, optionally times Scale, or the host's embedding
// instead, in the residual and publishes them. With a table of positions, row pos + PositionOffset of it is added
// first.
var Embed = declare(&Body{
	Name:   "embed",
	Codes:  []string{"EMBED", "EMBED ADD"},
	Is:     func(ops []ir.Op) bool { return !ofEverySM(ops) },
	Begins: true,
	Keeps:  OwnRows,
	Buffers: []Buffer{{Name: Named.Residual, At: func(s *Stage) *string { return &s.Residual }},
		{Name: "embed.weight", At: table, Shape: func(f *Facts) []int { return []int{f.Vocab, f.Hidden} }},
		{Name: "positions.weight", At: positionTable,
			Shape: func(f *Facts) []int { return []int{f.Positions, f.Hidden} }}},
	Vectors: []Vector{{Name: "L{i}.x", Roles: []string{"embed", "down", "mlp_add", "experts_down"}, Shape: hidden}},
	Fields: []Field{rows, grain, rotation, rotationStep, tasks, tableScale,
		count("kPositions", "rows of the table", func(s *Stage) *int { return &s.Positions }).opens(placed).
			atMost(1 << 24),
		of("kPositionOffset", "its row for position 0", func(s *Stage) *int { return &s.PositionOffset }).
			when(placed)},
	Args: []Arg{address(table),
		address(positionTable).when(func(s *Stage) bool { return s.Placed }),
		page(output)},
	Read: func(s *Stage, ops []ir.Op) {
		last := &ops[len(ops)-1]
		readTable(s, ops)
		if s.Placed = len(ops) > 1; s.Placed {
			s.PositionTable, s.Temps = name(last.In, 1), []string{name(ops[0].Out, 0)}
			if len(last.In) > 1 && len(last.In[1].Dims) == 2 {
				s.PositionOffset = last.In[1].Dims[0].Lo.At(0)
			}
		}
		s.Residual, s.Out = name(last.Out, 0), name(last.Out, 1)
	},
	Temps: func(*Stage) []string { return []string{"%e"} },
	Ops: func(f *Facts, s *Stage) []ir.Op {
		out := views(view(s.Residual, TaskRows), view(s.Out, TaskRows))
		embed := lookUp(f, s, TaskRows)
		if !s.Placed {
			embed.Out = out
			return []ir.Op{embed}
		}
		embed.Out = views(view(s.Temps[0]))
		row := ir.Index(position.Add(ir.Int(s.PositionOffset)))
		return []ir.Op{embed, op(ir.ADD, out, views(embed.Out[0], view(s.PositionTable, row, TaskRows)))}
	},
})

// EmbedReplicated is embed_replicated of replicated.cuh: every SM reads the whole row of the token, and stores it in
// float32 and rounded.
var EmbedReplicated = declare(&Body{
	Name:   "embed_replicated",
	Codes:  []string{"EMBED", "EMBED ADD"},
	Is:     ofEverySM,
	Begins: true,
	Keeps:  WholeResidual,
	Place:  EverySM,
	Local:  true,
	Fields: []Field{tableScale},
	Args:   []Arg{address(table)},
	Read: func(s *Stage, ops []ir.Op) {
		readTable(s, ops)
		s.Residual, s.Rounded = name(ops[0].Out, 0), name(ops[0].Out, 1)
	},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		embed := lookUp(f, s, upTo(f.Hidden))
		embed.Out = ownResidual(f, s)
		return []ir.Op{embed}
	},
})

func table(s *Stage) *string         { return &s.Table }
func positionTable(s *Stage) *string { return &s.PositionTable }
func placed(s *Stage) *bool          { return &s.Placed }

// ofEverySM reports whether an embedding is looked up by every SM: its result has a row for each.
func ofEverySM(ops []ir.Op) bool {
	if len(ops[0].Out) == 0 || len(ops[0].Out[0].Dims) != 2 {
		return false
	}
	_, whole := ops[0].Out[0].Dims[1].Lo.IsConst() // and not rows of a task, of each token
	return whole
}

func readTable(s *Stage, ops []ir.Op) {
	e := &ops[0]
	s.Token, s.Table, s.Scaled, s.Scale = name(e.In, 0), name(e.In, 1), e.Has("scale"), e.FloatOr("scale", 1)
}

// lookUp is what both compute of some elements of a row.
func lookUp(f *Facts, s *Stage, of ir.Range) ir.Op {
	e := op(ir.EMBED, nil, views(view(s.Token, firstOnly), view(s.Table, upTo(f.Vocab), of), view(f.Embeddings, of)))
	if s.Scaled {
		e.Params = []ir.Param{ir.FloatParam("scale", s.Scale)}
	}
	return e
}

// ownResidual is the residual of the SM of a task and its rounding, where every SM has all of it.
func ownResidual(f *Facts, s *Stage) []ir.Operand {
	own := []ir.Range{ir.Index(spanA), upTo(f.Hidden)}
	return views(view(s.Residual, own...), view(s.Rounded, own...))
}
