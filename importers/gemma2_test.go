package importers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

const gemma2Config = `{"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 60,
	"intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1,
	"head_dim": 24, "vocab_size": 128, "max_position_embeddings": 512, "sliding_window": 16}`

// facts are what a layer's attention and the logits have.
type facts struct {
	scale, cap, logits float64
	windows            []int
}

func factsOf(g *ir.Graph) facts {
	var f facts
	for _, kind := range g.Layers {
		for _, n := range g.Kinds[kind].Nodes {
			if n.Op == "attention" {
				f.scale, f.cap = n.FloatOr("scale", 0), n.FloatOr("cap", 0)
				f.windows = append(f.windows, n.IntOr("window", 0))
			}
		}
	}
	for _, n := range g.After {
		if n.Op == "soft_cap" {
			f.logits = n.FloatOr("cap", 0)
		}
	}
	return f
}

// What a Gemma 2's fields mean, and which values are refused.
func TestFieldsOfGemma2(t *testing.T) {
	usual := facts{1.0 / 16, 50, 30, []int{16, 0, 16}}
	but := func(change func(*facts)) facts {
		f := usual
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		changes fieldsOf
		want    facts
		refusal string // instead
	}{
		"as it is": {want: usual},
		"scale of scores": {changes: fieldsOf{"query_pre_attn_scalar": 144},
			want: but(func(f *facts) { f.scale = 1.0 / 12 })},
		"scale of a part": {changes: fieldsOf{"query_pre_attn_scalar": 0.25},
			want: but(func(f *facts) { f.scale = 2 })},
		"no scale": {changes: fieldsOf{"query_pre_attn_scalar": 0}, refusal: "want a number from"},
		"another cap": {changes: fieldsOf{"attn_logit_softcapping": 12.5},
			want: but(func(f *facts) { f.cap = 12.5 })},
		"no cap":     {changes: fieldsOf{"attn_logit_softcapping": nil}, want: but(func(f *facts) { f.cap = 0 })},
		"a cap of 0": {changes: fieldsOf{"attn_logit_softcapping": 0}, refusal: "want a number from"},
		"logits uncapped": {changes: fieldsOf{"final_logit_softcapping": nil},
			want: but(func(f *facts) { f.logits = 0 })},
		"logits capped": {changes: fieldsOf{"final_logit_softcapping": 7},
			want: but(func(f *facts) { f.logits = 7 })},
		"a negative cap": {changes: fieldsOf{"final_logit_softcapping": -30.0}, refusal: "want a number from"},
		"layers listed": {changes: fieldsOf{"layer_types": []any{fullAttention, fullAttention, slidingAttention}},
			want: but(func(f *facts) { f.windows = []int{0, 0, 16} })},
		"layers without windows": {changes: fieldsOf{"layer_types": []any{fullAttention, fullAttention, fullAttention}},
			want: but(func(f *facts) { f.windows = []int{0, 0, 0} })},
		"layers of another kind": {changes: fieldsOf{"layer_types": []any{fullAttention, "chunked", fullAttention}},
			refusal: "accepted: a list of 3, each"},
		"a window beyond the positions": {changes: fieldsOf{"sliding_window": 512},
			want: but(func(f *facts) { f.windows = []int{0, 0, 0} })},
		"a window that is null": {changes: fieldsOf{"sliding_window": nil},
			refusal: "is null; want an integer from 1 on"},
		"activation": {changes: fieldsOf{"hidden_activation": "gelu"},
			refusal: `"gelu" is not modelled; accepted: "gelu_pytorch_tanh", "gelu_new"`},
		"a field of Gemma's first class": {changes: fieldsOf{"hidden_act": "gelu"}, want: usual},
		"biases":                         {changes: fieldsOf{"attention_bias": true}, want: usual},
		"both directions": {changes: fieldsOf{"use_bidirectional_attention": true},
			refusal: "attends to those after it"},
		"how the cache is kept": {changes: fieldsOf{"cache_implementation": "hybrid"}, want: usual},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(gemma2Config, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, factsOf(s.Graph))
		})
	}
}

// Each branch of a Gemma 2 ends in a norm, before it is added to the stream. The one before the MLP has a key of its
// own.
func TestNormsAfterBranches(t *testing.T) {
	s, err := importModel(t, zoo+"gemma2-tied")
	require.NoError(t, err)
	require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), "every tensor is accounted for")
	require.Len(t, s.Graph.Kinds, 2)
	keys, inputs := map[string]string{}, map[string][]string{}
	for _, n := range s.Graph.Kinds[1].Nodes {
		inputs[n.Name] = n.Inputs
		if n.Op == "rmsnorm" {
			keys[n.Name] = n.Weights[0].Key
		}
	}
	require.Equal(t, map[string]string{
		"input_norm":     "model.layers.{i}.input_layernorm.weight",
		"post_attn_norm": "model.layers.{i}.post_attention_layernorm.weight",
		"post_norm":      "model.layers.{i}.pre_feedforward_layernorm.weight",
		"post_mlp_norm":  "model.layers.{i}.post_feedforward_layernorm.weight",
	}, keys)
	require.Equal(t, []string{"o_proj"}, inputs["post_attn_norm"])
	require.Equal(t, []string{ir.Stream, "post_attn_norm"}, inputs["attn_add"])
	require.Equal(t, []string{"attn_add", "post_mlp_norm"}, inputs["mlp_add"])
}

// A Gemma 2's config as it was published, and one without sizes.
func TestConfigsOfGemma2(t *testing.T) {
	for config, want := range map[string]ir.Model{
		`{"architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
			"final_logit_softcapping": 30.0, "head_dim": 128, "hidden_act": "gelu_pytorch_tanh",
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 4608, "initializer_range": 0.02,
			"intermediate_size": 36864, "max_position_embeddings": 8192, "model_type": "gemma2",
			"num_attention_heads": 32, "num_hidden_layers": 46, "num_key_value_heads": 16, "pad_token_id": 0,
			"query_pre_attn_scalar": 144, "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096,
			"torch_dtype": "bfloat16", "transformers_version": "4.42.0.dev0", "use_cache": true,
			"vocab_size": 256000}`: {Layers: 46, Hidden: 4608, Intermediate: 36864, Heads: 32, KVHeads: 16,
			HeadDim: 128},
		`{"model_type": "gemma2"}`: {Layers: 26, Hidden: 2304, Intermediate: 9216, Heads: 8, KVHeads: 4, HeadDim: 256},
	} {
		s, err := importConfig(t, config, Source{MaxSeq: 8192})
		require.NoError(t, err)
		want.Architecture, want.DTypes, want.MaxSeq, want.Eps = "Gemma2ForCausalLM", ir.Uniform(ir.BF16), 8192, 1e-6
		want.Vocab, want.Tied = 256000, true
		require.Equal(t, want, s.Graph.Model)
		require.Empty(t, s.Warnings)
		f := factsOf(s.Graph)
		require.Equal(t, []int{4096, 0}, f.windows[:2])
		require.InDelta(t, 1/math.Sqrt(float64(map[int]int{46: 144, 26: 256}[want.Layers])), f.scale, 1e-12)
	}
}
