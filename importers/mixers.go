package importers

import (
	"amkc/ir"
)

// A mixer is what layers have in place of attention: it makes something of a vector and of those of the positions
// before.
type mixer struct {
	kind   string // what layer_types calls its layers
	last   string // the node of its last product
	biased bool   // which has a bias

	facts ir.Mixer // of its convolution, or its state

	// nodes appends what it computes of a vector before its last product, and returns the node and its size.
	nodes func(b *nodes, in string, linear linearNode) (out string, size int)
}

// factsOfMixers are those of all layers, of which some have something in place of attention.
func factsOfMixers(mixers []*mixer, model *ir.Model) []ir.LayerFacts {
	layers := make([]ir.LayerFacts, model.Layers)
	for i, x := range mixers {
		if layers[i] = *model.Of(i); x != nil {
			layers[i].Mixer = x.facts
		}
	}
	return layers
}

// ofLayers are the mixers of all layers, of which layer_types says which have attention; absent says it where the
// config has no list.
func (x *mixer) ofLayers(m *importer, layers int, absent func(layer int) bool) []*mixer {
	out := make([]*mixer, layers)
	v, ok := m.value("layer_types")
	list, _ := v.([]any)
	for i := range out {
		if !ok && !absent(i) || ok && i < len(list) && list[i] == x.kind {
			out[i] = x
		}
	}
	accepted := func(v any) bool { return v == x.kind || v == fullAttention }
	if ok && (len(list) != layers || !all(list, accepted)) {
		m.fail(codeNotModelled, "layer_types", "is %s; accepted: a list of %d, each %q or %q", spell(v), layers,
			fullAttention, x.kind)
	}
	return out
}

func all(list []any, is func(v any) bool) bool {
	for _, v := range list {
		if !is(v) {
			return false
		}
	}
	return true
}

// taps reads how many positions a convolution sees, its own among them: at most as many as a head has elements.
func (m *importer) taps(field string, absent int) int { return m.size(field, absent, "head_dim") }

// tapsOf are the weights of a convolution of n channels, as checkpoints have them: [n, 1, taps].
func tapsOf(key string, n, taps int) ir.GraphWeight {
	return ir.GraphWeight{Key: key, Shape: []int{n * taps}, Stored: []int{n, 1, taps}}
}
