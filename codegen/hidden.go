package codegen

import (
	"fmt"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// The last hidden state is what the logits are made of: the last norm, computed once more and kept for the host, by the
// first SM. The kernel does so in the launches that ask for it (hidden.cuh).

// hiddenFields are the constants of the descriptor of a stage that keeps it.
func (b *builder) hiddenFields(s *ir.Stage, at site) ([]field, error) {
	if at.loop != nil {
		return nil, diag.Errorf(codeStructure, "stage "+s.Name, "keeps the last hidden state in a loop: want it "+
			"in none")
	}
	if err := onFirstSM(s); err != nil {
		return nil, err
	}
	norm := &s.Ops[0]
	eps := norm.FloatOr("eps", 0)
	return []field{{"float", "kNormEps", hexFloat(eps), decimal(eps)},
		{"bool", "kUnitOffset", fmt.Sprint(norm.IntAt("unit_offset", 0, 0) == 1), "times 1 + weight"},
		{"bool", "kCentred", fmt.Sprint(norm.Code == ir.LAYERNORM), "the mean is taken off"},
		{"int", "kNormWeights", itoa(len(norm.In) - 1), "one to multiply by, and one to add"}}, nil
}

// onFirstSM refuses a stage that is anything but one task on the first SM.
func onFirstSM(s *ir.Stage) error {
	if d := &s.Dist; d.Kind != ir.Explicit || len(d.Spans) != 1 || d.Spans[0] != (ir.TaskSpan{SM: 0, A: 0, B: 1}) {
		return diag.Errorf(codeDist, "stage "+s.Name, "runs elsewhere than on SM 0, which hands results to the host: "+
			"want the one task sm=0 a=0 b=1")
	}
	return nil
}

// hiddenOps is keep_hidden of hidden.cuh: the norm of a vector that was handed over, or of the residual of its SM.
func (b *builder) hiddenOps(s *ir.Stage) []ir.Op {
	norm, whole := &s.Ops[0], upTo(b.p.Model.Hidden)
	in := view(buf(norm.In, 0), whole)
	if b.readsResidual(s) {
		in.Dims = []ir.Range{ownSM, whole}
	}
	want := ir.Op{Code: norm.Code, Out: []ir.Operand{view(b.named(ir.RoleHidden), whole)}, In: []ir.Operand{in},
		Params: []ir.Param{ir.FloatParam("eps", norm.FloatOr("eps", 0))}}
	for k := range min(2, len(norm.In)-1) {
		want.In = append(want.In, view(buf(norm.In, 1+k), whole))
	}
	if norm.IntAt("unit_offset", 0, 0) == 1 {
		want.Params = append(want.Params, ir.IntParam("unit_offset", ir.Int(1)))
	}
	return []ir.Op{want}
}

// hiddenCall is the call that keeps it.
func (b *builder) hiddenCall(s *ir.Stage, descriptor string, at site) (string, error) {
	args := []string{"c"}
	if !b.readsResidual(s) {
		page, err := b.page(operand(s.Ops[0].In, 0).Buf, at)
		if err != nil {
			return "", err
		}
		args = append(args, page)
	}
	for _, weight := range s.Ops[0].In[1:] {
		address, err := b.address(weight.Buf, at, "0")
		if err != nil {
			return "", err
		}
		args = append(args, address)
	}
	return fmt.Sprintf("%s<%s>(%s);", bodyKeepHidden, descriptor, strings.Join(args, ", ")), nil
}
