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

// wordRead identifies the words that a task waits for: those of a range of a buffer, announced by a counter.
type wordRead struct {
	counter, buf int
	dims         [8]int
}

type wordWrite struct {
	clock clock
	dims  [8]int
}

// newOrder walks the tasks in program order, in which every writer of a word comes before its readers: an edge that
// pointed backwards would not be seen, and leave more buffers interfering.
func newOrder(flat *ir.Flat) (*order, error) {
	o := &order{done: make([]clock, len(flat.Buffers)), before: make([]clock, len(flat.Buffers))}
	last := make([]clock, flat.SMs) // of the latest task of each queue
	length := make([]int32, flat.SMs)
	writes := map[[2]int][]wordWrite{} // by counter and buffer
	joined := map[wordRead]clock{}
	var accesses []ir.Access
	for t := range flat.Tasks {
		task := &flat.Tasks[t]
		if task.SM < 0 {
			return nil, diag.Errorf(codeOrder, "pass pagecolor",
				"task %s has no SM; want a program that has been assigned", task.Name)
		}
		begin := make(clock, flat.SMs)
		if last[task.SM] != nil {
			copy(begin, last[task.SM])
		}
		accesses = task.Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			if dims, fixed := fixedDims(a.Dims); fixed && !a.Write && flat.Buffers[a.Buf].Layout.Words() {
				for _, w := range task.Waits {
					key := wordRead{w.Counter, a.Buf, dims}
					c, known := joined[key]
					if !known {
						c = make(clock, flat.SMs)
						for _, write := range writes[[2]int{w.Counter, a.Buf}] {
							if overlap(&write.dims, &dims) {
								c.join(write.clock)
							}
						}
						joined[key] = c
					}
					begin.join(c)
				}
			}
		}
		length[task.SM]++
		end := append(clock(nil), begin...)
		end[task.SM] = length[task.SM]
		last[task.SM] = end
		for i := range accesses {
			a := &accesses[i]
			o.note(a, begin, task.SM, length[task.SM])
			if dims, fixed := fixedDims(a.Dims); fixed && a.Write && flat.Buffers[a.Buf].Layout.Words() &&
				task.Signal >= 0 {
				key := [2]int{task.Signal, a.Buf}
				writes[key] = append(writes[key], wordWrite{end, dims})
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
