package population

import "amkc/ir"

// Attention in small: a vector of six words holds q, k and v of two heads of one element each, or of one head of two.
const attnWidth = 2

// heads of the attention of a link: shares are those of one head.
func (l *link) heads() int {
	if l.kind == splitLink {
		return 1
	}
	return attnWidth
}

// attentionMemory declares the cache, and the partial results.
func (g *native) attentionMemory(l *link) {
	heads := l.heads()
	kv := ir.Buffer{Name: "L{i}.kv", Count: g.layers, Kind: ir.KVCache, DType: g.dtype,
		Shape: []int{heads, g.prog.Model.MaxSeq, 2, attnWidth / heads}}
	if g.r.IntN(4) == 0 {
		kv.Layout.Kind = ir.KVRows16
	}
	g.add(kv)
	if l.kind == splitLink {
		g.add(ir.Buffer{Name: "L{i}.part", Count: g.layers, Kind: ir.Activation, DType: ir.F32,
			Shape: []int{2, 1, attnWidth + 2}, Space: ir.GlobalScratch, Layout: g.words(ir.F32)})
	}
}

// attention makes the stage that attends and appends by head, or the two that attend by share and combine.
func (g *native) attention(l *link, in vector) ([]*ir.Stage, vector) {
	units := ir.Dist{Kind: ir.ByUnit, Extent: 2, Grain: 1, SMs: g.sms, Rot: g.r.IntN(g.sms), Step: g.r.IntN(g.sms)}
	s := &ir.Stage{Name: l.name, Dist: units, Signal: l.name}
	out := vector{name: l.name, counter: l.name, n: l.n, tasks: 2}
	g.counter(l.name, g.layers, l.plain)
	g.wait(s, in)
	if l.kind == attnLink {
		s.Ops = g.attend(in.name, viewOf(l.name, ir.Index(symA)), symA, extent(0), 1)
		return []*ir.Stage{s}, out
	}
	g.counter("L{i}.part", g.layers, false)
	s.Name, s.Signal = "L{i}.part", "L{i}.part"
	s.Ops = g.attend(in.name, viewOf("L{i}.part", ir.Index(symA), extent(1), extent(attnWidth+2)), ir.Int(0),
		ir.Share(ir.Int(0), symPos, 1, symA.Mod(2), 2), attnWidth)
	combine := &ir.Stage{Name: l.name, Dist: ir.Dist{Kind: ir.Explicit,
		Spans: []ir.TaskSpan{{SM: g.r.IntN(g.sms), B: 1}}}, Signal: l.name}
	g.wait(combine, vector{counter: "L{i}.part", tasks: 2})
	part := func(lo, hi int) ir.Operand {
		return viewOf("L{i}.part", extent(2), ir.Index(ir.Int(0)), ir.Span(ir.Int(lo), ir.Int(hi)))
	}
	combine.Ops = []ir.Op{newOp(ir.AttentionCombine, views(viewOf(l.name, extent(attnWidth))),
		views(part(0, attnWidth), part(attnWidth, attnWidth+2)), ir.IntParam("splits", ir.Int(2)))}
	out.tasks = 1
	return []*ir.Stage{s, combine}, out
}

// attend makes the ops of one unit: the words of q, k and v are polled, the head's rows below pos are read, and the new
// row is appended. rows is the share of the rows, or empty for all of them.
func (g *native) attend(qkv string, out ir.Operand, head ir.Expr, rows ir.Range, hd int) []ir.Op {
	part := func(k int) ir.Operand { // q, k or v of the head
		lo := ir.Int(k * attnWidth).Add(head)
		return viewOf(qkv, ir.Span(lo, lo.Add(ir.Int(hd))))
	}
	old, row := ir.Span(ir.Int(0), symPos), ir.Index(symPos)
	params := []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(1)),
		ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", 0.5)}
	if rows.Shared() {
		old, row = rows, ir.Share(symPos, symPos.Add(ir.Int(1)), rows.Block, rows.Part, rows.Parts)
		params = append(params, ir.IntParam("flags", ir.Int(2)), ir.IntParam("block", ir.Int(rows.Block)),
			ir.IntParam("part", rows.Part), ir.IntParam("parts", ir.Int(rows.Parts)))
	}
	if g.r.IntN(3) == 0 { // a window
		old.Lo = symPos.Sub(ir.Int(g.r.IntN(g.prog.Model.MaxSeq)))
		if !g.slip() { // else rows before the first
			old.Lo = ir.Int(0).Max(old.Lo)
		}
	}
	switch { // rows that are not there yet
	case !g.slip():
	case rows.Shared():
		row.Part = ir.Int(0)
	case g.r.IntN(2) == 0:
		old.Hi = symPos.Add(ir.Int(1))
	default:
		row = ir.Index(ir.Int(0))
	}
	cache := func(kv int, r ir.Range) ir.Operand {
		return viewOf("L{i}.kv", ir.Index(head), r, ir.Index(ir.Int(kv)), extent(hd))
	}
	in := views(part(0), cache(0, old), cache(1, old))
	if !g.slip() { // else k and v are polled once more, by the append alone
		in = append(in, part(1), part(2))
		params = append(params, ir.IntParam("row", symPos))
	}
	return []ir.Op{
		newOp(ir.ATTENTION, views(out), in, params...),
		newOp(ir.KVAppend, views(cache(0, row)), views(part(1))),
		newOp(ir.KVAppend, views(cache(1, row)), views(part(2))),
	}
}
