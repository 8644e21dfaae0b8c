package population

import (
	"slices"

	"amkc/ir"
)

// slip makes up to three mistakes in the finished program, each of a kind that leaves it structurally well formed.
// Rarely it makes one that does not.
func (d *dag) slip() {
	if !chance(d.Rand, 4) {
		for range 1 + d.IntN(3) {
			d.oneSlip()
		}
	}
	if chance(d.Rand, 40) {
		d.malform() // last, because the others rely on the structure
	}
}

func (d *dag) oneSlip() {
	slips := []func(*ir.Task){
		d.forget, d.forget, d.forget, d.lower, d.backward, d.redirect, d.resignal, d.moveTask, d.swap, d.moveView,
		d.moveView, d.recount,
	}
	t := d.IntN(len(d.flat.Tasks))
	for range d.flat.Tasks { // most slips are about waits: rather a task that has some
		if len(d.flat.Tasks[t].Waits) > 0 {
			break
		}
		t = (t + 1) % len(d.flat.Tasks)
	}
	pick(d.Rand, slips)(&d.flat.Tasks[t])
}

// forget drops a wait.
func (d *dag) forget(t *ir.Task) {
	if n := len(t.Waits); n > 0 {
		i := d.IntN(n)
		t.Waits = slices.Delete(t.Waits, i, i+1)
	}
}

// lower lets a wait pass too early; raise, one in four times, never.
func (d *dag) lower(t *ir.Task) {
	if len(t.Waits) == 0 {
		return
	}
	w := &t.Waits[d.IntN(len(t.Waits))]
	if w.Threshold > 1 && !chance(d.Rand, 4) {
		w.Threshold = 1 + d.IntN(w.Threshold-1)
	} else {
		w.Threshold++
	}
}

// backward adds a wait for any counter, be it one that needs the task itself.
func (d *dag) backward(t *ir.Task) {
	if n := len(d.flat.Counters); n > 0 {
		c := d.IntN(n)
		t.Waits = append(t.Waits, ir.FlatWait{Counter: c, Threshold: d.count(c)})
	}
}

// redirect lets a wait be for another counter, to its full count.
func (d *dag) redirect(t *ir.Task) {
	if len(t.Waits) > 0 {
		c := d.IntN(len(d.flat.Counters))
		t.Waits[d.IntN(len(t.Waits))] = ir.FlatWait{Counter: c, Threshold: d.count(c)}
	}
}

// resignal lets a task signal another counter. The waits on both are made full again, if they have a producer left,
// in two of three cases.
func (d *dag) resignal(t *ir.Task) {
	if len(d.flat.Counters) == 0 {
		return
	}
	old := t.Signal
	t.Signal = d.IntN(len(d.flat.Counters))
	if chance(d.Rand, 3) {
		return
	}
	for i := range d.flat.Tasks {
		waits := d.flat.Tasks[i].Waits
		for k := range waits {
			if c := waits[k].Counter; c == old || c == t.Signal {
				waits[k].Threshold = max(1, d.count(c))
			}
		}
	}
}

// moveTask puts a task into another queue, or into none.
func (d *dag) moveTask(t *ir.Task) { t.SM = d.IntN(d.flat.SMs+1) - 1 }

// swap exchanges two tasks' places in the list, which is the order of queues.
func (d *dag) swap(t *ir.Task) {
	u := &d.flat.Tasks[d.IntN(len(d.flat.Tasks))]
	*t, *u = *u, *t
}

// moveView shifts the first dimension of an operand inside its buffer.
func (d *dag) moveView(t *ir.Task) {
	if len(t.Ops) == 0 {
		return
	}
	op := &t.Ops[d.IntN(len(t.Ops))]
	views, bufs := op.Out, op.OutBuf
	if len(op.In) > 0 && chance(d.Rand, 2) {
		views, bufs = op.In[:1], op.InBuf[:1]
	}
	if len(views) == 0 || bufs[0] < 0 {
		return
	}
	r := &views[0].Dims[0]
	lo, fixed := r.Lo.IsConst()
	if hi, ok := r.Hi.IsConst(); ok && fixed {
		to := d.IntN(d.flat.Buffers[bufs[0]].Shape[0] - (hi - lo) + 1)
		*r = ir.Span(ir.Int(to), ir.Int(to+hi-lo))
	}
}

// recount changes where a counter starts. The waits follow in one of two cases.
func (d *dag) recount(*ir.Task) {
	if len(d.flat.Counters) == 0 {
		return
	}
	c := d.IntN(len(d.flat.Counters))
	init := d.IntN(4)
	by := init - d.flat.Counters[c].Init
	d.flat.Counters[c].Init = init
	if chance(d.Rand, 2) {
		return
	}
	for i := range d.flat.Tasks {
		for k := range d.flat.Tasks[i].Waits {
			if w := &d.flat.Tasks[i].Waits[k]; w.Counter == c {
				w.Threshold = max(1, w.Threshold+by)
			}
		}
	}
}

// count is what a counter reaches as the tasks are now.
func (d *dag) count(c int) int {
	n := d.flat.Counters[c].Init
	for i := range d.flat.Tasks {
		if d.flat.Tasks[i].Signal == c {
			n++
		}
	}
	return n
}

// malform breaks the structure: an index, an SM, a shape, a name or a bound.
func (d *dag) malform() {
	f := d.flat
	t := &f.Tasks[d.IntN(len(f.Tasks))]
	switch d.IntN(6) {
	case 0:
		t.Signal = len(f.Counters) + d.IntN(3)
	case 1:
		t.Waits = append(t.Waits, ir.FlatWait{Counter: len(f.Counters), Threshold: 1})
	case 2:
		t.SM = f.SMs + d.IntN(2)
	case 3:
		f.Tasks[0].Name = f.Tasks[len(f.Tasks)-1].Name
	case 4:
		b := &f.Buffers[d.scratch[0]]
		b.Shape = []int{d.IntN(2 * dagWidth)}
	default:
		b := &f.Buffers[d.scratch[0]]
		b.DType = ir.I8
	}
}
