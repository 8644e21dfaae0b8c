package importers

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// oddValues are JSON values that no number, text or switch of a config may have, or that no message may repeat in full.
var oddValues = []string{
	`{}`, `[]`, `[[]]`, `[1, 1]`, `{"a": {"b": [null]}}`, `true`, `-1`, `-0.5`, `0.5`, `4.0`, `1e2`, `1e400`, `1e-400`,
	`9223372036854775808`,
	`"4"`, `""`, `"\u0000\u001b[31m"`, `"true"`, `"null"`, `"` + strings.Repeat("long ", 5000) + `"`,
	`"` + strings.Repeat("ä", 5000) + `"`,
	strings.Repeat("9", 5000), `[` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `]`,
}

// importFaults imports a model that is a config.json alone, and returns what is wrong with it.
func importFaults(t *testing.T, config string) diag.List {
	t.Helper()
	_, err := importConfig(t, config, Source{MaxSeq: 200})
	var one *diag.Diagnostic
	var list diag.List
	switch {
	case err == nil:
	case errors.As(err, &one):
		list = diag.List{one}
	default:
		require.ErrorAs(t, err, &list)
	}
	return list
}

// TestOddValueOfOneField gives each field each odd value. The config is refused or accepted, and what is said
// is about that field alone: nothing is concluded from what stands in its place. A message stays short, and ends with
// its advice.
func TestOddValueOfOneField(t *testing.T) {
	sound := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal([]byte(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"],
		"hidden_size": 32, "intermediate_size": 48,
		"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 64,
		"rms_norm_eps": 1e-5,
		"tie_word_embeddings": false, "hidden_act": "silu", "max_position_embeddings": 256, "rope_theta": 10000,
		"rope_scaling": null,
		"attention_bias": false, "mlp_bias": false, "dtype": "bfloat16", "sliding_window": null, "layer_types": null,
		"partial_rotary_factor": 1, "quantization_config": null, "use_sliding_window": false, "pruned_heads": null,
		"repetition_penalty": 1, "num_local_experts": 0, "attn_logit_softcapping": null}`), &sound))
	with := func(field, value string) string {
		odd := map[string]json.RawMessage{}
		for k, v := range sound {
			odd[k] = v
		}
		odd[field] = json.RawMessage(value)
		text, err := json.Marshal(odd)
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, importFaults(t, with("hidden_size", "32")))
	refused := 0
	for field := range sound {
		for _, value := range append(oddValues, "null") {
			for _, d := range importFaults(t, with(field, value)) {
				refused++
				require.True(t, strings.HasPrefix(d.Pos, "config.json: "+field), "%s = %.80s: %v", field, value, d)
				require.Less(t, len(d.Msg), 1000, "%s = %.80s", field, value)
				require.Regexp(t, `accepted: |want |is missing|--assume-inert`, d.Msg, "%s = %.80s", field, value)
			}
		}
	}
	require.Greater(t, refused, 400)
}

// TestDTypeUnderTwoNames: transformers renamed torch_dtype, and reads the new name first.
func TestDTypeUnderTwoNames(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"model_type": "llama", "dtype": "float16", "torch_dtype": "float16"}`, ""},
		{`{"model_type": "llama", "dtype": "torch.float16", "torch_dtype": "float16"}`, ""},
		{`{"model_type": "llama", "dtype": null, "torch_dtype": "bfloat16"}`, ""},
		{`{"model_type": "llama", "dtype": "float16", "torch_dtype": "float32"}`,
			`is "float16", and torch_dtype is "float32"; want one of them, or give --dtype`},
		{`{"model_type": "llama", "dtype": "float64"}`, `is "float64"; want float32, float16 or bfloat16`},
		{`{"model_type": "idefics2", "text_config": {}}`,
			`"idefics2" is not supported: it has several parts, of which text_config describes the language model`},
		{`{"text_config": {"model_type": "llama"}}`, `is missing: it has several parts`},
		{`{"model_type": "llama", "rope_scaling": {"alpha": 8}, "rope_parameters": {"alpha": 8.0}}`,
			`rope type default`},
		{`{"model_type": "llama", "rope_scaling": {"factor": 8}, "rope_parameters": {"factor": 9}}`,
			`is not what rope_scaling says`},
		{`{"model_type": "llama", "rope_scaling": {"a": [1]}, "rope_parameters": {"a": [2]}}`,
			`is not what rope_scaling says`},
	} {
		list := importFaults(t, c.config)
		if c.want == "" {
			require.Empty(t, list, c.config)
			continue
		}
		require.Contains(t, list.Error(), c.want, c.config)
	}
}
