package simulate

import (
	"fmt"
	"slices"

	"amkc/ir"
)

// What selects a row of a table is one of its rows, however the values turn out that decide about it. The tasks are
// walked in one order that the counters allow (in programs without races every order gives the same), element by
// element, and each element of type I32 is as large as it can be. Values are any numbers, or none: SAMPLE_ARGMAX may
// choose each of those it looks at. The host gives the token and other inputs, as rows; in the second of two steps
// the token is what the first has left.

// walk is the state of memory, as far as it holds indices.
type walk struct {
	m     *machine
	held  map[string]map[int]index // by buffer and element
	left  int                      // elements that may yet be looked at one by one
	temps map[string]list          // of the current task, those of which the length is known
	lasts map[string]int           // and of how many elements their last dimension is
	token index
}

// indices finds a row that a table does not have.
func (m *machine) indices() (*Hazard, error) {
	if !m.selects() {
		return nil, nil
	}
	w := &walk{m: m, left: maxIndices, token: index{hi: -1, given: true}}
	for step, r := range m.runs {
		w.held = map[string]map[int]index{}
		order := m.anyOrder(step)
		if m.opts.stopped() {
			return nil, ErrStopped
		}
		if order == nil {
			return nil, nil // it is stuck, which is found elsewhere
		}
		for _, t := range order {
			w.temps, w.lasts = map[string]list{}, map[string]int{}
			for k := range m.tasks[t].flat.Ops {
				if m.opts.stopped() {
					return nil, ErrStopped
				}
				if bad := w.op(r, &m.tasks[t].flat.Ops[k]); bad != "" {
					return &Hazard{Kind: Index, Where: "task " + m.tasks[t].name, Detail: bad}, nil
				}
				if w.left < 0 {
					return nil, tooLarge("its tasks read and write more than %d row indices", maxIndices)
				}
			}
		}
		for i := range r.Flat.Buffers {
			if b := &r.Flat.Buffers[i]; b.Role == ir.RoleNext && b.Kind == ir.Output && b.DType == ir.I32 &&
				len(w.held[b.Name]) > 0 {
				next := index{hi: -1}
				for _, of := range w.held[b.Name] { // the host may go on after any row
					next = next.or(of)
				}
				if !next.given || next.hi >= 0 || next.any || next.none {
					w.token = next
				}
			}
		}
	}
	return nil, nil
}

func (m *machine) selects() bool {
	for t := range m.tasks {
		for k := range m.tasks[t].flat.Ops {
			switch code := m.tasks[t].flat.Ops[k].Code; {
			case code == ir.EMBED, code == ir.SELECTED, code == ir.TOPK, code == ir.STOP, code.Chooses():
				return true
			}
		}
	}
	return false
}

// anyOrder lists the tasks of a step in an order in which they can run, or nothing if there is none, or the caller has
// stopped.
func (m *machine) anyOrder(step int) []int {
	missing := make([]int, len(m.counters)) // producers that are not done
	left := 0
	for t := range m.tasks {
		if m.tasks[t].step == step {
			left++
			if s := m.tasks[t].signal; s >= 0 {
				missing[s]++
			}
		}
	}
	done := make([]bool, len(m.tasks))
	may := func(t *task) bool {
		if t.after >= 0 && m.tasks[t.after].step == step && !done[t.after] {
			return false
		}
		for _, w := range t.waits {
			if c := &m.counters[w.counter]; c.init+len(c.producers)-missing[w.counter] < w.threshold {
				return false
			}
		}
		for _, c := range t.flagged {
			if missing[c] > 0 {
				return false
			}
		}
		return true
	}
	order := make([]int, 0, left)
	for more := true; more && !m.opts.stopped(); {
		more = false
		for t := range m.tasks {
			if m.tasks[t].step != step || done[t] || !may(&m.tasks[t]) {
				continue
			}
			done[t], more = true, true
			order = append(order, t)
			if s := m.tasks[t].signal; s >= 0 {
				missing[s]--
			}
		}
	}
	if len(order) < left {
		return nil
	}
	return order
}

// op moves indices as an op does, and says which row it looks for in vain.
func (w *walk) op(r Run, op *ir.FlatOp) string {
	var out list
	known := true
	switch op.Code {
	case ir.NOP:
		return ""
	case ir.SELECTED:
		ids, _ := w.load(r, op, 2)
		if bad := w.lookUp(r, op, 2, ids); bad != "" {
			return bad
		}
		w.store(r, op, list{}, false) // of numbers, and not of indices
		return ""
	case ir.TOPK:
		return w.topK(r, op)
	case ir.EMBED:
		ids, ok := w.load(r, op, 0)
		if bad := w.lookUp(r, op, 0, ids); bad != "" || op.InBuf[1] < 0 {
			return bad
		}
		rows := op.In[1].Dims[0].Len(r.of(op.In[1].Dims))
		if slices.ContainsFunc(op.Out, ir.Operand.IsTemp) {
			out, known = all(index{any: true}, ids.n*elements(&op.In[1], r)/max(1, rows)), ok
		}
	case ir.ArgMax, ir.SAMPLE:
		return w.argmax(r, op)
	case ir.COPY:
		out, known = w.load(r, op, 0)
	case ir.STOP:
		n, ok := w.length(r, op)
		out, known = all(index{hi: 1}, n), ok
	default:
		if !slices.ContainsFunc(op.Out, ir.Operand.IsTemp) {
			return "" // only indices and what a task keeps to itself matter
		}
		n, ok := w.length(r, op)
		out, known = all(index{any: true}, n), ok
	}
	w.store(r, op, out, known)
	return ""
}

// lookUp says which row of a table, the second operand, one of the ids in input i is not.
func (w *walk) lookUp(r Run, op *ir.FlatOp, i int, ids list) string {
	if op.InBuf[1] < 0 {
		return ""
	}
	rows := op.In[1].Dims[0].Len(r.of(op.In[1].Dims))
	for _, id := range ids.kinds() {
		switch {
		case id.any || id.none:
			return fmt.Sprintf("takes %s for a row of %s, and it may be anything", op.In[i], op.In[1])
		case id.hi >= rows:
			return fmt.Sprintf("takes %s for a row of %s, and it may be %d of %d", op.In[i], op.In[1], id.hi, rows)
		}
	}
	return ""
}

// topK yields numbers of elements of a row, each of which may be any of them.
func (w *walk) topK(r Run, op *ir.FlatOp) string {
	x, known := w.load(r, op, 0)
	last, k := w.lastOf(r, op, 0), op.IntAt("k", 0, 0)
	for i, of := range []index{{any: true}, {hi: last - 1}} {
		n := x.n / max(1, last) * k
		if op.OutBuf[i] >= 0 {
			n = elements(&op.Out[i], r)
		}
		w.lasts[op.Out[i].Buf] = k
		w.put(r, &op.Out[i], op.OutBuf[i], all(of, n), known)
	}
	return ""
}

func (w *walk) argmax(r Run, op *ir.FlatOp) string {
	x, known := w.load(r, op, 0)
	if !known {
		w.store(r, op, list{}, false)
		return ""
	}
	last := w.lastOf(r, op, 0)
	if op.IntAt("partial", 0, 0) != 0 {
		best := index{hi: -1, none: true}
		if last > 0 {
			best.hi = op.IntAt("first", 0, 0) + last - 1
		}
		if best.hi > mostIndex {
			return fmt.Sprintf("chooses among numbers up to %d, which are not of type I32", best.hi)
		}
		for i := range op.Out {
			if i == 0 {
				w.put(r, &op.Out[i], op.OutBuf[i], all(index{any: true}, r.Flat.Pass.NumTokens()), true)
			} else {
				w.put(r, &op.Out[i], op.OutBuf[i], all(best, max(1, elements(&op.Out[i], r))), true)
			}
		}
		return ""
	}
	if x.n == 0 {
		return "chooses among nothing"
	}
	if op.Code == ir.ArgMax && len(op.In) == 2 || len(op.In) == 3 {
		ids, ok := w.load(r, op, 1)
		chosen := ids.oneOf(last)
		if ok && slices.Contains(chosen.kinds(), index{hi: -1, none: true}) {
			return "chooses among indices of nothing"
		}
		chosen.same.none = false
		for b := range chosen.each {
			chosen.each[b].none = false
		}
		w.store(r, op, chosen, ok)
		return ""
	}
	if last-1 > mostIndex {
		return fmt.Sprintf("chooses among numbers up to %d, which are not of type I32", last-1)
	}
	w.store(r, op, all(index{hi: last - 1}, x.n/max(1, last)), true)
	return ""
}

// mostIndex is the largest number that an index can be: 2^31-1, the largest I32, says that there is none.
const mostIndex = 1<<31 - 2

// load returns what an operand may hold, and whether its length is known.
func (w *walk) load(r Run, op *ir.FlatOp, i int) (list, bool) {
	o := &op.In[i]
	if op.InBuf[i] < 0 {
		held, ok := w.temps[o.Buf]
		return held, ok
	}
	b, n := &r.Flat.Buffers[op.InBuf[i]], elements(o, r)
	switch {
	case b.DType != ir.I32 || b.Kind == ir.Weight || b.Kind == ir.Const || b.Kind == ir.KVCache:
		return all(index{any: true}, n), true
	case b.Kind == ir.Input && b.Role == ir.RoleToken:
		return all(w.token, n), true
	case b.Kind == ir.Input:
		return all(index{hi: -1, given: true}, n), true
	case !w.takes(n):
		return list{}, false
	}
	out := list{n: n, each: make([]index, 0, n)}
	held := w.held[b.Name]
	for _, e := range elementsOf(b, o.Dims, r.of(o.Dims)) {
		if of, ok := held[e]; ok {
			out.each = append(out.each, of)
		} else {
			out.each = append(out.each, index{hi: -1}) // read before it is written, which is found elsewhere
		}
	}
	return out, true
}

// takes counts elements that are looked at one by one, and reports whether there may be that many.
func (w *walk) takes(n int) bool {
	w.left -= min(n, w.left+1)
	return w.left >= 0
}

// lastOf is the number of elements of the last dimension of an input.
func (w *walk) lastOf(r Run, op *ir.FlatOp, i int) int {
	if op.InBuf[i] < 0 {
		return w.lasts[op.In[i].Buf]
	}
	return lastOf(&op.In[i], r)
}

// lastOfResult is the same of what an op yields, where more is known than that it is like the first operand.
func (w *walk) lastOfResult(r Run, op *ir.FlatOp) int {
	switch {
	case op.Code == ir.EMBED && op.InBuf[1] >= 0:
		return elements(&op.In[1], r) / max(1, op.In[1].Dims[0].Len(r.of(op.In[1].Dims)))
	case (op.Code == ir.GEMV || op.Code == ir.GEMM) && op.InBuf[1] >= 0:
		return elements(&op.In[1], r) / max(1, lastOf(&op.In[1], r))
	case traitsOf(op.Code).gated && len(op.In) == 1:
		return w.lastOf(r, op, 0) / 2
	}
	return w.lastOf(r, op, 0)
}

// store gives every output what an op yields.
func (w *walk) store(r Run, op *ir.FlatOp, values list, known bool) {
	for i := range op.Out {
		w.lasts[op.Out[i].Buf] = w.lastOfResult(r, op)
		w.put(r, &op.Out[i], op.OutBuf[i], values, known)
	}
}

func (w *walk) put(r Run, o *ir.Operand, buf int, values list, known bool) {
	if buf < 0 {
		if delete(w.temps, o.Buf); known {
			w.temps[o.Buf] = values
		}
		return
	}
	b := &r.Flat.Buffers[buf]
	if b.DType != ir.I32 || !w.takes(elements(o, r)) {
		return
	}
	held := w.held[b.Name]
	if held == nil {
		held = map[int]index{}
		w.held[b.Name] = held
	}
	for i, e := range elementsOf(b, o.Dims, r.of(o.Dims)) {
		if i < values.n {
			held[e] = values.at(i)
		}
	}
}

// length is the number of elements of a result, where it is easy to say.
func (w *walk) length(r Run, op *ir.FlatOp) (int, bool) {
	n := make([]int, len(op.In))
	for i := range op.In {
		if n[i] = elements(&op.In[i], r); op.InBuf[i] < 0 {
			held, ok := w.temps[op.In[i].Buf]
			if n[i] = held.n; !ok {
				return 0, false
			}
		}
	}
	switch {
	case traitsOf(op.Code).asLong:
		return n[0], true
	case traitsOf(op.Code).gated && len(n) == 1:
		return n[0] / 2, true
	case traitsOf(op.Code).gated:
		return n[0], true
	case (op.Code == ir.GEMV || op.Code == ir.GEMM) && op.InBuf[1] >= 0:
		k := max(1, lastOf(&op.In[1], r))
		return n[0] / k * (n[1] / k), true
	}
	return 0, false
}
