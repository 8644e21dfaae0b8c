package passes

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// flipped are, for each field that a family models, other values than the configs below have.
var flipped = map[string][]any{
	"model_type": {"bloom"}, "architectures": {[]string{"LlamaForSequenceClassification"}},
	"hidden_size": {128}, "intermediate_size": {112}, "num_hidden_layers": {4}, "num_attention_heads": {8},
	"num_key_value_heads": {4}, "head_dim": {32}, "vocab_size": {144}, "rms_norm_eps": {1e-3},
	"tie_word_embeddings": {true, false}, "hidden_act": {"gelu", "relu"}, "max_position_embeddings": {256},
	"original_max_position_embeddings": {64}, "rope_theta": {5e5, 1e4},
	"rope_scaling": {nil, fieldsOf{"rope_type": "yarn", "factor": 4}, fieldsOf{"rope_type": "linear", "factor": 2},
		fieldsOf{"rope_type": "proportional", "factor": 2}},
	"rope_parameters": {fieldsOf{"rope_type": "default"}},
	"attention_bias":  {true, false}, "mlp_bias": {true}, "torch_dtype": {"float16", "int8"}, "dtype": {"float16"},
	"quantization_config": {fieldsOf{"quant_method": "gptq"}}, "quantization": {fieldsOf{"bits": 4}},
	"sliding_window": {17, nil}, "use_sliding_window": {true, false}, "max_window_layers": {1, 3},
	"partial_rotary_factor": {0.5}, "hidden_activation": {"gelu"}, "query_pre_attn_scalar": {100},
	"attn_logit_softcapping": {20, nil}, "final_logit_softcapping": {10, nil},
	"sliding_window_pattern": {3, 0}, "rope_local_base_freq": {100, 0.5},
	"embedding_multiplier": {2, -1}, "attention_multiplier": {0.5, 0}, "residual_multiplier": {0.5, "x"},
	"logits_scaling": {16}, "attention_out_bias": {true}, "use_post_norm": {false},
	"norm_epsilon": {1e-3}, "use_bias": {true, false},
	"layer_norm_eps": {1e-3}, "norm_eps": {1e-3}, "layer_norm_epsilon": {1e-3}, "use_parallel_residual": {false, true},
	"use_qkv_bias": {true}, "rotary_emb_base": {5e5}, "rotary_pct": {0.25}, "logit_scale": {0.5},
	"activation": {"relu", "mish"}, "ffn_hidden_size": {112}, "multi_query": {false, true},
	"new_decoder_architecture": {true}, "num_kv_heads": {4, "x"}, "num_ln_in_parallel_attn": {1, 3},
	"parallel_attn": {false}, "n_embd": {128}, "n_layer": {3}, "n_head": {8}, "n_inner": {96}, "n_positions": {256},
	"activation_function": {"gelu", "silu"}, "ffn_dim": {112}, "enable_bias": {false},
	"layer_norm_elementwise_affine": {false}, "word_embed_proj_dim": {64, 32},
	"qkv_bias": {true}, "bias": {true, 1}, "clip_qkv": {0.5, 0},
	"no_rope_layers":         {[]int{1, 1, 1}, []int{0, 1, 1, 1}, []int{1}, []int{0, 0, 0}, []any{"x", 1, 1}},
	"no_rope_layer_interval": {3, 1, 0},
	"text_config":            {fieldsOf{"model_type": "gemma3_text"}, nil},
	"layer_types": {[]string{fullAttention, slidingAttention, fullAttention},
		[]string{fullAttention, "chunked_attention", fullAttention}},
}

// flipBases are a config of each family, which says everything that flipping another field needs for an effect, and
// the fields that the family models.
var flipBases = map[string]struct {
	config   string
	changes  fieldsOf
	modelled []string
}{
	"apertus":  {cousin("apertus", "ApertusForCausalLM"), nil, apertusModelled},
	"arcee":    {cousin("arcee", "ArceeForCausalLM"), nil, llamaModelled},
	"cwm":      {cousin("cwm", "CwmForCausalLM"), fieldsOf{"sliding_window": 16}, llamaModelled},
	"ernie4_5": {cousin("ernie4_5", "Ernie4_5ForCausalLM"), nil, ernie45Modelled},
	"gemma":    {gemmaConfig, nil, llamaModelled},
	"exaone4": {cousin("exaone4", "Exaone4ForCausalLM"), fieldsOf{"sliding_window": 16, "sliding_window_pattern": 2},
		exaone4Modelled},
	"gemma2": {gemma2Config, fieldsOf{"num_hidden_layers": 3, "sliding_window": 16}, gemma2Modelled},
	"gemma3": {gemma3Images, fieldsOf{"torch_dtype": "bfloat16", "tie_word_embeddings": remove{},
		"rope_theta": remove{}, "rope_scaling": remove{}, "original_max_position_embeddings": remove{}}, wholeModelled},
	"gemma3_text":      {gemma3Config, fieldsOf{"num_hidden_layers": 3, "sliding_window_pattern": 2}, gemma3Modelled},
	"glm":              {cousin("glm", "GlmForCausalLM"), fieldsOf{"partial_rotary_factor": 1}, glmModelled},
	"granite":          {graniteConfig, fieldsOf{"num_hidden_layers": 3}, graniteModelled},
	"helium":           {cousin("helium", "HeliumForCausalLM"), nil, llamaModelled},
	"hunyuan_v1_dense": {cousin("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"), nil, glmModelled},
	"hyperclovax":      {cousin("hyperclovax", "HyperCLOVAXForCausalLM"), nil, hyperCLOVAXModelled},
	"internlm3":        {cousin("internlm3", "InternLM3ForCausalLM"), nil, internLM3Modelled},
	"iquestcoder":      {cousin("iquestcoder", "IQuestCoderForCausalLM"), nil, llamaModelled},
	"llama":            {tinyConfig, fieldsOf{"num_hidden_layers": 3}, llamaModelled},
	"glm4":             {cousin("glm4", "Glm4ForCausalLM"), fieldsOf{"partial_rotary_factor": 1}, glmModelled},
	"ministral3": {cousin("ministral3", "Ministral3ForCausalLM"), fieldsOf{"sliding_window": 16,
		"rope_scaling": ministral3Scaling, "rope_theta": remove{}, "original_max_position_embeddings": remove{}},
		llamaModelled},
	"mistral3": {mistral3Config, fieldsOf{"torch_dtype": "bfloat16", "rope_theta": remove{},
		"rope_scaling": remove{}, "original_max_position_embeddings": remove{}}, wholeModelled},
	"ministral": {ministralConfig, fieldsOf{"sliding_window": 16}, llamaModelled},
	"mistral":   {mistralConfig, fieldsOf{"sliding_window": 16}, llamaModelled},
	"olmo2":     {cousin("olmo2", "Olmo2ForCausalLM"), nil, llamaModelled},
	"olmo3": {cousin("olmo3", "Olmo3ForCausalLM"), fieldsOf{"sliding_window": 16, "rope_theta": 5e5},
		olmo3Modelled},
	"phi3": {phi3Config, fieldsOf{"sliding_window": 16, "partial_rotary_factor": 0.75,
		"rope_scaling": fieldsOf{"type": "longrope", "short_factor": []int{1, 1, 1, 2, 2, 2},
			"long_factor": []int{1, 1, 1, 4, 4, 4}}}, phi3Modelled},
	"qwen2": {qwen2Config, fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2},
		qwen2Modelled},
	"qwen3": {qwen3Config, fieldsOf{"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 2},
		qwen3Modelled},
	"seed_oss": {cousin("seed_oss", "SeedOssForCausalLM"), nil, seedOSSModelled},
	"smollm3": {cousin("smollm3", "SmolLM3ForCausalLM"), fieldsOf{"use_sliding_window": true, "sliding_window": 16,
		"no_rope_layer_interval": 2}, smolLM3Modelled},
	"cohere":  {cohereConfig, nil, cohereModelled},
	"cohere2": {cohere2Config, fieldsOf{"num_hidden_layers": 3, "sliding_window_pattern": 2}, cohere2Modelled},
	"falcon":  {falconConfig, nil, falconModelled},
	"gpt2": {gpt2Config, fieldsOf{"rope_theta": remove{}, "rope_scaling": remove{},
		"original_max_position_embeddings": remove{}}, gpt2Modelled},
	"opt": {optConfig, fieldsOf{"rope_theta": remove{}, "rope_scaling": remove{},
		"original_max_position_embeddings": remove{}}, optModelled},
	"gpt_neox":   {gptNeoXConfig, fieldsOf{"rope_theta": remove{}, "rotary_pct": 0.5}, gptNeoXModelled},
	"nemotron":   {nemotronConfig, fieldsOf{"partial_rotary_factor": 1}, nemotronModelled},
	"olmo":       {olmoConfig, nil, olmoModelled},
	"phi":        {phiConfig, fieldsOf{"partial_rotary_factor": 1, "num_key_value_heads": 2}, phiModelled},
	"stablelm":   {stableLMConfig, fieldsOf{"partial_rotary_factor": 1}, stableLMModelled},
	"starcoder2": {starcoder2Config, fieldsOf{"num_hidden_layers": 3, "sliding_window": 16}, starcoder2Modelled},
}

// Where a field that a family models has another value, the model is another one or is refused: no field is on the list
// and then forgotten. testdata/flips.golden says which it is of each value, and which mean the same to the family.
func TestNoFieldIsIgnored(t *testing.T) {
	var out strings.Builder
	for _, f := range Families {
		family := f.ModelType
		base, known := flipBases[family]
		require.True(t, known, "%s: want a row of flipBases for each family", family)
		changes := fieldsOf{"rope_theta": 1e4, "rope_scaling": fieldsOf{"rope_type": "yarn", "factor": 2},
			"original_max_position_embeddings": 32, "tie_word_embeddings": false}
		maps.Copy(changes, base.changes)
		config := edit(base.config, changes)
		before, err := importConfig(t, config, State{})
		require.NoError(t, err, family)
		fmt.Fprintf(&out, "== %s\n", family)
		for _, field := range slices.Sorted(slices.Values(base.modelled)) {
			require.NotEmpty(t, flipped[field], "want other values of %s", field)
			heeded := false
			for _, value := range flipped[field] {
				outcome := "followed"
				after, err := importConfig(t, edit(config, fieldsOf{field: value}), State{})
				if err != nil {
					outcome = "refused " + strings.Join(codeInText.FindAllString(err.Error(), -1), " ")
				} else if reflect.DeepEqual(before.Graph, after.Graph) {
					outcome = "the same model"
				}
				heeded = heeded || outcome != "the same model"
				fmt.Fprintf(&out, "%s = %v: %s\n", field, value, outcome)
			}
			require.True(t, heeded, "%s: no value of %s that was tried means another model", family, field)
		}
	}
	const golden = "testdata/flips.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "go test ./passes -run NoFieldIsIgnored -update")
}
