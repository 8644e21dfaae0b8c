package validate

import "amkc/ir"

// Ahead is what a kernel may read before any wait of the step: memory that no task of the step writes.
type Ahead struct {
	Buffers []bool // for each buffer: no task writes any of it, and it is not a token or position that the host changes
	Old     []bool // for each buffer: no task writes rows below pos, so that those may be read ahead
}

// RunAhead derives the licence to run ahead from a variant that Flat has accepted. Weights and constants always qualify,
// and the rows of a cache below pos if every write lies at or above pos at every position. Rows that the step before
// appended are readable from the step-end edge on; to run further ahead than that is never licensed.
func RunAhead(f *ir.Flat) Ahead {
	ahead := Ahead{Buffers: make([]bool, len(f.Buffers)), Old: make([]bool, len(f.Buffers))}
	for i := range f.Buffers {
		kind := f.Buffers[i].Kind
		ahead.Buffers[i] = kind == ir.Weight || kind == ir.Const
		ahead.Old[i] = kind == ir.KVCache
	}
	p := proof{flat: f}
	for t := range f.Tasks {
		for k := range f.Tasks[t].Ops {
			op := &f.Tasks[t].Ops[k]
			for i, b := range op.OutBuf {
				if b < 0 || b >= len(f.Buffers) || i >= len(op.Out) {
					continue
				}
				ahead.Buffers[b] = false
				if d := rowsDim(&f.Buffers[b]); ahead.Old[b] && (d < 0 || d >= len(op.Out[i].Dims) || !p.atMost(ir.Symbol(ir.Pos), op.Out[i].Dims[d].Lo)) {
					ahead.Old[b] = p.empty(op.Out[i].Dims)
				}
			}
		}
	}
	return ahead
}
