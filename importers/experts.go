package importers

import (
	"fmt"
	"maps"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/transform"
)

// A mixtureOfExperts is what layers of a family have in place of an MLP: a router chooses some experts for each token,
// and their outputs are added with its weights.
type mixtureOfExperts struct {
	count, perToken, width int
	dense                  func(layer int) bool // which layers have an MLP instead; nil: none

	ofChosen     bool    // the softmax of the router is over the chosen ones alone
	sigmoid      bool    // scores are sigmoids, not a softmax
	renormalised bool    // the weights of the chosen ones add up to 1
	extra, least float64 // what is then added to their sum, and a lower bound of it
	scale        float64 // what weights are multiplied by at the end; 0: nothing
	jitter       float64 // of SparseMixer, by which the weights of the chosen are computed; 0: they are not
	biased       bool    // the router and both matrices have biases

	choosing         string // the part that is added to scores for the choice alone, as of tensorNames; "": none
	choosingRows     bool   // which is stored as one row of a matrix
	groups, ofGroups int    // experts are of groups, and chosen from ofGroups of them; 0: there are none

	// Above 0, the gate is at most limit, and up within ±limit; alpha is then the scale of the gate in the sigmoid.
	limit, alpha float64

	shared      int  // the width of an expert that every token has besides; 0: there is none
	sharedGated bool // what it makes is multiplied by a sigmoid

	// separate are the matrices where experts have tensors of their own; nil: no checkpoint has them so, or all have.
	separate func(e *mixtureOfExperts, names *tensorNames, hidden int) (up, down []ir.GraphWeight)
	// stacked are the matrices where the files have tensors of all experts; nil: no other form than that of matrices.
	stacked func(e *mixtureOfExperts, names *tensorNames, hidden int) (up, down []ir.GraphWeight)
	// blocks are the matrices where a checkpoint stores them as MXFP4; nil: it has no such form.
	blocks func(e *mixtureOfExperts, names *tensorNames, hidden int) (up, down []ir.GraphWeight)

	router string            // the part of its matrix, as of tensorNames
	exact  bool              // transformers keeps that in float32, whatever the dtype of the model
	parts  map[string]string // of the shared expert, as of tensorNames
	stacks func(*ir.Model) []stack
	// matrices are those of all experts, and their biases: rows of gate and of up in turn, and those of down.
	matrices func(e *mixtureOfExperts, names *tensorNames, hidden int) (up, down []ir.GraphWeight)
}

// factsOfExperts are those of all layers, of which some have experts.
func (m *importer) factsOfExperts(e *mixtureOfExperts, model *ir.Model) []ir.LayerFacts {
	if e.perToken > e.count {
		m.fail(codeField, "num_experts_per_tok", "is %d; want at most the %d experts that there are", e.perToken,
			e.count)
	}
	layers := make([]ir.LayerFacts, model.Layers)
	for i := range layers {
		layers[i] = *model.Of(i)
		if e.dense == nil || !e.dense(i) {
			of := &layers[i]
			of.Intermediate, of.Experts, of.PerToken, of.Shared = e.width, e.count, e.perToken, e.shared
			if e.sharedGated && e.shared > 0 {
				of.SharedGates = 1
			}
		}
	}
	return layers
}

// mixture appends what a layer with experts computes of the stream x, and its sum with it. Each product begins with the
// norm: a vector of its own for the router, for the experts and for the shared one.
func (d *decoder) mixture(b *nodes, m *ir.Model, names *tensorNames, f *ir.LayerFacts, x string) {
	e, h := d.experts, m.Hidden
	norm := func(name string) string {
		if d.bareBranches {
			return x
		}
		return d.norm(b, name, x, h, m.Eps, names.ofLayer("post_norm"))
	}
	scores := b.add("router", "linear", []int{f.Scores()}, []string{norm("router_norm")}, e.scores(names, f, h)...)
	linear, shared := d.sharedLinears(b, m, names), ""
	if e.shared > 0 { // needs nothing of the choice, and fills the wait for the scores
		shared = d.middle(b, norm("post_norm"), h, e.shared, linear)
	}
	route := e.route(b, names, f, scores)
	up, down := e.matrices(e, names, h)
	act := b.add("experts_up", "experts_up", []int{f.PerToken * f.Intermediate}, []string{norm("experts_norm"), route},
		up...)
	if e.limit > 0 {
		b.param(ir.FloatParam("cap", e.limit), ir.FloatParam("scale", e.alpha))
	}
	y := b.add("experts_down", "experts_down", []int{h}, []string{act, route}, down...)
	y = b.scaled("mlp_scale", y, h, d.branchScale)
	if d.postNorms {
		y = d.norm(b, "post_mlp_norm", y, h, m.Eps, names.ofLayer("post_mlp_norm"))
	}
	if shared == "" {
		b.add("mlp_add", "add", []int{h}, []string{x, y})
		return
	}
	x = b.add("experts_add", "add", []int{h}, []string{x, y})
	y = linear("down_proj", shared, h, e.shared, d.biased.mlp)
	if e.sharedGated {
		y = b.add("shared_scale", "gated_by", []int{h}, []string{y, route})
	}
	b.add("mlp_add", "add", []int{h}, []string{x, b.scaled("shared_branch_scale", y, h, d.branchScale)})
}

// scores are the weights of the router's product: a row for each expert, and after them one for the gate of the expert
// that every token has.
func (e *mixtureOfExperts) scores(names *tensorNames, f *ir.LayerFacts, hidden int) []ir.GraphWeight {
	path := names.inLayer(e.router)
	w := []ir.GraphWeight{weight(path+".weight", f.Experts, hidden)}
	if f.SharedGates > 0 {
		w[0] = ir.GraphWeight{Shape: []int{f.Scores(), hidden}, Parts: []ir.GraphWeight{w[0],
			weight(names.inLayer(e.parts["shared_gate"])+".weight", 1, hidden)}}
	}
	if e.biased {
		w = append(w, weight(path+".bias", f.Experts))
	}
	return w
}

// route appends the choice of experts by their scores, and their weights. What is added for the choice alone is not
// rounded: such biases are large compared with their differences.
func (e *mixtureOfExperts) route(b *nodes, names *tensorNames, f *ir.LayerFacts, scores string) string {
	var bias []ir.GraphWeight
	if e.choosing != "" {
		w := exactWeight(names.inLayer(e.choosing), f.Experts)
		if e.choosingRows {
			w.Stored = []int{1, f.Experts}
		}
		bias = append(bias, w)
	}
	b.add("route", "route", []int{f.PerToken}, []string{scores}, bias...)
	b.param(ir.IntParam("chosen_first", flag(e.ofChosen)), ir.IntParam("renormalise", flag(e.renormalised)))
	if e.sigmoid {
		b.param(ir.IntParam("sigmoid", ir.Int(1)))
	}
	if e.groups > 1 {
		b.param(ir.IntParam("groups", ir.Int(e.groups)), ir.IntParam("top_groups", ir.Int(e.ofGroups)))
	}
	for _, p := range []struct {
		key   string
		value float64
	}{{"jitter", e.jitter}, {"extra", e.extra}, {"least", e.least}, {"scale", e.scale}} {
		if p.value != 0 && (p.key != "scale" || p.value != 1) {
			b.param(ir.FloatParam(p.key, p.value))
		}
	}
	return "route"
}

// sharedLinears appends products of the MLP that every token has besides those of its experts.
func (d *decoder) sharedLinears(b *nodes, m *ir.Model,
	names *tensorNames) func(name, in string, rows, cols int, biased bool) string {
	e, own := d.experts, *names
	own.parts = maps.Clone(names.parts)
	if own.parts == nil {
		own.parts = map[string]string{}
	}
	maps.Copy(own.parts, e.parts)
	var stacks []stack
	if e.stacks != nil {
		stacks = e.stacks(m)
	}
	return func(name, in string, rows, cols int, biased bool) string {
		return b.add(name, "linear", []int{rows}, []string{in}, d.linear(&own, stacks, name, rows, cols, biased)...)
	}
}

// sharedExperts reads the experts that every token has: n of a width, which are one MLP. field says one of the two.
func (m *importer) sharedExperts(e *mixtureOfExperts, field string, n, width int) {
	if most := ir.ModelBound("intermediate").Hi; n*width > most {
		m.fail(codeField, field, "makes an MLP of %d for every token; want at most %d", n*width, most)
		return
	}
	e.shared = n * width
}

// sharedParts are the tensors of an expert that every token has.
func sharedParts(part string) map[string]string {
	return map[string]string{"gate_proj": part + ".gate_proj", "up_proj": part + ".up_proj",
		"down_proj": part + ".down_proj"}
}

func flag(is bool) ir.Expr {
	if is {
		return ir.Int(1)
	}
	return ir.Int(0)
}

// separateExperts is the form of checkpoints that have three matrices for each expert, by the names of gate, up and
// down.
func separateExperts(part, gate, up, down string) func(*mixtureOfExperts, *tensorNames, int) (w, v []ir.GraphWeight) {
	return func(e *mixtureOfExperts, names *tensorNames, h int) (w, v []ir.GraphWeight) {
		rows := ir.GraphWeight{Shape: []int{e.count, 2 * e.width, h}}
		columns := ir.GraphWeight{Shape: []int{e.count, h, e.width}}
		for i := range e.count {
			of := func(name string, rows, cols int, chain transform.Chain) ir.GraphWeight {
				w := weight(fmt.Sprintf("%s.%d.%s.weight", names.inLayer(part), i, name), rows, cols)
				w.Chain = chain
				return w
			}
			rows.Parts = append(rows.Parts, of(gate, e.width, h, transform.Of(transform.Even)),
				of(up, e.width, h, transform.Of(transform.Odd)))
			columns.Parts = append(columns.Parts, of(down, h, e.width, nil))
		}
		return []ir.GraphWeight{rows}, []ir.GraphWeight{columns}
	}
}

// stackedExperts is the form of checkpoints that have two tensors for all experts, of which the first has the rows of
// gate before those of up.
func stackedExperts(up, down string) func(*mixtureOfExperts, *tensorNames, int) (w, v []ir.GraphWeight) {
	return func(e *mixtureOfExperts, names *tensorNames, h int) (w, v []ir.GraphWeight) {
		n, stored := 2*e.width, []int{e.count, 2 * e.width, h}
		half := func(lo, hi int, turn transform.Kind) ir.GraphWeight {
			return ir.GraphWeight{Key: names.inLayer(up), Shape: []int{e.count, e.width, h}, Stored: stored,
				Chain: transform.Of(transform.Rows, lo, hi, n).Then(transform.Of(turn)...)}
		}
		return []ir.GraphWeight{{Shape: stored, Parts: []ir.GraphWeight{half(0, e.width, transform.Even),
				half(e.width, n, transform.Odd)}}},
			[]ir.GraphWeight{weight(names.inLayer(down), e.count, h, e.width)}
	}
}

// transposedExperts is the form of gpt-oss: two tensors for all experts, stored transposed, in which rows of gate and
// up are interleaved, and two with biases.
func transposedExperts(e *mixtureOfExperts, names *tensorNames, h int) (up, down []ir.GraphWeight) {
	of := func(name string, rows, cols int) []ir.GraphWeight {
		key := names.inLayer("mlp.experts." + name)
		all := ir.GraphWeight{Shape: []int{e.count, rows, cols}}
		for i := range e.count {
			all.Parts = append(all.Parts, ir.GraphWeight{Key: key, Shape: []int{rows, cols},
				Stored: []int{e.count, cols, rows},
				Chain: transform.Of(transform.Rows, i*cols, (i+1)*cols).
					Then(transform.Of(transform.Transpose)...)})
		}
		return []ir.GraphWeight{all, weight(key+"_bias", e.count, rows)}
	}
	return of("gate_up_proj", 2*e.width, h), of("down_proj", h, e.width)
}

// biasedExperts is the form of gpt-oss in GGUF files: three matrices for each expert, and biases as in other files.
func biasedExperts(e *mixtureOfExperts, names *tensorNames, h int) (up, down []ir.GraphWeight) {
	up, down = separateExperts("mlp.experts", "gate_proj", "up_proj", "down_proj")(e, names, h)
	of := func(name string, rows int) ir.GraphWeight {
		return weight(names.inLayer("mlp.experts."+name)+"_bias", e.count, rows)
	}
	return append(up, of("gate_up_proj", 2*e.width)), append(down, of("down_proj", h))
}

// expertBlocks is the form of gpt-oss as it is published: the matrices of all experts in blocks of MXFP4, in which rows
// of gate and up are interleaved.
func expertBlocks(e *mixtureOfExperts, names *tensorNames, h int) (up, down []ir.GraphWeight) {
	of := func(name string, rows, cols int) []ir.GraphWeight {
		key := names.inLayer("mlp.experts." + name)
		return []ir.GraphWeight{weight(key+".weight", e.count, rows, cols), weight(key+"_bias", e.count, rows)}
	}
	return of("gate_up_proj", 2*e.width, h), of("down_proj", h, e.width)
}

// sayRounded warns of routers whose matrices the files have in more bits than the model.
func (m *importer) sayRounded(g *ir.Graph) {
	rounded, first := 0, ""
	for layer := range g.Layers {
		key, err := ir.ResolveKey(m.exactRouters, layer)
		if err != nil || m.exactRouters == "" || g.Model.Weights == ir.F32 {
			return
		}
		if t, there := m.src.Weights.Tensor(key); there && t.DType == checkpoint.F32 {
			if rounded++; first == "" {
				first = key
			}
		}
	}
	if rounded > 0 {
		m.diags.Add(diag.Warningf(codeRouter, "tensor "+first, "is F32, which transformers keeps of a router: the "+
			"matrices of %s are rounded to %s, so that some tokens may have other experts; --dtype fp32 keeps them",
			counted(rounded, "router"), g.Model.Weights))
	}
}

// chooseExperts takes the form of the matrices of experts in which the files have them.
func (m *importer) chooseExperts(e *mixtureOfExperts) {
	if e != nil && e.stacked != nil {
		up, _ := e.stacked(e, m.names, 1)
		if key, err := ir.ResolveKey(up[0].Parts[0].Key, 0); err == nil && m.hasTensor(key) {
			e.matrices = e.stacked
		}
	}
	switch {
	case e != nil && m.scheme != nil && m.scheme.Types != nil && e.separate != nil: // a GGUF file
		e.matrices = e.separate
	case m.scheme == nil || !m.scheme.OfExperts:
	case e != nil && e.blocks != nil:
		e.matrices = e.blocks
	default:
		m.fail(codeNotModelled, "quantization_config", "has the method %s, in which amkc reads the experts of gpt-oss "+
			"alone; accepted: the other methods that docs/quantised-checkpoints.md lists, or a checkpoint that is not "+
			"quantised", spell(m.scheme.Method))
	}
}

// expertsModelled are the fields of a family that the graph is built from: those of another one, and those of experts.
func expertsModelled(of []string, others ...string) []string {
	return append(slices.Clone(of), append(others, "num_experts_per_tok")...)
}

// expertsInert are the inert fields of such a family, but for those that it models: what training computes of the
// router, and whether its scores are returned.
func expertsInert(of map[string]known, modelled []string) map[string]known {
	inert := maps.Clone(of)
	inert["output_router_logits"] = whatever
	for _, field := range modelled {
		delete(inert, field)
	}
	return inert
}

// readExperts reads the sizes of experts: how many there are, by any of the names, how many of them a token has, and
// how wide they are.
func (m *importer) readExperts(names []string, count, perToken int, width string, wide int) mixtureOfExperts {
	e := m.sizesOfExperts(names, count, width, wide)
	e.perToken = m.size("num_experts_per_tok", perToken, "per_token")
	return e
}

// sizesOfExperts reads how many experts there are, and how wide they are. Names of tensors are those of most families.
func (m *importer) sizesOfExperts(names []string, count int, width string, wide int) mixtureOfExperts {
	return mixtureOfExperts{count: m.sizeOf(names, count, "experts"), width: m.size(width, wide, "intermediate"),
		router: "mlp.gate", matrices: separateExperts("mlp.experts", "gate_proj", "up_proj", "down_proj")}
}

// asOfMixtral are the names of tensors that Mixtral has, and families after it.
func (e *mixtureOfExperts) asOfMixtral() {
	e.router, e.matrices = "block_sparse_moe.gate", separateExperts("block_sparse_moe.experts", "w1", "w3", "w2")
}

// sizeOf reads a size that has several names.
func (m *importer) sizeOf(names []string, absent int, fact string) int {
	size, read := absent, ""
	for _, name := range names {
		if _, ok := m.value(name); !ok {
			continue
		}
		n := m.size(name, absent, fact)
		if read != "" && n != size {
			m.fail(codeField, name, "is %d, and %s %d; want one of them, or both the same", n, read, size)
		}
		read, size = name, n
	}
	if read == "" {
		return m.size(names[0], absent, fact)
	}
	return size
}

// denseLayers are those that have an MLP instead of experts: mlp_only_layers, and all but every decoder_sparse_step-th.
func (m *importer) denseLayers() func(layer int) bool {
	step, listed := m.size("decoder_sparse_step", 1, "layers"), map[int]bool{}
	if v, ok := m.value("mlp_only_layers"); ok {
		list, isList := v.([]any)
		for _, v := range list {
			n, isInt := asInt(v)
			listed[n], isList = true, isList && isInt
		}
		if !isList {
			m.fail(codeField, "mlp_only_layers", "is %s; want a list of numbers of layers", spell(v))
		}
	}
	return func(layer int) bool { return listed[layer] || (layer+1)%step != 0 }
}
