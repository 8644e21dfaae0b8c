package passes

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// interference returns whether two buffers of the unrolled program, by index, may not share memory: in some variant
// there is an access of either that is not known to precede a write of the other. A step ends before the next begins,
// so that only accesses of the same step matter.
//
// What is known to precede what is the relation that holds however counters are carried out: the queue order of an
// SM, and from the writer of a flagged word, with all that its SM did before, to the reader of that word. Counters
// that count order more than that, never less.
func interference(p *ir.Program) (func(a, b int) bool, error) {
	var orders []*order
	for i := range p.Variants {
		flat, diags := ir.Unroll(p, &p.Variants[i])
		if err := diags.Err(); err != nil {
			return nil, err
		}
		o, err := newOrder(flat)
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return func(a, b int) bool {
		for _, o := range orders {
			if !o.precedes(a, b) && !o.precedes(b, a) {
				return true
			}
		}
		return false
	}, nil
}

// A clock says for each SM how many tasks of its queue have been overtaken.
type clock []int32

func (c clock) join(d clock) {
	for s := range c {
		c[s] = max(c[s], d[s])
	}
}

// An order holds what pages depend on in one variant: how far each queue is when the last access of a buffer is done,
// and how far each queue is known to be when any of its writes begins. Both are nil for buffers that the variant does
// not use.
type order struct {
	done   []clock
	before []clock
}

// precedes reports whether every access of a is known to be done before any write of b begins.
func (o *order) precedes(a, b int) bool {
	if o.done[a] == nil || o.before[b] == nil {
		return true
	}
	for s, n := range o.done[a] {
		if n > o.before[b][s] {
			return false
		}
	}
	return true
}

// words are those that tasks wait for: a range of a buffer, announced by a counter. All tasks that read the same range
// have one clock for it, which gathers those of its writers.
type words struct {
	dims    [8]int
	written clock // how far each queue is when all writers so far are done; nil before the first
}

type announced struct{ counter, buf int }

// wordReads lists the distinct ranges that tasks wait for, and finds them again.
type wordReads struct {
	of    map[announced][]*words
	known map[announced]map[[8]int]*words
}

// newWordReads looks at all tasks once. So a write is noted where it will be read and nowhere else, in memory for the
// ranges and not for the tasks, of which there may be very many on very many SMs.
func newWordReads(flat *ir.Flat) *wordReads {
	r := &wordReads{map[announced][]*words{}, map[announced]map[[8]int]*words{}}
	eachWord(flat, func(t *ir.Task, a *ir.Access, dims [8]int) {
		if a.Write {
			return
		}
		for _, w := range t.Waits {
			key := announced{w.Counter, a.Buf}
			if r.known[key] == nil {
				r.known[key] = map[[8]int]*words{}
			}
			if r.known[key][dims] == nil {
				r.known[key][dims] = &words{dims: dims}
				r.of[key] = append(r.of[key], r.known[key][dims])
			}
		}
	})
	return r
}

// eachWord calls f for every access to words of a range that is the same at every position.
func eachWord(flat *ir.Flat, f func(t *ir.Task, a *ir.Access, dims [8]int)) {
	var accesses []ir.Access
	for t := range flat.Tasks {
		accesses = flat.Tasks[t].Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			if dims, fixed := fixedDims(a.Dims); fixed && flat.Buffers[a.Buf].Layout.Words() {
				f(&flat.Tasks[t], a, dims)
			}
		}
	}
}

// newOrder walks the tasks in program order, in which every writer of a word comes before its readers: an edge that
// pointed backwards would not be seen, and leave more buffers interfering.
func newOrder(flat *ir.Flat) (*order, error) {
	o := &order{done: make([]clock, len(flat.Buffers)), before: make([]clock, len(flat.Buffers))}
	queues := make([]clock, flat.SMs) // how far each is known to be by the task at hand of a queue, its own number last
	reads := newWordReads(flat)
	var accesses []ir.Access
	for t := range flat.Tasks {
		task := &flat.Tasks[t]
		if task.SM < 0 {
			return nil, diag.Errorf(codeOrder, "pass pagecolor",
				"task %s has no SM; want a program that has been assigned", task.Name)
		}
		if queues[task.SM] == nil {
			queues[task.SM] = make(clock, flat.SMs)
		}
		now := queues[task.SM]
		number := now[task.SM] + 1
		accesses = task.Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			if dims, fixed := fixedDims(a.Dims); fixed && !a.Write && flat.Buffers[a.Buf].Layout.Words() {
				for _, w := range task.Waits {
					if read := reads.known[announced{w.Counter, a.Buf}][dims]; read.written != nil {
						now.join(read.written)
					}
				}
			}
		}
		for i := range accesses {
			o.note(&accesses[i], now, task.SM, number)
		}
		now[task.SM] = number
		for i := range accesses {
			a := &accesses[i]
			dims, fixed := fixedDims(a.Dims)
			if !fixed || !a.Write || task.Signal < 0 || !flat.Buffers[a.Buf].Layout.Words() {
				continue
			}
			for _, read := range reads.of[announced{task.Signal, a.Buf}] {
				if overlap(&dims, &read.dims) {
					if read.written == nil {
						read.written = make(clock, flat.SMs)
					}
					read.written.join(now)
				}
			}
		}
	}
	return o, nil
}

// note records an access by the n-th task of an SM, which began at the given clock.
func (o *order) note(a *ir.Access, begin clock, sm int, n int32) {
	if o.done[a.Buf] == nil {
		o.done[a.Buf] = make(clock, len(begin))
	}
	o.done[a.Buf][sm] = max(o.done[a.Buf][sm], n)
	if !a.Write {
		return
	}
	if o.before[a.Buf] == nil {
		o.before[a.Buf] = append(clock(nil), begin...)
		return
	}
	for s := range begin {
		o.before[a.Buf][s] = min(o.before[a.Buf][s], begin[s])
	}
}

// fixedDims returns the bounds of a view that is the same at every position and has no share. Other views order
// nothing.
func fixedDims(dims []ir.Range) (out [8]int, fixed bool) {
	if len(dims) > 4 {
		return out, false
	}
	for i, r := range dims {
		lo, ok1 := r.Lo.IsConst()
		hi, ok2 := r.Hi.IsConst()
		if !ok1 || !ok2 || r.Shared() {
			return out, false
		}
		out[2*i], out[2*i+1] = lo, hi
	}
	for i := len(dims); i < 4; i++ {
		out[2*i+1] = 1
	}
	return out, true
}

func overlap(a, b *[8]int) bool {
	for i := 0; i < 8; i += 2 {
		if max(a[i], b[i]) >= min(a[i+1], b[i+1]) {
			return false
		}
	}
	return true
}
