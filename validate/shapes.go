package validate

import (
	"fmt"

	"amkc/ir"
)

// checkShapes: the operands of an op agree with each other and with its parameters, as ir/opcode.go states for each
// opcode. It returns the shape of the result, which is that of a temporary.
func (p *proof) checkShapes(task *ir.Task, op *ir.FlatOp, in, out []view) (result view) {
	result = view{buf: -1, known: true}
	for i := range in {
		if !in[i].known {
			return result
		}
		if in[i].ext == fixed {
			continue
		}
		rows := -1
		if op.Code == ir.ATTENTION && (i == 1 || i == 2) {
			if rows = rowsOf(&op.In[i]); in[i].dim == rows {
				continue
			}
		}
		if !p.measure(&op.In[i], &in[i], rows) {
			p.errorf(CodeShapes, taskPos(task), "the length of input %d of %s depends on pos; only the rows of "+
				"ATTENTION_TILE may", i+1, op.Code)
			return result
		}
	}
	for i := range out {
		if out[i].ext == fixed || op.Code == ir.KVAppend && out[i].ext == optional ||
			p.measure(&op.Out[i], &out[i], -1) {
			continue
		}
		if op.Code != ir.KVAppend {
			p.errorf(CodeShapes, taskPos(task), "the length of output %d of %s depends on pos; only KV_APPEND may "+
				"write a row or none", i+1, op.Code)
			return result
		}
		if out[i].ext != optional {
			p.errorf(CodeShapes, taskPos(task), "KV_APPEND writes a number of rows that depends on pos, and may be "+
				"more than one; it may be one row or none")
			return result
		}
	}
	s := &p.shaper
	*s = shaper{p: p, f: p.flat, op: op, in: in, out: out}
	n, last := s.result()
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
	if result.last = last; last > 0 {
		result.rows = n / last
	}
	return result
}

// shaper holds one op while its operands are compared.
type shaper struct {
	p       *proof
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

// result returns the number of elements of the op's result, and of its last dimension.
func (s *shaper) result() (n, last int) {
	in := s.in
	switch s.op.Code {
	case ir.COPY, ir.GELU, ir.SOFTMAX, ir.KVAppend:
		return in[0].n(), in[0].last
	case ir.EMBED:
		return s.embed()
	case ir.RMSNORM, ir.LAYERNORM:
		for i := 1; i < len(in); i++ {
			if !(in[i].n() > 0 && in[i].n() == in[1].n() && in[0].n()%in[i].n() == 0) {
				s.fail("x has %d elements and w %d; x must be whole rows as long as w", in[0].n(), in[i].n())
			}
		}
		return in[0].n(), in[1].n()
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
			return in[0].n() / 2, in[0].n() / 2
		}
		return s.same()
	case ir.ADD, ir.ALLREDUCE, ir.MUL:
		return s.same()
	case ir.DEQUANT:
		s.groups(1, in[0].rows, in[0].last)
		return in[0].n(), in[0].last
	case ir.ArgMax:
		return s.argmax()
	case ir.AttentionCombine:
		return s.combine()
	}
	return 0, 0
}

// outputs: every output holds the whole result.
func (s *shaper) outputs(n int) {
	for i := range s.out {
		if s.out[i].buf < 0 || s.op.Code == ir.FUSED {
			continue
		}
		if s.op.Code == ir.KVAppend && (s.out[i].n() == 0 || s.out[i].n() != n && s.out[i].ext == optional &&
			s.p.alwaysEmpty(&s.op.Out[i])) {
			continue // a no-op
		}
		if s.out[i].n() != n {
			s.fail("output %d has %d elements, want %d, as many as the result", i+1, s.out[i].n(), n)
		}
	}
}

func (s *shaper) same() (n, last int) {
	for i := range s.in {
		if s.in[i].n() != s.in[0].n() {
			s.fail("operands have %d and %d elements, want as many", s.in[0].n(), s.in[i].n())
		}
	}
	return s.in[0].n(), s.in[0].last
}

// embed: the first dimension of the table counts its rows, the others are a row.
func (s *shaper) embed() (n, last int) {
	table := &s.in[1]
	if table.buf < 0 {
		s.fail("the table is a temporary, want a view of a buffer")
		return 0, 0
	}
	rows := s.op.In[1].Dims[0].Len(s.f.Lo)
	if rows == 0 {
		s.fail("the table has no rows, want at least the one that an id names")
		return 0, 0
	}
	last = table.n() / rows
	return s.product(s.in[0].n(), last), last
}

func (s *shaper) gemv() (n, last int) {
	x, w := &s.in[0], &s.in[1]
	k := w.last
	if !(k > 0 && x.n()%k == 0 && x.n() > 0) {
		s.fail("x has %d elements, K is %d: x must be whole rows of K", x.n(), k)
		return 0, 0
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
	return s.product(x.n()/k, w.rows), w.rows
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

func (s *shaper) rope() (n, last int) {
	x, hd := &s.in[0], s.positive("head_dim")
	if hd%2 != 0 {
		s.fail("head_dim is %d, want an even number: a rotation turns pairs", hd)
	}
	switch s.param("order", 0) { // checkParameters allows no other
	case 1:
		if s.in[1].n() != hd/2 {
			s.fail("inv_freq has %d elements, want head_dim/2 = %d", s.in[1].n(), hd/2)
		}
		if x.n()%2 != 0 {
			s.fail("x has %d elements, want rotation pairs", x.n())
		}
		first := s.param("first", 0)
		if turned := max(0, min(x.n(), s.param("limit", first+x.n())-first)); first < 0 || first%2 != 0 ||
			turned%2 != 0 {
			s.fail("turns %d elements from row %d on, want whole pairs", turned, first)
		}
	case 0:
		if at := s.in[1].n(); !(at > 0 && x.n()%at == 0 && x.n()/at%hd == 0) {
			s.fail("x has %d elements for %d positions, want whole heads of %d for each, and at least one position",
				x.n(), at, hd)
		}
		return x.n(), hd
	}
	return x.n(), x.last
}

// argmax: one result for each row of x; one for all values if they come with indices, and of a part.
func (s *shaper) argmax() (n, last int) {
	x := &s.in[0]
	switch {
	case s.param("partial", 0) == 1: // checkParameters allows 0 and 1
		if !(len(s.in) == 1 && len(s.out) == 2) {
			s.fail("with partial=1 has %d inputs and %d outputs, want 1 and 2", len(s.in), len(s.out))
		}
		return 1, 1
	case x.n() == 0:
		s.fail("has no values to choose from; with partial=1 it may have none")
		return 0, 0
	case len(s.in) == 2:
		s.same()
		return 1, 1
	}
	return x.rows, x.rows
}

func (s *shaper) combine() (n, last int) {
	if s.op.Has("splits") {
		n := s.positive("splits")
		if !(len(s.in) == 2 && s.in[0].n()%n == 0 && s.in[1].n() == 2*n) {
			s.fail("with splits=%d takes acc[%d,1,w] and ml[%d,1,2]", n, n, n)
		}
		return s.in[0].n() / n, s.in[0].n() / n
	}
	hd, nh := s.positive("head_dim"), s.positive("n_heads")
	for i := range s.in {
		if s.in[i].n() != nh*(hd+2) {
			s.fail("partial %d has %d elements, want n_heads*(head_dim+2) = %d", i+1, s.in[i].n(), nh*(hd+2))
		}
	}
	return nh * hd, hd
}
