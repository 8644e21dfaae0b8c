package importers

import (
	"maps"
	"slices"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
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
	if m.scheme == nil || len(w.Shape) < 2 || !isWeight {
		return false
	}
	rows, cols := (&ir.Buffer{Shape: w.Shape}).Matrix() // of several matrices, the rows of all
	matrix, d := m.scheme.Open(m.src.Weights, module)
	switch {
	case d != nil:
		m.diags.Add(d)
		m.consumed[w.Key] = true
		return true
	case matrix == nil:
		return false
	case matrix.Rows() != rows || matrix.Cols() != cols:
		m.diags.Add(diag.Errorf(codeShape, "tensor "+w.Key, "has shape [%d %d]; the config makes it %v", matrix.Rows(),
			matrix.Cols(), w.Shape))
	}
	for _, part := range matrix.Parts {
		m.consumed[part] = true
	}
	m.matrices[w.Key] = matrix
	return true
}

// A stage is the matrices of a layer that are streamed as one, or the embedding.
type stage struct {
	key     string             // of the first of them
	keys    []string           // of all
	element *quantised.Element // nil: they are not quantised
	zeros   bool               // whether any has zero points
}

// chooseStorage says how the matrices of the graph are streamed that are quantised in the files, or by the config if
// there are no files. Matrices of one stage are demanded to be quantised alike. What reads one vector is one stage's.
func (m *importer) chooseStorage(g *ir.Graph) {
	if m.scheme == nil {
		return
	}
	layers := make([]map[string]*stage, len(g.Layers))
	for layer, kind := range g.Layers {
		layers[layer] = map[string]*stage{}
		m.matchStages(g, g.Kinds[kind].Nodes, layer, layers[layer])
	}
	outer := map[string]*stage{}
	m.matchStages(g, g.Before, 0, outer)
	m.matchStages(g, g.After, 0, outer)
	all := append(slices.Clone(layers), outer)
	shareZeros(layers)
	if slices.ContainsFunc(all, func(of map[string]*stage) bool { return m.refuseStages(of) }) || m.diags.Err() != nil {
		return
	}
	for _, body := range [][]ir.GraphNode{g.Before, g.After} {
		for i := range body {
			if s := outer[reads(&body[i])]; s != nil && isMatrix(&body[i]) {
				body[i].Weights[0].Storage = s.storage()
			}
		}
	}
	m.diags.Add(StoreLayers(g, func(layer int, n *ir.GraphNode) *ir.Storage {
		return layers[layer][reads(n)].storage()
	}))
	m.sayRead(all)
	quantises := func(s *stage) bool { return s.element != nil }
	if m.scheme.Inputs && slices.ContainsFunc(all, func(of map[string]*stage) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(of)), quantises)
	}) {
		m.diags.Add(diag.Warningf(codeInputs, m.pos("quantization_config"), "the inputs of matrices are quantised in "+
			"the original, and are not here"))
	}
}

// sayRead warns of matrices in blocks that are not streamed as they are stored.
func (m *importer) sayRead(all []map[string]*stage) {
	counts := map[string]int{}
	for _, stages := range all {
		for _, s := range stages {
			for _, key := range s.keys {
				if name := m.scheme.Types[strings.TrimSuffix(key, ".weight")]; name != "" && s.element == nil {
					counts[name]++
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		m.diags.Add(diag.Warningf(codeBlocks, m.pos("weights"), "%s stored as %s, in a stage with matrices of types "+
			"that no format has in common: what they mean is stored in the dtype of the model, which takes more "+
			"memory, unless --weights quantises it", counted(counts[name], "tensor"), name))
	}
}

// shareZeros gives the stages of layers that could be streamed as one zero points, if any of them has some: these are
// then one kind.
func shareZeros(layers []map[string]*stage) {
	type stream struct {
		vector  string
		element quantised.Element
	}
	streamOf := func(vector string, s *stage) stream {
		out := stream{vector, *s.element}
		out.element.Zeros = false
		return out
	}
	zeros := map[stream]bool{}
	each := func(f func(of stream, s *stage)) {
		for _, stages := range layers {
			for vector, s := range stages {
				if s.element != nil {
					f(streamOf(vector, s), s)
				}
			}
		}
	}
	each(func(of stream, s *stage) { zeros[of] = zeros[of] || s.zeros })
	each(func(of stream, s *stage) { s.zeros = zeros[of] })
}

// storage is how the weights of a stage are stored; nil: they are not quantised.
func (s *stage) storage() *ir.Storage {
	if s == nil || s.element == nil {
		return nil
	}
	dtype, _ := ir.ParseDType(s.element.Type) // which refuseStages has looked at
	return &ir.Storage{DType: dtype, Scales: ir.Scales{Group: s.element.Group, DType: ScaleDTypes[s.element.Scale],
		Zeros: s.zeros, Mins: s.element.Mins, Steps: s.element.Steps}}
}

// refuseStages refuses stages that no weight format is for, and reports whether there is one.
func (m *importer) refuseStages(stages map[string]*stage) bool {
	for _, vector := range slices.Sorted(maps.Keys(stages)) {
		s := stages[vector]
		if s.element == nil {
			continue
		}
		_, err := ir.ParseDType(s.element.Type)
		if _, known := ScaleDTypes[s.element.Scale]; err != nil || !known || s.storage().Format() == nil {
			m.diags.Add(diag.Errorf(quantised.NotRead, "tensor "+s.key, "is %s, which no weight format has; accepted: "+
				"%s", s.element, format.Names()))
			return true
		}
	}
	return false
}

// isMatrix reports whether a node has a matrix, which may be quantised.
func isMatrix(n *ir.GraphNode) bool { return n.Streams() || n.Op == "embed" }

// reads is the vector that a node with a matrix reads; the embedding reads none. Matrices of experts are a stage's of
// their own, whatever they read.
func reads(n *ir.GraphNode) string {
	switch {
	case n.Op == "embed":
		return ""
	case n.OfExperts():
		return "experts: " + n.Name
	}
	return n.Inputs[0]
}

// matchStages adds the matrices of a body, of a layer or of none, to the stages that stream them.
func (m *importer) matchStages(g *ir.Graph, body []ir.GraphNode, layer int, stages map[string]*stage) {
	for i := range body {
		n := &body[i]
		if !isMatrix(n) {
			continue
		}
		for _, t := range n.Weights[0].Tensors() {
			key, err := ir.ResolveKey(t.Key, layer)
			if err != nil {
				continue // what lower refuses
			}
			element := m.elementOf(g, key, t.Shape[len(t.Shape)-1], n.OfExperts())
			if element != nil {
				m.refuseComputed(key, &t)
			}
			s := stages[reads(n)]
			if s == nil {
				s = &stage{key: key, element: element}
				stages[reads(n)] = s
			}
			s.keys = append(s.keys, key)
			if !s.element.StreamsWith(element) {
				if m.scheme.Types != nil { // tools that write GGUF mix types: what has no format in common is read
					s.element, s.zeros = s.element.Wider(element), false
					continue
				}
				m.diags.Add(diag.Errorf(codeMixed, "tensor "+key, "is %s, and %s is %s; accepted: matrices that are "+
					"quantised alike where one stage of a layer streams them", element, s.key, s.element))
				return
			}
			s.zeros = s.zeros || s.element != nil && element.Zeros
		}
	}
}

// elementOf is how a matrix is quantised, or nil.
func (m *importer) elementOf(g *ir.Graph, key string, cols int, ofExperts bool) *quantised.Element {
	if m.src.Weights != nil {
		if matrix := m.matrices[key]; matrix != nil {
			return &matrix.Element
		}
		return nil
	}
	role := quantised.InLayer
	switch {
	case ofExperts:
		role = quantised.OfExperts
	case key == m.names.embedding(): // and of the logits, where they are tied
		role = quantised.Embedding
	case key == m.names.logits():
		role = quantised.Head
	}
	scale := g.Model.Weights
	_, stated := m.statedDType()
	if named, known := configDTypes[stated]; known { // whatever --dtype says
		scale = named
	}
	return m.scheme.Expected(strings.TrimSuffix(key, ".weight"), cols, role, checkpoint.DType(scale.String()))
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
