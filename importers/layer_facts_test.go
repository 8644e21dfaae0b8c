package importers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

func TestLayersOfOwnSizes(t *testing.T) {
	s, err := importModel(t, zoo+"llama-layer-heads")
	require.NoError(t, err)
	m := &s.Graph.Model
	require.Equal(t, []ir.LayerFacts{{Intermediate: 88, Heads: 4, KVHeads: 1, HeadDim: 12},
		{Intermediate: 88, Heads: 4, KVHeads: 2, HeadDim: 12}, {Intermediate: 56, Heads: 6, KVHeads: 3, HeadDim: 12}},
		m.Kinds)
	require.Equal(t, []int{0, 1, 2, 1}, m.LayerKinds)
	require.Equal(t, []int{0, 1, 2, 1}, s.Graph.Layers)
}

func TestLayersOfOwnSizesThatAreRefused(t *testing.T) {
	for want, value := range map[string]any{
		`has "1": an object; want numbers of layers from 0 to 1, each once`: fieldsOf{
			"1": fieldsOf{}, "01": fieldsOf{}},

		"want an object with numbers of layers":  []int{1},
		`has "2": an object`:                     fieldsOf{"2": fieldsOf{"intermediate_size": 8}},
		`has "1": 3; want numbers of layers`:     fieldsOf{"1": 3},
		`layer 1 has "head_dim" 8 of its own`:    fieldsOf{"1": fieldsOf{"head_dim": 8}},
		"layer 1 has intermediate_size 0":        fieldsOf{"1": fieldsOf{"intermediate_size": 0}},
		"layer 1 has 3 kv heads; want a divisor": fieldsOf{"1": fieldsOf{"num_key_value_heads": 3}},
	} {
		config := edit(modeltest.TinyConfig, fieldsOf{"num_hidden_layers": 2, perLayerConfig: value})
		_, err := importConfig(t, config, Source{})
		require.ErrorContains(t, err, want)
	}
}

func TestMostKindsOfSizes(t *testing.T) {
	config := func(sizes int) string {
		own := fieldsOf{}
		for i := range sizes {
			own[fmt.Sprint(i)] = fieldsOf{"intermediate_size": 8 * (i + 1)}
		}
		return edit(modeltest.TinyConfig, fieldsOf{"num_hidden_layers": sizes, perLayerConfig: own})
	}
	s, err := importConfig(t, config(MostKinds), Source{})
	require.NoError(t, err)
	require.Len(t, s.Graph.Kinds, MostKinds)
	for _, sizes := range []int{MostKinds + 1, 40} {
		_, err = importConfig(t, config(sizes), Source{})
		require.ErrorContains(t, err, "[AMK1129]")
		require.ErrorContains(t, err,
			"per_layer_config: error: makes layers of more than 16 kinds: layer 16 is of another")
	}
}
