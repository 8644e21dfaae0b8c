package refvm

import (
	"fmt"

	"amkc/ir"
)

// A span is one range of a view at a position: its n elements from lo on, or every n elements of a share.
type span struct {
	lo, n              int
	block, parts, part int // parts ≤ 1: all elements from lo on
	skip               int // of a share: how many of its elements lie below lo
	whole              int // of a share: elements of the distributed interval
}

// newSpan evaluates a range, and says what is wrong with it when it leaves a dimension of the given size.
func newSpan(r *ir.Range, size, pos int) (span, string) {
	lo, hi := r.Lo.At(pos), r.Hi.At(pos)
	s := span{lo: lo, n: max(0, hi-lo)}
	if r.Parts < 0 || r.Block < 0 || r.Shared() && (r.Block < 1 || r.Block > maxInt || r.Parts > maxInt) {
		return span{}, fmt.Sprintf("share in blocks of %d for %d parts, want 1 to %d", r.Block, r.Parts, maxInt)
	}
	if r.Shared() {
		s.block, s.parts, s.part, s.whole = r.Block, r.Parts, r.Part.At(pos), s.n
		if s.part < 0 || s.part >= s.parts {
			return span{}, fmt.Sprintf("part %d at position %d, there are %d", s.part, pos, s.parts)
		}
	}
	if hi <= lo {
		return s, ""
	}
	if lo < 0 || hi > size {
		return span{}, fmt.Sprintf("range %d:%d at position %d, the dimension has %d elements", lo, hi, pos, size)
	}
	if r.Shared() {
		s.skip = s.below(lo)
		s.n = s.below(hi) - s.skip
	}
	return s, ""
}

// below counts the elements of the share in [0, e).
func (s *span) below(e int) int {
	period := s.block * s.parts
	return e/period*s.block + max(0, min(s.block, e%period-s.part*s.block))
}

// at returns the i-th element.
func (s *span) at(i int) int {
	if s.parts <= 1 {
		return s.lo + i
	}
	i += s.skip
	return (i/s.block*s.parts+s.part)*s.block + i%s.block
}

// before is the number of elements of the span before it is distributed.
func (s *span) before() int {
	if s.parts <= 1 {
		return s.n
	}
	return s.whole
}

// A box is a view at a position: the product of its spans. In row-major order it is a sequence of runs of elements that
// are side by side; the first lead dimensions step from run to run.
type box struct {
	st   *store
	dims [ir.MaxRank]span
	rank int
	n    int // elements
	lead int
	run  int // elements a run
	base int // offset of the first run when all spans of the leading dimensions start at 0
}

// newBox evaluates a view.
func newBox(st *store, dims []ir.Range, pos int) (box, string) {
	b := box{st: st, rank: len(dims)}
	for d := range dims {
		var bad string
		if b.dims[d], bad = newSpan(&dims[d], st.buf.Shape[d], pos); bad != "" {
			return box{}, bad
		}
	}
	b.layOut()
	return b, ""
}

// layOut derives the runs from the spans.
func (b *box) layOut() {
	b.n, b.run, b.lead, b.base = 1, 1, b.rank, 0
	for d := b.rank - 1; d >= 0; d-- {
		s := &b.dims[d]
		b.n *= s.n
		whole := d+1 == b.rank || b.lead == d+1 && b.dims[d+1].n == b.st.buf.Shape[d+1]
		if whole && s.parts <= 1 {
			b.lead, b.run, b.base = d, b.run*s.n, b.base+s.lo*b.st.step[d]
		}
	}
}

// dealt reports whether a dimension is distributed to parts.
func (b *box) dealt() bool {
	for d := range b.rank {
		if b.dims[d].parts > 1 {
			return true
		}
	}
	return false
}

// undealt is the number of elements of the box before it is distributed.
func (b *box) undealt() int {
	n := 1
	for d := range b.rank {
		n *= b.dims[d].before()
	}
	return n
}

// solid returns the offset of the box if all its elements are side by side.
func (b *box) solid() (int, bool) {
	off := b.base
	for d := range b.lead {
		if b.dims[d].n != 1 {
			return 0, b.n == 0
		}
		off += b.dims[d].at(0) * b.st.step[d]
	}
	return off, true
}

// next steps idx, the odometer of the leading dimensions, and reports whether there is another run.
func (b *box) next(idx *[ir.MaxRank]int) bool {
	for d := b.lead - 1; d >= 0; d-- {
		if idx[d]++; idx[d] < b.dims[d].n {
			return true
		}
		idx[d] = 0
	}
	return false
}

// offset returns where the run at idx starts.
func (b *box) offset(idx *[ir.MaxRank]int) int {
	off := b.base
	for d := range b.lead {
		off += b.dims[d].at(idx[d]) * b.st.step[d]
	}
	return off
}

// pin returns the part of the box at the i-th element of its first dimension.
func (b *box) pin(i int) box {
	p := *b
	p.dims[0] = span{lo: b.dims[0].at(i), n: 1}
	p.layOut()
	return p
}

// An operand is a view of an op, or a temporary. Each belongs to one op of one task, which runs once per step: the box
// of a view that moves with the position is evaluated in place.
type operand struct {
	view     []ir.Range
	moving   bool
	sequence int // whose position the view moves with
	slot     int // of a temporary
	box          // st is nil for a temporary
}

// at evaluates a moving view, given the position of each sequence.
func (o *operand) at(positions []int) string {
	if !o.moving {
		return ""
	}
	b, bad := newBox(o.st, o.view, positions[o.sequence])
	if bad == "" {
		o.box = b
	}
	return bad
}

// moves reports whether a view depends on a position.
func moves(dims []ir.Range) bool {
	for _, r := range dims {
		if r.Lo.Uses(ir.Pos) || r.Hi.Uses(ir.Pos) || r.Part.Uses(ir.Pos) {
			return true
		}
	}
	return false
}
