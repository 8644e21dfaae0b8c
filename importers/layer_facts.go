package importers

import (
	"strconv"

	"amkc/importers/checkpoint"
	"amkc/ir"
)

// perLayerConfig is the field in which a config has what layers have of their own. Its keys are numbers of layers,
// which may begin with zeros, and their values objects of the fields that the layer has otherwise than the model.
const perLayerConfig = "per_layer_config"

// layerFacts are those of all layers: of the model, but for what the config says of single ones.
func (m *importer) layerFacts(d *decoder, model *ir.Model) []ir.LayerFacts {
	layers := make([]ir.LayerFacts, model.Layers)
	for i := range layers {
		layers[i] = *model.Of(i)
	}
	v, ok := m.value(perLayerConfig)
	if !ok {
		return layers
	}
	own, ok := v.(*checkpoint.Object)
	if !ok {
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
		d.field("intermediate_size"):   {&f.Intermediate, "intermediate"},
		d.field("num_attention_heads"): {&f.Heads, "heads"},
		d.field("num_key_value_heads"): {&f.KVHeads, "kv_heads"},
	}
	for _, key := range of.Keys() {
		size, known := sizes[key]
		if !known {
			m.fail(codeNotModelled, perLayerConfig, "layer %s has %s %s of its own, which is not modelled; accepted: "+
				"intermediate_size, num_attention_heads and num_key_value_heads",
				layer, spell(key), spell(get(of, key)))
			continue
		}
		n, ok := asInt(get(of, key))
		if most := ir.ModelBound(size.fact).Hi; !ok || n < 1 || n > most {
			m.fail(codeField, perLayerConfig, "layer %s has %s %s; want an integer from 1 to %d", layer, key,
				spell(get(of, key)), most)
			continue
		}
		*size.to = n
	}
	if m.diags.Err() == nil && f.Heads%f.KVHeads != 0 {
		m.fail(codeField, perLayerConfig, "layer %s has %d kv heads; want a divisor of its %d heads", layer, f.KVHeads,
			f.Heads)
	}
}
