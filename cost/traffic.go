package cost

import (
	"amkc/ir"
	"amkc/ir/op"
)

// traffic counts the bytes that a step reads, as the emitted project's own facts do: every weight that a matrix stage
// streams, as often as one does, the norms, and K and V of each earlier position. An embedding table is only looked
// up.
func (r *reader) traffic(v *ir.Variant, pos int) (weights, rows float64) {
	count := func(s *ir.Stage, i int) {
		for k := range s.Ops {
			spec := ir.Ops[s.Ops[k].Code]
			for n, o := range s.Ops[k].In {
				if role := spec.Role(n); role != op.Matrix && role != op.Gain {
					continue
				}
				if b := r.buffer(o, i); b != nil && b.Space == ir.HBM {
					weights += float64(b.Bytes())
				}
			}
		}
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			count(n, 0)
		case *ir.Loop:
			for k := range n.Count {
				for _, s := range n.Body {
					count(s, n.Index(k))
				}
			}
		}
	}
	for i := range r.program.Buffers {
		if b := &r.program.Buffers[i]; b.Kind == ir.KVCache && len(b.Shape) == 4 {
			rows += float64(max(1, b.Count)) * float64(b.Bytes()/max(1, b.Shape[1])) * float64(pos)
		}
	}
	return weights, rows
}
