package validate

import (
	"fmt"

	"amkc/ir"
)

// checkShapes: the operands of an op agree with each other and with its parameters, as ir/opcode.go states for each
// opcode. It returns the number of elements of the result, which is the shape of a temporary.
func (p *proof) checkShapes(task *ir.Task, op *ir.FlatOp, in, out []view) int {
	for i := range in {
		if !in[i].known {
			return 0
		}
		if in[i].ext != fixed && !(op.Code == ir.ATTENTION && (i == 1 || i == 2)) {
			p.errorf(CodeShapes, taskPos(task), "the length of input %d of %s depends on pos; only the rows of ATTENTION_TILE may", i+1, op.Code)
			return 0
		}
	}
	for i := range out {
		if out[i].ext == fixed || op.Code == ir.KVAppend && out[i].ext == optional {
			continue
		}
		if op.Code == ir.KVAppend {
			p.errorf(CodeShapes, taskPos(task), "KV_APPEND writes a number of rows that depends on pos, and may be more than one; it may be one row or none")
		} else {
			p.errorf(CodeShapes, taskPos(task), "the length of output %d of %s depends on pos; only KV_APPEND may write a row or none", i+1, op.Code)
		}
		return 0
	}
	s := &p.shaper
	*s = shaper{f: p.flat, op: op, in: in, out: out}
	n := s.result()
	if s.problem == "" {
		s.outputs(n)
	}
	if s.problem == "" {
		s.dtypes()
	}
	if s.problem != "" {
		code := CodeShapes
		if s.dtype {
			code = CodeDType
		}
		p.errorf(code, taskPos(task), "%s: %s", op.Code, s.problem)
	}
	return n
}

// shaper holds one op while its operands are compared.
type shaper struct {
	f       *ir.Flat
	op      *ir.FlatOp
	in, out []view
	problem string // the first one
	dtype   bool   // the problem is a dtype
}

// fail notes a problem. Callers compare first and format after: a call that always ran would box every operand.
func (s *shaper) fail(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf(format, args...)
	}
}

func (s *shaper) param(key string, def int) int { return s.op.IntAt(key, s.f.Lo, def) }

// positive reads a parameter that must be a positive constant of sane size.
func (s *shaper) positive(key string) int {
	n := s.param(key, 0)
	if !(n > 0 && n <= maxPosition) {
		s.fail("%s is %d, want a positive number", key, n)
	}
	return max(1, min(n, maxPosition))
}

// product is the size of a result, which is bounded like that of a buffer: temporaries could multiply without end.
func (s *shaper) product(n, m int) int {
	if !(m == 0 || n <= maxElements/m) {
		s.fail("the result has %d times %d elements, want at most %d", n, m, maxElements)
		return 0
	}
	return n * m
}

// result returns the number of elements of the op's result.
func (s *shaper) result() int {
	in := s.in
	switch s.op.Code {
	case ir.COPY, ir.GELU, ir.SOFTMAX:
		return in[0].n()
	case ir.EMBED:
		if in[1].buf < 0 {
			s.fail("the table is a temporary, want a view of a buffer")
		}
		return s.product(in[0].n(), in[1].last)
	case ir.RMSNORM, ir.LAYERNORM:
		for i := 1; i < len(in); i++ {
			if !(in[i].n() > 0 && in[i].n() == in[1].n() && in[0].n()%in[i].n() == 0) {
				s.fail("x has %d elements and w %d; x must be whole rows as long as w", in[0].n(), in[i].n())
			}
		}
		return in[0].n()
	case ir.GEMV, ir.GEMM:
		return s.gemv()
	case ir.ATTENTION:
		return s.attention()
	case ir.ROPE:
		return s.rope()
	case ir.SiluMul:
		if len(in) == 1 {
			if in[0].n()%2 != 0 {
				s.fail("one interleaved operand has %d elements, want an even number", in[0].n())
			}
			return in[0].n() / 2
		}
		return s.same()
	case ir.ADD, ir.ALLREDUCE, ir.MUL:
		return s.same()
	case ir.DEQUANT:
		s.groups(1, in[0].rows, in[0].last)
		return in[0].n()
	case ir.KVAppend:
		return in[0].n()
	case ir.ArgMax:
		return s.argmax()
	case ir.AttentionCombine:
		return s.combine()
	}
	return 0
}

// outputs: every output holds the whole result.
func (s *shaper) outputs(n int) {
	for i := range s.out {
		if s.out[i].buf < 0 || s.op.Code == ir.FUSED || s.op.Code == ir.ArgMax {
			continue
		}
		if s.op.Code == ir.KVAppend && s.out[i].ext == fixed && s.out[i].n() == 0 {
			continue // a no-op
		}
		if s.out[i].n() != n {
			s.fail("output %d has %d elements, the result has %d", i+1, s.out[i].n(), n)
		}
	}
}

func (s *shaper) same() int {
	for i := range s.in {
		if s.in[i].n() != s.in[0].n() {
			s.fail("operands have %d and %d elements, want as many", s.in[0].n(), s.in[i].n())
		}
	}
	return s.in[0].n()
}

func (s *shaper) gemv() int {
	x, w := &s.in[0], &s.in[1]
	k := w.last
	if !(k > 0 && x.n()%k == 0 && x.n() > 0) {
		s.fail("x has %d elements, K is %d: x must be whole rows of K", x.n(), k)
		return 0
	}
	if s.op.Code == ir.GEMV {
		if x.n() != k {
			s.fail("x has %d elements, K is %d; GEMV_TILE takes one row, GEMM_TILE several", x.n(), k)
		}
	}
	switch {
	case s.op.Has("qdtype"):
		s.groups(2, w.rows, k)
	case len(s.in) == 3:
		if s.in[2].n() != w.rows {
			s.fail("the bias has %d elements, n is %d", s.in[2].n(), w.rows)
		}
	case len(s.in) > 3:
		s.fail("has %d inputs but no qdtype", len(s.in))
	}
	return s.product(x.n()/k, w.rows)
}

// groups checks scales and zeros of a quantised [n,K]: one a group of columns.
func (s *shaper) groups(from, n, k int) {
	group := s.positive("group")
	for i := from; i < len(s.in); i++ {
		if s.in[i].n() != n*((k+group-1)/group) {
			s.fail("scales or zeros have %d elements, want %d rows of %d groups", s.in[i].n(), n, (k+group-1)/group)
		}
	}
}

// rowElements returns how many elements a row of an empty view of keys or values has, or -1 if the view is not empty (its
// elements are whole rows then) or has no dimension of rows.
func (s *shaper) rowElements(i int) int {
	rows := rowsOf(s.in[i].buf, s.f)
	if s.in[i].n() != 0 || s.in[i].ext != fixed || rows < 0 {
		return -1
	}
	n := 1
	for d := range s.op.In[i].Dims {
		if d != rows {
			n *= s.op.In[i].Dims[d].Len(s.f.Lo)
		}
	}
	return n
}

func (s *shaper) attention() int {
	hd, nh, nkv := s.positive("head_dim"), s.positive("n_heads"), s.positive("n_kv_heads")
	q, k, v := &s.in[0], &s.in[1], &s.in[2]
	if nh%nkv != 0 {
		s.fail("%d heads are not a multiple of %d kv heads", nh, nkv)
		return 0
	}
	if !(q.n() > 0 && q.n()%(nh*hd) == 0) {
		s.fail("q has %d elements, want rows of n_heads*head_dim = %d", q.n(), nh*hd)
		return 0
	}
	if !(k.buf >= 0 && v.buf >= 0) {
		s.fail("k or v is a temporary, want buffers")
		return 0
	}
	batch := q.n() / (nh * hd)
	if k.n()%(batch*nkv*hd) != 0 {
		s.fail("k has %d elements, want rows of n_kv_heads*head_dim = %d", k.n(), batch*nkv*hd)
	}
	if !(k.n() == v.n() && k.ext == v.ext) {
		s.fail("k has %d elements and v %d, want as many", k.n(), v.n())
	}
	if k.ext != fixed || v.ext != fixed {
		if !(k.dim == rowsOf(k.buf, s.f) && v.dim == rowsOf(v.buf, s.f)) {
			s.fail("the length of k or v depends on pos in another dimension than that of rows")
		}
		if !(k.dim >= 0 && v.dim >= 0 && sameRange(&s.op.In[1].Dims[max(0, k.dim)], &s.op.In[2].Dims[max(0, v.dim)])) {
			s.fail("k and v cover different rows, want the same range of positions")
		}
		if k.n() != batch*nkv*hd {
			s.fail("a row of k has %d elements, want n_kv_heads*head_dim = %d", k.n(), batch*nkv*hd)
		}
	}
	for i := 1; i <= 2; i++ {
		if n := s.rowElements(i); n >= 0 && n != batch*nkv*hd {
			s.fail("a row of operand %d has %d elements, want n_kv_heads*head_dim = %d", i+1, n, batch*nkv*hd)
		}
	}
	if len(s.in) == 4 {
		s.fail("has k_row but no v_row")
	}
	if len(s.in) == 5 {
		if !(s.in[3].n() == batch*nkv*hd && s.in[4].n() == batch*nkv*hd) {
			s.fail("k_row and v_row have %d and %d elements, want %d", s.in[3].n(), s.in[4].n(), batch*nkv*hd)
		}
	}
	s.share(&s.op.In[1].Dims[rowsOf(k.buf, s.f)])
	if s.param("flags", 0)&2 != 0 {
		return batch * nh * (hd + 2)
	}
	return batch * nh * hd
}

// rowsOf is the dimension that counts rows in keys or values: [rows, head_dim], [rows, heads, head_dim], or the latter with a
// leading dimension.
func rowsOf(buf int, f *ir.Flat) int { return max(0, len(f.Buffers[buf].Shape)-3) }

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
		s.fail("the cache rows are part %s of %d in blocks of %d, the parameters say part %d of %d in blocks of %d", r.Part, r.Parts, r.Block, part, parts, block)
	}
}

func (s *shaper) rope() int {
	hd := s.positive("head_dim")
	switch s.param("order", 0) { // checkParameters allows no other
	case 1:
		if !(s.in[1].n() == hd/2 && hd%2 == 0) {
			s.fail("inv_freq has %d elements, want head_dim/2 = %d", s.in[1].n(), hd/2)
		}
		if s.in[0].n()%2 != 0 {
			s.fail("x has %d elements, want rotation pairs", s.in[0].n())
		}
		n, first := s.in[0].n(), s.param("first", 0)
		if turned := max(0, min(n, s.param("limit", first+n)-first)); first < 0 || first%2 != 0 || turned%2 != 0 {
			s.fail("turns %d elements from row %d on, want whole pairs", turned, first)
		}
	case 0:
		if s.in[0].n()%hd != 0 {
			s.fail("x has %d elements, want whole heads of %d", s.in[0].n(), hd)
		}
	}
	return s.in[0].n()
}

// rowsOf: n results are one for each row of x, and one alone if x comes with indices.
func (s *shaper) rowsOf(x *view, n int) bool {
	return x.n() > 0 && (n == 1 || n > 1 && len(s.in) == 1 && x.n()%n == 0)
}

func (s *shaper) argmax() int {
	partial := s.param("partial", 0)
	if partial == 0 { // checkParameters allows 0 and 1
		s.same()
	} else if !(len(s.in) == 1 && len(s.out) == 2) {
		s.fail("with partial=1 has %d inputs and %d outputs, want 1 and 2", len(s.in), len(s.out))
	}
	for i := range s.out {
		if !(s.out[i].buf < 0 || partial == 1 && s.out[i].n() == 1 || partial == 0 && s.rowsOf(&s.in[0], s.out[i].n())) {
			s.fail("output %d has %d elements for %d values", i+1, s.out[i].n(), s.in[0].n())
		}
	}
	return 1
}

func (s *shaper) combine() int {
	if s.op.Has("splits") {
		n := s.positive("splits")
		if !(len(s.in) == 2 && s.in[0].n()%n == 0 && s.in[1].n() == 2*n) {
			s.fail("with splits=%d takes acc[%d,1,w] and ml[%d,1,2]", n, n, n)
		}
		return s.in[0].n() / n
	}
	hd, nh := s.positive("head_dim"), s.positive("n_heads")
	for i := range s.in {
		if s.in[i].n() != nh*(hd+2) {
			s.fail("partial %d has %d elements, want n_heads*(head_dim+2) = %d", i+1, s.in[i].n(), nh*(hd+2))
		}
	}
	return nh * hd
}

func sameRange(a, b *ir.Range) bool {
	if !a.Lo.Equal(b.Lo) || !a.Hi.Equal(b.Hi) || a.Shared() != b.Shared() {
		return false
	}
	return !a.Shared() || a.Block == b.Block && a.Parts == b.Parts && a.Part.Equal(b.Part)
}
