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
			if m.opts.stopped() {
				return nil
			}
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
			if meet(bytesOfView(x, op.In[i].Dims, r.of(op.In[i].Dims)),
				bytesOfView(y, op.Out[o].Dims, r.of(op.Out[o].Dims))) {
				return false
			}
		}
	}
	return true
}

// meet reports whether two ascending lists of intervals have something in common.
func meet(x, y [][2]int) bool {
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0][1] <= y[0][0]:
			x = x[1:]
		case y[0][1] <= x[0][0]:
			y = y[1:]
		default:
			return true
		}
	}
	return false
}

// bytesOfView lists the bytes of a view of an op that may work in place, as ascending intervals.
func bytesOfView(b *ir.Buffer, dims []ir.Range, pos int) [][2]int {
	var out [][2]int
	for _, e := range stretchesOf(b.Shape, dims, pos) {
		out = append(out, bytesOf(b, e[0], e[1]-e[0])...)
	}
	return out
}

// stretchesOf lists the elements of a view as ascending intervals: as many as runsIn counts, about.
func stretchesOf(shape []int, dims []ir.Range, pos int) [][2]int {
	if empty(dims, pos) { // runsIn has not counted the other dimensions
		return nil
	}
	out := [][2]int{{0, 1}}
	for d := range dims {
		of := intervals(&dims[d], pos)
		if len(of) == 1 && of[0] == [2]int{0, shape[d]} {
			for i := range out {
				out[i] = [2]int{out[i][0] * shape[d], out[i][1] * shape[d]}
			}
			continue
		}
		var next [][2]int
		for _, rows := range out {
			for e := rows[0]; e < rows[1]; e++ {
				for _, x := range of {
					next = append(next, [2]int{e*shape[d] + x[0], e*shape[d] + x[1]})
				}
			}
		}
		out = next
	}
	return out
}

// intervals lists the elements of a range as ascending intervals. The reference code has run on it, so that its part
// is one of its parts.
func intervals(r *ir.Range, pos int) [][2]int {
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	if lo >= hi {
		return nil
	}
	if !r.Shared() {
		return [][2]int{{lo, hi}}
	}
	var out [][2]int
	period := r.Block * r.Parts
	for at := lo/period*period + r.Part.At(pos)*r.Block; at < hi; at += period {
		if x := [2]int{max(lo, at), min(hi, at+r.Block)}; x[0] < x[1] {
			out = append(out, x)
		}
	}
	return out
}

// outputs finds bytes of outputs that a step leaves unwritten.
func (m *machine) outputs(regions []region) *Hazard {
	type output struct {
		buf  *ir.Buffer
		step int
	}
	writes := map[output][]region{}
	for _, x := range regions {
		if x.write && x.buf.Kind == ir.Output {
			of := output{x.buf, m.tasks[x.task].step}
			writes[of] = append(writes[of], x)
		}
	}
	for step, r := range m.runs {
		for i := range r.Flat.Buffers {
			b := &r.Flat.Buffers[i]
			if b.Kind != ir.Output {
				continue
			}
			written := writes[output{b, step}]
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
