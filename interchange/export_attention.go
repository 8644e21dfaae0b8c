package interchange

import "amkc/ir"

// half says which half of a cache [heads, rows, 2, head size] a view of it is in: 0 for k, 1 for v, -1 for neither.
func (e *exporter) half(o ir.Operand) int {
	b := e.buffers[o.Buf]
	if len(b.Shape) != 4 || b.Shape[2] != 2 {
		e.fail("buffer "+b.Name, "is a cache of shape %v; [heads, rows, 2, head size] is accepted", b.Shape)
		return -1
	}
	for half := range 2 {
		if lo, ok := o.Dims[2].Lo.IsConst(); ok && lo == half && e.covers(o.Dims[2], half, half+1) {
			return half
		}
	}
	e.fail("buffer "+b.Name, "is viewed as %s; k or v of it is accepted", o)
	return -1
}

// cache returns the buffers of the halves of a native cache.
func (e *exporter) cache(b *ir.Buffer) [2]int {
	ids, ok := e.caches[b.Name]
	if !ok {
		for half, suffix := range []string{".k", ".v"} {
			ids[half] = e.declare(b.Name+suffix, b, b.Shape[1], b.Shape[0], b.Shape[3])
		}
		e.caches[b.Name] = ids
	}
	return ids
}

// heads calls f with the op of every task of a stage that has one a KV head.
func (e *exporter) heads(s *ir.Stage, cache *ir.Buffer, f func(u int, op ir.Op) bool) bool {
	spans := s.Dist.Tasks(0)
	if len(cache.Shape) != 4 || len(spans) != cache.Shape[0] {
		e.fail("stage "+s.Name, "has %d tasks over a cache of shape %v; one per head is accepted", len(spans),
			cache.Shape)
		return false
	}
	for u, span := range spans {
		if !f(u, s.Ops[0].Bind(span)) {
			e.fail("stage "+s.Name, "task %d touches another part of its buffers than head %d and, of the cache, "+
				"the rows up to position %d", u, u, e.pos)
			return false
		}
	}
	return true
}

// slice reports whether a view of a vector is the u-th piece of n elements, of as many pieces as there are.
func (e *exporter) slice(o ir.Operand, u, n, pieces int) bool {
	return len(o.Dims) == 1 && e.covers(o.Dims[0], u*n, (u+1)*n) && e.buffers[o.Buf].Shape[0] == n*pieces
}

// kvAppend exports the append of all heads of k or v as one task.
func (e *exporter) kvAppend(s *ir.Stage, t Task) {
	native := &s.Ops[0]
	b := e.buffers[native.Out[0].Buf]
	half := e.half(native.Out[0])
	ok := e.failed == nil && e.heads(s, b, func(u int, op ir.Op) bool {
		out := op.Out[0]
		return e.slice(op.In[0], u, b.Shape[3], b.Shape[0]) && e.covers(out.Dims[0], u, u+1) &&
			e.covers(out.Dims[1], e.pos, e.pos+1) && e.covers(out.Dims[3], 0, b.Shape[3])
	})
	if !ok {
		return
	}
	row := e.value(s, native.In[0].Buf)
	if want := [2]int{b.Shape[3], 0}[half]; row.pairs != want {
		e.fail("stage "+s.Name, "appends %s with heads of %d in rotation pairs; k in pairs and v without are accepted",
			native.In[0].Buf, row.pairs)
		return
	}
	if _, waited := e.counters[s.Signal]; waited {
		e.fail("stage "+s.Name, "signals %s, which stages wait on; a counter that only ends the step is accepted",
			s.Signal)
		return
	}
	cache := e.cache(b)[half]
	t.Inputs, t.Outputs, t.Params = []int{row.id, cache}, []int{cache}, object("pos", e.pos)
	t.OutCounter = e.counter(s.Name)
	e.task(t)
	e.appended[s] = t.OutCounter
}

// attention exports attention of all heads as one task, over the rows of the cache and the row of this step.
func (e *exporter) attention(s *ir.Stage, t Task) {
	native := &s.Ops[0]
	at := "stage " + s.Name
	if len(native.In) != 5 || len(native.Out) != 1 || native.IntAt("flags", e.pos, 0) != 0 ||
		native.IntAt("row", e.pos, -1) != e.pos || native.IntAt("parts", e.pos, 1) != 1 {
		e.fail(at, "is a part of attention, or leaves out the row of this step; attention of whole heads at "+
			"position %d is accepted", e.pos)
		return
	}
	if bound := native.FloatOr("cap", 0); bound != 0 {
		e.fail(at, "caps scores at %g, which the profile cannot say; scores as they are are accepted", bound)
		return
	}
	b := e.buffers[native.In[1].Buf]
	if e.half(native.In[1]) != 0 || e.half(native.In[2]) != 1 || native.In[2].Buf != b.Name || e.failed != nil {
		e.fail(at, "reads k and v from other places than the halves of one cache")
		return
	}
	kvHeads, hd, group := b.Shape[0], b.Shape[3], native.IntAt("n_heads", e.pos, 0)
	ok := native.IntAt("n_kv_heads", e.pos, 0) == 1 && native.IntAt("head_dim", e.pos, 0) == hd &&
		e.heads(s, b, func(u int, op ir.Op) bool {
			for _, half := range op.In[1:3] {
				if !e.covers(half.Dims[0], u, u+1) || !e.covers(half.Dims[1], 0, e.pos) ||
					!e.covers(half.Dims[3], 0, hd) {
					return false
				}
			}
			return e.slice(op.In[0], u, group*hd, kvHeads) && e.slice(op.In[3], u, hd, kvHeads) &&
				e.slice(op.In[4], u, hd, kvHeads) && e.slice(op.Out[0], u, group*hd, kvHeads)
		})
	if !ok {
		e.fail(at, "has n_heads=%d, n_kv_heads=%d and head_dim=%d on a cache of shape %v; one KV head a "+
			"task is accepted",
			group, native.IntAt("n_kv_heads", e.pos, 0), native.IntAt("head_dim", e.pos, 0), b.Shape)
		return
	}
	q := e.value(s, native.In[0].Buf)
	if q.pairs != hd {
		e.fail(at, "has queries with heads of %d in rotation pairs; %d is accepted", q.pairs, hd)
		return
	}
	cache := e.cache(b)
	t.Inputs = []int{q.id, cache[0], cache[1]}
	e.afterAppends(s, b, &t)
	t.Params = object("head_dim", hd, "kv_start", 0, "kv_len", e.pos+1,
		"scale", native.FloatOr("scale", 0),
		"n_heads", group*kvHeads, "n_kv_heads", kvHeads)
	e.results(s, t, native.Out, 0)
}

// afterAppends exports the stages that append to the cache, and makes the task wait for them: it reads from the cache
// what the native op takes as operands. The two are the same only if the append does not round.
func (e *exporter) afterAppends(s *ir.Stage, cache *ir.Buffer, t *Task) {
	stages := e.appends[cache.Name]
	for half := range 2 {
		if stages == nil || stages[half] == nil {
			e.fail("stage "+s.Name, "reads cache %s, to which no stage appends k and v of this step", cache.Name)
			return
		}
		row := s.Ops[0].In[3+half].Buf
		if from := stages[half].Ops[0].In[0].Buf; from != row {
			e.fail("stage "+s.Name, "takes the row of this step from %s, and %s is appended; the same one is accepted",
				row, from)
			return
		}
		if e.buffers[row].DType != cache.DType {
			e.fail("stage "+s.Name, "takes the row of this step as %v, and the cache holds %v; the same "+
				"dtype is accepted", e.buffers[row].DType, cache.DType)
			return
		}
		e.stage(stages[half])
		t.Waits = append(t.Waits, Wait{Counter: e.appended[stages[half]]})
	}
}
