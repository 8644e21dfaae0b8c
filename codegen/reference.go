package codegen

import (
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// referenceData is what reference.cu needs besides the facts of the model: where each operation's weights lie, as constants
// of model_config.h, and its numbers. They are read from the ops of the stages, so that reference and megakernel cannot
// disagree about which tensor is which.
type referenceData struct {
	Embed, InputNorm, QKV, O, PostNorm, GateUp, Down, FinalNorm, LMHead string
	Eps, Scale                                                          field
}

// reference finds the weights in the first variant: the variants share their buffers.
func (b *builder) reference() error {
	r := &b.d.Reference
	r.Eps = field{Value: hexFloat(b.p.Model.Eps), Note: decimal(b.p.Model.Eps)}
	var stages []*ir.Stage
	for _, n := range b.p.Variants[0].Body {
		switch n := n.(type) {
		case *ir.Stage:
			stages = append(stages, n)
		case *ir.Loop:
			stages = append(stages, n.Body...)
		}
	}
	for _, s := range stages {
		kind, err := classify(s)
		if err != nil {
			return err
		}
		matrix, norm := b.constant(op(s, ir.GEMV)), b.constant(op(s, ir.RMSNORM))
		switch kind {
		case bodyEmbed:
			r.Embed = b.constant(op(s, ir.EMBED))
		case bodyQKV:
			r.QKV, r.InputNorm = matrix, norm
		case bodyAttend:
			scale := op(s, ir.ATTENTION).FloatOr("scale", 1)
			r.Scale = field{Value: hexFloat(scale), Note: decimal(scale)}
		case bodyResidual:
			if strings.HasSuffix(s.Name, ".o") {
				r.O = matrix
			} else {
				r.Down = matrix
			}
		case bodyGateUp:
			r.GateUp, r.PostNorm = matrix, norm
		case bodyLMHead:
			r.LMHead, r.FinalNorm = matrix, norm
		}
	}
	for _, need := range []struct{ stage, constant string }{
		{"embed", r.Embed}, {"qkv", r.QKV}, {"o", r.O}, {"gate_up", r.GateUp}, {"down", r.Down}, {"lm_head", r.LMHead},
	} {
		if need.constant == "" {
			return diag.Errorf(codeStructure, "program", "no stage %s with a weight: want one for reference.cu", need.stage)
		}
	}
	return nil
}

// constant returns the constant of an op's weight, its second operand; "" without one.
func (b *builder) constant(o *ir.Op) string {
	family, _ := b.family(operand(o.In, 1).Buf, nil)
	return b.weights[family].constant
}
