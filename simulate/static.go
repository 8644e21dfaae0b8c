package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
)

// aliases finds ops whose operands overlap: the threads of an op read and write in no order. An op that works element
// by element may write exactly the view that it reads.
func (m *machine) aliases([]region) *Hazard {
	// By cell: twice the number of the op that last read it, or that and one of the op that last wrote it.
	marks, n := make([]int, len(m.cells)), 0
	for i := range m.tasks {
		t := &m.tasks[i]
		for k := range t.ops {
			op := &t.ops[k]
			if n += 2; len(op.writes)+len(op.sends) == 0 {
				continue
			}
			for _, a := range op.reads {
				for c := a.lo; c < a.hi; c++ {
					marks[c] = n
				}
			}
			for p := range op.polls {
				marks[op.polls[p].cell] = n
			}
			inPlace := sameViews(&t.flat.Ops[k], m.runs[t.step])
			write := func(c int, b *ir.Buffer) *Hazard {
				if was := marks[c]; was == n+1 || was == n && !inPlace {
					return &Hazard{Kind: Aliased, Where: "task " + t.name,
						Detail: fmt.Sprintf("%s touches %s twice", t.flat.Ops[k].Code, m.where(c, b))}
				}
				marks[c] = n + 1
				return nil
			}
			for _, a := range op.writes {
				for c := a.lo; c < a.hi; c++ {
					if h := write(c, a.buf); h != nil {
						return h
					}
				}
			}
			for _, s := range op.sends {
				if h := write(int(m.messages[s].cell), m.messages[s].buf); h != nil {
					return h
				}
			}
		}
	}
	return nil
}

// sameViews: an op that may work in place, each input of which is the very view that it writes, or apart from it.
func sameViews(op *ir.FlatOp, r Run) bool {
	if !traitsOf(op.Code).inPlace {
		return false
	}
	for o, out := range op.OutBuf {
		for i, in := range op.InBuf {
			if in < 0 || out < 0 || in == out &&
				slices.EqualFunc(op.In[i].Dims, op.Out[o].Dims,
					func(a, b ir.Range) bool { return a.String() == b.String() }) {
				continue
			}
			x, y := &r.Flat.Buffers[in], &r.Flat.Buffers[out]
			if in != out && (len(x.Pages) == 0 || !slices.Equal(x.Pages, y.Pages)) {
				continue
			}
			read := map[int]bool{}
			for _, at := range bytesOfView(x, op.In[i].Dims, r.of(op.In[i].Dims)) {
				read[at] = true
			}
			written := bytesOfView(y, op.Out[o].Dims, r.of(op.Out[o].Dims))
			if slices.ContainsFunc(written, func(at int) bool { return read[at] }) {
				return false
			}
		}
	}
	return true
}

// bytesOfView lists the bytes of a view, one by one.
func bytesOfView(b *ir.Buffer, dims []ir.Range, pos int) []int {
	var out []int
	for _, e := range elementsOf(b, dims, pos) {
		for _, x := range bytesOf(b, e, 1) {
			for at := x[0]; at < x[1]; at++ {
				out = append(out, at)
			}
		}
	}
	return out
}

// outputs finds bytes of outputs that a step leaves unwritten.
func (m *machine) outputs(regions []region) *Hazard {
	for step, r := range m.runs {
		for i := range r.Flat.Buffers {
			b := &r.Flat.Buffers[i]
			if b.Kind != ir.Output {
				continue
			}
			var written []region
			for _, x := range regions {
				if x.write && x.buf == b && m.tasks[x.task].step == step {
					written = append(written, x)
				}
			}
			slices.SortFunc(written, func(x, y region) int { return cmp.Compare(x.lo, y.lo) })
			end := 0
			for _, x := range written {
				if x.lo <= end {
					end = max(end, x.hi)
				}
			}
			if want := b.DType.Bytes(b.Numel()); end < want {
				return &Hazard{Kind: OutputGap, Where: "buffer " + b.Name,
					Detail: fmt.Sprintf("byte %d of %d is never written", end, want)}
			}
		}
	}
	return nil
}

// capacity finds SMs that keep more in shared memory than the target has.
func (m *machine) capacity([]region) *Hazard {
	if m.opts.Target == nil {
		return nil
	}
	kept := map[int]int{}
	for i := range m.cells {
		if c := &m.cells[i]; m.places[c.place].smem && c.owner > 0 {
			if kept[c.owner] += c.hi - c.lo; kept[c.owner] > m.opts.Target.SMemOptin {
				return &Hazard{Kind: Capacity, Detail: fmt.Sprintf("SM %d keeps more than %d bytes", c.owner-1,
					m.opts.Target.SMemOptin)}
			}
		}
	}
	return nil
}
