package validate_test

import (
	"slices"

	"amkc/ir"
	"amkc/validate"
)

// reference is the walk over memory as the definition has it: one cell for every byte, a set of tasks for each
// relation, no summary of anything. It knows programs at one position, and stops at the first finding.
type reference struct {
	f         *ir.Flat
	producers [][]int
	hb, fb    [][]bool // [task][earlier task]
	cells     map[cellKey]*cell
	copies    map[string][]int // of each place: the copies that some task polls
	task      int
	polled    []int
	published bool
}

type cellKey struct {
	place string // page or buffer
	copy  int
	addr  int
}

type cell struct {
	writer, buf, owner int // -1 for none
	readers            []int
}

// firstCode returns the code of the first finding about memory, "" if there is none.
func firstCode(f *ir.Flat) string {
	n := len(f.Tasks)
	r := &reference{f: f, producers: make([][]int, len(f.Counters)), hb: make([][]bool, n), fb: make([][]bool, n),
		cells: map[cellKey]*cell{}, copies: map[string][]int{}}
	for t := range f.Tasks {
		for k := range f.Tasks[t].Ops {
			for _, b := range f.Tasks[t].Ops[k].InBuf {
				if b >= 0 {
					at := placeOf(&f.Buffers[b])
					r.copies[at] = append(r.copies[at], polledCopy(&f.Tasks[t], &f.Buffers[b]))
				}
			}
		}
		if c := f.Tasks[t].Signal; c >= 0 {
			r.producers[c] = append(r.producers[c], t)
		}
	}
	for _, t := range r.order() {
		if code := r.run(t); code != "" {
			return code
		}
	}
	return ""
}

func placeOf(b *ir.Buffer) string {
	if len(b.Pages) > 0 {
		return "page " + b.Pages[0]
	}
	return "buffer " + b.Name
}

// polledCopy is the copy of a buffer that a task reads.
func polledCopy(t *ir.Task, b *ir.Buffer) int { return max(0, t.SM) % max(1, b.Layout.Copies) }

func (r *reference) before(t int) int {
	for q := t - 1; q >= 0; q-- {
		if r.f.Tasks[t].SM >= 0 && r.f.Tasks[q].SM == r.f.Tasks[t].SM {
			return q
		}
	}
	return -1
}

// order starts tasks first come, first served.
func (r *reference) order() []int {
	n := len(r.f.Tasks)
	pending := make([]int, n)
	next := make([]int, n)
	for t := range n {
		next[t] = -1
	}
	var order []int
	for t := range n {
		pending[t] = len(r.f.Tasks[t].Waits)
		if q := r.before(t); q >= 0 {
			next[q] = t
			pending[t]++
		}
	}
	for t := range n {
		if pending[t] == 0 {
			order = append(order, t)
		}
	}
	done := map[int]int{} // of each counter
	ready := func(t int) {
		if pending[t]--; pending[t] == 0 {
			order = append(order, t)
		}
	}
	for i := 0; i < len(order); i++ {
		t := order[i]
		if next[t] >= 0 {
			ready(next[t])
		}
		if c := r.f.Tasks[t].Signal; c >= 0 {
			if done[c]++; done[c] == len(r.producers[c]) {
				for w := range n {
					for _, wait := range r.f.Tasks[w].Waits {
						if wait.Counter == c {
							ready(w)
						}
					}
				}
			}
		}
	}
	return order
}

func add(set []bool, t int, earlier []bool) {
	set[t] = true
	for k, in := range earlier {
		set[k] = set[k] || in
	}
}

func (r *reference) run(t int) string {
	task := &r.f.Tasks[t]
	r.task, r.published, r.hb[t], r.fb[t] = t, false, make([]bool, len(r.f.Tasks)), make([]bool, len(r.f.Tasks))
	if q := r.before(t); q >= 0 {
		add(r.hb[t], q, r.hb[q])
		add(r.fb[t], q, r.fb[q])
	}
	for _, w := range task.Waits {
		if r.f.Counters[w.Counter].How == ir.ByCounter {
			for _, q := range r.producers[w.Counter] {
				add(r.hb[t], q, r.hb[q])
				add(r.fb[t], q, r.fb[q])
			}
		}
	}
	for k := range task.Ops {
		op := &task.Ops[k]
		for i, b := range op.InBuf {
			if code := r.view(b, op.In[i].Dims, false); code != "" {
				return code
			}
		}
		for _, q := range r.polled {
			add(r.fb[t], q, r.fb[q])
		}
		r.polled = nil
		for i, b := range op.OutBuf {
			if code := r.view(b, op.Out[i].Dims, true); code != "" {
				return code
			}
			r.published = r.published || b >= 0 && r.f.Buffers[b].Layout.Words() && r.flagged(t)
		}
	}
	return ""
}

// view touches every byte of a view (every element, off pages) in ascending order, until something is found: a read the
// bytes of the task's copy, a write those of every copy that somebody polls.
func (r *reference) view(buf int, dims []ir.Range, write bool) string {
	if buf < 0 || r.f.Buffers[buf].Kind.ReadOnly() {
		return ""
	}
	b := &r.f.Buffers[buf]
	elements := []int{0}
	for d := range dims {
		var finer []int
		for _, e := range elements {
			for _, x := range dims[d].Elements(nil, r.f.Lo) {
				finer = append(finer, e*b.Shape[d]+x)
			}
		}
		elements = finer
	}
	key, size := cellKey{place: placeOf(b)}, 1
	if len(b.Pages) > 0 {
		if size = b.DType.Bits() / 8; b.Layout.Words() {
			size *= 2
		}
	}
	touch, copies := r.read, []int{polledCopy(&r.f.Tasks[r.task], b)}
	if write {
		touch = r.write
		if copies = slices.Compact(slices.Sorted(slices.Values(r.copies[key.place]))); len(copies) == 0 {
			copies = []int{0}
		}
	}
	for _, e := range elements {
		for key.addr = e * size; key.addr < (e+1)*size; key.addr++ {
			for _, key.copy = range copies {
				c := r.cells[key]
				if c == nil {
					c = &cell{writer: -1, owner: -1}
					r.cells[key] = c
				}
				if code := r.own(c, b); code != "" {
					return code
				}
				if code := touch(c, buf, e); code != "" {
					return code
				}
			}
		}
	}
	return ""
}

func (r *reference) own(c *cell, b *ir.Buffer) string {
	owner := r.f.Tasks[r.task].SM
	switch {
	case b.Space == ir.Register:
		owner = r.task
	case b.Space != ir.SMEM:
		return ""
	}
	if owner < 0 || c.owner >= 0 && c.owner != owner {
		return validate.CodeOwner.ID
	}
	c.owner = owner
	return ""
}

func (r *reference) read(c *cell, buf, element int) string {
	b, w, t := &r.f.Buffers[buf], c.writer, r.task
	switch {
	case w < 0:
		if row := b.Kind == ir.KVCache; !row ||
			element/product(b.Shape[len(b.Shape)-2:])%b.Shape[len(b.Shape)-3] >= r.f.Lo {
			return r.never(buf, element, validate.CodeUndefined.ID)
		}
	case c.buf != buf && r.unrelated(w, t):
		return r.never(buf, element, validate.CodeOverwriteRace.ID)
	case c.buf != buf:
		return r.never(buf, element, validate.CodeClobbered.ID)
	case w != t && !r.hb[t][w] && !(b.Layout.Words() && r.poll(w)):
		return r.race(w, b)
	case w != t && b.Layout.Words() && !slices.Contains(c.readers, t) && r.stale(w, buf, element):
		return validate.CodeStale.ID
	case w != t && b.Layout.Words() && r.published && !slices.Contains(c.readers, t):
		return validate.CodePollOrder.ID
	}
	if !b.Layout.Words() || w != t { // it has its own words
		c.readers = append(c.readers, t)
	}
	return ""
}

// stale reports whether the current task polls an element for another exchange than that of its last writer.
func (r *reference) stale(w, buf, element int) bool {
	for _, x := range r.f.Tasks[r.task].Waits {
		if r.f.Counters[x.Counter].How != ir.Flagged || r.f.Tasks[w].Signal == x.Counter {
			continue
		}
		for _, q := range r.producers[x.Counter] {
			for k := range r.f.Tasks[q].Ops {
				op := &r.f.Tasks[q].Ops[k]
				for i, o := range op.OutBuf {
					if o == buf && inView(op.Out[i].Dims, r.f.Buffers[buf].Shape, element, r.f.Lo) {
						return true
					}
				}
			}
		}
	}
	return false
}

func (r *reference) poll(w int) bool {
	if !r.waitsFor(w) || !r.flagged(w) {
		return false
	}
	r.polled = append(r.polled, w)
	return true
}

// waitsFor reports whether the current task waits on the counter that task w signals.
func (r *reference) waitsFor(w int) bool {
	c := r.f.Tasks[w].Signal
	return c >= 0 && slices.ContainsFunc(r.f.Tasks[r.task].Waits, func(x ir.FlatWait) bool { return x.Counter == c })
}

func (r *reference) flagged(t int) bool {
	c := r.f.Tasks[t].Signal
	return c >= 0 && r.f.Counters[c].How == ir.Flagged
}

// never is a read of what was not written through its buffer: a race if a task that could as well come earlier writes
// it.
func (r *reference) never(buf, element int, code string) string {
	b := &r.f.Buffers[buf]
	for w := range r.f.Tasks {
		if !r.unrelated(w, r.task) {
			continue
		}
		for k := range r.f.Tasks[w].Ops {
			op := &r.f.Tasks[w].Ops[k]
			for i, o := range op.OutBuf {
				if o == buf && inView(op.Out[i].Dims, b.Shape, element, r.f.Lo) {
					return r.race(w, b)
				}
			}
		}
	}
	return code
}

func inView(dims []ir.Range, shape []int, element, pos int) bool {
	for d := len(dims) - 1; d >= 0; d-- {
		if !slices.Contains(dims[d].Elements(nil, pos), element%shape[d]) {
			return false
		}
		element /= shape[d]
	}
	return true
}

// unrelated reports whether no path leads from one task to the other.
func (r *reference) unrelated(a, b int) bool { return !r.leadsTo(a, b) && !r.leadsTo(b, a) }

// leadsTo reports whether a path of queue and counter edges goes from one task to another.
func (r *reference) leadsTo(from, to int) bool {
	seen := make([]bool, len(r.f.Tasks))
	for stack := []int{to}; len(stack) > 0; {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t == from {
			return true
		}
		if seen[t] {
			continue
		}
		seen[t] = true
		if q := r.before(t); q >= 0 {
			stack = append(stack, q)
		}
		for _, w := range r.f.Tasks[t].Waits {
			stack = append(stack, r.producers[w.Counter]...)
		}
	}
	return false
}

func (r *reference) race(w int, b *ir.Buffer) string {
	if !b.Layout.Words() && r.waitsFor(w) && r.flagged(w) {
		return validate.CodeFlaggedPlain.ID
	}
	return validate.CodeReadRace.ID
}

func (r *reference) write(c *cell, buf, _ int) string {
	b, w, t := &r.f.Buffers[buf], c.writer, r.task
	free := r.hb[t]
	if b.Layout.Words() {
		free = r.fb[t]
	}
	for _, q := range c.readers {
		if q != t && !free[q] {
			return validate.CodeOverwriteRace.ID
		}
	}
	if w >= 0 && w != t {
		if !free[w] {
			return validate.CodeWriteRace.ID
		}
		if b.Layout.Words() && len(c.readers) == 0 && !r.hb[t][w] {
			return validate.CodeUnread.ID
		}
	}
	c.writer, c.buf, c.readers = t, buf, nil
	return ""
}

func product(ns []int) int {
	n := 1
	for _, k := range ns {
		n *= k
	}
	return n
}
