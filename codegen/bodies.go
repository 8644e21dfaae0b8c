package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
	"amkc/knobs"
)

// The body of a stage is found from its ops, and takes from them what it can be told: names of buffers, and numbers of
// its descriptor. The stage is then held to the ops that the body computes: an operand, a view or a parameter that the
// body would not follow is an error here, never ignored.

// classify finds the body of a stage; that of the end of a step is taken for an arrival at a barrier.
func classify(s *ir.Stage) (*kernel.Body, error) {
	b := kernel.Of(s)
	if b == nil {
		codes := kernel.CodesOf(s.Ops)
		return nil, diag.Errorf(codeStage, "stage "+s.Name, "no stage body runs the ops %s; there is one for %s", codes,
			nearest(strings.Fields(codes)))
	}
	return b, nil
}

// nearest lists the sequences of ops of bodies that contain one of the given ops. Norms, rotations and appends
// do not count, which stages of several bodies have. Where no sequence has one, it spells all.
func nearest(codes []string) string {
	product := "RMSNORM, LAYERNORM or nothing, GEMV_TILE, and then some of " + finishingOps()
	if slices.Contains(codes, ir.GEMV.String()) {
		return product
	}
	var near, all []string
	for _, b := range kernel.Bodies {
		all = append(all, b.Codes...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, seq := range all {
		if slices.ContainsFunc(strings.Fields(seq), func(code string) bool {
			return code != ir.RMSNORM.String() && code != ir.ROPE.String() && code != ir.KVAppend.String() &&
				slices.Contains(codes, code)
		}) {
			near = append(near, seq)
		}
	}
	if near == nil {
		near = append(all, product)
		slices.Sort(near)
	}
	return strings.Join(near, "; ")
}

// classify is classify for a stage of the program, where it is known which counters end a step.
func (b *builder) classify(s *ir.Stage) (*kernel.Body, error) {
	kind, err := classify(s)
	if kind == kernel.Arrive && b.steps[s.Signal] {
		kind = kernel.JoinStep
	}
	return kind, err
}

// findFacts finds those of the model and of the pass, with the heads of the first layer.
func (b *builder) findFacts() {
	m := &b.p.Model
	b.facts = &kernel.Facts{Hidden: m.Hidden, LayerFacts: *m.Of(0), HeadsDiffer: m.HeadsDiffer(), Vocab: m.Vocab,
		SMs: b.p.Target.SMs, Pass: b.pass, Ranks: b.p.NumRanks(),
		CacheBlocks: knobs.ChunkBytes.Of(&b.p.Config) / b.cacheBytes(16),
		Names:       kernel.NamesBy(b.named)}
}

// named is the name of the buffer of a role; where there is none, the role.
func (b *builder) named(role string) string {
	for i := range b.p.Buffers {
		if b.p.Buffers[i].Role == role {
			return b.p.Buffers[i].Name
		}
	}
	return role
}

// factsOf are those of the model and of the pass, with the heads of the layer of a stage.
func (b *builder) factsOf(s *ir.Stage, at site) *kernel.Facts {
	f := *b.facts
	f.LayerFacts = *b.p.FactsOf(s, at.loop)
	return &f
}

// stageOf is a stage as its body has it.
func (b *builder) stageOf(s *ir.Stage, kind *kernel.Body, at site) *kernel.Stage {
	d := &s.Dist
	k := &kernel.Stage{Rows: d.Extent, Grain: d.Grain, Units: d.Extent, Rotation: d.Rot, Step: d.Step, Empty: d.Empty,
		Signal: s.Signal, Holds: b.readings[s].holds, ReadsHeld: b.readings[s].held, Resident: b.readsResidual(s),
		NextOnSM: b.token}
	f := b.factsOf(s, at)
	k.OwnHeads, k.Heads, k.KVHeads, k.HeadDim = f.HeadsDiffer, f.Heads, f.KVHeads, f.HeadDim
	kind.Read(k, s.Ops)
	if kind.Derive != nil {
		kind.Derive(f, k)
	}
	if k.Rotates {
		by := b.rotationOf(op(s, ir.ROPE), at)
		k.AngleTable, k.Angles = by.number, by.Angles
	}
	if kind.Streams == kernel.Tiles {
		k.Columns = b.columnsOf(s)
		k.SplitK, _ = b.splitK(s, at)
	}
	return k
}

// columnsOf are those of the matrix, of each of its parts that are added up, or of each of the matrices that a product
// multiplies by.
func (b *builder) columnsOf(s *ir.Stage) int {
	product := kernel.ProductOf(s.Ops)
	if dims := operand(product.In, 1).Dims; len(dims) > 1 {
		return b.rangeExtent(dims[len(dims)-1]) / max(1, product.IntAt("parts", 0, 1))
	}
	return 0
}

// checkLayers refuses a stage that depends on heads and runs in layers that differ in them: it has the heads of the
// first.
func (b *builder) checkLayers(s *ir.Stage, at site) error {
	if !slices.ContainsFunc(s.Ops, func(o ir.Op) bool {
		return o.Code == ir.ATTENTION || o.Code == ir.AttentionCombine || o.Code == ir.ROPE
	}) {
		return nil
	}
	first := b.p.FactsOf(s, at.loop)
	for _, i := range at.indicesOf(s) {
		layer, _ := s.Layer.At(i)
		of := b.p.Model.Of(layer)
		if of.Heads != first.Heads || of.Attended() != first.Attended() {
			return diag.Errorf(codeStructure, "stage "+s.Name, "runs in layer %d with %d heads and %d kv heads of %d "+
				"elements, and in another with %d, %d and %d; want a stage for each kind of layers", layer, of.Heads,
				of.KVHeads, of.HeadDim, first.Heads, first.KVHeads, first.HeadDim)
		}
	}
	return nil
}

// checkPlace holds the distribution of a stage to where the tasks of its body run.
func (b *builder) checkPlace(s *ir.Stage, kind *kernel.Body) error {
	d, sms := &s.Dist, b.p.Target.SMs
	if d.Empty && !kind.Emitted {
		b.breaks(diag.Errorf(codeDist, "stage "+s.Name,
			"has tasks on SMs without work, which the kernel's %s skips: want it not to be empty", kind))
	}
	switch want := kind.Dist(&kernel.Facts{SMs: sms}, &kernel.Stage{}); kind.Place {
	case kernel.FirstSM:
		if d.Kind != want.Kind || !slices.Equal(d.Spans, want.Spans) {
			return diag.Errorf(codeDist, "stage "+s.Name, "runs elsewhere than on SM 0, which hands results to the "+
				"host: want the one task sm=0 a=0 b=1")
		}
	case kernel.EverySM:
		if d.Kind != want.Kind || d.Extent != want.Extent || d.Grain != want.Grain || d.SMs != want.SMs || d.Rot != 0 ||
			d.Step != 0 {
			return diag.Errorf(codeDist, "stage "+s.Name, "is distributed %s, extent %d in grains of %d over %d SMs; "+
				"want one task on each of %d SMs, spread in order", d.Kind, d.Extent, d.Grain, d.SMs, sms)
		}
	default:
		if d.Kind != want.Kind || d.SMs != sms {
			return diag.Errorf(codeDist, "stage "+s.Name, "is distributed %s over %d SMs, want %s over %d", d.Kind,
				d.SMs, want.Kind, sms)
		}
		if want.Kind == ir.Spread && d.Grain%8 != 0 {
			return diag.Errorf(codeDist, "stage "+s.Name,
				"grain %d, want a multiple of 8 rows, the height of a tile", d.Grain)
		}
	}
	return nil
}

// holdsTo refuses a stage whose ops are not those of its body.
func holdsTo(s *ir.Stage, kind *kernel.Body, want []ir.Op) error {
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

// checkFields refuses constants that the body of a stage cannot have.
func checkFields(s *ir.Stage, kind *kernel.Body, facts *kernel.Facts, k *kernel.Stage) error {
	for _, f := range kind.Fields {
		want := ""
		if n, count := f.At(k).(*int); count && f.Most > 0 && *n > f.Most {
			want = "at most " + itoa(f.Most)
		} else if f.Wants != nil {
			want = f.Wants(facts, k)
		}
		if want != "" {
			return diag.Errorf(codeStage, "stage "+s.Name, "%s of the kernel's %s cannot be what it says; want %s",
				f.Name, kind, want)
		}
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

// breaks notes that a stage differs from its body. Limits of the kernel are reported first, because they say more.
func (b *builder) breaks(err error) {
	if b.broken == nil {
		b.broken = err
	}
}

// checkContracts reports the first such stage.
func (b *builder) checkContracts() error { return b.broken }

// op returns the stage's first op with the given code, or one without operands.
func op(s *ir.Stage, code ir.Opcode) *ir.Op {
	for i := range s.Ops {
		if s.Ops[i].Code == code {
			return &s.Ops[i]
		}
	}
	return &ir.Op{Code: code}
}

// buf is the name of ops[k], or "" when there is none.
func buf(ops []ir.Operand, k int) string { return operand(ops, k).Buf }

// addsToResidual reports whether a stage has a sum of rows that are kept on chip.
func addsToResidual(s *ir.Stage) bool {
	return slices.ContainsFunc(s.Ops, func(o ir.Op) bool { return o.Code == ir.ADD && !operand(o.In, 0).IsTemp() })
}

// choosesToken reports whether a stage looks for the largest logit of an SM's rows.
func choosesToken(s *ir.Stage) bool {
	return kernel.Of(s) == kernel.Product && s.Ops[len(s.Ops)-1].Code == ir.SAMPLE
}

// readsResidual reports whether a stage takes the residual of its SM.
func (b *builder) readsResidual(s *ir.Stage) bool {
	buf := b.buffer(operand(s.Ops[0].In, 0).Buf, site{})
	return buf != nil && buf.Space == ir.SMEM
}

// splitK is how many parts the columns of a matrix stage are cut into, and the rows of one: the stage has the rows of
// all parts, one part after another.
func (b *builder) splitK(s *ir.Stage, at site) (parts, rows int) {
	matrix := b.matrix(s, at)
	if matrix == nil || len(matrix.Shape) != 2 || s.Dist.Extent%matrix.Shape[0] != 0 {
		return 1, s.Dist.Extent
	}
	return s.Dist.Extent / matrix.Shape[0], matrix.Shape[0]
}

// checkSplit holds a stage whose columns are cut into parts to its matrix. Every SM has tiles of one part alone, and
// parts lie side by side in a tile.
func (b *builder) checkSplit(s *ir.Stage, k *kernel.Stage, at site) error {
	parts, rows := b.splitK(s, at)
	if parts < 2 {
		return nil
	}
	d, matrix := &s.Dist, b.matrix(s, at)
	block := matrix.Format().Geometry().Columns
	if d.SMs%parts != 0 || rows%d.Grain != 0 || d.Empty || k.Columns%block != 0 || k.Columns*parts != matrix.Shape[1] {
		return diag.Errorf(codeDist, "stage "+s.Name, "has %d parts of %d of %d columns and %d rows each, in "+
			"grains of %d over %d SMs; want as many SMs for each part, whole grains, and all columns in blocks of %d",
			parts, k.Columns, matrix.Shape[1], rows, d.Grain, d.SMs, block)
	}
	return nil
}

// checkParts holds a stage of which parts of the columns are added up to what its body has: the flush has room for the
// sums of a tile of each part, and parts lie side by side in a tile.
func (b *builder) checkParts(s *ir.Stage, k *kernel.Stage, f format.Format, warps int) error {
	block := f.Geometry().Columns
	switch {
	case k.Added == 1:
		return nil
	case b.pass.NumTokens() > 1:
		return diag.Errorf(codeStage, "stage "+s.Name, "adds up %d parts of its columns for %d tokens; the kernel has "+
			"parts in passes of one token: want tiling.gemv.parts=1", k.Added, b.pass.NumTokens())
	case kernel.ProductOf(s.Ops) != &s.Ops[0]:
		return diag.Errorf(codeStage, "stage "+s.Name, "adds up %d parts of the columns of a norm; want a vector as "+
			"it is published", k.Added)
	case warps != kernel.Warps:
		return diag.Errorf(codeLimit, "stage "+s.Name, "adds up %d parts of its columns, %d warps each; want "+
			"tiling.warps.%s of %d", k.Added, warps, s.Role, kernel.Warps)
	case k.Columns%block != 0:
		return diag.Errorf(codeLimit, "stage "+s.Name, "adds up %d parts of %d columns; want parts of whole blocks of "+
			"%d columns, and so fewer tiling.gemv.parts", k.Added, k.Columns, block)
	}
	return nil
}

// BodyOf returns the name of the body of a stage. The name of a matrix product, whose body is emitted, consists of the
// ops around it, the instruction that multiplies, and the type of its operands.
func BodyOf(p *ir.Program, s *ir.Stage) string {
	b := kernel.Of(s)
	if b == nil {
		return ""
	} else if !b.Emitted {
		return b.Name
	}
	units, matrix := "fma", ""
	if p.Target.RunsOnTensorCores(p.Model.Weights) {
		units = "mma"
	}
	product := kernel.ProductOf(s.Ops)
	for i := range p.Buffers {
		if m := &p.Buffers[i]; m.Name == operand(product.In, 1).Buf {
			matrix = m.DType.String()
			if q := m.Layout.Scales; q.Group > 0 {
				matrix += fmt.Sprintf(" by %d", q.Group)
				for _, has := range []struct {
					it   bool
					word string
				}{{q.Zeros, "zeros"}, {q.Mins, "mins"}, {q.Steps, "steps"}} {
					if has.it {
						matrix += " with " + has.word
					}
				}
			}
		}
	}
	name := b.Name
	if product.Code == ir.SELECTED {
		name = "experts"
	}
	of := fmt.Sprintf("%s_%s(%s, %v)", name, units, matrix, p.Model.Weights)
	return strings.Replace(kernel.CodesOf(s.Ops), product.Code.String(), of, 1)
}
