package refvm

import (
	"fmt"

	"amkc/ir"
	"amkc/ir/diag"
)

// A Touch is a run of elements [Lo, Lo+N), in row-major order, of a flat buffer that op Op of a task read or wrote.
type Touch struct {
	Buf, Lo, N int
	Op         int
	Write      bool
}

// A worker runs one task at a time. It is the only way from an op to memory: reads hand out slices of just the elements
// asked for, writes go through emit, and both are what a recording notes.
type worker struct {
	vm      *VM
	at      []int // the position of each sequence in this pass
	task    *task
	op      int // of the task
	temps   []value
	scratch []float32 // what ops of this task compute with; used up to the mark
	mark    int
	bounds  Bounds
	chunks  int   // how often scratch was replaced by more of it
	claimed int   // elements of Bounds.Scratch
	spent   int   // work since it was last looked whether the caller wants no more
	lists   []int // offsets of attention rows
	touched []Touch
	err     error // of a read or a write
	bounded bool  // result holds the radii of the current op
	result  radii
	same    bool // the rule is applied for kernels with the same sums
}

// A value is what a temporary holds.
type value struct {
	f    []float32
	ints bool // elements are int32, kept as their bits
	last int  // size of the last dimension
	// scales are of its rows, left for the reader to apply; see rmsnorm. nil: there are none
	scales []float32
	radii  // under Options.Radii
}

// run runs a task whose waits are satisfied.
func (w *worker) run(index int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = reason(r)
		}
	}()
	t := &w.vm.tasks[index]
	w.task, w.mark, w.claimed, w.err, w.touched = t, 0, 0, nil, w.touched[:0]
	if len(w.temps) < t.temps {
		w.temps = make([]value, t.temps)
	}
	for i := range t.ops {
		o := &t.ops[i]
		mark, chunks, claimed := w.mark, w.chunks, w.claimed
		w.op, w.bounded = i, false
		if err := w.place(o); err != nil {
			return err
		}
		if err := o.run(w, o); err != nil {
			return err
		}
		if w.err != nil {
			return w.err
		}
		if !o.keeps {
			if w.claimed = claimed; w.chunks > chunks {
				mark = 0
			}
			w.mark = mark
		}
	}
	if w.vm.touched != nil {
		w.vm.touched[index] = append(w.vm.touched[index][:0], w.touched...)
	}
	return nil
}

// place evaluates the views and the parameters of an op that move with the position.
func (w *worker) place(o *op) error {
	for i := range o.moving {
		p := &o.moving[i]
		for t := range p.rows {
			if bad := checkInt(p.declared, p.rows[t].at(w.at)); bad != "" {
				return diag.Errorf(CodeOp, w.task.pos(), "%v %s at position %d", o.src.Code, bad,
					w.at[p.rows[t].sequence])
			}
		}
	}
	for k := range o.in {
		if bad := o.in[k].at(w.at); bad != "" {
			return diag.Errorf(CodeView, w.task.pos(), "view of %s: %s", o.in[k].st.buf.Name, bad)
		}
	}
	for k := range o.out {
		if bad := o.out[k].at(w.at); bad != "" {
			return diag.Errorf(CodeView, w.task.pos(), "view of %s: %s", o.out[k].st.buf.Name, bad)
		}
	}
	return nil
}

// misfit reports operands whose sizes contradict each other.
func (w *worker) misfit(o *op, format string, args ...any) error {
	return diag.Errorf(CodeSizes, w.task.pos(), "%v %s", o.src.Code, fmt.Sprintf(format, args...))
}

// alloc returns n floats that live until the end of the op, or of the task if the op has a temporary as an output. They
// hold what earlier ops left.
func (w *worker) alloc(n int) []float32 {
	w.claim(n)
	if w.mark+n > len(w.scratch) {
		more := 2 * len(w.scratch)
		if w.bounds.Scratch > 0 {
			more = min(more, 1<<20) // what lies ahead of the mark is not counted
		}
		w.scratch, w.mark, w.chunks = make([]float32, max(more, n, 1<<12)), 0, w.chunks+1
	}
	s := w.scratch[w.mark : w.mark+n : w.mark+n]
	w.mark += n
	return s
}

// touch notes an access, and refuses one to another SM's part of an SMEM buffer.
func (w *worker) touch(st *store, lo, n int, write bool) {
	if n == 0 {
		return
	}
	if st.owner != nil && w.task.src.SM >= 0 {
		if was := st.own(w.task.src.SM, lo, n); was >= 0 {
			w.err = diag.Errorf(CodeOwner, w.task.pos(),
				"touches elements %d:%d of %s from SM %d, some of them belong to SM %d", lo, lo+n, st.buf.Name,
				w.task.src.SM, was)
		}
	}
	if w.vm.touched != nil {
		if most := w.bounds.Touches; most > 0 && len(w.touched) == most {
			panic(ended{&BoundError{fmt.Sprintf("it reads and writes more than %d stretches of elements", most)}})
		}
		w.touched = append(w.touched, Touch{st.index, lo, n, w.op, write})
	}
}

// read returns elements [lo, lo+n) of a buffer, not to be written.
func (w *worker) read(st *store, lo, n int) []float32 {
	w.spend(n)
	w.touch(st, lo, n, false)
	return st.data[lo : lo+n : lo+n]
}

// touchBox records all of a box as read.
func (w *worker) touchBox(b *box) {
	if b.n == 0 {
		return
	}
	var idx [ir.MaxRank]int
	for {
		w.touch(b.st, b.offset(&idx), b.run, false)
		if !b.next(&idx) {
			return
		}
	}
}

// gather returns the elements of a box in order, copied unless they are side by side.
func (w *worker) gather(b *box) []float32 {
	if off, ok := b.solid(); ok {
		if b.n == 0 {
			return nil
		}
		return w.read(b.st, off, b.n)
	}
	out := w.alloc(b.n)
	if b.n == 0 {
		return out
	}
	var idx [ir.MaxRank]int
	for at := 0; ; at += b.run {
		copy(out[at:], w.read(b.st, b.offset(&idx), b.run))
		if !b.next(&idx) {
			return out
		}
	}
}

// bits returns the elements of an operand as they are stored, and whether they are integers.
func (w *worker) bits(o *operand) (elems []float32, ints bool) {
	if o.st == nil {
		w.spend(len(w.temps[o.slot].f))
		return w.temps[o.slot].f, w.temps[o.slot].ints
	}
	return w.gather(&o.box), o.st.ints
}

// ofRow returns a parameter that a row may have for itself.
func (w *worker) ofRow(o *op, key string, row, absent int) int {
	for i := range o.moving {
		if p := &o.moving[i]; p.declared.Key == key {
			return p.rows[min(row, len(p.rows)-1)].at(w.at)
		}
	}
	return o.src.IntAt(key, 0, absent)
}

// scaled returns an operand as numbers, and a factor for each row that the caller applies to them or to what it makes
// of them; nil if there is none.
func (w *worker) scaled(o *operand) (elems, scales []float32) {
	elems, ints := w.bits(o)
	if ints {
		out := w.alloc(len(elems))
		for i, f := range elems {
			out[i] = float32(toInt(f))
		}
		elems = out
	}
	if o.st == nil {
		return elems, w.temps[o.slot].scales
	}
	return elems, nil
}

// floats returns an operand as numbers.
func (w *worker) floats(o *operand) []float32 {
	elems, scales := w.scaled(o)
	return w.applied(elems, scales)
}

// applied multiplies rows by their factors, if there are any.
func (w *worker) applied(x, scales []float32) []float32 {
	if scales == nil {
		return x
	}
	out, n := w.alloc(len(x)), len(x)/max(1, len(scales))
	for i, f := range x {
		out[i] = f * scales[i/n]
	}
	return out
}

func (w *worker) times(x []float32, scale float32) []float32 {
	out := w.alloc(len(x))
	for i, f := range x {
		out[i] = f * scale
	}
	return out
}

// integer returns element i of what bits returned.
func integer(elems []float32, ints bool, i int) int {
	if ints {
		return int(toInt(elems[i]))
	}
	return int(elems[i])
}

// last returns the number of elements of an operand's last dimension.
func (w *worker) last(o *operand) int {
	if o.st == nil {
		return w.temps[o.slot].last
	}
	return o.dims[o.rank-1].n
}

// rows returns the number of rows of an operand: of elements in all dimensions but the last.
func (w *worker) rows(o *operand) int {
	if o.st == nil {
		v := &w.temps[o.slot]
		return len(v.f) / max(1, v.last)
	}
	n := 1
	for d := range o.rank - 1 {
		n *= o.dims[d].n
	}
	return n
}

// emit gives every output of the op its result, which must be in scratch. Buffers round it to their type; a temporary
// takes it as it is, last being its last dimension.
func (w *worker) emit(o *op, result []float32, last int) error {
	for k := range o.out {
		if err := w.put(o, &o.out[k], value{f: result, last: last}); err != nil {
			return err
		}
	}
	return nil
}

// put gives one output its value.
func (w *worker) put(o *op, out *operand, v value) error {
	if w.vm.opts.Radii {
		if !w.bounded { // and nothing has been written yet
			w.bound(o, v)
		}
		v.radii = w.result
		for k := range w.result.more {
			if out == &o.out[1+k] {
				v.radii = w.result.more[k]
			}
		}
	}
	if out.st == nil {
		w.temps[out.slot] = v
		return nil
	}
	if out.n != len(v.f) {
		return w.misfit(o, "yields %d elements, the view of %s has %d", len(v.f), out.st.buf.Name, out.n)
	}
	if out.n == 0 {
		return nil
	}
	w.spend(out.n)
	if w.vm.opts.Radii && v.scales != nil {
		v.radii = w.appliedRadii(v)
	}
	v.f = w.applied(v.f, v.scales)
	var idx [ir.MaxRank]int
	for from, first := v.f, 0; ; from, first = from[out.run:], first+out.run {
		lo := out.offset(&idx)
		w.touch(out.st, lo, out.run, true)
		out.st.write(lo, from[:out.run], v)
		out.st.track(lo, from[:out.run], v.radii, first)
		if !out.next(&idx) {
			return nil
		}
	}
}

// write stores elements from lo on, converted to the type of the buffer.
func (s *store) write(lo int, from []float32, v value) {
	to := s.data[lo : lo+len(from)]
	switch {
	case s.rows != nil:
		s.rows.set(lo, to, from)
	case s.ints == v.ints && (s.round == nil || v.ints):
		copy(to, from)
	case s.ints:
		for i, f := range from {
			to[i] = fromInt(int32(f))
		}
	case v.ints:
		for i, f := range from {
			to[i] = s.round.of(float32(toInt(f)))
		}
	default:
		for i, f := range from {
			to[i] = s.round.of(f)
		}
	}
}
