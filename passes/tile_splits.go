package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// splitPositions makes the variants: attention in one piece below split_from, and in splits from there on if there are
// SMs to spare for them, up to middle_until in fewer of them. Where it never sees as many rows before its own, because
// of a window, it stays in one piece.
//
// Both how a row is split and from where on follow from its position, whatever stands in a pass with it. So all rows of
// a pass are of one variant: there is none for passes that begin below split_from and end beyond it. Each variant of a
// step has one in every pass of a build, since launchers go by the positions at which those of a step end.
func splitPositions(p *ir.Program, v *ir.Variant) ([]ir.Variant, error) {
	last, rows := p.Model.MaxSeq-1, p.Pass.NumRows()
	from := knobs.SplitFrom.Of(&p.Config)
	seen, block := rowsSeen(v, last), chunkRows(p)
	kvHeads := p.Model.Most(ir.KVHeadsOf)
	splits := min(knobs.MaxSplits.Of(&p.Config), p.Target.SMs/kvHeads)
	if seen < last {
		splits = min(splits, (seen+block-1)/block) // more would find nothing to do
	}
	if splits <= 1 || from > seen {
		from = last + 1
	}
	if beyond := last + 1 - from; 0 < from && from < rows || 0 < beyond && beyond < rows {
		return nil, diag.Errorf(ir.CodeVariants, "pass tile", "attention is split from position %d of %d on, and a "+
			"pass of %d rows does not fit before it or from there on; want another attention.split_from, such as 0 or "+
			"%d, or fewer rows in a pass", from, last+1, rows, last+1)
	}
	var out []ir.Variant
	add := func(name string, lo, hi int, split *splitter) error {
		if lo > hi {
			return nil
		}
		own, err := newVariant(p, name, lo, hi, v, split)
		out = append(out, own)
		return err
	}
	if err := add("short", 0, from-rows, nil); err != nil {
		return nil, err
	}
	into := func(n int) *splitter {
		return &splitter{p: p, tokens: tokensOf(p.Pass), splits: n, most: splits, block: block}
	}
	until := knobs.MiddleUntil.Of(&p.Config)
	if few := knobs.MiddleSplits.Of(&p.Config); 1 < few && few < splits && from < until && until <= last {
		if min(until-from, last+1-until) < rows {
			return nil, diag.Errorf(ir.CodeVariants, "pass tile", "attention has %d splits at positions %d to %d, and "+
				"%d from there on to %d, and one of the two has no room for a pass of %d rows; want another "+
				"attention.middle_until, or fewer rows in a pass", few, from, until-1, splits, last, rows)
		}
		if err := add(knobs.Middle, from, until-rows, into(few)); err != nil {
			return nil, err
		}
		from = until
	}
	if err := add("long", from, last+1-rows, into(splits)); err != nil {
		return nil, err
	}
	if bad := knobs.CheckVariants(&p.Config, out); bad != nil {
		return nil, bad
	}
	return out, nil
}

// rowsSeen is how many rows of a cache attention looks at in the last position, its own not counted.
func rowsSeen(v *ir.Variant, last int) int {
	most := 0
	rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		if o := attention(st); o != nil {
			dims := o.In[1].Dims
			most = max(most, dims[len(dims)-3].Len(last))
		}
	})
	return most
}

// chunkRows is how many rows of the cache one chunk of the ring holds, K and V together: 16 to 128, in blocks of 16.
// Splits take chunks round robin.
func chunkRows(p *ir.Program) int {
	return ir.StateRows * max(1, min(8, knobs.ChunkBytes.Of(&p.Config)/p.Model.CacheBlock()))
}

// A splitter turns the attention stage of a layer into one over splits and one that combines them.
type splitter struct {
	p *ir.Program
	tokens
	splits int
	most   int // of any variant: they share a buffer
	block  int // rows that go to one split before it is the next one's turn
}

// stages are those of the stage in the iterations of a loop, or in none.
func (s *splitter) stages(whole *ir.Stage, loop *ir.Loop) []*ir.Stage {
	part, i := ir.NameIn(whole.Layer, partRole), ir.FirstIndex(whole, loop)
	buffers, facts := rewrite.NewBuffers(s.p), s.p.FactsOf(whole, loop)
	like := buffers.Family(attention(whole).Out[0].Buf, i)
	shape := []int{facts.Group(), facts.HeadDim + 2}
	if s.NumRows() > 1 {
		shape = append([]int{s.NumRows()}, shape...)
	}
	heads := s.NumSequences() * facts.KVHeads
	buffers.DeclareIn(ir.Buffer{Name: part, First: like.First, Count: like.Count, Step: like.Step,
		Kind: ir.Activation, DType: ir.F32, Shape: append([]int{heads * s.most}, shape...), Space: ir.GlobalScratch},
		rewrite.Indices(whole, loop))
	partial := &ir.Stage{Name: part, Role: partRole, Layer: whole.Layer, Kind: whole.Kind,
		Dist:  ir.Dist{Kind: ir.Tiled, Extent: heads * s.splits, Grain: 1},
		Waits: slices.Clone(whole.Waits), Signal: part, Ops: s.partialOps(whole, part, i, facts)}
	return []*ir.Stage{partial, s.combine(part, whole, facts)}
}

// attention returns the attention of a stage, or nil.
func attention(st *ir.Stage) *ir.Op {
	if i := slices.IndexFunc(st.Ops, func(o ir.Op) bool { return o.Code == ir.ATTENTION }); i >= 0 {
		return &st.Ops[i]
	}
	return nil
}

// partialOps are those of one unit: a split of one KV head. It reads what the whole stage reads for that head, and of
// the cache its share; the rows of this pass belong to the splits whose turn it is.
func (s *splitter) partialOps(whole *ir.Stage, part string, i int, facts *ir.LayerFacts) []ir.Op {
	head, share := spanA.Div(s.splits), spanA.Mod(s.splits)
	buffers := rewrite.NewBuffers(s.p)
	ops := rewrite.CloneStage(whole).Ops
	for k := range ops {
		o := &ops[k]
		for _, operand := range slices.Concat(o.In, o.Out) { // whose dimensions are those of the clone
			for d := range operand.Dims {
				r := &operand.Dims[d]
				r.Lo, r.Hi = r.Lo.With(ir.SpanA, head), r.Hi.With(ir.SpanA, head)
			}
			if b := buffers.Find(operand.Buf, i); b != nil && b.Kind == ir.KVCache {
				r := &operand.Dims[len(operand.Dims)-3]
				*r = ir.Share(r.Lo, r.Hi, s.block, share, s.splits)
			}
		}
		for i := range o.Params {
			o.Params[i].Int = o.Params[i].Int.With(ir.SpanA, head)
		}
		if o.Code == ir.ATTENTION {
			o.Out = []ir.Operand{view(part, s.results(ir.Index(spanA), upTo(s.NumRows()), upTo(facts.Group()),
				upTo(facts.HeadDim+2))...)}
			row := slices.IndexFunc(o.Params, func(p ir.Param) bool { return p.Key == "row" })
			at := o.Params[row]
			o.Params = append(slices.Delete(o.Params, row, row+1), ir.IntParam("flags", ir.Int(2)), at,
				ir.IntParam("block", ir.Int(s.block)), ir.IntParam("part", share),
				ir.IntParam("parts", ir.Int(s.splits)))
		}
	}
	return ops
}

// results are the dimensions of a view of partial results, which have one of rows if there are several.
func (s *splitter) results(units, rows, heads, elements ir.Range) []ir.Range {
	if s.NumRows() == 1 {
		return []ir.Range{units, heads, elements}
	}
	return []ir.Range{units, rows, heads, elements}
}

// combine sums the splits, each unit a piece of one query head of a token.
func (s *splitter) combine(part string, whole *ir.Stage, m *ir.LayerFacts) *ir.Stage {
	group := m.Group()
	width := pieceWidth(m.HeadDim, s.NumTokens()*m.Heads, s.p.Target.SMs)
	perHead := m.HeadDim / width
	token, e := ir.Int(0), spanA
	if n := m.Heads * perHead; s.NumTokens() > 1 {
		token, e = spanA.Div(n), spanA.Mod(n)
	}
	kvHead := e.Div(perHead * group)
	if s.NumSequences() > 1 {
		kvHead = token.Div(s.NumRows()).Mul(m.KVHeads).Add(kvHead)
	}
	row := ir.Index(token.Mod(s.NumRows()))
	units := ir.Span(kvHead.Mul(s.splits), kvHead.Add(ir.Int(1)).Mul(s.splits))
	headInGroup, piece := ir.Index(e.Div(perHead).Mod(group)), at(e.Mod(perHead), width, 0)
	if group == 1 {
		headInGroup = ir.Index(ir.Int(0))
	}
	if perHead == 1 {
		piece = upTo(m.HeadDim)
	}
	out := []ir.Range{at(e, width, 0)}
	if s.NumTokens() > 1 {
		out = append([]ir.Range{ir.Index(token)}, out...)
	}
	sums := ir.Span(ir.Int(m.HeadDim), ir.Int(m.HeadDim+2))
	return &ir.Stage{Name: whole.Name, Role: whole.Role, Layer: whole.Layer, Kind: whole.Kind,
		Dist:  ir.Dist{Kind: ir.Tiled, Extent: s.NumTokens() * m.Heads * perHead, Grain: 1},
		Waits: []ir.Wait{{Counter: part}}, Signal: whole.Signal,
		Ops: []ir.Op{{Code: ir.AttentionCombine, Out: []ir.Operand{view(attention(whole).Out[0].Buf, out...)},
			In: []ir.Operand{view(part, s.results(units, row, headInGroup, piece)...),
				view(part, s.results(units, row, headInGroup, sums)...)},
			Params: []ir.Param{ir.IntParam("splits", ir.Int(s.splits))}}}}
}

// pieceWidth is how many elements of a head one combining unit takes: the fewest, in eights, that leave no SM with a
// second unit, or else the most. A head that is not a multiple of 8 is not cut.
func pieceWidth(headDim, heads, sms int) int {
	if headDim%8 != 0 {
		return headDim
	}
	for w := 8; w < headDim; w += 8 {
		if headDim%w == 0 && heads*(headDim/w) <= sms {
			return w
		}
	}
	return headDim
}
