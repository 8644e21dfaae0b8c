package simulate

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
)

// A box is the part of a buffer that a task looks at: of each dimension the elements from lo to hi. A task is run on
// boxes, so that it takes as much memory and time as its own part of a model's matrix or cache.
type box struct {
	lo, hi  []int
	whole   []int // the shape of the buffer
	outside bool  // a view leaves the buffer, which is kept whole for the reference code to refuse
}

func newBox(shape []int) box {
	return box{lo: slices.Clone(shape), hi: make([]int, len(shape)), whole: shape}
}

// boxesOf returns the boxes of the buffers of a task, at the positions of all sequences and at the first one that the
// reference code looks at.
func (fp *Footprints) boxesOf(f *ir.Flat, t *ir.Task, at []int, first int) ([]box, error) {
	boxes, runs := make([]box, len(fp.order)), 0
	for k, b := range fp.order {
		boxes[k] = newBox(f.Buffers[b].Shape)
	}
	cover := func(code ir.Opcode, list []ir.Operand, bufs []int) {
		for k := range list {
			if bufs[k] < 0 {
				continue
			}
			s, _ := ir.Sequence(list[k].Dims)
			counted := counted(&f.Buffers[bufs[k]], code)
			for _, pos := range []int{first, at[max(0, s)]} {
				boxes[fp.local[bufs[k]]].cover(list[k].Dims, pos, counted)
				runs += min(maxRuns+1, runsIn(list[k].Dims, f.Buffers[bufs[k]].Shape, pos))
			}
		}
	}
	for i := range t.Ops {
		cover(t.Ops[i].Code, t.Ops[i].In, t.Ops[i].InBuf)
		cover(t.Ops[i].Code, t.Ops[i].Out, t.Ops[i].OutBuf)
	}
	if runs > maxRuns {
		return nil, tooLarge("it looks at more than %d stretches of memory", maxRuns)
	}
	total := 0
	for k, b := range fp.order {
		boxes[k].close()
		n, buf := 1, &f.Buffers[b]
		for _, size := range boxes[k].shape() {
			switch {
			case size <= maxBox/n:
			case boxes[k].outside:
				return nil, diag.Errorf(refvm.CodeView, "task "+t.Name, "a view leaves %s, which has the shape %v",
					buf.Name, buf.Shape)
			default:
				return nil, tooLarge("it looks at more than %d elements of %s", maxBox, buf.Name)
			}
			n *= size
		}
		if buf.Kind != ir.Weight && buf.Kind != ir.Const || buf.DType == ir.I32 { // others share their zeros
			total += n
		}
	}
	if total > maxBoxes {
		return nil, tooLarge("it looks at more than %d elements of buffers", maxBoxes)
	}
	return boxes, nil
}

// counted tells in which dimensions the number of an element means something to an op. It is the position of a row of a
// cache, and may be of whatever attention looks at. Tasks share no weights, so that theirs mean nothing.
func counted(b *ir.Buffer, code ir.Opcode) func(d int) bool {
	return func(d int) bool {
		switch b.Kind {
		case ir.KVCache:
			return d == len(b.Shape)-3
		case ir.Weight, ir.Const:
			return code == ir.ATTENTION
		}
		return true
	}
}

// runsIn is about how many stretches of elements side by side a view has.
func runsIn(dims []ir.Range, shape []int, pos int) int {
	n, whole := 1, true
	for d := len(dims) - 1; d >= 0; d-- {
		r := &dims[d]
		length, runs := max(0, min(shape[d], r.Hi.At(pos)-r.Lo.At(pos))), 1
		switch {
		case r.Shared():
			runs = length/max(1, r.Block) + 1
		case !whole:
			runs = length
		}
		if n *= runs; n > maxRuns {
			return n
		}
		whole = whole && length == shape[d] && !r.Shared()
	}
	return n
}

// cover widens a box to a view.
func (b *box) cover(dims []ir.Range, pos int, counted func(d int) bool) {
	for d := range dims {
		r := &dims[d]
		lo, hi := r.Lo.At(pos), r.Hi.At(pos)
		if lo >= hi {
			continue
		}
		b.outside = b.outside || lo < 0 || hi > b.whole[d]
		if counted(d) || r.Shared() { // which part an element falls to follows from its number, too
			lo = 0
		}
		b.lo[d], b.hi[d] = min(b.lo[d], lo), max(b.hi[d], hi)
	}
}

// close settles what no view has covered.
func (b *box) close() {
	for d := range b.whole {
		if b.outside {
			b.lo[d], b.hi[d] = 0, b.whole[d]
		} else if b.hi[d] <= b.lo[d] {
			b.lo[d], b.hi[d] = 0, 1
		}
	}
}

func (b *box) shape() []int {
	out := make([]int, len(b.lo))
	for d := range out {
		out[d] = b.hi[d] - b.lo[d]
	}
	return out
}

// moved returns views of buffers as views of their boxes.
func moved(list []ir.Operand, bufs []int, boxes []box) []ir.Operand {
	out := slices.Clone(list)
	for k := range out {
		if bufs[k] < 0 {
			continue
		}
		out[k].Dims = slices.Clone(out[k].Dims)
		for d := range out[k].Dims {
			if by := boxes[bufs[k]].lo[d]; by > 0 {
				r := &out[k].Dims[d]
				r.Lo, r.Hi = r.Lo.Sub(ir.Int(by)), r.Hi.Sub(ir.Int(by))
			}
		}
	}
	return out
}

// back adds a touch of a box as touches of its buffer.
func (b *box) back(out []refvm.Touch, t refvm.Touch) []refvm.Touch {
	run, last := 1, len(b.whole)-1 // elements that are side by side in both
	shape := b.shape()
	for ; last > 0 && shape[last] == b.whole[last]; last-- {
		run *= shape[last]
	}
	run *= shape[last]
	for lo, end := t.Lo, t.Lo+t.N; lo < end; {
		n := min(end-lo, run-lo%run)
		part := t
		part.Lo, part.N = b.original(lo, shape), n
		out = append(out, part)
		lo += n
	}
	return out
}

// original returns the number of an element of a box in its buffer.
func (b *box) original(e int, shape []int) int {
	at, step := 0, 1
	for d := len(shape) - 1; d >= 0; d-- {
		at += (e%shape[d] + b.lo[d]) * step
		e /= shape[d]
		step *= b.whole[d]
	}
	return at
}
