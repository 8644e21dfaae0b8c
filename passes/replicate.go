package passes

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
	"amkc/passes/rewrite"
)

// Replicate is the pass that gives every SM a copy of the residual if norms of branches are added to it. Such a norm
// needs the whole branch. An owner of some rows of the residual would wait for the norm, add it, and publish the sums:
// two more exchanges per branch. An SM with the whole residual reads the branch and computes the sum.
//
// In a pass of several tokens the residual stays with its owners, because it would not fit the shared memory. The
// owners then compute the norms.
var Replicate = Pass{
	Name:  "replicate",
	Doc:   "if norms of branches are added to the residual, keep it on every SM, or compute the norms at its owners",
	After: []string{"assign"},
	Run:   runReplicate,
}

func runReplicate(s *State) error {
	p := s.Program
	if p.Target == nil {
		return diag.Errorf(codeTarget, "pass replicate", "want a target")
	}
	var all []*replication
	for i := range p.Variants {
		r := replicationOf(p, &p.Variants[i])
		if r == nil {
			return nil
		}
		all = append(all, r)
	}
	carryOut := (*replication).everywhere
	if p.Pass.NumTokens() > 1 {
		carryOut = (*replication).atOwners
	}
	for _, r := range all {
		if err := carryOut(r); err != nil {
			return err
		}
	}
	r := all[0]
	if p.Pass.NumTokens() == 1 {
		r.residual.Shape = append([]int{p.Target.SMs}, r.residual.Shape...)
	}
	p.Buffers = append(p.Buffers, ir.Buffer{Name: r.rounded, Kind: ir.Activation, DType: r.dtype,
		Shape: slices.Clone(r.residual.Shape), Space: ir.SMEM})
	rewrite.Prune(p)
	return nil
}

// keptBy is what an SM keeps of a model for as long as it runs: the whole residual, if norms of branches are added to
// it, and a table of angles for each rotary embedding.
func keptBy(g *ir.Graph) kernel.Kept {
	kept := kernel.Kept{}
	ropes := map[*ir.Rope]bool{}
	for k := range g.Kinds {
		ropes[g.RopeOf(k)] = true
		norms := map[string]bool{}
		for _, n := range g.Kinds[k].Nodes {
			switch n.Op {
			case "rmsnorm":
				norms[n.Name] = true
			case "add":
				if norms[n.Inputs[len(n.Inputs)-1]] {
					kept.Rows = g.Model.Hidden
				}
			}
		}
	}
	kept.Rotations = len(ropes)
	return kept
}

// roundedName is what owners publish in each layer, and normedName what they add to the residual.
const roundedName, normedName = "x", "branch"

// A replication is a variant whose residual every SM can have.
type replication struct {
	v        *ir.Variant
	buffers  rewrite.Buffers
	sms      int
	residual *ir.Buffer
	rounded  string // the buffer of its values as they are read, or of what owners add to it; they are of dtype
	dtype    ir.DType
	norms    map[*ir.Stage]*ir.Stage // the norm of a branch, of each stage that adds one
	sums     map[string]bool         // buffers by which rows of the residual are published
	signals  map[string]bool         // resolved counters that announce them
}

// replicationOf returns nil if a stage keeps the residual that adds something else than the norm of a branch, which
// nobody else reads, and if there is none that adds one.
func replicationOf(p *ir.Program, v *ir.Variant) *replication {
	r := &replication{v: v, buffers: rewrite.NewBuffers(p), sms: p.Target.SMs, norms: map[*ir.Stage]*ir.Stage{},
		sums: map[string]bool{}, signals: map[string]bool{}}
	keepers, ok := keepersOf(r.buffers), true
	rewrite.EachStage(v, func(s *ir.Stage, loop *ir.Loop) {
		if !keepers.keeps(s, loop) {
			return
		}
		op, norm := lastOp(s), r.normBefore(s, loop)
		kept := r.buffers.Find(op.Out[0].Buf, ir.FirstIndex(s, loop))
		if ok = ok && len(s.Ops) == 1 && len(op.Out) == 2 && (op.Code == ir.EMBED || norm != nil) &&
			(r.residual == nil || r.residual == kept); !ok {
			return
		}
		r.residual = kept
		if norm != nil {
			r.norms[s] = norm
		}
		sum := r.buffers.Find(op.Out[1].Buf, ir.FirstIndex(s, loop))
		r.sums[sum.Name], r.dtype = true, sum.DType
		for _, i := range rewrite.Indices(s, loop) {
			if name, err := ir.Resolve(s.Signal, i); err == nil {
				r.signals[name] = true
			}
		}
	})
	if !ok || len(r.norms) == 0 {
		return nil
	}
	r.rounded = roundedName
	if p.Pass.NumTokens() > 1 {
		r.rounded = normedName
	}
	for r.buffers.Find(r.rounded, 0) != nil {
		r.rounded += ".rounded"
	}
	return r
}

// normBefore returns the norm that a stage adds, if it stands on its own and nobody else reads it.
func (r *replication) normBefore(add *ir.Stage, loop *ir.Loop) *ir.Stage {
	if lastOp(add).Code != ir.ADD || loop == nil {
		return nil
	}
	branch := lastOp(add).In[1].Buf
	var norm *ir.Stage
	for _, s := range loop.Body {
		switch reads := slices.ContainsFunc(s.Ops, func(o ir.Op) bool { return names(o.In, branch) }); {
		case s.Kind != add.Kind:
		case reads && s != add:
			return nil
		case len(s.Ops) == 1 && s.Ops[0].Code == ir.RMSNORM && names(s.Ops[0].Out, branch):
			norm = s
		}
	}
	return norm
}

// everywhere lets every SM have the residual.
func (r *replication) everywhere() error {
	everySM := ir.Dist{Kind: ir.Spread, Extent: r.sms, Grain: 1, SMs: r.sms}
	whole := upTo(r.residual.Shape[0])
	gone := map[*ir.Stage]bool{}
	for _, norm := range r.norms {
		gone[norm] = true
	}
	err := eachBody(r.v, func(stages []*ir.Stage, loop *ir.Loop) ([]*ir.Stage, error) {
		for _, s := range stages {
			norm, adds := r.norms[s]
			switch op := lastOp(s); {
			case adds:
				first := norm.Ops[0]
				out := r.own(ir.Index(spanA), whole)
				first.Out = out[1:] // rounded, as a branch that is published is
				s.Ops = []ir.Op{first, {Code: ir.ADD, Out: out, In: append(slices.Clone(out), op.In[2:]...)}}
				s.Dist, s.Waits, s.Signal = everySM, norm.Waits, ""
			case op.Code == ir.EMBED:
				table := op.In[1]
				table.Dims = []ir.Range{table.Dims[0], whole}
				op.Out = r.own(ir.Index(spanA), whole)
				given := op.In[2]
				given.Dims = append(slices.Clone(given.Dims[:len(given.Dims)-1]), whole)
				op.In = []ir.Operand{op.In[0], table, given}
				s.Dist, s.Signal = everySM, ""
			default:
				r.readOwn(s, loop)
			}
		}
		return slices.DeleteFunc(stages, func(s *ir.Stage) bool { return gone[s] }), nil
	})
	if err != nil {
		return err
	}
	return setThresholds(r.buffers.Program, r.v)
}

// own are an SM's residual, and its values as they are read.
func (r *replication) own(sm, whole ir.Range) []ir.Operand {
	return []ir.Operand{view(r.residual.Name, sm, whole), view(r.rounded, sm, whole)}
}

// readOwn lets a stage read of its SM's residual what it read of the vector that owners published.
func (r *replication) readOwn(s *ir.Stage, loop *ir.Loop) {
	for k := range s.Ops {
		for i, o := range s.Ops[k].In {
			if b := r.buffers.Find(o.Buf, ir.FirstIndex(s, loop)); b != nil && r.sums[b.Name] {
				s.Ops[k].In[i] = view(r.rounded, append([]ir.Range{ir.Index(onSM)}, o.Dims...)...)
			}
		}
	}
	s.Waits = slices.DeleteFunc(s.Waits, func(w ir.Wait) bool {
		name, err := ir.Resolve(w.Counter, rewrite.Indices(s, loop)[0])
		return err == nil && r.signals[name]
	})
}

// atOwners lets the owners of the residual take the norms of branches: each reads a whole branch, normalises its rows
// of it, rounds them as a norm that is published is rounded, and adds them. A norm on its own, whose rows the owners
// wait for, would be an exchange more.
func (r *replication) atOwners() error {
	gone := map[*ir.Stage]bool{}
	for add, norm := range r.norms {
		gone[norm] = true
		first, sum := norm.Ops[0], *lastOp(add)
		rows := func(buf string) ir.Operand { return view(buf, slices.Clone(sum.In[1].Dims)...) } // of all tokens
		whole, gain := first.In[0], first.In[1].Buf
		first.In = []ir.Operand{rows(whole.Buf), view(gain, task), whole}
		first.Out = []ir.Operand{rows(r.rounded)}
		sum.In = append([]ir.Operand{sum.In[0], rows(r.rounded)}, sum.In[2:]...)
		add.Ops, add.Waits = []ir.Op{first, sum}, norm.Waits
	}
	err := eachBody(r.v, func(stages []*ir.Stage, _ *ir.Loop) ([]*ir.Stage, error) {
		return slices.DeleteFunc(stages, func(s *ir.Stage) bool { return gone[s] }), nil
	})
	if err != nil {
		return err
	}
	return setThresholds(r.buffers.Program, r.v)
}
