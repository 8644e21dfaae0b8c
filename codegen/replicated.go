package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// Where every SM has the whole residual, stages of replicated.cuh begin it and add to it, and matrix stages read it.
// None of them hands anything over.

// replicatedFields are the constants of their descriptors. A stage has one task on each SM.
func (b *builder) replicatedFields(s *ir.Stage, kind body) ([]field, error) {
	d := &s.Dist
	if sms := b.p.Target.SMs; d.Kind != ir.Spread || d.Extent != sms || d.Grain != 1 || d.SMs != sms || d.Rot != 0 ||
		d.Step != 0 || d.Empty {
		return nil, diag.Errorf(codeDist, "stage "+s.Name, "is distributed %s, extent %d in grains of %d over %d SMs; "+
			"want one task on each of %d SMs, spread in order", d.Kind, d.Extent, d.Grain, d.SMs, sms)
	}
	parts := branchParts(s)
	if most := ir.MaxReplicated(&b.p.Model); b.p.Model.Hidden > most/parts {
		return nil, diag.Errorf(codeLimit, "stage "+s.Name, "a residual of %d values on every SM, and branches of "+
			"%d parts; want at most %d values in all", b.p.Model.Hidden, parts, most)
	}
	if kind == bodyEmbedReplicated {
		return embedScale(s), nil
	}
	return branchFields(s), nil
}

// embedScale is what rows of the table are multiplied by, if anything.
func embedScale(s *ir.Stage) []field {
	e := op(s, ir.EMBED)
	if !e.Has("scale") {
		return nil
	}
	scale := e.FloatOr("scale", 1)
	return []field{{"float", "kScale", hexFloat(scale), decimal(scale) + ", of the table's rows"}}
}

// replicatedOps are what embed_replicated and add_norm compute: the residual and its rounding, on each SM.
func (b *builder) replicatedOps(s *ir.Stage, kind body) []ir.Op {
	whole := upTo(b.p.Model.Hidden)
	of := func(o ir.Operand) ir.Operand { return view(o.Buf, ir.Index(spanA), whole) }
	last := &s.Ops[len(s.Ops)-1]
	both := []ir.Operand{of(operand(last.Out, 0)), of(operand(last.Out, 1))}
	if kind == bodyEmbedReplicated {
		want := ir.Op{Code: ir.EMBED, Out: both,
			In: []ir.Operand{view(buf(last.In, 0), firstOnly), view(buf(last.In, 1), upTo(b.p.Model.Vocab), whole)}}
		if last.Has("scale") {
			want.Params = []ir.Param{ir.FloatParam("scale", last.FloatOr("scale", 1))}
		}
		return []ir.Op{want}
	}
	sums, branch := partsOf(s, 0, whole, b.p.Model.Hidden)
	return append(sums,
		ir.Op{Code: ir.RMSNORM, Out: both[1:], Params: branchParams(s),
			In: []ir.Operand{branch, view(buf(op(s, ir.RMSNORM).In, 1), whole)}},
		ir.Op{Code: ir.ADD, Out: both, In: both})
}

// checkReplicated holds what stages keep on every SM to the one residual of the step, and to its one rounding: the
// kernel keeps the first, and rounds it where it is read.
func (b *builder) checkReplicated(s *ir.Stage) error {
	last := &s.Ops[len(s.Ops)-1]
	if err := b.checkResidual(s, operand(last.Out, 0)); err != nil {
		return err
	}
	return b.checkRounded(s, operand(last.Out, 1))
}

// checkRounded holds an operand to the rounding of the residual.
func (b *builder) checkRounded(s *ir.Stage, o ir.Operand) error {
	buf := b.buffer(o.Buf, site{})
	if ir.IsFamily(o.Buf) || buf == nil || buf.Count > 0 || buf.Space != ir.SMEM ||
		buf.DType != b.p.Model.Activations || len(buf.Shape) != 2 {
		return diag.Errorf(codeStructure, "buffer "+o.Buf, "is what stage %s reads or leaves of the residual of its "+
			"SM: want one buffer of %s in SMEM for the whole step, [SMs, hidden]", s.Name, b.p.Model.Activations)
	}
	if b.rounded == "" {
		b.rounded = buf.Name
	}
	if buf.Name != b.rounded || buf.Name == b.residual {
		return diag.Errorf(codeStructure, "buffer "+buf.Name, "is what stage %s reads or leaves of the residual of "+
			"its SM, and other stages %s: want one for the whole step", s.Name, b.rounded)
	}
	return nil
}

// readsResidual reports whether the reader of a matrix stage takes the residual of its SM.
func (b *builder) readsResidual(s *ir.Stage) bool {
	buf := b.buffer(operand(s.Ops[0].In, 0).Buf, site{})
	return buf != nil && buf.Space == ir.SMEM
}
