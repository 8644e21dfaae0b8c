package kernel

import "amkc/ir"

// Attend is Unit of attention.cuh. Unit a is split a % Splits of kv head a / Splits, and reads every Splits-th chunk of
// its rows, from the first one in the window on. The k and v rows of the step are read from the exchange, and the unit
// whose share contains them appends them. Sinks are counted with split 0. With NormedHeads, q and k are normalised
// first, with one eps: each head separately, or all of q and all of k, with weights per head or shared, followed by a
// rotation or not. With NormsValues, so is the head of v, without weights.
var Attend = declare(&Body{
	Name: "attend",
	Codes: []string{"ATTENTION_TILE KV_APPEND KV_APPEND",
		"RMSNORM RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND",
		"RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND",
		"RMSNORM RMSNORM RMSNORM ATTENTION_TILE KV_APPEND KV_APPEND",
		"RMSNORM RMSNORM RMSNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND",
		"LAYERNORM LAYERNORM ATTENTION_TILE KV_APPEND KV_APPEND",
		"LAYERNORM LAYERNORM ROPE ROPE ATTENTION_TILE KV_APPEND KV_APPEND"},
	Place:   ByUnit,
	Streams: CacheRows,
	Buffers: []Buffer{
		{Name: Named.Cache, At: func(s *Stage) *string { return &s.Cache }, State: (*ir.LayerFacts).Attended},
		{Name: "L{i}.q_norm.weight", At: qNorm, Paired: true,
			Shape: func(f *Facts) []int { return []int{f.gains(f.Heads)} }},
		{Name: "L{i}.k_norm.weight", At: kNorm, Paired: true,
			Shape: func(f *Facts) []int { return []int{f.gains(f.KVHeads)} }},
		{Name: "L{i}.q_norm.bias", At: qShift}, {Name: "L{i}.k_norm.bias", At: kShift},
		{Name: "L{i}.sinks", At: sinks, Shape: func(f *Facts) []int { return []int{f.Heads} }}},
	Vectors: []Vector{
		{Name: "L{i}.attn", Roles: []string{"attn"}, Shape: func(f *Facts) []int { return []int{f.QueryRows()} }},
		{Name: "L{i}.part", Roles: []string{"part"}, Exact: true,
			Shape: func(f *Facts) []int { return []int{f.KVHeads * f.Splits, f.Group(), f.HeadDim + 2} }}},
	Fields: []Field{units, rotation, rotationStep, tasks, holds,
		count("kSplits", "splits of a kv head's rows", func(s *Stage) *int { return &s.Splits }),
		count("kShareRows", "cache rows per chunk; splits take chunks round robin",
			func(s *Stage) *int { return &s.ShareRows }).
			wants("blocks of 16 rows that fit a ring slot: all that do, at most 8, where a unit has all rows",
				func(f *Facts, s *Stage) bool {
					if s.Splits == 1 {
						return s.ShareRows == wholeShare(f)
					}
					return s.ShareRows%16 == 0 && s.ShareRows/16 <= f.CacheBlocks
				}),
		of("kWindowRows", "rows that a position sees, including its own; 0: all",
			func(s *Stage) *int { return &s.Window }),
		of("kScale", "", scale),
		of("kScoreCap", "bound of scaled scores; 0: none", func(s *Stage) *float64 { return &s.ScoreCap }),
		of("kNormEps", "of the norms of q and k", func(s *Stage) *float64 { return &s.Eps }).opens(normed),
		of("kNormUnitOffset", "times 1 + weight", func(s *Stage) *bool { return &s.UnitOffset }).when(normed),
		of("kWholeNorm", "one of all of q and one of all of k",
			func(s *Stage) *bool { return &s.WholeNorm }).when(normed).
			wants("it with kOwnGains and without kNormCentred alone", func(_ *Facts, s *Stage) bool {
				return !s.WholeNorm || s.OwnGains && !s.Centred
			}),
		of("kNormCentred", "the mean is taken off", func(s *Stage) *bool { return &s.Centred }).when(normed),
		of("kNormShifted", "a bias is added", func(s *Stage) *bool { return &s.Shifted }).when(normed).
			wants("it with kNormCentred alone", func(_ *Facts, s *Stage) bool { return !s.Shifted || s.Centred }),
		of("kOwnGains", "each head has weights of its own", func(s *Stage) *bool { return &s.OwnGains }).
			when(normed),
		of("kNormsValues", "each head of v on its own, without weights",
			func(s *Stage) *bool { return &s.NormsValues }).when(normed).unless(false).
			wants("it without kWholeNorm and kNormCentred alone", func(_ *Facts, s *Stage) bool {
				return !s.NormsValues || !s.WholeNorm && !s.Centred
			}),
		of("kRotates", "q and k, once they are normalised", rotates).when(normed),
		of("kAngles", "table that q and k rotate by", func(s *Stage) *int { return &s.AngleTable }).when(rotates),
		ownHeads, ownKVHeads, ownHeadDim},
	Reader: func(s *Stage) string {
		if s.Normed {
			return "NormedHeads"
		}
		return "PlainHeads"
	},
	Args: []Arg{page(input).inside(),
		address(qNorm).inside().when(func(s *Stage) bool { return s.Normed }),
		address(kNorm).inside().when(func(s *Stage) bool { return s.Normed }),
		address(qShift).inside().when(func(s *Stage) bool { return s.Shifted }),
		address(kShift).inside().when(func(s *Stage) bool { return s.Shifted }),
		page(output),
		address(sinks).optional()},
	Read: func(s *Stage, ops []ir.Op) {
		a, n := find(ops, ir.ATTENTION), ops[:len(ops)-3]
		s.In, s.Out, s.Cache, s.Sinks = name(ops[0].In, 0), name(a.Out, 0), name(a.In, 1), name(a.In, 5)
		s.Splits, s.ShareRows, s.Window = a.IntAt("parts", 0, 1), a.IntAt("block", 0, 0), a.Window()
		s.Scale, s.ScoreCap = a.FloatOr("scale", 1), a.FloatOr("cap", 0)
		if s.Normed = len(n) > 0; !s.Normed {
			return
		}
		q, k := &n[0], &n[1]
		readNorm(s, q)
		s.QNorm, s.KNorm = name(q.In, 1), name(k.In, 1)
		s.WholeNorm = !s.Centred && len(q.In) == 3
		if s.Shifted = s.Centred && len(q.In) == 3 && len(k.In) == 3; s.Shifted {
			s.QShift, s.KShift = name(q.In, 2), name(k.In, 2)
		}
		if len(q.In) > 1 && len(q.In[1].Dims) == 1 {
			_, fixed := q.In[1].Dims[0].Lo.IsConst()
			s.OwnGains = !fixed
		}
		turns := n[2:]
		if s.NormsValues = len(turns)%2 == 1; s.NormsValues {
			turns = turns[1:]
		}
		if s.Rotates = len(turns) > 0; s.Rotates {
			s.Angles.Frequencies = name(turns[0].In, 1)
		}
	},
	Derive: func(f *Facts, s *Stage) {
		if s.Splits == 1 {
			s.ShareRows = wholeShare(f)
		}
	},
	Ops: func(f *Facts, s *Stage) []ir.Op {
		hd, group := f.HeadDim, f.Group()
		head, to := spanA, view(s.Out, block(spanA, group*hd, 0))
		past, now := ir.Span(windowStart(s.Window), position), ir.Index(position)
		row, limit := ir.IntParam("row", position), []ir.Param(nil)
		params := []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(group)),
			ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", s.Scale)}
		if s.ScoreCap != 0 {
			limit = []ir.Param{ir.FloatParam("cap", s.ScoreCap)}
		}
		if s.Splits > 1 {
			share := spanA.Mod(s.Splits)
			head, to = spanA.Div(s.Splits), view(s.Out, ir.Index(spanA), upTo(group), upTo(hd+2))
			past = ir.Share(past.Lo, past.Hi, s.ShareRows, share, s.Splits)
			now = ir.Share(now.Lo, now.Hi, s.ShareRows, share, s.Splits)
			params = append(append(params, limit...), ir.IntParam("flags", ir.Int(2)), row,
				ir.IntParam("block", ir.Int(s.ShareRows)), ir.IntParam("part", share),
				ir.IntParam("parts", ir.Int(s.Splits)))
		} else {
			params = append(append(params, row), limit...)
		}
		cached := func(r ir.Range, isValue int) ir.Operand {
			return view(s.Cache, ir.Index(head), r, ir.Index(ir.Int(isValue)), upTo(hd))
		}
		q, k := view(s.In, block(head, group*hd, 0)), view(s.In, block(head, hd, f.QueryRows()))
		v := view(s.In, block(head, hd, f.QueryRows()+f.KeyRows()))
		var heads []ir.Op
		if s.Normed {
			heads, q, k, v = normedHeads(f, s, head, q, k, v)
		}
		in := views(q, cached(past, 0), cached(past, 1), k, v)
		if s.Sinks != "" {
			in = append(in, view(s.Sinks, block(head, group, 0)))
		}
		return append(heads,
			op(ir.ATTENTION, views(to), in, params...),
			op(ir.KVAppend, views(cached(now, 0)), views(k)),
			op(ir.KVAppend, views(cached(now, 1)), views(v)))
	},
})

// wholeShare is the number of cache rows of a chunk when a unit has all rows: as many blocks as fit a slot of the ring,
// one for each warp at most.
func wholeShare(f *Facts) int { return 16 * max(1, min(Warps, f.CacheBlocks)) }

func qNorm(s *Stage) *string  { return &s.QNorm }
func kNorm(s *Stage) *string  { return &s.KNorm }
func qShift(s *Stage) *string { return &s.QShift }
func kShift(s *Stage) *string { return &s.KShift }
func sinks(s *Stage) *string  { return &s.Sinks }

func normed(s *Stage) *bool  { return &s.Normed }
func rotates(s *Stage) *bool { return &s.Rotates }

// windowStart is the first row that a position sees.
func windowStart(window int) ir.Expr {
	if window == 0 {
		return ir.Int(0)
	}
	return ir.Int(0).Max(position.Sub(ir.Int(window - 1)))
}

// normedHeads are the norms and rotations of the heads of a unit, and what attention reads of them.
func normedHeads(f *Facts, s *Stage, head ir.Expr, q, k, v ir.Operand) (ops []ir.Op, toQ, toK, toV ir.Operand) {
	size, params := ir.IntParam("head_dim", ir.Int(f.HeadDim)), normParams(s)
	if !s.WholeNorm {
		params = append(params, size)
	}
	norm := func(out string, x ir.Operand, heads int, gain, shift string, whole ir.Range) {
		weights := upTo(f.HeadDim)
		if s.OwnGains {
			weights = block(head, heads*f.HeadDim, 0)
		}
		o := op(normCode(s), views(view(out)), views(x, view(gain, weights)), params...)
		if s.WholeNorm {
			o.In = append(o.In, view(x.Buf, whole))
		}
		if s.Shifted {
			o.In = append(o.In, view(shift, weights))
		}
		ops = append(ops, o)
	}
	norm("%qn", q, f.Group(), s.QNorm, s.QShift, upTo(f.QueryRows()))
	norm("%kn", k, 1, s.KNorm, s.KShift, ir.Span(ir.Int(f.QueryRows()), ir.Int(f.QueryRows()+f.KeyRows())))
	if s.NormsValues {
		ops = append(ops, op(ir.RMSNORM, views(view("%vn")), views(v), ir.FloatParam("eps", s.Eps), size))
		v = view("%vn")
	}
	if !s.Rotates {
		return ops, view("%qn"), view("%kn"), v
	}
	for _, x := range []string{"%q", "%k"} {
		ops = append(ops, op(ir.ROPE, views(view(x)),
			views(view(x+"n"), view(s.Angles.Frequencies, upTo(s.Angles.Pairs))),
			append([]ir.Param{size, ir.IntParam("order", ir.Int(1)), ir.IntParam("pos", position)},
				s.Angles.Scale...)...))
	}
	return ops, view("%q"), view("%k"), v
}
