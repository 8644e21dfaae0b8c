package passes

import (
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// SplitK is the pass that cuts the columns of a product into parts, if that spreads its tiles more evenly over the SMs:
// of 448 tiles, the busiest of 132 SMs has 4 and the mean SM 3.4; in two parts, the busiest SM has 7 halves. Each part
// is a separate vector of sums, and the stage that adds the norm of the branch to the residual adds up the parts. If a
// branch were added without a norm, an owner of rows would wait for the other parts before it could publish its rows.
//
// All tiles of an SM are of one part, and it reads only the columns of that part.
//
// The result of a row must not depend on the pass. So in a pass of several tokens, whose residual stays with its
// owners, the same products are cut into the same number of parts.
var SplitK = Pass{
	Name:  "split_k",
	Doc:   "in such models, cut the columns of products whose tiles spread unevenly over the SMs",
	After: []string{"replicate"},
	Run:   runSplitK,
}

func runSplitK(s *State) error {
	p := s.Program
	if p.Target == nil {
		return diag.Errorf(codeTarget, "pass split_k", "want a target")
	}
	parts := map[string]int{} // of the vector of a product, by the name it is declared with
	for i := range p.Variants {
		v := &p.Variants[i]
		added := branchesAdded(p, v)
		rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
			branch := branchOf(p, st, loop)
			if branch == nil || !added[branch.Name] {
				return
			}
			if _, chosen := parts[branch.Name]; !chosen {
				parts[branch.Name] = bestParts(p, st, loop)
			}
			cutColumns(st, parts[branch.Name])
		})
	}
	if !slices.ContainsFunc(p.Buffers, func(b ir.Buffer) bool { return parts[b.Name] > 1 }) {
		return nil
	}
	for i := range p.Variants {
		v := &p.Variants[i]
		rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
			if addsNorm(st) {
				addParts(p, st, loop, parts)
			}
		})
		if err := setThresholds(p, v); err != nil {
			return err
		}
		rotate(p, v)
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; parts[b.Name] > 1 {
			b.Shape = tokensOf(p.Pass).shape(parts[b.Name] * b.Shape[len(b.Shape)-1])
		}
	}
	return nil
}

// branchOf returns the vector that a stage publishes which is a product and no more, as its buffer is declared.
func branchOf(p *ir.Program, st *ir.Stage, loop *ir.Loop) *ir.Buffer {
	if op := &st.Ops[0]; loop != nil && len(st.Ops) == 1 && op.Code == tokensOf(p.Pass).product() &&
		!op.Has("parts") {
		return rewrite.NewBuffers(p).Find(op.Out[0].Buf, ir.FirstIndex(st, loop))
	}
	return nil
}

// branchesAdded are the vectors that stages which add norms of branches read, and nobody else.
func branchesAdded(p *ir.Program, v *ir.Variant) map[string]bool {
	buffers, readers, added := rewrite.NewBuffers(p), map[string]int{}, map[string]bool{}
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		read := map[string]bool{} // by this stage
		for k := range st.Ops {
			for _, o := range st.Ops[k].In {
				b := buffers.Find(o.Buf, ir.FirstIndex(st, loop))
				if b == nil || !b.Layout.Words() || read[b.Name] {
					continue
				}
				read[b.Name] = true
				readers[b.Name]++
				added[b.Name] = addsNorm(st)
			}
		}
	})
	for name, n := range readers {
		added[name] = added[name] && n == 1
	}
	return added
}

// addsNorm reports whether a stage adds the norm of a branch to the residual: that of its SM, or the rows of it that
// its SM owns.
func addsNorm(st *ir.Stage) bool {
	add := lastOp(st)
	return len(st.Ops) == 2 && st.Ops[0].Code == ir.RMSNORM && add.Code == ir.ADD && len(add.Out) == 2
}

// bestParts is how many parts make a stage cheapest: what its busiest SM streams, and the words of all parts, which
// every SM reads. A byte of a word costs as much as several that are streamed: nothing goes on while it is polled
// (docs/performance.md has both). Parts are whole quads of columns, divide the SMs, and have no more values in all than
// the kernel adds up.
func bestParts(p *ir.Program, st *ir.Stage, loop *ir.Loop) int {
	matrix := rewrite.NewBuffers(p).Find(st.Ops[0].In[1].Buf, ir.FirstIndex(st, loop))
	f := matrix.Format()
	if f == nil {
		return 1
	}
	rows, columns, sms := st.Dist.Extent, matrix.Shape[1], p.Target.SMs
	word := 4
	if p.Model.Activations.Bits() == 32 {
		word = 8
	}
	bytes := func(parts int) int {
		grains := (rows*parts + st.Dist.Grain - 1) / st.Dist.Grain
		busiest := (grains + sms - 1) / sms * f.Geometry().Tiles(st.Dist.Grain)
		return busiest*f.Geometry().TileBytes(columns/parts) + pollCost*parts*rows*word
	}
	best := 1
	for parts := 2; parts <= knobs.SplitK.Of(&p.Config); parts++ {
		fits := sms%parts == 0 && rows%st.Dist.Grain == 0 && parts*rows <= kernel.MaxReplicated(&p.Model) &&
			columns%(parts*format.QuadColumns) == 0
		if fits && bytes(parts) < bytes(best) {
			best = parts
		}
	}
	return best
}

// pollCost is how many streamed bytes a byte of a polled word costs. With 1, Gemma-2-2B's down is cut into 3 parts and
// its o into 2, and a token takes 4.5 % longer than with neither.
const pollCost = 3

// cutColumns makes the rows of a product those of all its parts, one after another.
func cutColumns(st *ir.Stage, parts int) {
	if parts == 1 {
		return
	}
	op := &st.Ops[0]
	vector := slices.Clone(op.In[0].Dims)
	last := &vector[len(vector)-1]
	rows, columns := st.Dist.Extent, last.Hi.At(0)/parts
	st.Dist.Extent = parts * rows
	part := spanA.Div(rows)
	own := at(part, columns, 0)
	*last = own
	op.In = []ir.Operand{view(op.In[0].Buf, vector...),
		view(op.In[1].Buf, ir.Span(spanA.Sub(part.Mul(rows)), spanB.Sub(part.Mul(rows))), own)}
}

// addParts lets a stage add the parts of its branch up: of the rows that it adds, and of the whole branch for its norm.
func addParts(p *ir.Program, st *ir.Stage, loop *ir.Loop, parts map[string]int) {
	norm := &st.Ops[0]
	b := rewrite.NewBuffers(p).Find(norm.In[0].Buf, ir.FirstIndex(st, loop))
	if b == nil || parts[b.Name] < 2 {
		return
	}
	var ops []ir.Op
	add := func(to *ir.Operand, sums, all string) {
		first := *to
		for k := 1; k < parts[b.Name]; k++ {
			sum := temp(sums + strconv.Itoa(k))
			if k == parts[b.Name]-1 {
				sum = temp(all)
			}
			part := view(first.Buf, shifted(first.Dims, k*b.Shape[len(b.Shape)-1])...)
			ops = append(ops, ir.Op{Code: ir.ADD, Out: []ir.Operand{sum}, In: []ir.Operand{*to, part}})
			*to = sum
		}
	}
	norm.In = slices.Clone(norm.In)
	if len(norm.In) == 3 {
		add(&norm.In[0], "%own", "%rows")
		add(&norm.In[2], "%sum", "%branch")
	} else {
		add(&norm.In[0], "%sum", "%branch")
	}
	st.Ops = append(ops, st.Ops...)
}
