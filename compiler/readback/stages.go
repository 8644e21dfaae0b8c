package readback

import (
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
)

// Symbols and ranges that the views below are made of.
var (
	spanA, spanB, onSM, position = ir.Symbol(ir.SpanA), ir.Symbol(ir.SpanB), ir.Symbol(ir.OnSM), ir.Symbol(ir.Pos)

	task  = ir.Span(spanA, spanB)
	first = ir.Index(ir.Int(0))
)

func upTo(n int) ir.Range { return ir.Span(ir.Int(0), ir.Int(n)) }

// piece is the e-th piece of n elements, counted from offset.
func piece(e ir.Expr, n, offset int) ir.Range {
	lo, hi := e.Mul(n), e.Add(ir.Int(1)).Mul(n)
	if offset != 0 {
		lo, hi = ir.Int(offset).Add(lo), ir.Int(offset).Add(hi)
	}
	return ir.Span(lo, hi)
}

func view(name string, dims ...ir.Range) ir.Operand { return ir.Operand{Buf: name, Dims: dims} }

func op(code ir.Opcode, out, in []ir.Operand, params ...ir.Param) ir.Op {
	return ir.Op{Code: code, Out: out, In: in, Params: params}
}

func views(v ...ir.Operand) []ir.Operand { return v }

// stage rebuilds a stage. That of the head comes with those that end the step.
func (b *builder) stage(d *descriptor, thresholds map[handover]int) []ir.Node {
	s := &ir.Stage{Name: d.name, Kind: d.kind, Dist: b.dist(d), Ops: b.ops(d)}
	if d.out != "" {
		s.Signal = b.outside(d, d.out)
	}
	if d.in != "" {
		s.Waits = []ir.Wait{{Counter: b.outside(d, d.in), Threshold: b.awaitedTasks(d, thresholds)}}
	}
	if !d.head() {
		return []ir.Node{s}
	}
	best := ir.Wait{Counter: d.out, Threshold: thresholds[handover{d.out, 0}]}
	return append([]ir.Node{s}, b.ending(best)...)
}

// outside names the member of a family that a stage in no loop uses: one of its own layer; embed writes the first one
// of x, and the head reads the last.
func (b *builder) outside(d *descriptor, family string) string {
	if d.looped() || !ir.IsFamily(family) {
		return family
	}
	name, _ := ir.Resolve(family, b.memberOf(d)) // the families are those that this package names
	return name
}

// memberOf is the member of a family that a stage in no loop uses.
func (b *builder) memberOf(d *descriptor) int {
	if d.afterLayers() {
		return b.facts.layers
	}
	return d.layer
}

// dist is what tiles_of and units_of of stage.cuh compute from a descriptor.
func (b *builder) dist(d *descriptor) ir.Dist {
	dist := ir.Dist{Kind: ir.Spread, Extent: d.rows, Grain: d.grain, SMs: b.facts.sms, Rot: d.rotation, Step: d.step,
		Empty: d.empty}
	if d.body.replicated() {
		return b.onEverySM()
	}
	if d.body == keepHiddenBody {
		return onFirstSM()
	}
	if d.units > 0 {
		dist.Kind, dist.Extent, dist.Grain = ir.ByUnit, d.units, 1
	}
	return dist
}

// ops are the operations that the body of a descriptor's stage carries out.
func (b *builder) ops(d *descriptor) []ir.Op {
	ops := b.opsOfBody(d)
	for i := range ops {
		for _, operands := range [][]ir.Operand{ops[i].Out, ops[i].In} {
			for k := range operands {
				operands[k].Buf = b.outside(d, operands[k].Buf)
			}
		}
	}
	return ops
}

func (b *builder) opsOfBody(d *descriptor) []ir.Op {
	m := &b.facts
	in, out := b.outside(d, d.in), b.outside(d, d.out)
	switch d.body {
	case embedBody:
		to := views(view(residual, task), view(out, task))
		embed := op(ir.EMBED, to, views(view("token", first), view(d.table, upTo(m.vocab), task),
			view(embeddings, task)), d.tableScale()...)
		if m.positions == 0 {
			return []ir.Op{embed}
		}
		embed.Out = views(view("%e"))
		row := ir.Index(position.Add(ir.Int(d.positionOffset)))
		return []ir.Op{embed, op(ir.ADD, to, views(view("%e"), view(d.positions, row, task)))}
	case embedReplicatedBody:
		return []ir.Op{op(ir.EMBED, b.ownResidual(),
			views(view("token", first), view(d.table, upTo(m.vocab), upTo(m.hidden)), view(embeddings, upTo(m.hidden))),
			d.tableScale()...)}
	case addNormBody:
		own, whole := b.ownResidual(), upTo(m.hidden)
		ops, branch := b.sumOfParts(d, in, whole, "%sum", "%branch")
		return append(ops, op(ir.RMSNORM, own[1:], views(branch, view(d.norm, whole)), d.normParams()...),
			op(ir.ADD, own, own))
	case addNormRowsBody:
		own, kept := view(residual, task), view(normedRows, task)
		ofRows, rows := b.sumOfParts(d, in, task, "%own", "%rows")
		ops, branch := b.sumOfParts(d, in, upTo(m.hidden), "%sum", "%branch")
		return append(append(ofRows, ops...),
			op(ir.RMSNORM, views(kept), views(rows, view(d.norm, task), branch), d.normParams()...),
			op(ir.ADD, views(own, view(out, task)), views(own, kept)))
	case attendBody:
		return b.attend(d, in, out)
	case combineBody:
		return []ir.Op{b.combine(d, in, out)}
	case keepHiddenBody:
		return []ir.Op{b.keepHidden(d, in)}
	default:
		return d.productOps()
	}
}

// keepHidden is hidden.cuh: the last norm, of the vector that the last layer has handed over, or of the residual.
func (b *builder) keepHidden(d *descriptor, in string) ir.Op {
	whole := upTo(b.facts.hidden)
	x := view(in, whole)
	if b.facts.replicated {
		x = view(rounded, ir.Index(onSM), whole)
	}
	code, inputs := ir.RMSNORM, views(x)
	if d.centred {
		code = ir.LAYERNORM
	}
	for _, weight := range []string{d.norm, d.shift}[:d.normWeights] {
		inputs = append(inputs, view(weight, whole))
	}
	return op(code, views(view(lastHidden, whole)), inputs, d.normParams()...)
}

// sumOfParts adds up the parts of a range of a branch, in temporaries called after sums, the last of which is all. The
// range itself is the sum of one part.
func (b *builder) sumOfParts(d *descriptor, in string, of ir.Range, sums, all string) (ops []ir.Op, sum ir.Operand) {
	sum = view(in, of)
	for k := 1; k < d.parts; k++ {
		to := view(sums + strconv.Itoa(k))
		if k == d.parts-1 {
			to.Buf = all
		}
		before := ir.Int(k * b.facts.hidden)
		part := view(in, ir.Span(before.Add(of.Lo), before.Add(of.Hi)))
		ops = append(ops, op(ir.ADD, views(to), views(sum, part)))
		sum = to
	}
	return ops, sum
}

// ownResidual is the residual of the SM of a task and its rounding, where every SM has all of it.
func (b *builder) ownResidual() []ir.Operand {
	whole := upTo(b.facts.hidden)
	return views(view(residual, ir.Index(spanA), whole), view(rounded, ir.Index(spanA), whole))
}

// tableScale is what rows of the embedding are multiplied by, and normParams are what a norm of the stage says.
func (d *descriptor) tableScale() []ir.Param {
	if !d.scaled {
		return nil
	}
	return []ir.Param{ir.FloatParam("scale", d.scale)}
}

func (d *descriptor) normParams() []ir.Param {
	params := []ir.Param{ir.FloatParam("eps", d.eps)}
	if d.unitOffset {
		params = append(params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	return params
}

// attend is Unit of attention.cuh: unit a is split a%splits of kv head a/splits, and has every splits-th chunk of its
// rows, from the first that is in the window. This step's k and v rows are read from the exchange, and appended by the
// unit whose share they fall into.
func (b *builder) attend(d *descriptor, in, out string) []ir.Op {
	m := &b.facts
	hd, group, n := m.headDim, m.group(), d.splits
	const cache = "L{i}.kv"
	head, to := spanA, view(out, piece(spanA, group*hd, 0))
	past, now := upTo(0), ir.Index(position)
	past.Hi = position
	if d.window > 0 { // this step's row is one of so many
		past.Lo = ir.Int(0).Max(position.Sub(ir.Int(d.window - 1)))
	}
	params := []ir.Param{ir.IntParam("head_dim", ir.Int(hd)), ir.IntParam("n_heads", ir.Int(group)),
		ir.IntParam("n_kv_heads", ir.Int(1)),
		ir.FloatParam("scale", d.scale)}
	var limit []ir.Param
	if d.scoreCap != 0 {
		limit = []ir.Param{ir.FloatParam("cap", d.scoreCap)}
	}
	if n > 1 {
		share := spanA.Mod(n)
		head, to = spanA.Div(n), view(out, ir.Index(spanA), upTo(group), upTo(hd+2))
		past = ir.Share(past.Lo, past.Hi, d.shareRows, share, n)
		now = ir.Share(now.Lo, now.Hi, d.shareRows, share, n)
		params = append(append(params, limit...), ir.IntParam("flags", ir.Int(2)), ir.IntParam("row", position),
			ir.IntParam("block", ir.Int(d.shareRows)),
			ir.IntParam("part", share), ir.IntParam("parts", ir.Int(n)))
	} else {
		params = append(append(params, ir.IntParam("row", position)), limit...)
	}
	rows := func(r ir.Range, isV int) ir.Operand {
		return view(cache, ir.Index(head), r, ir.Index(ir.Int(isV)), upTo(hd))
	}
	q, k := view(in, piece(head, group*hd, 0)), view(in, piece(head, hd, m.attnRows()))
	v := view(in, piece(head, hd, m.attnRows()+m.kvRows()))
	var heads []ir.Op
	if d.normed {
		heads, q, k = b.normedHeads(d, head, q, k)
	}
	return append(heads,
		op(ir.ATTENTION, views(to), views(q, rows(past, 0), rows(past, 1), k, v), params...),
		op(ir.KVAppend, views(rows(now, 0)), views(k)),
		op(ir.KVAppend, views(rows(now, 1)), views(v)))
}

// normedHeads is NormedHeads of attention.cuh: heads of q and k are normalised by themselves, or as parts of all of q
// and all of k, with weights of their own or of all, and rotated then or not. It returns what attention reads.
func (b *builder) normedHeads(d *descriptor, head ir.Expr, q, k ir.Operand) (ops []ir.Op, toQ, toK ir.Operand) {
	m := &b.facts
	size := ir.IntParam("head_dim", ir.Int(m.headDim))
	toQ, toK = view("%qn"), view("%kn")
	code, params := ir.RMSNORM, d.normParams()
	if d.centred {
		code = ir.LAYERNORM
	}
	if !d.wholeNorm {
		params = append(params, size)
	}
	norm := func(out, x ir.Operand, heads int, gain, shift string, whole ir.Range) ir.Op {
		weights := upTo(m.headDim)
		if d.ownGains {
			weights = piece(head, heads*m.headDim, 0)
		}
		o := op(code, views(out), views(x, view(gain, weights)), params...)
		if d.wholeNorm {
			o.In = append(o.In, view(x.Buf, whole))
		}
		if d.shifted {
			o.In = append(o.In, view(shift, weights))
		}
		return o
	}
	rows := m.attnRows()
	ops = []ir.Op{norm(toQ, q, m.group(), d.qNorm, d.qShift, upTo(rows)),
		norm(toK, k, 1, d.kNorm, d.kShift, ir.Span(ir.Int(rows), ir.Int(rows+m.kvRows())))}
	if d.angles == nil {
		return ops, toQ, toK
	}
	rotate := func(out, in ir.Operand) ir.Op {
		return op(ir.ROPE, views(out), views(in, view(d.angles.angles, upTo(d.angles.pairs))),
			append([]ir.Param{size, ir.IntParam("order", ir.Int(1)), ir.IntParam("pos", position)},
				d.angles.scale...)...)
	}
	return append(ops, rotate(view("%q"), toQ), rotate(view("%k"), toK)), view("%q"), view("%k")
}

// combine is combine.cuh: unit a is kWidth elements of the attention vector of a token, which lie in one head. The
// units of a token come before those of the next, and the splits of a sequence before those of the next; each has a row
// for every row of its sequence.
func (b *builder) combine(d *descriptor, in, out string) ir.Op {
	m := &b.facts
	hd, group, n := m.headDim, m.group(), d.splits
	perHead := max(1, hd/d.width)
	perToken := m.heads * perHead
	unit := spanA
	var token, partial []ir.Range
	rows := m.tokens / m.sequences
	if m.tokens > 1 {
		unit, token = spanA.Mod(perToken), []ir.Range{ir.Index(spanA.Div(perToken))}
	}
	kvHead := unit.Div(perHead * group)
	if m.sequences > 1 {
		kvHead = spanA.Div(perToken).Div(rows).Mul(m.kvHeads).Add(kvHead)
	}
	if rows > 1 {
		partial = []ir.Range{ir.Index(spanA.Div(perToken).Mod(rows))}
	}
	units := ir.Span(kvHead.Mul(n), kvHead.Add(ir.Int(1)).Mul(n))
	inGroup, elements := ir.Index(unit.Div(perHead).Mod(group)), piece(unit.Mod(perHead), d.width, 0)
	if group == 1 {
		inGroup = first
	}
	if perHead == 1 {
		elements = upTo(hd)
	}
	of := func(elements ir.Range) ir.Operand {
		return view(in, slices.Concat([]ir.Range{units}, partial, []ir.Range{inGroup, elements})...)
	}
	return op(ir.AttentionCombine, views(view(out, append(token, piece(unit, d.width, 0))...)),
		views(of(elements), of(ir.Span(ir.Int(hd), ir.Int(hd+2)))),
		ir.IntParam("splits", ir.Int(n)))
}

// printed is what the IR prints of ops, a line each.
func printed(ops []ir.Op) []string {
	lines := make([]string, len(ops))
	for i := range ops {
		lines[i] = strings.TrimSpace(ir.PrintOp(&ops[i]))
	}
	return lines
}
