package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/refvm"
)

// Footprints caches the accesses of tasks. It runs each kind of task once: tasks that differ only in the names of their
// buffers have the same accesses. It is for one goroutine.
type Footprints struct {
	known map[string]footprint
	held  int // touches of all that is known, and their keys, of which n bytes are worth one touch
	key   []byte
	local map[int]int // flat buffer to its number within the task
	order []int       // and back
	zeros zeros
	stop  <-chan struct{} // of who asks
}

// touchBytes is what a touch takes.
const touchBytes = 40

type footprint struct {
	touches []refvm.Touch // of buffers numbered within the task
	err     error
}

// NewFootprints returns an empty table.
func NewFootprints() *Footprints {
	return &Footprints{known: map[string]footprint{}, local: map[int]int{}}
}

// of returns what task t touches at the positions of all sequences, in the order it does, and the flat buffers that its
// numbers stand for, valid until the next call. The error is the reference code's, or says that the task is too large,
// or that stop was closed, which is looked at while it runs.
func (fp *Footprints) of(f *ir.Flat, t int, at []int, stop <-chan struct{}) ([]refvm.Touch, []int, error) {
	return fp.within(f, t, at, slices.Min(at), slices.Max(at), stop)
}

// within is the same of a program for positions lo to hi, of which the reference code looks at all.
func (fp *Footprints) within(f *ir.Flat, t int, at []int, lo, hi int, stop <-chan struct{}) (
	[]refvm.Touch, []int, error) {
	fp.stop = stop
	fp.describe(f, &f.Tasks[t], at, lo, hi)
	got, ok := fp.known[string(fp.key)]
	if !ok {
		if got.touches, got.err = fp.run(f, &f.Tasks[t], at, lo, hi); errors.Is(got.err, ErrStopped) {
			return nil, nil, got.err // and nothing is known of it
		}
		size := len(got.touches) + len(fp.key)/touchBytes
		if fp.held += size; fp.held > maxKnown || len(fp.known) > 1<<16 {
			clear(fp.known)
			fp.held = size
		}
		fp.known[string(fp.key)] = got
	}
	return got.touches, fp.order, got.err
}

// describe sets key to all that decides what a task touches, and numbers its buffers.
func (fp *Footprints) describe(f *ir.Flat, t *ir.Task, at []int, lo, hi int) {
	clear(fp.local)
	fp.order, fp.key = fp.order[:0], fp.key[:0]
	moves := false
	list := func(ops []ir.Operand, bufs []int) {
		for k := range ops {
			fp.key = append(fp.key, ' ')
			if k >= len(bufs) || bufs[k] < 0 { // its length says where the name ends, which may look like other views
				fp.key = append(strconv.AppendInt(append(fp.key, '%'), int64(len(ops[k].Buf)), 10), ' ')
				fp.key = append(fp.key, ops[k].Buf...)
				continue
			}
			n, ok := fp.local[bufs[k]]
			if !ok {
				n = len(fp.order)
				fp.local[bufs[k]] = n
				fp.order = append(fp.order, bufs[k])
			}
			fp.key = append(strconv.AppendInt(fp.key, int64(n), 10), '[')
			for _, r := range ops[k].Dims {
				fp.key = append(append(fp.key, r.String()...), ',')
				moves = moves || r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) || r.Part.Uses(ir.Pos)
			}
		}
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		fp.key = strconv.AppendInt(fp.key, int64(op.Code), 10)
		for _, p := range op.Params {
			fp.key = fmt.Appendf(fp.key, " %s=%t,%v,%s", p.Key, p.IsFloat, p.Float, p.Int)
			moves = moves || p.Int.Uses(ir.Pos) || p.Int.Uses(ir.Row)
		}
		list(op.In, op.InBuf)
		fp.key = append(fp.key, '>')
		list(op.Out, op.OutBuf)
		fp.key = append(fp.key, ';')
	}
	for _, b := range fp.order {
		buf := &f.Buffers[b]
		fp.key = append(fp.key, '|')
		for _, n := range append([]int{int(buf.Kind), int(buf.ValueType())}, buf.Shape...) {
			fp.key = append(strconv.AppendInt(fp.key, int64(n), 10), ' ')
		}
	}
	if moves {
		for _, p := range append([]int{lo, hi, f.Pass.NumRows()}, at...) {
			fp.key = strconv.AppendInt(append(fp.key, '@'), int64(p), 10)
		}
	}
}

// run runs a task on its own, on buffers of its own. They are no larger than what the task looks at of them.
func (fp *Footprints) run(f *ir.Flat, t *ir.Task, at []int, lo, hi int) ([]refvm.Touch, error) {
	boxes, err := fp.boxesOf(f, t, at, lo)
	if err != nil {
		return nil, err
	}
	return fp.runOn(boxes, f, t, at, lo, hi)
}

// runOn is run on given parts of the buffers.
func (fp *Footprints) runOn(boxes []box, f *ir.Flat, t *ir.Task, at []int, lo, hi int) ([]refvm.Touch, error) {
	alone := ir.Flat{Name: "alone", Lo: lo, Hi: hi, Pass: f.Pass}
	for k, b := range fp.order {
		buf := f.Buffers[b]
		buf.Pages, buf.Space, buf.DType, buf.Layout = nil, ir.HBM, buf.ValueType(), ir.Layout{}
		buf.Shape = boxes[k].shape()
		if buf.Kind == ir.Activation && buf.DType == ir.I32 {
			buf.Kind = ir.Output // which begins with zeros and not with NaNs: they may select a row
		}
		alone.Buffers = append(alone.Buffers, buf)
	}
	renumber := func(bufs []int) []int {
		out := make([]int, len(bufs))
		for k, b := range bufs {
			if out[k] = -1; b >= 0 {
				out[k] = fp.local[b]
			}
		}
		return out
	}
	task := ir.Task{Name: t.Name, SM: -1, Signal: -1, Ops: make([]ir.FlatOp, len(t.Ops))}
	for i := range t.Ops {
		op := &task.Ops[i]
		*op = ir.FlatOp{Op: t.Ops[i].Op, InBuf: renumber(t.Ops[i].InBuf), OutBuf: renumber(t.Ops[i].OutBuf)}
		op.In, op.Out = moved(op.In, op.InBuf, boxes), moved(op.Out, op.OutBuf, boxes)
	}
	alone.Tasks = []ir.Task{task}
	vm, err := refvm.New(&alone, &fp.zeros, refvm.Options{Workers: 1, Record: true,
		Bounds: refvm.Bounds{Stop: fp.stop, Scratch: maxScratch, Touches: maxTouches}})
	if err != nil {
		return nil, err
	}
	tokens := make([]int, f.Pass.NumTokens())
	if err := vm.Pass(at, tokens, refvm.Order{Kind: refvm.InOrder}); err != nil {
		return nil, cmp.Or(outOfBounds(err), err)
	}
	var out []refvm.Touch
	for _, touch := range joined(vm.Touched(0)) { // or what is read many times is taken apart as often
		if k := alone.Buffers[touch.Buf].Kind; k.ReadOnly() && k != ir.Input {
			continue // nobody may write it, so that nothing can go wrong
		}
		out = boxes[touch.Buf].back(out, touch)
	}
	return joined(out), nil
}

// joined puts what an op reads, or writes, side by side into one touch. Their order within an op says nothing.
func joined(list []refvm.Touch) []refvm.Touch {
	side := func(t refvm.Touch) int {
		if t.Write {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b refvm.Touch) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(side(a), side(b)), cmp.Compare(a.Buf, b.Buf),
			cmp.Compare(a.Lo, b.Lo))
	})
	out := list[:0]
	for _, t := range list {
		if n := len(out) - 1; n >= 0 && out[n].Op == t.Op && out[n].Write == t.Write && out[n].Buf == t.Buf &&
			t.Lo <= out[n].Lo+out[n].N {
			out[n].N = max(out[n].N, t.Lo+t.N-out[n].Lo)
			continue
		}
		out = append(out, t)
	}
	return slices.Clip(out)
}

// zeros supplies weights: what a task touches does not depend on their values. All have the same elements.
type zeros struct{ all []float32 }

func (z *zeros) Floats(b *ir.Buffer, _ int) ([]float32, error) {
	n := b.Numel()
	if n > len(z.all) {
		z.all = make([]float32, n)
	}
	return z.all[:n:n], nil
}
