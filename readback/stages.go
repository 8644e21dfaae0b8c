package readback

import (
	"slices"
	"strings"

	"amkc/ir"
)

// stage rebuilds a stage. That of the head comes with those that end the step.
func (b *builder) stage(d *descriptor, thresholds map[published]int) []ir.Node {
	s := &ir.Stage{Name: d.name, Kind: d.kind, Dist: b.dist(d), Ops: b.ops(d)}
	if d.Out != "" {
		s.Signal = b.outside(d, d.Out)
	}
	if d.In != "" {
		for _, in := range d.vectorsRead() {
			tasks := b.signallers(in, b.awaitedTasks(d, in, thresholds))
			s.Waits = append(s.Waits, ir.Wait{Counter: b.outside(d, in), Threshold: tasks})
		}
	}
	if !d.head() {
		return []ir.Node{s}
	}
	best := ir.Wait{Counter: d.Out, Threshold: b.signallers(d.Out, thresholds[published{d.Out, 0}])}
	return append([]ir.Node{s}, b.ending(best)...)
}

// vectorsRead are the vectors that a stage reads: what was published last, and what was kept.
func (d *descriptor) vectorsRead() []string {
	if d.body.ReadsTwo {
		return []string{d.In, d.Gates}
	}
	return []string{d.In}
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
func (b *builder) dist(d *descriptor) ir.Dist { return d.body.Dist(&b.facts.Facts, &d.Stage) }

// firstOf is the first layer of a kind; 0 stands for all.
func (b *builder) firstOf(kind int) int { return max(0, slices.Index(b.kinds, kind)) }

// layerOf is the layer of a stage, the first one of its kind; 0 for a stage of none.
func (b *builder) layerOf(d *descriptor) int {
	if d.single {
		return d.layer
	}
	return b.firstOf(d.kind)
}

// ops are the operations of the body of a descriptor's stage; those of a product its function has.
func (b *builder) ops(d *descriptor) []ir.Op {
	ops := d.finishedOps
	if !d.body.Emitted {
		ops = d.body.Ops(b.factsOf(b.layerOf(d)), &d.Stage)
	}
	ops = slices.Clone(ops)
	for i := range ops {
		o := &ops[i]
		o.Out, o.In = slices.Clone(o.Out), slices.Clone(o.In)
		for _, operands := range [][]ir.Operand{o.Out, o.In} {
			for k := range operands {
				operands[k].Buf = b.outside(d, operands[k].Buf)
			}
		}
	}
	return ops
}

// printed is what the IR prints of ops, a line each.
func printed(ops []ir.Op) []string {
	lines := make([]string, len(ops))
	for i := range ops {
		lines[i] = strings.TrimSpace(ir.PrintOp(&ops[i]))
	}
	return lines
}
