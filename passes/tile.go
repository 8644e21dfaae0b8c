package passes

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// Tile is the pass that cuts stages into grains: rows of a matrix into tiles of 8, attention into KV heads × context
// splits. Short and long contexts differ in their splits, so that this pass makes a variant for each interval of
// positions.
var Tile = Pass{
	Name:  "tile",
	Doc:   "cut stages into grains, and attention into units, with a variant for each interval of positions",
	After: []string{"fuse"},
	Run:   runTile,
}

func runTile(s *State) error {
	p := s.Program
	switch {
	case p.Target == nil:
		return diag.Errorf(codeTarget, "pass tile", "the number of context splits depends on the SMs; want a target")
	case len(p.Variants) != 1:
		return diag.Errorf(codeOrder, "pass tile", "%d variants; want the one that fuse leaves", len(p.Variants))
	}
	for i := range p.Buffers {
		setTileLayout(p, &p.Buffers[i])
	}
	v := &p.Variants[0]
	err := eachBody(v, func(stages []*ir.Stage, _ *ir.Loop) ([]*ir.Stage, error) { return tileStages(p, stages) })
	if err != nil {
		return err
	}
	if p.Variants, err = splitPositions(p, v); err != nil {
		return err
	}
	prune(p)
	return nil
}

// setTileLayout gives matrices and caches the layout that tiles of them are streamed in.
func setTileLayout(p *ir.Program, b *ir.Buffer) {
	switch {
	case b.Layout.Kind == ir.Tile8x128: // quantised
	case b.Kind == ir.Weight && len(b.Shape) == 2:
		b.Layout.Kind = ir.Tile8x32
	case b.ScaledRows() && p.Target.RunsOnTensorCores(p.Model.Activations): // integers are multiplied as these
		b.Layout.Kind = ir.KVBlock16
	case b.ScaledRows():
	case b.Kind == ir.KVCache && p.Target.RunsOnTensorCores(b.DType):
		b.Layout.Kind = ir.KVBlock16
	case b.Kind == ir.KVCache:
		b.Layout.Kind = ir.KVRows16
	}
}

// tileStages cuts every whole stage of several rows into grains. The head's argmax falls apart into one over each
// grain, and a stage of its own over their results.
func tileStages(p *ir.Program, stages []*ir.Stage) ([]*ir.Stage, error) {
	grain := knobs.GrainRows.Of(&p.Config)
	var out []*ir.Stage
	for _, st := range stages {
		switch {
		case st.Dist.Kind == ir.Tiled && st.Dist.Grain == 1: // attention is cut into heads already
		case isWhole(st): // what ends a step
		case st.Dist.Kind != ir.Whole:
			return nil, diag.Errorf(codeOrder, "pass tile", "stage %s is %s; want whole stages as fuse leaves them",
				st.Name, st.Dist.Kind)
		default:
			st.Dist = ir.Dist{Kind: ir.Tiled, Extent: st.Dist.Extent, Grain: grain}
		}
		out = append(out, st)
		if last := lastOp(st); last.Code == ir.ArgMax {
			out = append(out, splitArgMax(p, st, last, grain))
		}
	}
	return out, nil
}

// Names that this pass gives.
const (
	bestValue, bestIndex, bestCounter = "best.value", "best.index", "best"
	partRole                          = "part" // the partial results of attention's splits
)

// splitArgMax makes the last op of the head a partial one, and returns the stage that chooses among the partial
// results.
func splitArgMax(p *ir.Program, head *ir.Stage, op *ir.Op, grain int) *ir.Stage {
	of, tiles := tokensOf(p.Pass), (head.Dist.Extent+grain-1)/grain
	p.Buffers = append(p.Buffers,
		ir.Buffer{Name: bestValue, Kind: ir.Activation, DType: ir.F32, Shape: of.shape(tiles), Space: ir.GlobalScratch},
		ir.Buffer{Name: bestIndex, Kind: ir.Activation, DType: ir.I32, Shape: of.shape(tiles), Space: ir.GlobalScratch})
	sample := &ir.Stage{Name: sampleRole, Role: sampleRole, Dist: whole(1), Signal: head.Signal,
		Waits: []ir.Wait{{Counter: bestCounter}},
		Ops: []ir.Op{{Code: ir.ArgMax, Out: op.Out,
			In: []ir.Operand{of.view(bestValue, upTo(tiles)), of.view(bestIndex, upTo(tiles))}}}}
	mine := ir.Index(spanA.Div(grain))
	op.Out = []ir.Operand{of.view(bestValue, mine), of.view(bestIndex, mine)}
	op.Params = []ir.Param{ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", spanA)}
	head.Signal = bestCounter
	return sample
}

// splitPositions makes the variants: attention in one piece below split_from, and in splits from there on if there are
// SMs to spare for them. Where it never sees as many rows before its own, because of a window, it stays in one piece;
// and so does that of several tokens, whose rows fall to several splits where an append is of one.
func splitPositions(p *ir.Program, v *ir.Variant) ([]ir.Variant, error) {
	last := p.Model.MaxSeq - p.Pass.NumRows()
	from := knobs.SplitFrom.Of(&p.Config)
	rows, block := rowsSeen(v, last), chunkRows(p)
	splits := min(knobs.MaxSplits.Of(&p.Config), p.Target.SMs/p.Model.KVHeads)
	if rows < last {
		splits = min(splits, (rows+block-1)/block) // more would find nothing to do
	}
	var out []ir.Variant
	if splits <= 1 || from > rows || p.Pass.NumTokens() > 1 {
		from = last + 1
	}
	add := func(name string, lo, hi int, split *splitter) error {
		own, err := newVariant(p, name, lo, hi, v, split)
		out = append(out, own)
		return err
	}
	if from > 0 {
		if err := add("short", 0, from-1, nil); err != nil {
			return nil, err
		}
	}
	if from <= last {
		if err := add("long", from, last, &splitter{p: p, m: &p.Model, splits: splits, block: block}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rowsSeen is how many rows of a cache attention looks at in the last position, its own not counted.
func rowsSeen(v *ir.Variant, last int) int {
	most := 0
	eachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		if o := attention(st); o != nil {
			dims := o.In[1].Dims
			most = max(most, dims[len(dims)-3].Len(last))
		}
	})
	return most
}

// newVariant copies the stages, so that variants can be changed one by one. A splitter, if given, splits attention.
func newVariant(p *ir.Program, name string, lo, hi int, of *ir.Variant, split *splitter) (ir.Variant, error) {
	v := ir.Variant{Name: name, Lo: lo, Hi: hi, Counters: slices.Clone(of.Counters)}
	for _, n := range of.Body {
		if loop, ok := n.(*ir.Loop); ok {
			own := *loop
			n = &own
		}
		v.Body = append(v.Body, n)
	}
	err := eachBody(&v, func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
		var own []*ir.Stage
		for _, st := range stages {
			if split != nil && attention(st) != nil {
				own = append(own, split.stages(st, firstIndex(loop))...)
				continue
			}
			own = append(own, cloneStage(st))
		}
		return own, nil
	})
	declareCounters(&v, newBuffers(p))
	if err = cmp.Or(err, setThresholds(&v)); err != nil {
		return v, err
	}
	for _, n := range v.Body {
		if loop, ok := n.(*ir.Loop); ok {
			shareKinds(loop)
		}
	}
	return v, nil
}

// chunkRows is how many rows of the cache one chunk of the ring holds, K and V together: 16 to 128, in blocks of 16.
// Splits take chunks round robin.
func chunkRows(p *ir.Program) int {
	m := &p.Model
	return 16 * max(1, min(8, knobs.ChunkBytes.Of(&p.Config)/ir.CacheBlock(m.Cache, m.HeadDim)))
}

// A splitter turns the attention stage of a layer into one over splits and one that combines them.
type splitter struct {
	p      *ir.Program
	m      *ir.Model
	splits int
	block  int // rows that go to one split before it is the next one's turn
}

// stages are those of the stage in the iteration of index i, and all others of its loop.
func (s *splitter) stages(whole *ir.Stage, i int) []*ir.Stage {
	part := ir.NameIn(whole.Layer, partRole)
	hd, group := s.m.HeadDim, s.m.Heads/s.m.KVHeads
	units := s.m.KVHeads * s.splits
	buffers := newBuffers(s.p)
	like := *buffers.find(attention(whole).Out[0].Buf, i)
	buffers.declare(ir.Buffer{Name: part, First: like.First, Count: like.Count, Step: like.Step,
		Kind: ir.Activation, DType: ir.F32, Shape: []int{units, group, hd + 2}, Space: ir.GlobalScratch})
	partial := &ir.Stage{Name: part, Role: partRole, Layer: whole.Layer, Kind: whole.Kind,
		Dist:  ir.Dist{Kind: ir.Tiled, Extent: units, Grain: 1},
		Waits: slices.Clone(whole.Waits), Signal: part, Ops: s.partialOps(whole, part, i)}
	return []*ir.Stage{partial, s.combine(part, whole)}
}

// attention returns the attention of a stage, or nil.
func attention(st *ir.Stage) *ir.Op {
	if i := slices.IndexFunc(st.Ops, func(o ir.Op) bool { return o.Code == ir.ATTENTION }); i >= 0 {
		return &st.Ops[i]
	}
	return nil
}

// partialOps are those of one unit: a split of one KV head. It reads what the whole stage reads for that head, and of
// the cache its share; the row of this step belongs to the split whose turn it is.
func (s *splitter) partialOps(whole *ir.Stage, part string, i int) []ir.Op {
	hd, group := s.m.HeadDim, s.m.Heads/s.m.KVHeads
	head, share := spanA.Div(s.splits), spanA.Mod(s.splits)
	buffers := newBuffers(s.p)
	ops := cloneStage(whole).Ops
	for k := range ops {
		o := &ops[k]
		for _, operand := range slices.Concat(o.In, o.Out) { // whose dimensions are those of the clone
			for d := range operand.Dims {
				r := &operand.Dims[d]
				r.Lo, r.Hi = r.Lo.With(ir.SpanA, head), r.Hi.With(ir.SpanA, head)
			}
			if b := buffers.find(operand.Buf, i); b != nil && b.Kind == ir.KVCache {
				r := &operand.Dims[1]
				*r = ir.Share(r.Lo, r.Hi, s.block, share, s.splits)
			}
		}
		if o.Code == ir.ATTENTION {
			o.Out = []ir.Operand{view(part, ir.Index(spanA), upTo(group), upTo(hd+2))}
			o.Params = slices.DeleteFunc(o.Params, func(p ir.Param) bool { return p.Key == "row" })
			o.Params = append(o.Params, ir.IntParam("flags", ir.Int(2)), ir.IntParam("row", pos),
				ir.IntParam("block", ir.Int(s.block)), ir.IntParam("part", share),
				ir.IntParam("parts", ir.Int(s.splits)))
		}
	}
	return ops
}

// combine sums the splits, each unit a piece of one query head.
func (s *splitter) combine(part string, whole *ir.Stage) *ir.Stage {
	hd, group := s.m.HeadDim, s.m.Heads/s.m.KVHeads
	width := pieceWidth(hd, s.m.Heads, s.p.Target.SMs)
	perHead := hd / width
	units := ir.Span(spanA.Div(perHead*group).Mul(s.splits), spanA.Div(perHead*group).Add(ir.Int(1)).Mul(s.splits))
	headInGroup, piece := ir.Index(spanA.Div(perHead).Mod(group)), at(spanA.Mod(perHead), width, 0)
	if group == 1 {
		headInGroup = ir.Index(ir.Int(0))
	}
	if perHead == 1 {
		piece = upTo(hd)
	}
	out := attention(whole).Out[0].Buf
	return &ir.Stage{Name: whole.Name, Role: whole.Role, Layer: whole.Layer, Kind: whole.Kind,
		Dist:  ir.Dist{Kind: ir.Tiled, Extent: s.m.Heads * perHead, Grain: 1},
		Waits: []ir.Wait{{Counter: part}}, Signal: whole.Signal,
		Ops: []ir.Op{{Code: ir.AttentionCombine, Out: []ir.Operand{view(out, at(spanA, width, 0))},
			In: []ir.Operand{view(part, units, headInGroup, piece),
				view(part, units, headInGroup, ir.Span(ir.Int(hd), ir.Int(hd+2)))},
			Params: []ir.Param{ir.IntParam("splits", ir.Int(s.splits))}}}}
}

// pieceWidth is how many elements of a head one combining unit takes: the fewest, in eights, that leave no SM with a
// second unit, or else the most. A head that is no multiple of 8 is not cut.
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
