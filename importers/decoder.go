package importers

import (
	"cmp"

	"amkc/ir"
)

// A decoder is a family of the form of Llama: RMSNorm before each branch, rotary attention with grouped heads, and a
// gated MLP. Its sizes are what absent fields of the config mean.
type decoder struct {
	architecture                                          string
	alias                                                 string           // another name of the class
	modelled                                              []string         // fields of the config
	inert                                                 map[string]known // others that configs of the family carry
	layers, hidden, intermediate, heads, vocab, positions int
	kvHeads                                               int               // 0: as many as heads
	check                                                 func(m *importer) // refuses what is not modelled; or nil
	// positions that attention sees in each layer, a token's own among them: 0 for all before it; nil where the family
	// has no windows
	windows func(m *importer, layers int) []int
	// which layers rotate queries and keys, by their windows; nil: all
	rotate func(windows []int) []bool
	// sizes that layers may have of their own, as Llama's configs call them, in per_layer_config; nil: none
	perLayer []string
	// sizes of layers that have none in that; nil: those of the model
	sizes         func(m *importer, windows []int, layers []ir.LayerFacts)
	headDim       int         // what an absent head_dim means; 0: hidden_size over heads
	tied          bool        // what an absent tie_word_embeddings means
	eps           float64     // what an absent rms_norm_eps means; 0: 1e-6
	gate          string      // the node of the MLP's activation times up; "": silu_mul
	biased        projections // that have a bias
	normedHeads   bool        // each head of the queries and of the keys has an RMSNorm, before its rotation
	normedAll     bool        // all queries have one RMSNorm, and all keys, before their rotation
	normedRotated bool        // as normedHeads, and after the rotation
	normedValues  bool        // each head of the values has an RMSNorm without weights
	keysServe     bool        // as values, in layers without a window
	headNorms     headNorms   // what weights these have
	unitOffset    bool        // norms multiply by 1 + w
	// branches of a layer begin without a norm, and end in one
	bareBranches, postNorms bool
	parallel                bool       // attention and MLP read the same vector, each by a norm
	learnedRows             int        // of the table of positions
	learned                 *learned   // positions enter by rows of a table, nil: by rotations
	transposed              bool       // the checkpoint has the matrices of layers with columns as rows
	layerNorm               *layerNorm // what norms are, nil: RMSNorm
	biasedHead              bool       // the logits have a bias
	widening                int        // what an absent intermediate_size is of hidden_size; 0: intermediate
	// how wide the MLP is, by intermediate_size; nil: as wide
	width func(m *importer, intermediate int) int
	act   string // the node of the activation of an MLP without gate; "": it has one

	actWeights []ir.GraphWeight // of that activation, nil: none

	stacks   func(model *ir.Model) []stack // tensors in which the checkpoint has several linears; nil: none
	drafting []string                      // fields of how many layers follow the others, which only speculation runs
	fields   map[string]string             // what its configs call fields that Llama's call otherwise; "": it has none

	theta       float64        // what an absent rope_theta means; 0: 10000
	scaling     map[string]any // the object of the rotation that the class has where the config has none
	ropeOfParts bool           // its object may say how positions of three parts share pairs
	turned      float64        // what an absent partial_rotary_factor means; 0: the family reads none
	sliced      bool           // the class cuts heads by it, whatever the type of the rotation
	interleaved bool           // neighbouring elements of a head are a rotation pair
	// ropes are the rotary embedding, and that of layers with a window if it is another one; nil: the one that a config
	// has for all layers
	ropes func(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope)
	names *tensorNames // of tensors; nil: plainNames

	// what layers have in place of attention: nil where they have attention; nil: all have attention
	mixers     func(m *importer, model *ir.Model) []*mixer
	gatedHeads bool              // what attention makes is multiplied by a sigmoid, of a gate for each of its elements
	experts    *mixtureOfExperts // in place of the MLP of some layers; nil: none have any
	sinks      bool              // each head of attention has a sink

	// What rows of the embedding, branches of layers and logits are multiplied by; nil or 0: nothing.
	embedScale               func(model *ir.Model) float64
	branchScale, logitsScale float64
	attnScale                float64 // of scores; 0: the inverse of the root of head_dim
	attnCap, logitsCap       float64 // soft caps of scores and of logits; 0: none
	layerFactor              string  // the tensor of the number that a layer multiplies its sum by; "": none
	clip                     float64 // what queries, keys and values are kept within as projected; 0: no bound
}

// A layerNorm takes the mean off, and so may have a bias alongside its weight, or neither.
type layerNorm struct{ biased, bare bool }

// headNorms are the weights of norms of heads.
type headNorms struct {
	gains  headGains
	biased bool // where the norms are LayerNorms
}

type headGains int

const (
	sharedGains   headGains = iota // of all heads
	stackedGains                   // of each, as rows of one tensor
	separateGains                  // of each, in a tensor for itself
)

// Learned positions are a table with a row for each; that of position 0 is row `offset`.
type learned struct{ offset int }

// projections are some of those of a layer: to queries, keys and values; from attention; gate, up and down.
type projections struct{ heads, o, mlp bool }

// field is what the family's configs call a field of Llama's.
func (d *decoder) field(llamas string) string {
	if own, otherwise := d.fields[llamas]; otherwise {
		return own
	}
	return llamas
}

// decoder builds the graph of a family of the form of Llama.
func (m *importer) decoder(d *decoder) *ir.Graph {
	if m.part != nil {
		m.adopt(d)
	} else {
		m.checkArchitecture(d.architecture, d.alias)
	}
	m.names = cmp.Or(d.names, plainNames)
	m.checkFields(d.modelled, d.inert, m.src.AssumeInert)
	if d.check != nil {
		d.check(m)
	}
	m.readQuantised()
	if m.chooseExperts(d.experts); d.experts != nil && d.experts.exact {
		m.exactRouters = m.names.inLayer(d.experts.router) + ".weight"
	}
	model := ir.Model{
		Name: m.src.Name, Architecture: d.architecture, DTypes: ir.Uniform(m.chooseDType()),
		Layers: m.size(d.field("num_hidden_layers"), d.layers, "layers"),
		Hidden: m.size(d.field("hidden_size"), d.hidden, "hidden"),
		Heads:  m.size(d.field("num_attention_heads"), d.heads, "heads"),
		Vocab:  m.size("vocab_size", d.vocab, "vocab"), Tied: m.truth(d.field("tie_word_embeddings"), d.tied),
		Eps: cmp.Or(d.eps, 1e-6),
	}
	model.Intermediate = m.size(d.field("intermediate_size"), cmp.Or(d.widening*model.Hidden, d.intermediate),
		"intermediate")
	if d.width != nil {
		model.Intermediate = d.width(m, model.Intermediate)
	}
	kvHeads := cmp.Or(m.unlessNull(d.field("num_key_value_heads"), d.kvHeads), model.Heads)
	model.KVHeads = m.size(d.field("num_key_value_heads"), kvHeads, "kv_heads")
	m.leaveDrafting(d, model.Layers)
	trained := m.size(d.field("max_position_embeddings"), d.positions, "max_seq")
	model.MaxSeq = m.chooseMaxSeq(trained)
	windows := make([]int, model.Layers)
	if d.windows != nil {
		windows = d.windows(m, model.Layers)
	}
	if v, ok := m.value(d.field("rms_norm_eps")); ok {
		model.Eps = m.single(d.field("rms_norm_eps"), v)
	}
	if m.diags.Err() == nil && model.Heads%model.KVHeads != 0 {
		m.fail(codeField, "num_key_value_heads", "is %d; want a divisor of num_attention_heads, %d", model.KVHeads,
			model.Heads)
	}
	model.HeadDim = m.headDim(&model, d.headDim)
	switch {
	case d.perLayer != nil:
		model.SetFacts(m.layerFacts(d, &model, windows))
	case d.experts != nil && m.diags.Err() == nil:
		model.SetFacts(m.factsOfExperts(d.experts, &model))
	}
	if d.learned != nil {
		if m.diags.Err() == nil && model.MaxSeq > trained {
			m.fail(codeMaxSeq, d.field("max_position_embeddings"), "--max-seq %d is more than the %d positions that "+
				"the model has learned; want at most as many", model.MaxSeq, trained)
		}
		model.MaxSeq = min(model.MaxSeq, trained)
		d.rotate = func(windows []int) []bool { return make([]bool, len(windows)) }
		d.learnedRows = trained + d.learned.offset
		return m.graph(d, model, windows, ir.Rope{Scale: 1}, nil)
	}
	if d.ropes != nil {
		full, windowed := d.ropes(m, &model, trained)
		return m.graph(d, model, windows, full, windowed)
	}
	return m.graph(d, model, windows, m.rope(d, &model, trained), nil)
}

// leaveDrafting leaves out the layers after the others, which only speculation runs.
func (m *importer) leaveDrafting(d *decoder, layers int) {
	most := 0
	for _, field := range d.drafting {
		v, _ := m.value(field)
		if n, ok := asInt(v); ok {
			most = max(most, min(n, ir.ModelBound("layers").Hi))
		}
	}
	for i := range most {
		if of, err := ir.ResolveKey(m.names.inLayer(""), layers+i); err == nil {
			m.leftOut = append(m.leftOut, of)
		}
	}
}
