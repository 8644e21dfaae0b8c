package validate

import (
	"fmt"
	"strings"

	"amkc/ir"
)

// attention: q is whole rows of heads. Keys and values are as many rows, in one of the forms of a cache.
func (s *shaper) attention() (n, last int) {
	hd, nh, nkv := s.positive("head_dim"), s.positive("n_heads"), s.positive("n_kv_heads")
	q, k, v := &s.in[0], &s.in[1], &s.in[2]
	if nh%nkv != 0 {
		s.fail("%d heads are not a multiple of %d kv heads", nh, nkv)
		return 0, 0
	}
	if !(q.n() > 0 && q.n()%(nh*hd) == 0) {
		s.fail("q has %d elements, want rows of n_heads*head_dim = %d", q.n(), nh*hd)
		return 0, 0
	}
	if !(k.buf >= 0 && v.buf >= 0) {
		s.fail("k or v is a temporary, want buffers")
		return 0, 0
	}
	batch := q.n() / (nh * hd)
	for i := 1; i <= 2; i++ {
		if !s.isCache(&s.op.In[i], batch, nkv, hd) {
			s.fail("operand %d has the shape %s, want %s", i+1, s.cacheShape(&s.op.In[i]), cacheForms(batch, nkv, hd))
			return 0, 0
		}
	}
	s.equalRows()
	switch len(s.in) {
	case 4:
		s.fail("has k_row but no v_row")
	case 5:
		if batch != 1 {
			s.fail("has %d queries and one row to append, want one query", batch)
		}
		if !(s.in[3].n() == nkv*hd && s.in[4].n() == nkv*hd) {
			s.fail("k_row and v_row have %d and %d elements, want %d", s.in[3].n(), s.in[4].n(), nkv*hd)
		}
	}
	s.share(&s.op.In[1].Dims[rowsOf(&s.op.In[1])])
	last = hd
	if s.param("flags", 0)&2 != 0 {
		last += 2
	}
	return batch * nh * last, last
}

// rowsOf is the dimension that counts rows in keys or values: [rows, head_dim], [rows, heads, head_dim], or the
// latter with a leading dimension.
func rowsOf(o *ir.Operand) int { return max(0, len(o.Dims)-3) }

// isCache reports whether a view has one of the forms that cacheForms names. The number of rows is free, and head_dim
// elements lie side by side.
func (s *shaper) isCache(o *ir.Operand, batch, nkv, hd int) bool {
	length := func(d int) int { return o.Dims[d].Len(s.f.Lo) }
	last := len(o.Dims) - 1
	if last < 1 || length(last) != hd || o.Dims[last].Shared() {
		return false
	}
	switch last {
	case 1:
		return batch == 1 && nkv == 1
	case 2:
		return batch == 1 && length(1) == nkv
	}
	return length(0) == batch && length(2) == nkv || batch == 1 && length(0) == nkv && length(2) == 1
}

// cacheShape prints the shape of a view, of which the rows may depend on pos.
func (s *shaper) cacheShape(o *ir.Operand) string {
	var b strings.Builder
	for d := range o.Dims {
		switch {
		case d == rowsOf(o):
			b.WriteString(" rows")
		case o.Dims[d].Shared():
			fmt.Fprintf(&b, " %d in blocks", o.Dims[d].Len(s.f.Lo))
		default:
			fmt.Fprintf(&b, " %d", o.Dims[d].Len(s.f.Lo))
		}
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}

func cacheForms(batch, nkv, hd int) string {
	switch {
	case batch > 1:
		return fmt.Sprintf("[%d rows %d %d]", batch, nkv, hd)
	case nkv > 1:
		return fmt.Sprintf("[rows %d %d], [1 rows %d %d] or [%d rows 1 %d]", nkv, hd, nkv, hd, nkv, hd)
	}
	return fmt.Sprintf("[rows %d], [rows 1 %d] or [1 rows 1 %d]", hd, hd, hd)
}

// equalRows: there are as many rows of keys as of values, at every position.
func (s *shaper) equalRows() {
	k, v := &s.op.In[1].Dims[rowsOf(&s.op.In[1])], &s.op.In[2].Dims[rowsOf(&s.op.In[2])]
	if sameRange(k, v) {
		return
	}
	for pos := s.f.Lo; pos <= s.f.Hi; pos++ {
		if n, m := k.Len(pos), v.Len(pos); n != m {
			s.fail("has %d rows of keys and %d of values at pos %d, want as many", n, m, pos)
			return
		}
		if s.in[1].ext == fixed && s.in[2].ext == fixed {
			return
		}
		if !s.p.spend(&s.p.work.evals, 1, maxEvals, "positions at which keys and values are compared", noTask) {
			return
		}
	}
}

func sameRange(a, b *ir.Range) bool {
	if !a.Lo.Equal(b.Lo) || !a.Hi.Equal(b.Hi) || a.Shared() != b.Shared() {
		return false
	}
	return !a.Shared() || a.Block == b.Block && a.Parts == b.Parts && a.Part.Equal(b.Part)
}

// share: rows dealt out to several tasks are dealt out as the parameters say, which decide whose the new row is.
func (s *shaper) share(r *ir.Range) {
	if !r.Shared() {
		r = &ir.Range{Block: 1, Parts: 1}
	}
	parts, block, part := max(1, s.param("parts", 1)), s.param("block", 1), s.param("part", 0)
	if parts == 1 && !r.Shared() {
		return
	}
	_, fixed := r.Part.IsConst()
	if !(fixed && parts == r.Parts && block == r.Block && part == r.Part.At(s.f.Lo)) {
		s.fail("the cache rows are part %s of %d in blocks of %d, the parameters say part %d of %d in blocks of %d",
			r.Part, r.Parts, r.Block, part, parts, block)
	}
}
