package population

import (
	"math"
	"slices"

	"amkc/ir"
)

// change changes one thing about an op. What comes out may fit all the same.
func (s *sheet) change(op *ir.FlatOp) {
	switch s.IntN(12) {
	case 0, 1, 2:
		s.changeRange(op)
	case 3, 4, 5:
		s.changeParam(op)
	case 6, 7:
		s.changeCount(op)
	case 8:
		s.changeType(op)
	case 9, 10:
		s.changeShape(op)
	case 11:
		if op.Code = ir.Opcode(s.IntN(len(ir.Ops))); chance(s.Rand, 2) {
			op.Params = s.fitting(op.Code).Params
		}
	}
}

// operand returns a random operand of an op and where the number of its buffer stands; nil if there is none.
func (s *sheet) operand(op *ir.FlatOp) (o *ir.Operand, buf *int) {
	n := s.IntN(max(1, len(op.In)+len(op.Out)))
	switch {
	case len(op.In)+len(op.Out) == 0:
		return nil, nil
	case n < len(op.In):
		return &op.In[n], &op.InBuf[n]
	}
	return &op.Out[n-len(op.In)], &op.OutBuf[n-len(op.In)]
}

// changeRange changes the bounds of one range of a view. The buffer grows with it, most of the time.
func (s *sheet) changeRange(op *ir.FlatOp) {
	o, buf := s.operand(op)
	if o == nil || len(o.Dims) == 0 {
		return
	}
	o.Dims = slices.Clone(o.Dims)
	d := s.IntN(len(o.Dims))
	r, pos := &o.Dims[d], ir.Symbol(ir.Pos)
	length := r.Len(s.flat.Lo)
	switch s.IntN(13) {
	case 12:
		r.Hi = r.Hi.Add(ir.PosOf(ir.Int(s.IntN(3)))).Sub(pos)
	case 0, 1:
		r.Hi = r.Hi.Add(ir.Int(1))
	case 2, 3:
		r.Hi = r.Hi.Sub(ir.Int(1))
	case 4:
		*r = ir.Span(ir.Int(0), ir.Int(0))
	case 5:
		*r = ir.Span(ir.Int(0), ir.Int(2*length))
	case 6:
		*r = ir.Span(ir.Int(0), pos)
	case 7:
		*r = pick(s.Rand, []ir.Range{ir.Span(pos.Div(2).Mul(2), pos.Add(ir.Int(1))),
			ir.Span(ir.Int(0), pos.Min(ir.Int(2))), ir.Span(pos, pos), ir.Index(pos),
			ir.Span(pos.Mod(2), pos.Mod(2).Add(ir.Int(length)))})
	case 8:
		r.Block, r.Parts, r.Part = s.IntN(3), s.IntN(4), ir.Int(s.IntN(4)-1)
	case 9:
		*r = ir.Share(pos, pos.Add(ir.Int(1+s.IntN(3))), 1, pos.Mod(2), 2)
	case 10:
		*r = ir.Share(ir.Int(0), ir.Int(2*length), 1, pos.Mod(2), 2)
	default:
		r.Lo, r.Hi = r.Lo.Sub(ir.Int(1)), r.Hi.Sub(ir.Int(1))
	}
	if *buf < 0 || chance(s.Rand, 10) {
		return
	}
	for at := s.flat.Lo; at <= s.flat.Hi; at++ {
		shape := s.flat.Buffers[*buf].Shape
		if d < len(shape) {
			shape[d] = max(shape[d], r.Hi.At(at))
		}
	}
}

// paramKeys are the parameters of all ops, and one that no op has.
var paramKeys = func() (keys []string) {
	for _, spec := range ir.Ops {
		for i := range spec.Params {
			if key := spec.Params[i].Key; !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return append(keys, "colour")
}()

// changeParam removes a parameter, adds one or gives one another value.
func (s *sheet) changeParam(op *ir.FlatOp) {
	op.Params = slices.Clone(op.Params)
	if len(op.Params) == 0 || chance(s.Rand, 6) {
		key := pick(s.Rand, paramKeys)
		if keys := ir.Ops[op.Code].Keys(false); len(keys) > 0 && chance(s.Rand, 2) {
			key = pick(s.Rand, keys)
		}
		op.Params = append(op.Params, intParam(key, pick(s.Rand, numbers)))
		return
	}
	k := s.IntN(len(op.Params))
	p := &op.Params[k]
	switch s.IntN(8) {
	case 0:
		op.Params = slices.Delete(op.Params, k, k+1)
	case 1:
		p.Int, p.IsFloat = pick(s.Rand, []ir.Expr{ir.Symbol(ir.Pos), ir.Symbol(ir.Pos).Sub(ir.Int(1)),
			ir.Symbol(ir.OnSM), ir.PosOf(ir.Int(1)), ir.PosOf(ir.Symbol(ir.Row)),
			ir.Symbol(ir.Pos).Sub(ir.Symbol(ir.Row)), ir.Symbol(ir.Row)}), false
	case 2:
		p.Float, p.IsFloat = pick(s.Rand, []float64{0, 1, 2.5, -1, math.NaN(), math.Inf(1)}), true
	case 3, 4:
		p.Int, p.IsFloat = ir.Int(pick(s.Rand, numbers)), false
	default:
		p.Int = p.Int.Add(ir.Int(1 - 2*s.IntN(2)))
	}
}

// changeCount drops, repeats or adds an operand.
func (s *sheet) changeCount(op *ir.FlatOp) {
	switch k := s.IntN(6); {
	case k == 0 && len(op.In) > 0:
		op.In, op.InBuf = op.In[:len(op.In)-1], op.InBuf[:len(op.InBuf)-1]
	case k == 1 && len(op.Out) > 0:
		op.Out, op.OutBuf = op.Out[:len(op.Out)-1], op.OutBuf[:len(op.OutBuf)-1]
	case k == 2 && len(op.In) > 0:
		i := s.IntN(len(op.In))
		op.In, op.InBuf = append(op.In, op.In[i]), append(op.InBuf, op.InBuf[i])
	case k == 3:
		a := s.in(s.float(), s.some())
		op.In, op.InBuf = append(op.In, a.Operand), append(op.InBuf, a.buf)
	case k == 4 && len(op.In) > 1:
		i, j := s.IntN(len(op.In)), s.IntN(len(op.In))
		op.In[i], op.In[j], op.InBuf[i], op.InBuf[j] = op.In[j], op.In[i], op.InBuf[j], op.InBuf[i]
	default:
		a := s.out(s.float(), s.some())
		op.Out, op.OutBuf = append(op.Out, a.Operand), append(op.OutBuf, a.buf)
	}
}

// changeType gives the buffer of an operand other elements, or makes it one that no task may write.
func (s *sheet) changeType(op *ir.FlatOp) {
	_, buf := s.operand(op)
	if buf == nil || *buf < 0 {
		return
	}
	if b := &s.flat.Buffers[*buf]; b.Kind == ir.Activation && chance(s.Rand, 6) {
		b.Kind = ir.Weight
	} else {
		b.DType = pick(s.Rand, []ir.DType{ir.F32, ir.F16, ir.BF16, ir.F8E4M3, ir.I32, ir.I32, ir.I8, ir.I4, ir.U8,
			ir.BOOL})
		if !b.Kind.ReadOnly() && b.DType == ir.I4 {
			b.DType = ir.I8 // elements that share bytes are another rule's
		}
	}
}

// changeShape gives an operand another shape: with as many elements, most of the time, of another rank, or as a
// temporary.
func (s *sheet) changeShape(op *ir.FlatOp) {
	o, buf := s.operand(op)
	if o == nil {
		return
	}
	if *buf < 0 {
		if chance(s.Rand, 2) {
			o.Buf = "%nothing"
		}
		return
	}
	b := &s.flat.Buffers[*buf]
	if b.Kind == ir.KVCache || len(b.Shape) == 0 || len(o.Dims) == 0 { // a cache has three dimensions at least
		return
	}
	if b.Kind != ir.Activation && chance(s.Rand, 4) {
		a := s.temporary(arg{*o, *buf})
		*o, *buf = a.Operand, a.buf
		return
	}
	if chance(s.Rand, 12) {
		o.Dims = slices.Clone(o.Dims[:len(o.Dims)-1]) // of a rank that its buffer does not have, or of none
		if chance(s.Rand, 2) {
			b.Shape = b.Shape[:len(o.Dims)]
		}
		return
	}
	if chance(s.Rand, 12) {
		b.Shape = slices.Clone(b.Shape)
		b.Shape[s.IntN(len(b.Shape))] = 0
		return
	}
	n := s.count(arg{*o, *buf})
	if chance(s.Rand, 4) {
		n = s.IntN(9)
	}
	lengths := s.shape(n)
	b.Shape, o.Dims = nil, nil
	for _, n := range lengths {
		size, r := s.place(n)
		b.Shape, o.Dims = append(b.Shape, size), append(o.Dims, r)
	}
}
