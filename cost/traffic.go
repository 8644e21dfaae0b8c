package cost

import (
	"amkc/ir"
	"amkc/ir/op"
	"amkc/kernel"
)

// traffic counts the bytes that a step reads, as the emitted project's own facts do: every weight that a matrix
// stage streams, as often as one does, the norms, K and V of each earlier position that attention sees, and what a
// layer keeps besides, and convolves it with, once. An embedding table is only looked up, and of experts only those
// are read that a router has chosen, for each token of a pass.
func (r *reader) traffic(v *ir.Variant, pos int) (weights, rows float64) {
	count := func(s *ir.Stage, i int) {
		counted := map[*ir.Buffer]bool{}
		for k := range s.Ops {
			spec := ir.Ops[s.Ops[k].Code]
			for n, o := range s.Ops[k].In {
				b := r.buffer(o, i)
				if b == nil || b.Space != ir.HBM || counted[b] {
					continue
				}
				if s.Ops[k].Code == ir.StateConv { // of parts of a vector each
					counted[b] = true
				}
				switch role := spec.Role(n); {
				case role == op.Matrix && len(o.Dims) > 0 && o.Dims[0].Lo.Uses(ir.OnRank): // rows of a rank
					weights += float64(b.Bytes()) / float64(r.program.NumRanks())
				case role == op.Matrix, role == op.Gain:
					weights += float64(b.Bytes())
				case s.Ops[k].Code == ir.SELECTED && n == 1 && len(b.Shape) == 3:
					chosen := s.Ops[k].In[2].Dims
					weights += float64(b.Bytes()) / float64(max(1, b.Shape[0])) *
						float64(r.program.Pass.NumTokens()*chosen[len(chosen)-1].Len(pos))
				case role == op.Kept: // and written
					rows += float64(b.Bytes())
				case role == op.Cache && b.Kind == ir.KVCache && len(b.Shape) >= 4: // of attention keys, or values
					d := len(b.Shape) - 3                       // after that of sequences, if there is one
					seen := ir.Span(o.Dims[d].Lo, o.Dims[d].Hi) // by all parts together
					rows += float64(b.Bytes()) / float64(max(1, b.Shape[d])) /
						float64(b.Shape[d+1]) * float64(seen.Len(pos))
				}
			}
		}
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			if body := kernel.Of(n); body == nil || !body.Asked {
				count(n, 0)
			}
		case *ir.Loop:
			for k := range n.Count {
				for _, s := range n.Body {
					if n.Runs(s, k) {
						count(s, n.Index(k))
					}
				}
			}
		}
	}
	return weights, rows
}
