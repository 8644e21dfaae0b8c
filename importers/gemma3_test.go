package importers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

const gemma3Config = `{"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 60,
	"intermediate_size": 96, "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 1,
	"head_dim": 24, "vocab_size": 128, "max_position_embeddings": 512, "sliding_window": 16}`

// rotations are the second frequency and the scale of each layer: those of two bases differ in it.
func rotations(g *ir.Graph) (out []float64) {
	for _, kind := range g.Layers {
		out = append(out, float64(g.RopeOf(kind).InvFreq[1]))
	}
	return out
}

// What the fields of a Gemma 3 mean that others do not have, and which values are refused.
func TestFieldsOfGemma3(t *testing.T) {
	second := func(theta float64, divided float32) float64 { return float64(invFreq(theta, 24)[1] / divided) }
	far, near := second(1e6, 1), second(1e4, 1)
	usual := []float64{near, near, near, near, near, far, near}
	kind := func(full, sliding any) fieldsOf {
		return fieldsOf{"rope_parameters": map[string]any{fullAttention: full, slidingAttention: sliding}}
	}
	linear := map[string]any{"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5}
	for name, c := range map[string]struct {
		changes fieldsOf
		windows []int // nil: the usual ones
		freq    []float64
		refusal string // instead
	}{
		"as it is":  {freq: usual},
		"a pattern": {changes: fieldsOf{"sliding_window_pattern": 2}, windows: []int{16, 0, 16, 0, 16, 0, 16}},
		"layers listed": {changes: fieldsOf{"sliding_window_pattern": 2, "layer_types": []any{fullAttention,
			slidingAttention, slidingAttention, slidingAttention, slidingAttention, slidingAttention,
			slidingAttention}},
			windows: []int{0, 16, 16, 16, 16, 16, 16}, freq: []float64{far, near, near, near, near, near, near}},
		"a window beyond the positions": {changes: fieldsOf{"sliding_window": 512},
			windows: []int{0, 0, 0, 0, 0, 0, 0}, freq: usual},
		"the former name of the type": {
			changes: fieldsOf{"rope_scaling": map[string]any{"type": "linear", "factor": 8.0}},
			refusal: `rope_scaling.type: error: is "linear", which transformers does not read`},
		"no pattern": {changes: fieldsOf{"sliding_window_pattern": 0}, refusal: "want an integer from 1"},
		"bases of former configs": {changes: fieldsOf{"rope_theta": 1e5, "rope_local_base_freq": 1e3},
			freq: []float64{second(1e3, 1), second(1e3, 1), second(1e3, 1), second(1e3, 1), second(1e3, 1),
				second(1e5, 1), second(1e3, 1)}},
		"scaling of former configs": {
			changes: fieldsOf{"rope_scaling": map[string]any{"rope_type": "linear", "factor": 8.0}},
			freq:    []float64{near, near, near, near, near, second(1e6, 8), near}},
		"an object for each": {changes: kind(linear, map[string]any{"rope_type": "default", "rope_theta": 2e3}),
			freq: []float64{second(2e3, 1), second(2e3, 1), second(2e3, 1), second(2e3, 1), second(2e3, 1),
				second(5e5, 8), second(2e3, 1)}},
		"an object for one": {changes: kind(linear, nil),
			freq: []float64{near, near, near, near, near, second(5e5, 8), near}},
		"no object":         {changes: kind("linear", nil), refusal: "want an object or null"},
		"an object for all": {changes: fieldsOf{"rope_parameters": linear}, refusal: "is of no kind of layers"},
		"another type":      {changes: kind(map[string]any{"rope_type": "longrope"}, nil), refusal: "longrope"},
		"a cap of scores": {changes: fieldsOf{"attn_logit_softcapping": 50.0},
			refusal: "attention scores are capped"},
		"no cap of scores":        {changes: fieldsOf{"attn_logit_softcapping": nil}, freq: usual},
		"what transformers wrote": {changes: fieldsOf{"_sliding_window_pattern": 6}, freq: usual},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(gemma3Config, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			windows := c.windows
			if windows == nil {
				windows = []int{16, 16, 16, 16, 16, 0, 16}
			}
			require.Equal(t, facts{scale: 1.0 / 16, windows: windows}, factsOf(s.Graph))
			if c.freq != nil {
				require.Equal(t, c.freq, rotations(s.Graph))
			}
			_, err = LowerGraph(s.Graph)
			require.NoError(t, err)
		})
	}
}

const gemma3Images = `{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999,
	"eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02,
	"mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {"hidden_size": 2560,
		"intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
		"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
	"torch_dtype": "float16", "transformers_version": "4.50.0.dev0",
	"vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}}`

// Of a model that sees images, text_config is compiled, and a warning says what is left out. What is wrong within
// text_config is said to be there.
func TestImagesAreLeftOut(t *testing.T) {
	s, err := importConfig(t, gemma3Images, Source{MaxSeq: 4096})
	require.NoError(t, err)
	require.Equal(t, ir.Model{Architecture: "Gemma3ForConditionalGeneration", DTypes: ir.Uniform(ir.F16), Layers: 34,
		Hidden: 2560, Intermediate: 10240, Heads: 8, KVHeads: 4, HeadDim: 256, Vocab: 262208, Eps: 1e-6, MaxSeq: 4096,
		Tied: true}, s.Graph.Model)
	require.Len(t, s.Warnings, 1)
	require.Contains(t, s.Warnings[0].Error(),
		"config.json: vision_config: warning: the vision tower and its projector "+
			"are left out; what is compiled reads text alone [AMK1118]")
	require.Equal(t, "language_model.model.embed_tokens.weight", s.Graph.Before[0].Weights[0].Key)
	text := func(key string, v any) fieldsOf {
		return fieldsOf{"text_config": map[string]any{"model_type": "gemma3_text", "sliding_window": 16, key: v}}
	}
	for name, c := range map[string]struct {
		changes fieldsOf
		want    string
	}{
		"no text": {fieldsOf{"text_config": nil}, "text_config: error: is null; want an object"},
		"text of another": {text("model_type", "llama"),
			`text_config: model_type: error: is "llama"; want "gemma3_text"`},
		"a size":           {text("hidden_size", 0), "config.json: text_config: hidden_size: error: is 0"},
		"an unknown field": {text("mystery", 1), "text_config: mystery: error: is not a field that amkc knows"},
		"an unknown one":   {fieldsOf{"mystery": 1}, "config.json: mystery: error: is not a field that amkc knows"},
		"tied in one":      {text("tie_word_embeddings", false), "is false, and outside of text_config true"},
		"another class":    {fieldsOf{"architectures": []any{"Gemma3ForCausalLM"}}, "AMK1102"},
		"quantised":        {fieldsOf{"quantization_config": map[string]any{"quant_method": "hqq"}}, "AMK1108"},
		"capped logits": {text("final_logit_softcapping", 30),
			"transformers caps no logits of a model that sees images"},
		"attends to the later": {text("use_bidirectional_attention", true), "attends to those after it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importConfig(t, edit(gemma3Images, c.changes), Source{MaxSeq: 64})
			require.ErrorContains(t, err, c.want)
		})
	}
	inner := text("dtype", "float32")
	inner["torch_dtype"] = nil
	s, err = importConfig(t, edit(gemma3Images, inner), Source{MaxSeq: 64})
	require.NoError(t, err)
	require.Equal(t, ir.Uniform(ir.F32), s.Graph.Model.DTypes, "null leaves the type to text_config")

	assume := Source{MaxSeq: 64, AssumeInert: []string{"mystery", "riddle"}}
	both := text("riddle", 1)
	both["mystery"] = 2
	s, err = importConfig(t, edit(gemma3Images, both), assume)
	require.NoError(t, err)
	require.Len(t, s.Warnings, 1, "each name is of the object that has it")
}

// Tensors of the parts that are left out are accounted for by what their names begin with, and no others. The decoder's
// have one of two names.
func TestTensorsOfImages(t *testing.T) {
	s, err := importModel(t, zoo+"gemma3-images")
	require.NoError(t, err)
	require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), "every tensor is accounted for")
	require.Greater(t, len(s.Consumed), len(slices.Collect(s.Graph.Weights())))

	config := edit(gemma3Images, fieldsOf{"text_config": map[string]any{"hidden_size": 8, "intermediate_size": 8,
		"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 8,
		"sliding_window": 4}})
	published := plainTensors(t, config)
	published["vision_tower.embeddings.weight"] = modeltest.Stored{DType: "I64", Shape: []int{1}, Data: make([]byte, 8)}
	published["multi_modal_projector.weight"] = modeltest.Stored{DType: "F32", Shape: []int{1},
		Data: modeltest.F32Bytes(1)}
	within := map[string]modeltest.Stored{}
	for key, tensor := range published {
		rest, decoder := strings.CutPrefix(key, "language_model.model.")
		if decoder {
			rest = "language_model." + rest
		}
		within["model."+rest] = tensor
	}
	for name, tensors := range map[string]map[string]modeltest.Stored{"published": published, "in the model": within} {
		s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
		require.NoError(t, err, name)
		require.Len(t, s.Consumed, len(tensors), name)
		tensors["audio_tower.weight"] = modeltest.Stored{DType: "F32", Shape: []int{1}, Data: modeltest.F32Bytes(1)}
		_, err = importModel(t, modeltest.WriteModel(t, config, tensors))
		require.ErrorContains(t, err, "AMK1111", name)
	}
}
