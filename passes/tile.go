package passes

import (
	"cmp"
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// Tile is the pass that cuts stages into grains: rows of a matrix into tiles of 8, attention into KV heads × context
// splits. Short and long contexts have different numbers of splits, so this pass makes a variant for each interval of
// positions.
var Tile = Pass{
	Name:  "tile",
	Doc:   "cut stages into grains and attention into units; make one variant per interval of positions",
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
	biasesInRows(p, v)
	err := eachBody(v, func(stages []*ir.Stage, _ *ir.Loop) ([]*ir.Stage, error) { return tileStages(p, stages) })
	if err != nil {
		return err
	}
	if p.Variants, err = splitPositions(p, v); err != nil {
		return err
	}
	rewrite.Prune(p)
	return nil
}

// setTileLayout gives matrices and caches the layout that tiles of them are streamed in.
func setTileLayout(p *ir.Program, b *ir.Buffer) {
	switch {
	case b.Layout.Kind == ir.Tile8x128: // quantised
	case b.Kind == ir.Weight && len(b.Shape) >= 2:
		b.Layout.Kind = ir.Tile8x32
	case b.ScaledRows() && p.Target.RunsOnTensorCores(p.Model.Activations): // integers are multiplied as these
		b.Layout.Kind = ir.KVBlock16
	case b.ScaledRows():
	case b.Kind == ir.KVCache && b.Shape[len(b.Shape)-2] == 1: // of a convolution, which nothing multiplies
		b.Layout.Kind = ir.KVRows16
	case b.Kind == ir.KVCache && p.Target.RunsOnTensorCores(b.DType):
		b.Layout.Kind = ir.KVBlock16
	case b.Kind == ir.KVCache:
		b.Layout.Kind = ir.KVRows16
	}
}

// biasesInRows takes the biases of experts out of tiles: they are added row by row.
func biasesInRows(p *ir.Program, v *ir.Variant) {
	rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		for _, op := range st.Ops {
			for i := range p.Buffers {
				if b := &p.Buffers[i]; op.Code == ir.SELECTED && len(op.In) > 3 && b.Name == op.In[3].Buf {
					b.Layout = ir.Layout{}
				}
			}
		}
	})
}

// tileStages cuts every whole stage of several rows into grains. The head's choice falls apart into one over each
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
		switch last := lastOp(st); {
		case last.Code != ir.SAMPLE || isWhole(st):
		case p.NumRanks() > 1:
			sampleOnRanks(p, st, stages, grain)
		default:
			out = append(out, splitSample(p, st, last, grain))
		}
	}
	return out, nil
}

// Names that this pass gives.
const (
	bestValue, bestIndex, bestCounter = "best.value", "best.index", "best"
	partRole                          = "part" // the partial results of attention's splits
)

// splitSample makes the last op of the head a partial one, and returns the stage that chooses among the partial
// results.
func splitSample(p *ir.Program, head *ir.Stage, op *ir.Op, grain int) *ir.Stage {
	of, tiles := tokensOf(p.Pass), (head.Dist.Extent+grain-1)/grain
	p.Buffers = append(p.Buffers,
		ir.Buffer{Name: bestValue, Kind: ir.Activation, DType: ir.F32, Shape: of.shape(tiles), Space: ir.GlobalScratch},
		ir.Buffer{Name: bestIndex, Kind: ir.Activation, DType: ir.I32, Shape: of.shape(tiles), Space: ir.GlobalScratch})
	sample := &ir.Stage{Name: sampleRole, Role: sampleRole, Dist: whole(1), Signal: head.Signal,
		Waits: []ir.Wait{{Counter: bestCounter}},
		Ops: []ir.Op{{Code: ir.SAMPLE, Out: op.Out, Params: op.Params,
			In: []ir.Operand{of.view(bestValue, upTo(tiles)), of.view(bestIndex, upTo(tiles)), op.In[1]}}}}
	mine := ir.Index(spanA.Div(grain))
	op.Out = []ir.Operand{of.view(bestValue, mine), of.view(bestIndex, mine)}
	op.Params = append([]ir.Param{ir.IntParam("partial", ir.Int(1)), ir.IntParam("first", spanA)}, op.Params...)
	head.Signal = bestCounter
	return sample
}

// sampleOnRanks lets each tile of a rank leave its best value, where lower has let each rank leave one, and the stage
// that chooses among those choose among all.
func sampleOnRanks(p *ir.Program, head *ir.Stage, stages []*ir.Stage, grain int) {
	of, tiles := tokensOf(p.Pass), (head.Dist.Extent+grain-1)/grain
	op, all := lastOp(head), upTo(p.NumRanks()*tiles)
	first := slices.IndexFunc(op.Params, func(q ir.Param) bool { return q.Key == "first" })
	op.Params[first].Int = rank.Mul(head.Dist.Extent).Add(spanA)
	for k, o := range op.Out {
		for i := range p.Buffers {
			if b := &p.Buffers[i]; b.Name == o.Buf {
				b.Shape = of.shape(all.Len(0))
			}
		}
		for _, st := range stages {
			if choice := lastOp(st); st != head && choice.Code == ir.SAMPLE && choice.In[k].Buf == o.Buf {
				choice.In[k] = of.view(o.Buf, all)
			}
		}
		op.Out[k] = of.view(o.Buf, ir.Index(rank.Mul(tiles).Add(spanA.Div(grain))))
	}
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
				own = append(own, split.stages(st, loop)...)
				continue
			}
			own = append(own, rewrite.CloneStage(st))
		}
		for _, st := range own {
			groupRows(p, st, p.FactsOf(st, loop))
		}
		return own, nil
	})
	declareCounters(&v, rewrite.NewBuffers(p))
	if err = cmp.Or(err, setThresholds(p, &v)); err != nil {
		return v, err
	}
	for _, n := range v.Body {
		if loop, ok := n.(*ir.Loop); ok {
			shareKinds(loop, rewrite.NewBuffers(p))
		}
	}
	return v, nil
}
