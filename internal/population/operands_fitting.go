package population

import (
	"fmt"

	"amkc/ir"
)

// fitting makes an op of each opcode with operands that fit, of sizes of its own choice. FUSED has none that any
// backend runs.
func (s *sheet) fitting(code ir.Opcode) *ir.FlatOp {
	n, rows := s.some(), 1+s.IntN(3)
	x := func() arg { return s.in(s.float(), n) }
	floats := func(n int) []arg { return s.outs(s.float(), n) }
	switch code {
	case ir.NOP:
		return s.op(code, nil, nil)
	case ir.COPY:
		if chance(s.Rand, 3) {
			return s.op(code, []arg{s.in(ir.I32, n)}, s.outs(ir.I32, n))
		}
		return s.op(code, []arg{s.in(pick(s.Rand, []ir.DType{ir.F32, ir.BF16, ir.I8, ir.U8, ir.F8E4M3}), n)}, floats(n))
	case ir.SOFTMAX:
		return s.op(code, []arg{x()}, floats(n))
	case ir.EMBED:
		return s.embed()
	case ir.RMSNORM, ir.LAYERNORM:
		n := 1 + s.IntN(4)
		in, weights := []arg{s.input("", s.float(), rows, s.some()*n)}, 1
		if code == ir.LAYERNORM {
			weights = s.IntN(3)
		}
		for range weights {
			in = append(in, s.in(s.float(), n))
		}
		params := []ir.Param{ir.FloatParam("eps", 1e-5)}
		switch heads := 1 + s.IntN(3); {
		case weights > 0 && chance(s.Rand, 3): // of each head
			in[0] = s.input("", s.float(), rows, heads*n)
			for k := range in[1:] {
				in[1+k] = s.in(s.float(), heads*n)
			}
			params = append(params, intParam("head_dim", n))
		case code == ir.LAYERNORM && weights > 0 && chance(s.Rand, 2):
			params = append(params, intParam("head_dim", n))
		case code == ir.RMSNORM && chance(s.Rand, 2):
			params = append(params, intParam("head_dim", n))
		case code == ir.RMSNORM && chance(s.Rand, 2): // a part of a whole
			in[0] = s.input("", s.float(), rows, n)
			in = append(in, s.input("", s.float(), rows, 1+s.some()))
		}
		return s.op(code, in, floats(s.count(in[0])), params...)
	case ir.GEMV:
		return s.product(code, 1)
	case ir.GEMM:
		return s.product(code, rows)
	case ir.ATTENTION:
		return s.attention()
	case ir.ROPE:
		return s.rope()
	case ir.SiluMul, ir.GeluTanhMul:
		if chance(s.Rand, 2) {
			return s.op(code, []arg{s.input("", s.float(), rows, 2*n)}, floats(rows*n))
		}
		return s.op(code, []arg{x(), x()}, floats(n))
	case ir.ADD:
		if chance(s.Rand, 3) { // one row for each
			return s.op(code, []arg{s.input("", s.float(), rows, n), s.in(s.float(), n)}, floats(rows*n))
		}
		return s.pointwise(code, n)
	case ir.MUL:
		if chance(s.Rand, 2) {
			return s.op(code, []arg{x()}, floats(n), ir.FloatParam("scale", 0.5))
		}
		return s.op(code, []arg{x(), x()}, floats(n))
	case ir.XIELU:
		return s.op(code, []arg{x(), s.in(s.float(), ir.Ops[code].Finisher.Weights)}, floats(n))
	case ir.DEQUANT:
		return s.dequant()
	case ir.KVAppend:
		return s.appendRows()
	case ir.ArgMax:
		return s.argmax()
	case ir.SAMPLE:
		return s.sample()
	case ir.STOP:
		return s.stop()
	case ir.AttentionCombine:
		return s.combine()
	case ir.FUSED:
		return s.op(code, []arg{x()}, []arg{s.view("", ir.Activation, ir.F32, max(1, n))},
			intParam("recipe", s.IntN(4)))
	}
	return s.pointwise(code, n)
}

// pointwise makes an op that works element by element on as many elements of each operand, as its declaration has it.
func (s *sheet) pointwise(code ir.Opcode, n int) *ir.FlatOp {
	spec := ir.Ops[code]
	if !spec.Pointwise {
		panic(fmt.Sprintf("population: no operands are known that fit %v", code))
	}
	var in []arg
	for range spec.In.Min {
		in = append(in, s.in(s.float(), n))
	}
	if more := spec.In.Max - spec.In.Min; more > 0 {
		for range s.IntN(more + 1) {
			in = append(in, s.in(s.float(), n))
		}
	}
	var params []ir.Param
	for i := range spec.Params {
		switch p := &spec.Params[i]; {
		case p.Needed && p.Real:
			params = append(params, ir.FloatParam(p.Key, 0.5))
		case p.Needed:
			params = append(params, intParam(p.Key, p.Lo))
		}
	}
	return s.op(code, in, s.outs(s.float(), n), params...)
}

// count is the number of elements of an operand that a sheet has made.
func (s *sheet) count(a arg) int {
	if a.buf < 0 {
		for i := range s.before {
			if s.before[i].Out[0].Buf == a.Buf {
				return s.count(arg{s.before[i].In[0], s.before[i].InBuf[0]})
			}
		}
	}
	n := 1
	for _, r := range a.Dims {
		n *= r.Len(s.flat.Lo)
	}
	return n
}

func (s *sheet) embed() *ir.FlatOp {
	ids, n := s.some(), 1
	table := []int{1 + s.IntN(4)}
	for range s.IntN(4) {
		table = append(table, s.some())
		n *= table[len(table)-1]
	}
	return s.op(ir.EMBED, []arg{s.input(tokenInput, ir.I32, s.shape(ids)...),
		s.view("", ir.Weight, s.float(), table...)}, s.outs(s.float(), ids*n))
}

// product multiplies rows of x with a matrix, which may have a bias or be quantised.
func (s *sheet) product(code ir.Opcode, rows int) *ir.FlatOp {
	k, n := 1+s.IntN(6), s.some()
	x := s.in(s.float(), rows*k)
	shape := append(s.shape(n), k) // the last of up to four dimensions is K
	switch {
	case len(shape) > 4:
		shape = []int{n, k}
	case n == 1 && chance(s.Rand, 4):
		shape = []int{k}
	}
	out := s.outs(s.float(), rows*n)
	switch s.IntN(4) {
	case 0:
		return s.op(code, []arg{x, s.input("", s.float(), shape...), s.in(s.float(), n)}, out)
	case 1:
		q, group := pick(s.Rand, []ir.DType{ir.I8, ir.I4}), 1+s.IntN(4)
		in := []arg{x, s.view("", ir.Weight, q, shape...)}
		for range s.IntN(3) {
			in = append(in, s.in(s.float(), n*((k+group-1)/group)))
		}
		return s.op(code, in, out, intParam("qdtype", int(q)), intParam("group", group))
	}
	return s.op(code, []arg{x, s.input("", s.float(), shape...)}, out)
}

func (s *sheet) dequant() *ir.FlatOp {
	q, n, k, group := pick(s.Rand, []ir.DType{ir.I8, ir.I4}), s.some(), s.some(), 1+s.IntN(4)
	groups := (k + group - 1) / group
	in := []arg{s.view("", ir.Weight, q, n, k), s.in(s.float(), n*groups)}
	if chance(s.Rand, 2) {
		in = append(in, s.view("", ir.Weight, pick(s.Rand, []ir.DType{ir.I8, ir.U8, ir.F16}), n, groups))
	}
	return s.op(ir.DEQUANT, in, s.outs(s.float(), n*k), intParam("qdtype", int(q)), intParam("group", group))
}

func (s *sheet) rope() *ir.FlatOp {
	hd, heads, batch := 2+2*s.IntN(3), 1+s.IntN(3), 1+s.IntN(3)
	if chance(s.Rand, 2) {
		n := batch * heads * hd
		out := s.outs(s.float(), n)
		return s.op(ir.ROPE, []arg{s.in(s.float(), n), s.input(posInput, ir.I32, s.shape(batch)...)}, out,
			intParam("head_dim", hd), intParam("order", 0), ir.FloatParam("theta", 1e4))
	}
	n := 2 * s.some()
	params := []ir.Param{intParam("head_dim", hd), intParam("order", 1), intParam("first", 2*s.IntN(4))}
	if chance(s.Rand, 2) {
		params = append(params, intParam("limit", 2*s.IntN(6)))
	}
	if batch > 1 || chance(s.Rand, 2) {
		params = append(params, ir.IntParam("pos", s.positionOfRow(batch)))
	}
	return s.op(ir.ROPE, []arg{s.input("", s.float(), batch, n), s.in(s.float(), 1+s.IntN(hd/2))},
		s.outs(s.float(), batch*n), params...)
}

// positionOfRow is where the rows of an op are: one after the other, or all where the pass is; at times of a pass of
// several sequences.
func (s *sheet) positionOfRow(rows int) ir.Expr {
	row := ir.Symbol(ir.Row)
	switch s.IntN(3) {
	case 0:
		return ir.Symbol(ir.Pos)
	case 1:
		s.flat.Pass = ir.PassOf(1, rows)
		return ir.Symbol(ir.Pos).Add(row)
	}
	s.flat.Pass = ir.PassOf(rows, 1+s.IntN(2))
	return ir.PosOf(row.Div(s.flat.Pass.NumRows())).Add(row.Mod(s.flat.Pass.NumRows()))
}

func (s *sheet) appendRows() *ir.FlatOp {
	rows, heads, n := 1, 1+s.IntN(2), 1+s.IntN(4)
	if chance(s.Rand, 3) {
		rows = s.IntN(3)
	}
	lengths := []int{rows, heads, n}
	if chance(s.Rand, 2) {
		lengths = []int{1, rows, heads, n}
	}
	to := s.view("", pick(s.Rand, []ir.BufferKind{ir.KVCache, ir.Activation}), s.float(), lengths...)
	if at := len(lengths) - 3; rows > 0 && chance(s.Rand, 2) { // of the rows of the pass those of a part
		s.flat.Buffers[to.buf].Shape[at] = s.flat.Hi + rows
		pos := ir.Symbol(ir.Pos)
		to.Dims[at] = ir.Share(pos, pos.Add(ir.Int(rows)), 1+s.IntN(2), ir.Int(s.IntN(2)), 2)
	}
	elements := heads * n
	if rows == 0 && chance(s.Rand, 2) {
		elements *= 2
	} else {
		elements = 1
		for _, r := range to.Dims { // before they are dealt out
			elements *= max(0, r.Hi.At(s.flat.Lo)-r.Lo.At(s.flat.Lo))
		}
	}
	return s.op(ir.KVAppend, []arg{s.in(s.float(), elements)}, []arg{to})
}

func (s *sheet) argmax() *ir.FlatOp {
	rows, n := 1+s.IntN(3), 1+s.IntN(4)
	switch s.IntN(3) {
	case 0:
		return s.op(ir.ArgMax, []arg{s.view("", ir.Weight, s.float(), rows, s.some())},
			[]arg{s.out(s.float(), rows), s.out(ir.I32, rows)}, intParam("partial", 1), intParam("first", s.IntN(9)))
	case 1:
		return s.op(ir.ArgMax, []arg{s.input("", s.float(), rows, n), s.input(tokenInput, ir.I32, rows, n)},
			s.outs(ir.I32, rows))
	}
	return s.op(ir.ArgMax, []arg{s.input("", s.float(), rows, n)}, s.outs(ir.I32, rows))
}

// sample is an argmax by settings, of one sequence or of as many as there are rows.
func (s *sheet) sample() *ir.FlatOp {
	rows, n := 1+s.IntN(3), 1+s.IntN(4)
	sequences := 1
	if chance(s.Rand, 2) {
		sequences = rows
	}
	settings := s.input("", ir.I32, sequences, ir.SamplingWords)
	pos := intParam("pos", s.IntN(9))
	switch s.IntN(3) {
	case 0:
		return s.op(ir.SAMPLE, []arg{s.view("", ir.Weight, s.float(), rows, s.some()), settings},
			[]arg{s.out(s.float(), rows), s.out(ir.I32, rows)}, intParam("partial", 1), intParam("first", s.IntN(9)),
			pos)
	case 1:
		return s.op(ir.SAMPLE, []arg{s.input("", s.float(), rows, n), s.input(tokenInput, ir.I32, rows, n), settings},
			s.outs(ir.I32, rows), pos)
	}
	return s.op(ir.SAMPLE, []arg{s.input("", s.float(), rows, n), settings}, s.outs(ir.I32, rows), pos)
}

func (s *sheet) stop() *ir.FlatOp {
	n := s.some()
	return s.op(ir.STOP, []arg{s.input(tokenInput, ir.I32, s.shape(n)...), s.input("ids", ir.I32, s.shape(s.some())...),
		s.input("last", ir.I32, 1)}, s.outs(ir.I32, n))
}

func (s *sheet) combine() *ir.FlatOp {
	n, w := 1+s.IntN(3), 1+s.IntN(4)
	if chance(s.Rand, 2) {
		return s.op(ir.AttentionCombine, []arg{s.in(ir.F32, n*w), s.in(ir.F32, 2*n)}, s.outs(s.float(), w),
			intParam("splits", n))
	}
	heads := 1 + s.IntN(3)
	var in []arg
	for range n {
		in = append(in, s.in(ir.F32, heads*(w+2)))
	}
	return s.op(ir.AttentionCombine, in, s.outs(s.float(), heads*w), intParam("head_dim", w),
		intParam("n_heads", heads))
}

// attention looks at a cache in one of the forms that it takes: [rows, hd], [rows, heads, hd], [batch, rows, heads,
// hd], [heads, rows, 1, hd] and [1, heads, rows, 1, hd].
func (s *sheet) attention() *ir.FlatOp {
	hd, kvHeads, group, batch, rows := 1+s.IntN(4), 1+s.IntN(2), 1+s.IntN(2), 1+s.IntN(2), s.some()
	var lengths []int
	form := s.IntN(5)
	switch form {
	case 0:
		kvHeads, lengths = 1, []int{rows, hd}
	case 1:
		lengths = []int{rows, kvHeads, hd}
	case 2:
		lengths = []int{batch, rows, kvHeads, hd}
	case 3:
		lengths = []int{1, kvHeads, rows, 1, hd}
	default:
		lengths = []int{kvHeads, rows, 1, hd}
	}
	ofEach := len(lengths) == 4 && lengths[0] == batch && lengths[2] == kvHeads // of each query
	params := []ir.Param{intParam("head_dim", hd), intParam("n_heads", kvHeads*group), intParam("n_kv_heads", kvHeads),
		ir.FloatParam("scale", 0.5)}
	cache := [2]arg{s.view("", ir.Weight, s.float(), lengths...), s.view("", ir.Weight, s.float(), lengths...)}
	at := max(0, len(lengths)-3)
	share, pos := ir.Span(ir.Int(0), ir.Int(rows)), ir.Symbol(ir.Pos)
	switch s.IntN(4) {
	case 3: // those in a window
		share = ir.Span(ir.Int(0).Max(pos.Sub(ir.Int(s.IntN(3)))), pos)
	case 0: // rows below the position
		share = ir.Span(ir.Int(0), pos)
	case 1: // a split of them
		block, part, parts := 1+s.IntN(2), s.IntN(2), 2
		share = ir.Share(ir.Int(0), pos, block, ir.Int(part), parts)
		params = append(params, intParam("block", block), intParam("part", part), intParam("parts", parts))
	}
	for i := range cache {
		cache[i].Dims[at] = share
		s.flat.Buffers[cache[i].buf].Shape[at] = max(rows, s.flat.Hi, 1)
		if last := len(lengths) - 1; cache[i].Dims[last].Shared() { // elements of a head lie side by side
			cache[i].Dims[last] = ir.Span(ir.Int(0), ir.Int(hd))
		}
	}
	in := []arg{s.in(s.float(), batch*kvHeads*group*hd), cache[0], cache[1]}
	if (batch == 1 || !ofEach) && chance(s.Rand, 2) {
		in = append(in, s.in(s.float(), batch*kvHeads*hd), s.in(s.float(), batch*kvHeads*hd))
		params = append(params, ir.IntParam("row", pos))
		if chance(s.Rand, 2) {
			params[len(params)-1].Int = pos.Add(ir.Symbol(ir.Row))
			s.flat.Pass = ir.PassOf(1, batch)
		}
		if chance(s.Rand, 2) {
			params = append(params, intParam("window", 1+s.IntN(3)))
		}
	}
	width := hd
	if chance(s.Rand, 3) {
		width += 2
		params = append(params, intParam("flags", 2))
	}
	return s.op(ir.ATTENTION, in, s.outs(s.float(), batch*kvHeads*group*width), params...)
}
