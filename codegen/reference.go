package codegen

import (
	"fmt"
	"slices"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// referenceData is what reference.cu needs besides the facts of the model: where each operation's weights lie, as
// constants of model_config.h or tables of its own, and its numbers. They are read from the ops of the stages, so
// that reference and megakernel cannot disagree about which tensor is which.
type referenceData struct {
	Embed, InputNorm, QKV, O, PostNorm, GateUp, Down, FinalNorm, LMHead string
	// bias of the layer's q, k and v, and the weights of the norms of q's and k's heads; "" where there is none
	QKVBias, QNorm, KNorm string
	// number of the layer's cache in the arena
	Cache        string
	Intermediate string // size of the layer's MLP
	ByStride     bool   // whether some weights advance by kLayerBytes
	Tables       []tableData
	Eps, Scale   field
	LayerScale   string // where layers differ in their scale, the table of it
	LayerWindow  string // where layers differ in their window, the table of it
	Window       string // rows that a position sees, its own among them; "" where it sees all
}

// referenceStages are the weights that the stages of the first variant use, each by its layer: the variants share
// their buffers.
type referenceStages struct {
	qkv, qkvBias, qNorm, kNorm, inputNorm, o, gateUp, postNorm, down, cache map[int]member

	scale  map[int]float64 // of attention, and the rows that a position sees
	window map[int]int
}

// Heads is the vector that holds q, k and v as attention takes them.
func (r *referenceData) Heads() string {
	if r.QNorm != "" {
		return "heads"
	}
	return "qkv"
}

// reference finds the weights of every layer.
func (b *builder) reference() error {
	r := &b.d.Reference
	r.Eps = field{Value: hexFloat(b.p.Model.Eps), Note: decimal(b.p.Model.Eps)}
	found := referenceStages{map[int]member{}, map[int]member{}, map[int]member{}, map[int]member{}, map[int]member{},
		map[int]member{}, map[int]member{}, map[int]member{}, map[int]member{}, map[int]member{},
		map[int]float64{}, map[int]int{}}
	for _, section := range sections(&b.p.Variants[0]) {
		for _, s := range section.stages {
			for _, i := range (site{loop: section.loop}).indicesOf(s) {
				if err := b.referenceStage(&found, s, i); err != nil {
					return err
				}
			}
		}
	}
	var err error
	for _, w := range []struct {
		to   *string
		role string
		of   map[int]member
	}{{&r.InputNorm, "input_norm", found.inputNorm}, {&r.QKV, "qkv", found.qkv}, {&r.O, "o", found.o},
		{&r.PostNorm, "post_norm", found.postNorm}, {&r.GateUp, "gate_up", found.gateUp},
		{&r.Down, "down", found.down}} {
		if *w.to, err = b.ofEachLayer(w.role, w.of); err != nil {
			return err
		}
	}
	if len(found.qkvBias) > 0 {
		if r.QKVBias, err = b.ofEachLayer("qkv_bias", found.qkvBias); err != nil {
			return err
		}
	}
	if len(found.qNorm) > 0 {
		if r.QNorm, err = b.ofEachLayer("q_norm", found.qNorm); err != nil {
			return err
		}
		if r.KNorm, err = b.ofEachLayer("k_norm", found.kNorm); err != nil {
			return err
		}
	}
	if r.Cache, err = b.cacheOfEachLayer(found.cache); err != nil {
		return err
	}
	if r.Intermediate, err = b.intermediateOfEachLayer(&found); err != nil {
		return err
	}
	b.attentionOfEachLayer(&found)
	for _, need := range []struct{ stage, constant string }{{"embed", r.Embed}, {"lm_head", r.LMHead}} {
		if need.constant == "" {
			return diag.Errorf(codeStructure, "program", "no stage %s with a weight: want one for reference.cu",
				need.stage)
		}
	}
	return nil
}

// referenceStage notes what a stage uses in the iteration with index i.
func (b *builder) referenceStage(found *referenceStages, s *ir.Stage, i int) error {
	r := &b.d.Reference
	kind, err := classify(s)
	if err != nil {
		return err
	}
	weightOf := func(o *ir.Op) (member, bool) {
		name, err := ir.Resolve(operand(o.In, 1).Buf, i)
		m, known := b.names[name]
		return m, known && err == nil
	}
	weight := func(code ir.Opcode) (member, bool) { return weightOf(op(s, code)) }
	name, err := ir.Resolve(s.Name, i)
	if err != nil {
		return err
	}
	layer, numbered := layerOf(name)
	note := func(of map[int]member, code ir.Opcode) {
		if m, known := weight(code); known && numbered {
			of[layer] = m
		}
	}
	switch kind {
	case bodyEmbed:
		m, _ := weight(ir.EMBED)
		r.Embed = b.weights[m.buffer].constant
	case bodyAttend:
		note(found.cache, ir.ATTENTION)
		if normsHeads(s) {
			found.qNorm[layer], _ = weightOf(&s.Ops[0])
			found.kNorm[layer], _ = weightOf(&s.Ops[1])
		}
		found.scale[layer] = op(s, ir.ATTENTION).FloatOr("scale", 1)
		found.window[layer] = windowOf(op(s, ir.ATTENTION))
	case bodyProduct:
		switch {
		case choosesToken(s):
			matrix, _ := weight(ir.GEMV)
			norm, _ := weight(ir.RMSNORM)
			r.LMHead, r.FinalNorm = b.weights[matrix.buffer].constant, b.weights[norm.buffer].constant
		case len(op(s, ir.SiluMul).In) > 0:
			note(found.gateUp, ir.GEMV)
			note(found.postNorm, ir.RMSNORM)
		case s.Ops[0].Code == ir.RMSNORM:
			note(found.qkv, ir.GEMV)
			if len(op(s, ir.ADD).In) > 0 {
				note(found.qkvBias, ir.ADD)
			}
			note(found.inputNorm, ir.RMSNORM)
		case strings.HasSuffix(s.Name, ".o"):
			note(found.o, ir.GEMV)
		default:
			note(found.down, ir.GEMV)
		}
	}
	return nil
}

// ofEachLayer is what in_layer of reference.cu takes for a weight: its constant, if the layers follow one another at
// one stride, and else a table with a place for each.
func (b *builder) ofEachLayer(role string, of map[int]member) (string, error) {
	layers := b.p.Model.Layers
	inStep := true
	values := make([]string, layers)
	for n := range layers {
		m, known := of[n]
		if !known {
			return "", diag.Errorf(codeStructure, "program",
				"no stage of layer %d with the weight of %s: want one for reference.cu", n, role)
		}
		place := b.weights[m.buffer]
		inStep = inStep && m.buffer == of[0].buffer && m.k == n && place.stride == layerBytes
		values[n] = place.constant
		if m.k > 0 {
			values[n] = fmt.Sprintf("%s + %d * %s", place.constant, m.k, place.stride)
		}
	}
	if inStep {
		b.d.Reference.ByStride = true
		return b.weights[of[0].buffer].constant, nil
	}
	return b.referenceTable("size_t", role, values), nil
}

// cacheOfEachLayer is the number of a layer's cache in the arena, as C++.
func (b *builder) cacheOfEachLayer(of map[int]member) (string, error) {
	inOrder := true
	values := make([]string, b.p.Model.Layers)
	for n := range values {
		m, known := of[n]
		if !known || b.caches[m.buffer] == nil {
			return "", diag.Errorf(codeStructure, "program",
				"no attention stage of layer %d with a cache: want one for reference.cu", n)
		}
		slot := b.caches[m.buffer][m.k]
		inOrder, values[n] = inOrder && slot == n, itoa(slot)
	}
	if inOrder {
		return "r.layer", nil
	}
	return b.referenceTable("int", "cache", values) + "[r.layer]", nil
}

// intermediateOfEachLayer is the size of a layer's MLP, as C++, and refuses weights of other shapes than the model's
// facts and that size give.
func (b *builder) intermediateOfEachLayer(found *referenceStages) (string, error) {
	m := &b.p.Model
	q := m.Heads * m.HeadDim
	alike := true
	values := make([]string, m.Layers)
	for n := range m.Layers {
		down := &b.p.Buffers[found.down[n].buffer]
		size := 0
		if len(down.Shape) == 2 {
			size = down.Shape[1]
		}
		if size < 1 || size > m.Intermediate {
			return "", diag.Errorf(codeStructure, "buffer "+down.Name,
				"has the shape %v: want %d rows, and columns of at most the model's intermediate size, %d", down.Shape,
				m.Hidden, m.Intermediate)
		}
		for _, w := range []struct {
			of    map[int]member
			shape []int
		}{{found.qkv, []int{q + 2*m.KVHeads*m.HeadDim, m.Hidden}}, {found.o, []int{m.Hidden, q}},
			{found.gateUp, []int{2 * size, m.Hidden}},
			{found.down, []int{m.Hidden, size}}, {found.inputNorm, []int{m.Hidden}},
			{found.postNorm, []int{m.Hidden}}} {
			if buf := &b.p.Buffers[w.of[n].buffer]; !slices.Equal(buf.Shape, w.shape) {
				return "", diag.Errorf(codeStructure, "buffer "+buf.Name,
					"has the shape %v: want %v, as reference.cu computes layer %d", buf.Shape, w.shape, n)
			}
		}
		alike, values[n] = alike && size == m.Intermediate, itoa(size)
	}
	if alike {
		return "kIntermediate", nil
	}
	return b.referenceTable("int", "mlp", values) + "[r.layer]", nil
}

// attentionOfEachLayer states the scale and the window of attention: a constant where all layers have the same, a table
// otherwise.
func (b *builder) attentionOfEachLayer(found *referenceStages) {
	r := &b.d.Reference
	scales, windows := make([]string, b.p.Model.Layers), make([]string, b.p.Model.Layers)
	for n := range scales {
		scales[n], windows[n] = hexFloat(found.scale[n]), itoa(found.window[n])
	}
	alike := func(values []string) bool { return len(slices.Compact(slices.Clone(values))) <= 1 }
	r.Scale = field{Value: hexFloat(found.scale[0]), Note: decimal(found.scale[0])}
	if !alike(scales) {
		r.LayerScale = b.referenceTable("float", "scale", scales) + "[r.layer]"
	}
	switch {
	case !alike(windows):
		r.LayerWindow = b.referenceTable("int", "window", windows) + "[r.layer]"
	case found.window[0] > 0:
		r.Window = windows[0]
	}
}

func (b *builder) referenceTable(typ, role string, values []string) string {
	t := tableData{Type: typ, Name: "k" + camel(role) + "OfLayer", Lines: list(values)}
	b.d.Reference.Tables = append(b.d.Reference.Tables, t)
	return t.Name
}
