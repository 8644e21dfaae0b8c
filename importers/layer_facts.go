package importers

import (
	"slices"
	"strconv"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// perLayerConfig is the field in which a config has what layers have of their own. Its keys are numbers of layers,
// which may begin with zeros, and their values objects of the fields that the layer has otherwise than the model.
const perLayerConfig = "per_layer_config"

// layerFacts are those of all layers: of the model, but for what the config says of single ones.
func (m *importer) layerFacts(d *decoder, model *ir.Model, windows []int) []ir.LayerFacts {
	layers := make([]ir.LayerFacts, model.Layers)
	for i := range layers {
		layers[i] = *model.Of(i)
	}
	v, there := m.doc.Get(perLayerConfig)
	if v == nil { // null says that none differs
		if !there && d.sizes != nil {
			d.sizes(m, windows, layers)
		}
		return layers
	}
	own, isObject := v.(*checkpoint.Object)
	if !isObject {
		m.fail(codeField, perLayerConfig, "is %s; want an object with numbers of layers for keys", spell(v))
		return layers
	}
	read := map[int]bool{}
	for _, key := range own.Keys() {
		layer, err := strconv.Atoi(key)
		of, isObject := get(own, key).(*checkpoint.Object)
		if err != nil || layer < 0 || layer >= len(layers) || read[layer] || !isObject {
			m.fail(codeField, perLayerConfig, "has %s: %s; want numbers of layers from 0 to %d, each once, and "+
				"objects of the fields that they have otherwise", spell(key), spell(get(own, key)), len(layers)-1)
			continue
		}
		read[layer] = true
		m.ownFacts(d, &layers[layer], key, of)
	}
	return layers
}

// ownFacts reads what one layer has of its own.
func (m *importer) ownFacts(d *decoder, f *ir.LayerFacts, layer string, of *checkpoint.Object) {
	sizes := map[string]struct {
		to   *int
		fact string
	}{
		"head_dim":            {&f.HeadDim, "head_dim"},
		"intermediate_size":   {&f.Intermediate, "intermediate"},
		"num_attention_heads": {&f.Heads, "heads"},
		"num_key_value_heads": {&f.KVHeads, "kv_heads"},
	}
	for _, key := range of.Keys() {
		i := slices.IndexFunc(d.perLayer, func(llamas string) bool { return d.field(llamas) == key })
		if i < 0 {
			m.fail(codeNotModelled, perLayerConfig, "layer %s has %s %s of its own, which is not modelled; "+
				"accepted: %s", layer, spell(key), spell(get(of, key)), strings.Join(d.perLayer, ", "))
			continue
		}
		size := sizes[d.perLayer[i]]
		n, ok := asInt(get(of, key))
		if most := ir.ModelBound(size.fact).Hi; !ok || n < 1 || n > most {
			m.fail(codeField, perLayerConfig, "layer %s has %s %s; want an integer from 1 to %d", layer, key,
				spell(get(of, key)), most)
			continue
		}
		if *size.to = n; size.to == &f.HeadDim && n%2 != 0 {
			m.fail(codeField, perLayerConfig, "layer %s has %s %d; want an even number, because a rotation takes two "+
				"elements", layer, key, n)
		}
	}
	if m.diags.Err() == nil && f.Heads%f.KVHeads != 0 {
		m.fail(codeField, perLayerConfig, "layer %s has %d kv heads; want a divisor of its %d heads", layer, f.KVHeads,
			f.Heads)
	}
}
