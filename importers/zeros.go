package importers

import (
	"fmt"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
)

// biasesOf are the sizes of the biases that modules of the graph could have, by the names of their tensors: one element
// for each row of a matrix, or each element of a norm's weight.
func (m *importer) biasesOf(g *ir.Graph) map[string]int {
	out := map[string]int{m.names.head + ".bias": g.Model.Vocab}
	for _, w := range g.Weights() {
		if module, ok := strings.CutSuffix(w.Key, ".weight"); ok && w.Key != m.names.embedding() {
			out[module+".bias"] = w.Shape[0]
		}
	}
	return out
}

// unusedBiases are biases that the files hold of modules that have none in the model. Tools that quantise write one for
// each matrix, of zeros.
type unusedBiases struct{ zero, others []string }

// match looks at every element of a bias. Errors: AMK1006.
func (b *unusedBiases) match(t checkpoint.Tensor) *diag.Diagnostic {
	elements := make([]float32, t.Rows())
	if err := t.ReadRowsF32(elements, 0, len(elements)); err != nil {
		return asDiagnostic(err)
	}
	if i := slices.IndexFunc(elements, func(x float32) bool { return x != 0 }); i >= 0 {
		b.others = append(b.others, fmt.Sprintf("%s: element %d is %g", t.Name, i, elements[i]))
	} else {
		b.zero = append(b.zero, t.Name)
	}
	return nil
}

// report says which were left out, and refuses those that are not zero.
func (b *unusedBiases) report() (out diag.List) {
	if len(b.others) > 0 {
		out.Add(diag.Errorf(codeExtra, weightsPos, "the files hold %s that the model has no place for; accepted: "+
			"zeros throughout, or a config with which the model has biases", counted(len(b.others), "bias")).
			With(few(b.others)...))
	}
	if len(b.zero) > 0 {
		out.Add(diag.Warningf(codeZeros, weightsPos, "the files hold %s of zeros that the model has no place for; "+
			"they change nothing, and are left out", counted(len(b.zero), "bias")).With(few(b.zero)...))
	}
	return out
}
