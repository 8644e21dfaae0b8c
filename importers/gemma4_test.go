package importers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const gemma4Config = `{"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "hidden_size": 60,
	"intermediate_size": 96, "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 24, "global_head_dim": 32, "vocab_size": 128, "max_position_embeddings": 512, "sliding_window": 16,
	"hidden_size_per_layer_input": 0}`

// What the fields of a Gemma 4 mean that others do not have, and which values are refused.
func TestFieldsOfGemma4(t *testing.T) {
	type sizes struct{ headDim, kvHeads int }
	near, far := sizes{24, 2}, sizes{32, 2}
	usual := []sizes{near, near, near, near, near, far, far} // the last one has no window whatever is listed
	for name, c := range map[string]struct {
		changes fieldsOf
		sizes   []sizes // nil: the usual ones
		serve   bool    // keys serve as values
		refusal string  // instead
	}{
		"as it is": {},
		"keys serve as values": {changes: fieldsOf{"attention_k_eq_v": true, "num_global_key_value_heads": 1},
			sizes: []sizes{near, near, near, near, near, {32, 1}, {32, 1}}, serve: true},
		"kv heads of layers whose keys do not serve": {changes: fieldsOf{"num_global_key_value_heads": 1}},
		"layers listed": {changes: fieldsOf{"layer_types": []any{fullAttention, slidingAttention, slidingAttention,
			slidingAttention, slidingAttention, slidingAttention, slidingAttention}},
			sizes: []sizes{far, near, near, near, near, near, far}},
		"sizes of layers": {changes: fieldsOf{perLayerConfig: map[string]any{"5": map[string]any{"head_dim": 48},
			"6": map[string]any{"head_dim": 48, "num_key_value_heads": 4}}},
			sizes: []sizes{near, near, near, near, near, {48, 2}, {48, 4}}},
		"no sizes of layers": {changes: fieldsOf{perLayerConfig: nil},
			sizes: []sizes{near, near, near, near, near, near, near}},
		"sizes of one layer of a kind": {changes: fieldsOf{perLayerConfig: map[string]any{
			"5": map[string]any{"head_dim": 48}}}, refusal: "because they share a rotation"},
		"another size of a layer": {changes: fieldsOf{perLayerConfig: map[string]any{
			"5": map[string]any{"intermediate_size": 48}}}, refusal: "accepted: head_dim, num_key_value_heads"},
		"an odd size": {changes: fieldsOf{"global_head_dim": 33}, refusal: "want an even number"},
		"an odd size of a layer": {changes: fieldsOf{perLayerConfig: map[string]any{
			"5": map[string]any{"head_dim": 33}}}, refusal: "want an even number"},
		"no size": {changes: fieldsOf{"global_head_dim": nil}, refusal: "is null; want an integer"},
		"kv heads that do not divide": {changes: fieldsOf{"attention_k_eq_v": true, "num_global_key_value_heads": 3},
			refusal: "want a divisor of num_attention_heads, 4"},
		"embeddings of layers": {changes: fieldsOf{"hidden_size_per_layer_input": 256},
			refusal: "each layer has embeddings of its own"},
		"shared caches": {changes: fieldsOf{"num_kv_shared_layers": 2},
			refusal: "layers share keys and values"},
		"experts": {changes: fieldsOf{"enable_moe_block": true},
			refusal: "layers have experts besides an MLP"},
		"both ways": {changes: fieldsOf{"use_bidirectional_attention": "all"},
			refusal: "attends to those after"},
		"both ways in images": {changes: fieldsOf{"use_bidirectional_attention": "vision"}},
		"one object of a rotation": {changes: fieldsOf{"rope_parameters": map[string]any{
			fullAttention: map[string]any{"rope_type": "default", "rope_theta": 1e4}}},
			refusal: "want both for each kind of layers"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(gemma4Config, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			want := c.sizes
			if want == nil {
				want = usual
			}
			g := s.Graph
			for layer, of := range want {
				f := g.Model.Of(layer)
				require.Equal(t, of, sizes{f.HeadDim, f.KVHeads}, "layer %d", layer)
				require.Len(t, g.RopeOf(g.Layers[layer]).InvFreq, f.HeadDim/2)
			}
			keys := map[string]string{}
			for _, n := range g.Kinds[g.Layers[6]].Nodes {
				for _, w := range n.Weights {
					keys[n.Name] = w.Key
				}
			}
			of := "v_proj"
			if c.serve {
				of = "k_proj"
			}
			require.Equal(t, "model.layers.{i}.self_attn."+of+".weight", keys["v_proj"])
			require.Equal(t, "model.layers.{i}.layer_scalar", keys["mlp_add"])
			_, err = LowerGraph(g)
			require.NoError(t, err)
		})
	}
}

// A config that embeddings of layers are absent from has them.
func TestGemma4HasEmbeddingsOfLayers(t *testing.T) {
	config := fieldsOf{"model_type": "gemma4_text", "hidden_size": 60, "head_dim": 16}
	_, err := importConfig(t, edit(`{}`, config), Source{})
	require.ErrorContains(t, err, "hidden_size_per_layer_input: error: is missing, which stands for 256")
}

// A quarter of the pairs turn in layers without a window, where the config has no rotation, and all in the others.
func TestRotationsOfGemma4(t *testing.T) {
	s, err := importConfig(t, edit(gemma4Config, nil), Source{})
	require.NoError(t, err)
	turning := func(r *ir.Rope) (n int) {
		for _, f := range r.InvFreq {
			if f > 0 {
				n++
			}
		}
		return n
	}
	g := s.Graph
	require.Equal(t, []int{12, 4}, []int{turning(g.RopeOf(g.Layers[0])), turning(g.RopeOf(g.Layers[5]))})
}
