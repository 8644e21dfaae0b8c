package interchange

import "amkc/ir"

// The methods below narrow the whole-buffer views that translate has set up, and add parameters.

// embed gathers whole rows: those of a table, or those of an activation that the output holds in another shape.
func (s *opStep) embed() {
	hidden := s.int("hidden")
	s.want(len(s.shape(s.in[1])) == 2, "takes rows of a table of shape %v; [rows, columns] is accepted",
		s.shape(s.in[1]))
	s.want(s.dim(s.out[0], -1) == hidden, "has hidden=%d and an output of shape %v; its last dimension is accepted",
		hidden, s.shape(s.out[0]))
}

func (s *opStep) norm(op *ir.FlatOp) {
	hidden := s.int("hidden")
	s.want(s.dim(s.in[0], -1) == hidden, "has hidden=%d and an input of shape %v; its last dimension is accepted",
		hidden, s.shape(s.in[0]))
	for _, w := range s.in[1:] {
		s.want(s.numel(w) == hidden, "has hidden=%d and a weight of shape %v; as many elements are accepted", hidden,
			s.shape(w))
	}
	op.Params = append(op.Params, ir.FloatParam("eps", s.float("eps")))
}

// quantised reports whether the op is a product with a weight of scaled integers: qdtype says so, and scales are there.
func (s *opStep) quantised() bool {
	if s.op != ir.GEMV && s.op != ir.GEMM || len(s.in) < 3 {
		return false
	}
	q, _ := intOf(s.params["qdtype"])
	return q == int(ir.I8) || q == int(ir.I4)
}

// matmul: rows n_off.. of the weight give columns n_off.. of the output; a GEMM takes rows m_off.. of x.
func (s *opStep) matmul(op *ir.FlatOp) {
	k, n, off := s.int("K"), s.int("N_tile"), s.int("n_off")
	x, w := s.in[0], s.in[1]
	s.want(s.dim(x, -1) == k, "has K=%d and an input of shape %v; its last dimension is accepted", k, s.shape(x))
	s.want(len(s.shape(w)) == 2 && s.dim(w, 1) == k, "has K=%d and a weight of shape %v; [N, K] is accepted", k,
		s.shape(w))
	rows := window(off, n)
	op.In[1].Dims[0] = rows
	op.Out[0].Dims[len(op.Out[0].Dims)-1] = rows
	if s.op == ir.GEMM {
		s.rows(op, s.intOr("m_off", 0), s.int("M_tile"))
	}
	switch {
	case s.quantised():
		s.scales(op, rows, k)
	case len(s.in) > 2:
		s.want(len(s.shape(s.in[2])) == 1, "has a bias of shape %v; [N] is accepted", s.shape(s.in[2]))
		op.In[2].Dims[0] = rows
	}
}

// rows narrows x and the output of a GEMM to its rows.
func (s *opStep) rows(op *ir.FlatOp, off, m int) {
	if s.want(len(s.shape(s.in[0])) == 2 && len(s.shape(s.out[0])) == 2,
		"has an input of shape %v and an output of shape %v; [M, K] and [M, N] are accepted",
		s.shape(s.in[0]), s.shape(s.out[0])) {
		op.In[0].Dims[0], op.Out[0].Dims[0] = window(off, m), window(off, m)
	}
}

// scales narrows scales and zeros to the rows of the tile and the groups of K.
func (s *opStep) scales(op *ir.FlatOp, rows ir.Range, k int) {
	qdtype, group := s.int("qdtype"), s.intOr("group", k)
	b := &s.f.flat.Buffers[s.in[1]]
	s.want(b.DType == ir.DType(qdtype), "has qdtype=%d and a weight of %v; its dtype, %d, is accepted", qdtype, b.DType,
		b.DType)
	for i := 2; i < len(s.in); i++ {
		if !s.want(len(s.shape(s.in[i])) == 2, "has scales or zeros of shape %v; [N, groups] is accepted",
			s.shape(s.in[i])) {
			return
		}
		op.In[i].Dims[0] = rows
		if group > 0 {
			op.In[i].Dims[1] = window(0, (k+group-1)/group)
		}
	}
	op.Params = append(op.Params, ir.IntParam("qdtype", ir.Int(qdtype)), ir.IntParam("group", ir.Int(group)))
}

// attention: the queries over rows kv_start.. of the caches.
func (s *opStep) attention(op *ir.FlatOp) {
	if len(s.in) > 3 {
		s.fail(codeNoCounterpart, "has a fourth input, which no implementation reads; q, k and v are accepted")
		return
	}
	start, n := s.int("kv_start"), s.int("kv_len")
	hd, heads, kvHeads := s.int("head_dim"), s.int("n_heads"), s.int("n_kv_heads")
	batch := 1
	for _, i := range []int{1, 2} {
		shape := s.shape(s.in[i])
		d := len(shape) - 3
		if !s.want((d == 0 || d == 1) && shape[d+1] == kvHeads && shape[d+2] == hd,
			"has n_kv_heads=%d, head_dim=%d and a cache of shape %v; [rows, n_kv_heads, head_dim] is accepted, or a "+
				"batch of them", kvHeads, hd, shape) {
			return
		}
		if d == 1 {
			batch = shape[0]
		}
		op.In[i].Dims[d] = window(start, n)
	}
	q := s.shape(s.in[0])
	s.want(len(q) >= 2 && s.dim(s.in[0], -1) == hd && s.dim(s.in[0], -2) == heads &&
		(len(q) == 2 && batch == 1 || s.dim(s.in[0], -3) == batch && len(q) == 3),
		"has n_heads=%d, head_dim=%d and queries of shape %v; [n_heads, head_dim] is accepted, or a batch of them",
		heads, hd, q)
	op.Params = append(op.Params, s.copyInt("head_dim"), s.copyInt("n_heads"), s.copyInt("n_kv_heads"),
		ir.FloatParam("scale", s.float("scale")))
	if s.intOr("flags", 0)&flagSplitKV != 0 {
		op.Params = append(op.Params, ir.IntParam("flags", ir.Int(flagSplitKV)))
	}
}

// rope: [heads, head_dim] at the first position of the list, or [S, heads, head_dim] at S positions.
func (s *opStep) rope(op *ir.FlatOp) {
	hd := s.int("head_dim")
	x := s.shape(s.in[0])
	s.want((len(x) == 2 || len(x) == 3) && x[len(x)-1] == hd,
		"has head_dim=%d and an input of shape %v; [heads, head_dim] is accepted, or [positions, heads, head_dim]", hd,
		x)
	if !s.want(len(s.shape(s.in[1])) == 1, "has positions of shape %v; a list is accepted", s.shape(s.in[1])) {
		return
	}
	positions := 1
	if len(x) == 3 {
		positions = x[0]
	}
	op.In[1].Dims[0] = ir.Span(ir.Int(0), ir.Int(positions))
	op.Params = append(op.Params, s.copyInt("head_dim"), ir.IntParam("order", ir.Int(0)),
		ir.FloatParam("theta", s.float("theta")))
}

// kvAppend writes rows of the cache from pos on. The cache is an input as well, which is not read: what is not
// written stays.
func (s *opStep) kvAppend(op *ir.FlatOp) {
	if s.in[1] != s.out[0] {
		s.fail(codeNoCounterpart, "has another cache as input than as output; appending in place is accepted")
		return
	}
	pos := s.int("pos")
	shape := s.shape(s.out[0])
	d := len(shape) - 3
	if !s.want(d == 0 || d == 1, "has a cache of shape %v; [rows, n_kv_heads, head_dim] is accepted, or a batch "+
		"of them", shape) {
		return
	}
	row := ir.Buffer{Shape: append([]int{1}, shape[d+1:]...)}
	if d == 1 {
		row.Shape[0] = shape[0]
	}
	rows := 1
	if n := row.Numel(); n > 0 {
		rows = max(1, s.numel(s.in[0])/n)
	}
	op.In, op.InBuf = op.In[:1], s.in[:1]
	op.Out[0].Dims[d] = ir.Span(ir.Int(pos), ir.Int(pos).Add(ir.Int(rows)))
}

func (s *opStep) combine(op *ir.FlatOp) {
	part := s.dim(s.in[0], -1)
	hd := s.intOr("head_dim", part-2)
	heads := s.intOr("n_heads", s.numel(s.in[0])/max(1, part))
	op.Params = append(op.Params, ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(heads)))
	if _, there := s.params["n_kv_heads"]; there {
		op.Params = append(op.Params, s.copyInt("n_kv_heads"))
	}
}
