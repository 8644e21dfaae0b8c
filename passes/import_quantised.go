package passes

import (
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes/quantised"
)

// readQuantised reads how the config says that weights are quantised, if it does.
func (m *importer) readQuantised() {
	scheme, d := quantised.Read(m.doc, m.src.Config.Quantised)
	switch {
	case d != nil:
		m.diags.Add(d)
	case scheme != nil:
		m.scheme = scheme
	}
}

// quantisedParts are endings of tensors that hold the scales, zero points and packed integers of quantised weights.
var quantisedParts = map[string]string{
	".scales": "MLX, GPTQ or AWQ", ".biases": "MLX", ".qweight": "GPTQ or AWQ", ".qzeros": "GPTQ or AWQ",
	".g_idx": "GPTQ", ".absmax": "bitsandbytes", ".SCB": "bitsandbytes", ".weight_scale": "FP8 or compressed-tensors",
	".weight_scale_inv": "FP8", ".weight_packed": "compressed-tensors",
}

// strayParts returns what is wrong with tensors of a quantised checkpoint whose config does not say so, or nil.
func (m *importer) strayParts() *diag.Diagnostic {
	if m.scheme != nil {
		return nil
	}
	for _, t := range m.src.Weights.Tensors() {
		for ending, method := range quantisedParts {
			if strings.HasSuffix(t.Name, ending) {
				return diag.Errorf(quantised.NotRead, "tensor "+t.Name, "the weights are quantised, and the config "+
					"does not say how: tensors with this ending are of %s; accepted: a config with "+
					"quantization_config, or weights in F32, F16 or BF16, which the original model has", method)
			}
		}
	}
	return nil
}

// matchMatrix finds the tensors that a matrix is stored in, and reports whether it is quantised.
func (m *importer) matchMatrix(w *ir.GraphWeight) bool {
	module, isWeight := strings.CutSuffix(w.Key, ".weight")
	if m.scheme == nil || len(w.Shape) != 2 || !isWeight {
		return false
	}
	matrix, d := m.scheme.Open(m.src.Weights, module)
	switch {
	case d != nil:
		m.diags.Add(d)
		m.consumed[w.Key] = true
		return true
	case matrix == nil:
		return false
	case matrix.Rows() != w.Shape[0] || matrix.Cols() != w.Shape[1]:
		m.diags.Add(diag.Errorf(codeShape, "tensor "+w.Key, "has shape [%d %d]; the config makes it %v", matrix.Rows(),
			matrix.Cols(), w.Shape))
	}
	for _, part := range matrix.Parts {
		m.consumed[part] = true
	}
	m.matrices[w.Key] = matrix
	return true
}

// A stored matrix of the graph, and how it is quantised; a nil element: it is not.
type storedMatrix struct {
	key     string
	element *quantised.Element
}

// matchStorage demands that the matrices which one stage streams are quantised alike, in all layers. What reads one
// vector is one stage's.
func (m *importer) matchStorage(g *ir.Graph) {
	if len(m.matrices) == 0 {
		return
	}
	if m.scheme.Inputs {
		m.diags.Add(diag.Warningf(codeInputs, m.pos("quantization_config"), "the inputs of matrices are quantised in "+
			"the original, and are not here"))
	}
	stages := map[string]storedMatrix{} // the first matrix of each
	for layer, kind := range g.Layers {
		m.matchStages(g.Kinds[kind].Nodes, layer, stages)
	}
	clear(stages)
	m.matchStages(g.After, 0, stages)
}

func (m *importer) matchStages(body []ir.GraphNode, layer int, stages map[string]storedMatrix) {
	for i := range body {
		n := &body[i]
		if n.Op != "linear" {
			continue
		}
		for _, w := range n.Weights[0].Tensors() {
			key, err := ir.ResolveKey(w.Key, layer)
			if err != nil {
				continue // what lower refuses
			}
			stored := storedMatrix{key: key}
			if matrix := m.matrices[key]; matrix != nil {
				stored.element = &matrix.Element
				m.refuseComputed(key, &w)
			}
			first, there := stages[n.Inputs[0]]
			if !there {
				stages[n.Inputs[0]] = stored
				continue
			}
			if !first.element.StreamsWith(stored.element) {
				m.diags.Add(diag.Errorf(codeMixed, "tensor "+key, "is %s, and %s is %s; accepted: matrices that are "+
					"quantised alike where one stage streams them, in all layers",
					stored.element, first.key, first.element))
				return
			}
		}
	}
}

// refuseComputed demands that what is packed of a matrix are its elements, in rows of their own.
func (m *importer) refuseComputed(key string, w *ir.GraphWeight) {
	for i := range w.Chain {
		if s := w.Chain[i].Spec(); s.Transposes || s.Values != nil {
			m.diags.Add(diag.Errorf(quantised.NotRead, "tensor "+key, "is quantised, and the family's checkpoints "+
				"have its columns as rows, or its elements otherwise scaled; accepted: weights in F32, F16 or BF16"))
			return
		}
	}
}
