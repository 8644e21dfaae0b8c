package codegen

import (
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A contract says which ops a body of the device runtime carries out. Each one takes from a stage what its body can be
// told (names of buffers, numbers of its descriptor), builds the ops that the body then computes, and holds the stage
// to them: an operand, a view or a parameter that the body would not follow is an error here, never ignored.

// Ranges that the bodies cover.
var (
	spanA, spanB = ir.Symbol(ir.SpanA), ir.Symbol(ir.SpanB)
	taskRows     = ir.Span(spanA, spanB)
	taskPairs    = ir.Span(spanA.Div(2), spanB.Div(2)) // where two rows become one
	position     = ir.Symbol(ir.Pos)
	firstOnly    = ir.Index(ir.Int(0))
	ownSM        = ir.Index(ir.Symbol(ir.OnSM))
)

func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }

// block is the e-th block of n elements, counted from offset.
func block(e ir.Expr, n, offset int) ir.Range {
	return ir.Span(ir.Int(offset).Add(e.Mul(n)), ir.Int(offset).Add(e.Add(ir.Int(1)).Mul(n)))
}

func view(name string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: name, Dims: dims} }

// holdsTo refuses a stage whose ops are not those that its body carries out.
func holdsTo(s *ir.Stage, kind body, want []ir.Op) error {
	for i := range want {
		if i >= len(s.Ops) || spell(&s.Ops[i]) != spell(&want[i]) {
			have := "nothing"
			if i < len(s.Ops) {
				have = spell(&s.Ops[i])
			}
			return diag.Errorf(codeStage, "stage "+s.Name, "op %d is %s; the kernel's %s would compute %s: want that",
				i+1, have, kind, spell(&want[i]))
		}
	}
	if len(s.Ops) > len(want) {
		return diag.Errorf(codeStage, "stage "+s.Name, "op %d is %s, which the kernel's %s does not compute: want none",
			len(want)+1, spell(&s.Ops[len(want)]), kind)
	}
	return nil
}

// spell prints an op with its parameters in the order of their keys, which has no meaning.
func spell(o *ir.Op) string {
	c := *o
	c.Params = slices.Clone(o.Params)
	slices.SortFunc(c.Params, func(a, b ir.Param) int { return strings.Compare(a.Key, b.Key) })
	return strings.TrimSpace(ir.PrintOp(&c))
}

// breaks notes that a stage breaks its contract. What limits the kernel is reported first: it says more.
func (b *builder) breaks(err error) {
	if b.broken == nil {
		b.broken = err
	}
}

// checkContracts reports the first stage that breaks its contract.
func (b *builder) checkContracts() error { return b.broken }

// contract holds a stage whose body is not a matrix product to what the body computes. Matrix stages are held to theirs
// as they are emitted.
func (b *builder) contract(s *ir.Stage, kind body, at site) error {
	if s.Dist.Empty && kind != bodyProduct {
		return diag.Errorf(codeDist, "stage "+s.Name,
			"has tasks on SMs without work, which the kernel's %s skips: want it not to be empty", kind)
	}
	switch kind {
	case bodyEmbed:
		return holdsTo(s, kind, b.embedOps(s))
	case bodyEmbedReplicated, bodyAddNorm:
		return holdsTo(s, kind, b.replicatedOps(s, kind))
	case bodyAddNormRows:
		return holdsTo(s, kind, b.normRowsOps(s))
	case bodyAttend:
		return holdsTo(s, kind, b.attendOps(s, at))
	case bodyCombine:
		return holdsTo(s, kind, b.combineOps(s))
	case bodyKeepHidden:
		return holdsTo(s, kind, b.hiddenOps(s))
	case bodySample, bodyStop, bodyEmit:
		return holdsTo(s, kind, b.endingOps(s, kind))
	}
	return nil
}

// buf is the name of ops[k], or "" when there is none.
func buf(ops []ir.Operand, k int) string { return operand(ops, k).Buf }

// embedOps is embed of step.cuh: rows of the token's embedding, or times S::kScale, or what the host gives in their
// place, kept in the residual and handed over. With a table of positions, the row of this one, S::kPositionOffset
// further on, is added before.
func (b *builder) embedOps(s *ir.Stage) []ir.Op {
	e := op(s, ir.EMBED)
	last := &s.Ops[len(s.Ops)-1]
	out := []ir.Operand{view(buf(last.Out, 0), taskRows), view(buf(last.Out, 1), taskRows)}
	want := []ir.Op{{Code: ir.EMBED, Out: out,
		In: []ir.Operand{view(buf(e.In, 0), firstOnly), view(buf(e.In, 1), upTo(b.p.Model.Vocab), taskRows),
			view(b.named(ir.RoleEmbeddings), taskRows)}}}
	if e.Has("scale") {
		want[0].Params = []ir.Param{ir.FloatParam("scale", e.FloatOr("scale", 1))}
	}
	if last != e {
		found := view(buf(e.Out, 0))
		want[0].Out = []ir.Operand{found}
		want = append(want, ir.Op{Code: ir.ADD, Out: out, In: []ir.Operand{found,
			view(buf(last.In, 1), ir.Index(position.Add(ir.Int(positionOffset(last)))), taskRows)}})
	}
	return want
}

// positionOffset is the row of position 0 in the table that a row of is added.
func positionOffset(add *ir.Op) int {
	if table := operand(add.In, 1); len(table.Dims) == 2 {
		return table.Dims[0].Lo.At(0)
	}
	return 0
}

// attendOps is Unit of attention.cuh: unit a is split a % splits of kv head a / splits, and has every splits-th chunk
// of its rows, as far as the window reaches. The unit whose share this step's row falls into appends it. With
// NormedHeads, q and k are normalised before, and may be rotated then.
func (b *builder) attendOps(s *ir.Stage, at site) []ir.Op {
	m, a := &b.p.Model, op(s, ir.ATTENTION)
	hd, group := m.HeadDim, m.Heads/max(1, m.KVHeads)
	splits, rows := a.IntAt("parts", 0, 1), a.IntAt("block", 0, 0)
	in, out, cache := buf(s.Ops[0].In, 0), buf(a.Out, 0), buf(a.In, 1)
	head, to := spanA, view(out, block(spanA, group*hd, 0))
	past, now := ir.Span(windowStart(a.Window()), position), ir.Index(position)
	params := []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(group)),
		ir.IntParam("n_kv_heads", ir.Int(1)), ir.FloatParam("scale", a.FloatOr("scale", 1)),
		ir.IntParam("row", position)}
	if limit := a.FloatOr("cap", 0); limit != 0 {
		params = append(params, ir.FloatParam("cap", limit))
	}
	if splits > 1 {
		share := spanA.Mod(splits)
		head, to = spanA.Div(splits), view(out, ir.Index(spanA), upTo(group), upTo(hd+2))
		past, now = ir.Share(past.Lo, past.Hi, rows, share, splits), ir.Share(now.Lo, now.Hi, rows, share, splits)
		params = append(params, ir.IntParam("flags", ir.Int(2)), ir.IntParam("block", ir.Int(rows)),
			ir.IntParam("part", share), ir.IntParam("parts", ir.Int(splits)))
	}
	cached := func(r ir.Range, isValue int) ir.Operand {
		return view(cache, ir.Index(head), r, ir.Index(ir.Int(isValue)), upTo(hd))
	}
	q, k := view(in, block(head, group*hd, 0)), view(in, block(head, hd, m.Heads*hd))
	v := view(in, block(head, hd, (m.Heads+m.KVHeads)*hd))
	var heads []ir.Op
	if normsHeads(s) {
		heads, q, k = b.normedHeads(s, at, head, q, k)
	}
	return append(heads,
		ir.Op{Code: ir.ATTENTION, Out: []ir.Operand{to}, Params: params,
			In: []ir.Operand{q, cached(past, 0), cached(past, 1), k, v}},
		ir.Op{Code: ir.KVAppend, Out: []ir.Operand{cached(now, 0)}, In: []ir.Operand{k}},
		ir.Op{Code: ir.KVAppend, Out: []ir.Operand{cached(now, 1)}, In: []ir.Operand{v}})
}

// normedHeads is NormedHeads of attention.cuh: what it makes of q and k of a kv head, and what attention reads of them.
// One eps is for both.
func (b *builder) normedHeads(s *ir.Stage, at site, head ir.Expr, q, k ir.Operand) (ops []ir.Op, toQ, toK ir.Operand) {
	m := &b.p.Model
	hd, group := m.HeadDim, m.Heads/max(1, m.KVHeads)
	params := []ir.Param{ir.FloatParam("eps", s.Ops[0].FloatOr("eps", 0))}
	if s.Ops[0].IntAt("unit_offset", 0, 0) == 1 {
		params = append(params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	if !normsWhole(s) {
		params = append(params, ir.IntParam("head_dim", ir.Int(hd)))
	}
	norm := func(k int, out string, x ir.Operand, heads, first, all int) {
		weights := upTo(hd)
		if hasOwnGains(s) {
			weights = block(head, heads*hd, 0)
		}
		o := ir.Op{Code: s.Ops[0].Code, Out: []ir.Operand{view(out)}, Params: params,
			In: []ir.Operand{x, view(buf(s.Ops[k].In, 1), weights)}}
		if normsWhole(s) {
			o.In = append(o.In, view(x.Buf, ir.Span(ir.Int(first*hd), ir.Int((first+all)*hd))))
		}
		if shiftsHeads(s) {
			o.In = append(o.In, view(buf(s.Ops[k].In, 2), weights))
		}
		ops = append(ops, o)
	}
	norm(0, "%qn", q, group, 0, m.Heads)
	norm(1, "%kn", k, 1, m.Heads, m.KVHeads)
	if !rotatesHeads(s) {
		return ops, view("%qn"), view("%kn")
	}
	rope := op(s, ir.ROPE)
	by := b.rotationOf(rope, at)
	rotate := func(out, in string) {
		ops = append(ops, ir.Op{Code: ir.ROPE, Out: []ir.Operand{view(out)},
			In: []ir.Operand{view(in), view(buf(rope.In, 1), upTo(by.pairs))},
			Params: append([]ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("order", ir.Int(1)),
				ir.IntParam("pos", position)}, by.scale...)})
	}
	rotate("%q", "%qn")
	rotate("%k", "%kn")
	return ops, view("%q"), view("%k")
}

// windowStart is the first row that a position sees.
func windowStart(window int) ir.Expr {
	if window == 0 {
		return ir.Int(0)
	}
	return ir.Int(0).Max(position.Sub(ir.Int(window - 1)))
}

// combineOps is combine.cuh: unit a is kWidth elements of the attention vector of a token, which lie in one head. The
// units of a token come before those of the next, and the splits of a sequence before those of the next; each has a row
// for every row of its sequence.
func (b *builder) combineOps(s *ir.Stage) []ir.Op {
	m, c := &b.p.Model, op(s, ir.AttentionCombine)
	hd, group, splits, width := m.HeadDim, m.Heads/max(1, m.KVHeads), c.IntAt("splits", 0, 1), b.combineWidth(s)
	perHead := max(1, hd/max(1, width))
	perToken := m.Heads * perHead
	unit, token := spanA, []ir.Range(nil)
	if b.tokens > 1 {
		unit, token = spanA.Mod(perToken), []ir.Range{ir.Index(spanA.Div(perToken))}
	}
	kvHead := unit.Div(perHead * group)
	if b.pass.NumSequences() > 1 {
		kvHead = spanA.Div(perToken).Div(b.pass.NumRows()).Mul(m.KVHeads).Add(kvHead)
	}
	units := ir.Span(kvHead.Mul(splits), kvHead.Add(ir.Int(1)).Mul(splits))
	inGroup, elements := ir.Index(unit.Div(perHead).Mod(group)), block(unit.Mod(perHead), width, 0)
	if group == 1 {
		inGroup = firstOnly
	}
	if perHead == 1 {
		elements = upTo(hd)
	}
	in, of := buf(c.In, 0), []ir.Range{units}
	if b.pass.NumRows() > 1 {
		of = append(of, ir.Index(spanA.Div(perToken).Mod(b.pass.NumRows())))
	}
	of = append(of, inGroup)
	return []ir.Op{{Code: ir.AttentionCombine,
		Out: []ir.Operand{view(buf(c.Out, 0), append(token, block(unit, width, 0))...)},
		In: []ir.Operand{view(in, append(slices.Clone(of), elements)...),
			view(in, append(slices.Clone(of), ir.Span(ir.Int(hd), ir.Int(hd+2)))...)},
		Params: []ir.Param{ir.IntParam("splits", ir.Int(splits))}}}
}

// combineWidth is how many elements of the attention vector a unit combines.
func (b *builder) combineWidth(s *ir.Stage) int {
	return b.tokens * b.p.Model.Heads * b.p.Model.HeadDim / max(1, s.Dist.Extent)
}
