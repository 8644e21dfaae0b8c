package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// What a stage body keeps in shared memory it has one place for: the residual of an SM's rows, from embed on, cos and
// sin of the position's angles, and the next token. No operand of the call says so; these are the checks that the
// program means the same.

// checkOnChip refuses a stage that keeps something else on chip than its body does.
func (b *builder) checkOnChip(s *ir.Stage, kind body, at site) error {
	switch kind {
	case bodyEmbed, bodyEmbedReplicated:
		e := op(s, ir.EMBED)
		if token := operand(e.In, 0); b.role(token, at) != ir.RoleToken {
			return diag.Errorf(codeStage, "stage "+s.Name, "looks up %s, and the kernel the token that the host gives "+
				"it or the step before has chosen: want the input of role %s", token.Buf, ir.RoleToken)
		}
		if kind == bodyEmbedReplicated {
			return b.checkReplicated(s)
		}
		return b.checkResidual(s, operand(s.Ops[len(s.Ops)-1].Out, 0))
	case bodyAddNorm:
		return b.checkReplicated(s)
	case bodyAddNormRows:
		return b.checkNormRows(s)
	case bodyProduct:
		if b.readsResidual(s) {
			if err := b.checkRounded(s, operand(s.Ops[0].In, 0)); err != nil {
				return err
			}
		}
		for i := range s.Ops {
			if err := b.checkFinisher(s, at, &s.Ops[i]); err != nil {
				return err
			}
		}
	case bodyAttend:
		for i := range s.Ops {
			if s.Ops[i].Code == ir.ROPE {
				return b.checkAngles(s, operand(s.Ops[i].In, 1))
			}
		}
	case bodySample, bodyStop, bodyEmit, bodyJoinStep:
		return b.checkEnding(s, kind)
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
		if err := b.checkResidual(s, operand(o.In, 0)); err != nil {
			return err
		}
		for _, out := range o.Out {
			if out.IsTemp() {
				continue
			}
			if space, err := b.spaceOf(out.Buf, at); err != nil || space == ir.SMEM {
				return b.checkResidual(s, out)
			}
		}
	case ir.ROPE:
		return b.checkAngles(s, operand(o.In, 1))
	}
	return nil
}

// checkResidual holds an operand to the one residual.
func (b *builder) checkResidual(s *ir.Stage, o ir.Operand) error {
	buf := b.buffer(o.Buf, site{})
	if ir.IsFamily(o.Buf) || buf == nil || buf.Count > 0 || buf.Space != ir.SMEM {
		return diag.Errorf(codeStructure, "buffer "+o.Buf,
			"is what stage %s adds to, or adds up: want one buffer in SMEM for the whole step", s.Name)
	}
	if b.residual == "" {
		b.residual = buf.Name
	}
	if buf.Name != b.residual {
		return diag.Errorf(codeStructure, "buffer "+buf.Name,
			"is what stage %s adds to, or adds up, and other stages %s: want one for the whole step", s.Name,
			b.residual)
	}
	return nil
}
