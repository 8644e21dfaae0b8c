package codegen

import (
	"cmp"
	"fmt"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// What a stage body keeps in shared memory it has one place for: the residual of an SM's rows, from embed on, cos and
// sin of the position's angles, and the next token. No operand of the call says so; these are the checks that the
// program means the same.

// checkOnChip refuses a stage that keeps something else on chip than its body does.
func (b *builder) checkOnChip(s *ir.Stage, kind *kernel.Body, k *kernel.Stage, at site) error {
	if op(s, ir.EMBED).In != nil && b.role(view(k.Token), at) != ir.RoleToken {
		return diag.Errorf(codeStage, "stage "+s.Name, "looks up %s, and the kernel the token that the host gives "+
			"it or the step before has chosen: want the input of role %s", k.Token, ir.RoleToken)
	}
	var err error
	if kind.Keeps&(kernel.OwnRows|kernel.WholeResidual) != 0 {
		err = b.checkResidual(s, k.Residual)
	}
	if err == nil && (kind.Replicated() || kind.ReadsResidual && k.Resident) { // which is rounded where it is read
		err = b.checkKept(&b.rounded, s, k.Rounded, "reads or leaves of the residual of its SM", "[SMs, hidden]", 2)
	}
	if err == nil && kind.Keeps&kernel.BranchRows != 0 {
		err = b.checkKept(&b.normed, s, k.Branch, "adds to the residual", "[hidden]", 1)
	}
	if err != nil {
		return err
	}
	switch {
	case kind.Emitted:
		for i := range s.Ops {
			if err := b.checkFinisher(s, at, &s.Ops[i]); err != nil {
				return err
			}
		}
	case k.Rotates:
		return b.checkAngles(s, operand(op(s, ir.ROPE).In, 1))
	case kind.EndsStep():
		b.token = k.NextOnSM
		return cmp.Or(b.checkPlace(s, kind), b.waitsForAll(s, b.facts.NumRanks()*b.p.Target.SMs))
	}
	return nil
}

// role is that of the buffer that an operand names at a site; "" if it has none.
func (b *builder) role(o ir.Operand, at site) string {
	if buf := b.buffer(o.Buf, at); buf != nil {
		return buf.Role
	}
	return ""
}

// checkFinisher looks at what an op of a finisher keeps on chip.
func (b *builder) checkFinisher(s *ir.Stage, at site, o *ir.Op) error {
	switch o.Code {
	case ir.ADD:
		if operand(o.In, 0).IsTemp() {
			return nil // a bias
		}
		if err := b.checkResidual(s, buf(o.In, 0)); err != nil {
			return err
		}
		for _, out := range o.Out {
			if out.IsTemp() {
				continue
			}
			if space, err := b.spaceOf(out.Buf, at); err != nil || space == ir.SMEM {
				return b.checkResidual(s, out.Buf)
			}
		}
	case ir.ROPE:
		return b.checkAngles(s, operand(o.In, 1))
	}
	return nil
}

// checkResidual holds what a stage adds to, or adds up, to the one residual.
func (b *builder) checkResidual(s *ir.Stage, name string) error {
	return b.checkKept(&b.residual, s, name, "adds to, or adds up", "", 0)
}

// checkKept holds a name, of what a stage does something with, to the one buffer of its kind, which the kernel has in
// registers or has one place for in shared memory. All but the residual are of the activations' type, in a shape.
func (b *builder) checkKept(kept *string, s *ir.Stage, name, does, shape string, dims int) error {
	buf, is, other, of := b.buffer(name, site{}), "is what stage "+s.Name+" "+does, dims > 0, ""
	if other {
		of = fmt.Sprintf("of %s ", b.p.Model.Activations)
		shape = ", " + shape
	}
	if ir.IsFamily(name) || buf == nil || buf.Count > 0 || buf.Space != ir.SMEM ||
		other && (len(buf.Shape) != dims || buf.DType != b.p.Model.Activations || buf.Name == b.residual) {
		return diag.Errorf(codeStructure, "buffer "+name, "%s: want one buffer %sin SMEM for the whole step%s", is, of,
			shape)
	}
	if *kept == "" {
		*kept = buf.Name
	}
	if buf.Name != *kept {
		return diag.Errorf(codeStructure, "buffer "+buf.Name, "%s, and other stages %s: want one for the whole step",
			is, *kept)
	}
	return nil
}
