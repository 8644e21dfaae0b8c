package loops

import (
	"strconv"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// A shaper numbers stages by their shape: two stages have the same number if they are equal up to the names of the
// stage, of its buffers and counters, and up to its rotation. Of a buffer its element type, shape and layout count,
// and whether it is on chip, which is what the ops of a body depend on.
type shaper struct {
	buffers rewrite.Buffers
	numbers map[string]int
	key     []byte
}

func newShaper(p *ir.Program) *shaper {
	return &shaper{buffers: rewrite.NewBuffers(p), numbers: map[string]int{}}
}

func (s *shaper) number(st *ir.Stage) int {
	s.key = s.key[:0]
	d := &st.Dist
	s.ints(int(d.Kind), d.Extent, d.Grain, d.SMs, d.Step, bit(d.Empty), len(d.Spans))
	for _, t := range d.Spans {
		s.ints(t.SM, t.A, t.B)
	}
	s.ints(len(st.Waits), len(st.Ops), bit(st.Signal != ""))
	for _, w := range st.Waits {
		s.ints(w.Threshold)
	}
	for i := range st.Ops {
		s.op(&st.Ops[i])
	}
	n, known := s.numbers[string(s.key)]
	if !known {
		n = len(s.numbers)
		s.numbers[string(s.key)] = n
	}
	return n
}

func (s *shaper) op(op *ir.Op) {
	s.ints(int(op.Code), len(op.Out), len(op.In), len(op.Params))
	for _, o := range op.Out {
		s.operand(&o)
	}
	for _, o := range op.In {
		s.operand(&o)
	}
	for _, p := range op.Params {
		s.text(p.Key)
		if p.IsFloat {
			s.text(strconv.FormatFloat(p.Float, 'g', -1, 64))
			continue
		}
		s.text(p.Int.String())
	}
}

func (s *shaper) operand(o *ir.Operand) {
	if o.IsTemp() {
		s.text(o.Buf)
		return
	}
	if b := s.buffers.Find(o.Buf, 0); b != nil {
		s.ints(int(b.DType), bit(b.Space == ir.SMEM || b.Space == ir.Register), int(b.Layout.Kind),
			max(1, b.Layout.Copies), len(b.Shape))
		s.ints(b.Shape...)
	}
	for _, r := range o.Dims {
		s.text(r.String())
	}
}

func (s *shaper) ints(ns ...int) {
	for _, n := range ns {
		s.key = append(strconv.AppendInt(s.key, int64(n), 10), ' ')
	}
}

// text adds a string so that two different lists of them never make one key.
func (s *shaper) text(t string) { s.key = append(strconv.AppendQuote(s.key, t), ' ') }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
