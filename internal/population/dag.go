package population

import (
	"iter"
	"math/bits"
	"math/rand/v2"
	"strconv"

	"amkc/ir"
)

// numDAGs is that of the published population.
const numDAGs = 4000

// DAGs yields as many random DAGs as the published population has.
func DAGs() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for seed := range uint64(numDAGs) {
			if !yield(DAG(seed)) {
				return
			}
		}
	}
}

// DAG makes a random program of 3 to 12 tasks, one in sixteen with up to 40. It is planned task by task over a few
// small buffers: each task is given ops on memory that its predecessors in the plan have defined, and waits for those
// of them that it conflicts with and that nothing orders before it so far. Most plans are then spoilt: waits are left
// out while planning, or a few slips are made in the finished program. Nearly all of them leave it structurally well
// formed, so that what decides is order.
func DAG(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 0xda6))
	d := &dag{Rand: r, flat: &ir.Flat{Name: "dag", SMs: r.IntN(dagMaxSMs + 1)}}
	d.flat.Lo = r.IntN(dagRows - 1)
	d.flat.Hi = d.flat.Lo
	if chance(r, 5) {
		d.flat.Hi += r.IntN(dagRows - d.flat.Lo)
	}
	d.plan()
	d.slip()
	return Case{Name: "dag/" + strconv.FormatUint(seed, 10), Class: "dag", Flat: d.flat}
}

// A dag is a program while it is planned.
type dag struct {
	*rand.Rand
	flat    *ir.Flat
	bufs    []dagBuffer
	mems    []dagMemory
	scratch []int // buffers of activations
	output  int   // the logits; -1: none
	token   int   // the index of the largest; -1: none

	careless  int            // of 100 needed waits, how many are forgotten
	before    []uint64       // for each task: the tasks that are before it in every order
	last      [dagMaxSMs]int // the last task in the queue of each SM, or -1
	producers []uint64       // of each counter
	closed    []bool         // counters that a task waits on already
}

func (d *dag) plan() {
	for i := range d.last {
		d.last[i] = -1
	}
	d.declare()
	if chance(d.Rand, 4) {
		d.careless = 1 + d.IntN(30)
	}
	n := 3 + d.IntN(10)
	if chance(d.Rand, 16) {
		n = 13 + d.IntN(28)
	}
	for d.flat.Tasks = make([]ir.Task, 0, n); n > 0; n-- {
		d.task(d.ops(n))
	}
	for t := range d.flat.Tasks {
		for i := range d.flat.Tasks[t].Waits {
			w := &d.flat.Tasks[t].Waits[i]
			w.Threshold = d.total(w.Counter)
		}
	}
}

// total is the count that a counter reaches.
func (d *dag) total(c int) int { return d.flat.Counters[c].Init + bits.OnesCount64(d.producers[c]) }

// A dagOp is an op of the plan with what it touches.
type dagOp struct {
	ir.FlatOp
	reads, writes []dagView
}

// task appends a task: it takes a place in a queue, waits for what it conflicts with, and signals a counter.
func (d *dag) task(sm int, ops []dagOp) {
	t := len(d.flat.Tasks)
	task := ir.Task{Name: "t" + strconv.Itoa(t), SM: sm, Signal: -1}
	d.before = append(d.before, 0)
	if sm >= 0 {
		if q := d.last[sm]; q >= 0 {
			d.before[t] = d.before[q] | 1<<q
		}
		d.last[sm] = t
	}
	d.flat.Tasks = append(d.flat.Tasks, task)
	at := &d.flat.Tasks[t]
	for i := range ops {
		at.Ops = append(at.Ops, ops[i].FlatOp)
	}
	for need := d.touch(t, ops) &^ d.before[t]; need != 0; need &^= d.before[t] {
		// The latest one first: waiting for it often orders the others.
		q := bits.Len64(need) - 1
		need &^= 1 << q
		if d.IntN(100) >= d.careless {
			d.wait(t, q)
		}
	}
	if t > 0 && chance(d.Rand, 8) { // one that nothing needs
		d.wait(t, d.IntN(t))
	}
	switch {
	case chance(d.Rand, 10):
	case chance(d.Rand, 3):
		d.join(t)
	default:
		d.signal(t)
	}
}

// touch notes what a task reads and writes, and returns the tasks that must be before it.
func (d *dag) touch(t int, ops []dagOp) uint64 {
	var need uint64
	for i := range ops {
		for _, v := range ops[i].reads {
			if d.bufs[v.buf].input {
				continue
			}
			cells := d.cells(v)
			for k := range cells {
				if w := cells[k].writer; w >= 0 {
					need |= 1 << w
				}
				cells[k].readers |= 1 << t
			}
		}
		for _, v := range ops[i].writes {
			cells := d.cells(v)
			for k := range cells {
				if w := cells[k].writer; w >= 0 {
					need |= 1 << w
				}
				need |= cells[k].readers
				cells[k] = dagCell{writer: t, buf: v.buf}
			}
		}
	}
	return need &^ (1 << t)
}

// wait lets task t wait for the counter that task q signals, and thereby for all that do.
func (d *dag) wait(t, q int) {
	if d.flat.Tasks[q].Signal < 0 {
		d.signal(q)
	}
	c := d.flat.Tasks[q].Signal
	for _, w := range d.flat.Tasks[t].Waits {
		if w.Counter == c {
			return
		}
	}
	d.closed[c] = true
	d.flat.Tasks[t].Waits = append(d.flat.Tasks[t].Waits, ir.FlatWait{Counter: c})
	for rest := d.producers[c]; rest != 0; rest &= rest - 1 {
		d.before[t] |= d.before[bits.TrailingZeros64(rest)]
	}
	d.before[t] |= d.producers[c]
}

// signal gives a task a counter of its own, which tasks that follow may join.
func (d *dag) signal(t int) {
	c := ir.Counter{Name: "c" + strconv.Itoa(len(d.flat.Counters)), How: ir.ByCounter}
	if chance(d.Rand, 8) {
		c.Init = 1 + d.IntN(3)
	}
	d.flat.Tasks[t].Signal = len(d.flat.Counters)
	d.flat.Counters = append(d.flat.Counters, c)
	d.producers = append(d.producers, 1<<t)
	d.closed = append(d.closed, false)
}

// join lets a task signal a counter that others signal and nobody waits on yet, or one of its own if there is none.
func (d *dag) join(t int) {
	for c := len(d.closed) - 1; c >= 0; c-- {
		if !d.closed[c] {
			d.flat.Tasks[t].Signal = c
			d.producers[c] |= 1 << t
			return
		}
	}
	d.signal(t)
}
