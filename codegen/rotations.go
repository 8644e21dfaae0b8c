package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// A rotation is a table of angles, which the kernel makes when a step begins: cos and sin of the position times each
// frequency. Layers of several kinds may rotate by tables of their own.
type rotation struct {
	InvFreq      string // the constant where the frequencies lie
	RotatedPairs *field // nil where all pairs of a head rotate
	Factor       *field // nil where nothing multiplies cos and sin

	number int        // of the table
	angles *ir.Buffer // the frequencies
	kernel.Angles
}

// findRotations lists the tables of angles that stages rotate by, in the order of their buffers.
func (b *builder) findRotations() {
	for i := range b.p.Variants {
		for _, sec := range sections(&b.p.Variants[i]) {
			for _, s := range sec.stages {
				o := op(s, ir.ROPE)
				by := operand(o.In, 1)
				angles := b.buffer(by.Buf, site{loop: sec.loop})
				if by.Buf == "" || angles != nil && b.rotationBy(angles) != nil {
					continue
				}
				r := &rotation{angles: angles, Angles: kernel.Angles{Frequencies: by.Buf}}
				if len(by.Dims) == 1 {
					r.Pairs = by.Dims[0].Len(0)
				}
				if o.Has("scale") {
					r.Angles.Scale = []ir.Param{ir.FloatParam("scale", o.FloatOr("scale", 1))}
				}
				b.d.Rotations = append(b.d.Rotations, r)
			}
		}
	}
	place := func(r *rotation) int {
		return slices.IndexFunc(b.p.Buffers, func(f ir.Buffer) bool {
			return r.angles != nil && f.Name == r.angles.Name
		})
	}
	slices.SortStableFunc(b.d.Rotations, func(x, y *rotation) int { return place(x) - place(y) })
	for i, r := range b.d.Rotations {
		suffix := ""
		if r.number = i; i > 0 {
			suffix = itoa(i + 1)
		}
		if r.Pairs < b.p.Model.Most(ir.HeadDimOf)/2 {
			r.RotatedPairs = &field{Type: "int", Name: "kRotatedPairs" + suffix, Value: itoa(r.Pairs),
				Note: "of a head; the others pass through"}
		}
		if len(r.Angles.Scale) > 0 {
			scale := r.Angles.Scale[0].Float
			r.Factor = &field{Type: "float", Name: "kRopeScale" + suffix, Value: hexFloat(scale),
				Note: decimal(scale) + ", of cos and sin"}
		}
	}
}

// frequencies is the piece that the frequencies of a kind of layers are packed from: of all layers where the graph has
// none of its own.
func frequencies(g *ir.Graph, kind int) string {
	owner := g.RopeOwner(kind)
	if owner < 0 {
		return "rows(@inv_freq)"
	}
	return fmt.Sprintf("rows(@inv_freq.kind%d)", owner)
}

// rotationBy returns the table that is made of a buffer, nil if there is none.
func (b *builder) rotationBy(angles *ir.Buffer) *rotation {
	for _, r := range b.d.Rotations {
		if angles != nil && r.angles == angles {
			return r
		}
	}
	return nil
}

// rotationOf is the table that an op rotates by. The program has been found to have one for each.
func (b *builder) rotationOf(o *ir.Op, at site) *rotation {
	if r := b.rotationBy(b.buffer(operand(o.In, 1).Buf, at)); r != nil {
		return r
	}
	return &rotation{}
}

// parts are those of the call that makes the table: the function, and what it is given behind the context.
func (r *rotation) parts() (function, args string) {
	pairs, function := "kHeadDim / 2", "rotate_setup"
	if r.RotatedPairs != nil {
		pairs = r.RotatedPairs.Name
	}
	switch {
	case r.number > 0:
		function += fmt.Sprintf("<%s, %d>", pairs, r.number)
	case r.RotatedPairs != nil:
		function += "<" + pairs + ">"
	}
	scale := ""
	if r.Factor != nil {
		scale = ", " + r.Factor.Name
	}
	return function, fmt.Sprintf("reinterpret_cast<const float*>(weights + %s)%s);", r.InvFreq, scale)
}

// call is the call that makes the table.
func (r *rotation) call() string {
	function, args := r.parts()
	return function + "(c, " + args
}

// Setup is that call in lines.
func (r *rotation) Setup() []string {
	function, args := r.parts()
	head := "    " + function + "(c, "
	aligned := strings.Repeat(" ", len(head)-len("c, ")) + args
	if len(head+args) > maxLine && len(aligned) <= maxLine {
		return []string{strings.TrimSuffix(head, " "), aligned}
	}
	return call("    ", r.call())
}

// checkAngles holds an operand to a table of the step, of which all frequencies are used.
func (b *builder) checkAngles(s *ir.Stage, o ir.Operand) error {
	r := b.rotationBy(b.buffer(o.Buf, site{}))
	if ir.IsFamily(o.Buf) || r == nil {
		return diag.Errorf(codeStructure, "buffer "+o.Buf, "is what stage %s rotates by, and not the same in every "+
			"layer: want one buffer for all layers of a kind", s.Name)
	}
	if n := r.angles.Numel(); n != r.Pairs {
		return diag.Errorf(codeStructure, "buffer "+o.Buf,
			"has %d frequencies, and stage %s rotates %d pairs of a head by them: want as many", n, s.Name, r.Pairs)
	}
	return nil
}
