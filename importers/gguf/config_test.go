package gguf_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/gguf"
	"amkc/importers/modeltest"
	"amkc/internal/watch"
	"amkc/ir/diag"
)

// A model is fields and tensors of a file that is read, but for what a case changes.
type fieldsOf map[string]any

func llama() fieldsOf {
	return fieldsOf{"general.architecture": "llama", "llama.block_count": uint32(2),
		"llama.context_length":   uint32(512),
		"llama.embedding_length": uint32(8), "llama.feed_forward_length": uint32(16),
		"llama.attention.head_count": uint32(2), "llama.attention.layer_norm_rms_epsilon": float32(1e-5)}
}

// as are the fields of another architecture.
func as(arch string) fieldsOf {
	fields := fieldsOf{}
	for key, value := range llama() {
		if name, ok := strings.CutPrefix(key, "llama."); ok {
			fields[arch+"."+name], fields[key] = value, nil
		}
	}
	fields["general.architecture"] = arch
	return fields
}

func with(fields, more fieldsOf) fieldsOf {
	maps.Copy(fields, more)
	return fields
}

func tensorsOf(more ...modeltest.GGUFTensor) []modeltest.GGUFTensor {
	return append([]modeltest.GGUFTensor{{Name: "token_embd.weight", Shape: []int{5, 8}, Data: make([]byte, 160)},
		{Name: "output.weight", Shape: []int{5, 8}, Data: make([]byte, 160)}}, more...)
}

func vector(name string, values ...float32) modeltest.GGUFTensor {
	return modeltest.GGUFTensor{Name: name, Shape: []int{len(values)}, Data: modeltest.F32Bytes(values...)}
}

func fileOf(fields fieldsOf, tensors []modeltest.GGUFTensor) []byte {
	var list []modeltest.GGUFField
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if fields[key] != nil {
			list = append(list, modeltest.GGUFField{Key: key, Value: fields[key]})
		}
	}
	return modeltest.GGUF(list, tensors)
}

// factors are the values of every tensor that is asked for.
func factors(gguf.Tensor) ([]float32, *diag.Diagnostic) { return []float32{1, 8}, nil }

func modelOf(t *testing.T, fields fieldsOf, tensors []modeltest.GGUFTensor) (*gguf.Model, *diag.Diagnostic) {
	t.Helper()
	h, err := read(fileOf(fields, tensors))
	require.Nil(t, err)
	return h.Model(factors)
}

// What fields of a file mean in config.json.
func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		fields  fieldsOf
		tensors []modeltest.GGUFTensor
		want    fieldsOf // nil: the field is not there
	}{
		"as it is": {want: fieldsOf{"model_type": "llama", "num_hidden_layers": 2., "num_key_value_heads": 2.,
			"head_dim": 4., "rms_norm_eps": 1e-5, "rope_theta": 10000., "vocab_size": 5., "rope_scaling": nil,
			"tie_word_embeddings": false, "attention_bias": nil}},
		"heads for each layer": {fields: fieldsOf{"llama.attention.head_count_kv": []int32{1, 1}},
			want: fieldsOf{"num_key_value_heads": 1.}},
		"a size of heads": {fields: fieldsOf{"llama.attention.key_length": uint32(6),
			"llama.attention.value_length": uint32(6), "llama.rope.dimension_count": uint32(6)},
			want: fieldsOf{"head_dim": 6.}},
		"biases of queries, keys and values": {tensors: []modeltest.GGUFTensor{vector("blk.0.attn_q.bias", 1)},
			want: fieldsOf{"model_type": "seed_oss", "attention_bias": true, "attention_out_bias": false}},
		"biases of attention": {tensors: []modeltest.GGUFTensor{vector("blk.0.attn_q.bias", 1),
			vector("blk.0.attn_output.bias", 1)}, want: fieldsOf{"model_type": "llama", "attention_bias": true}},
		"factors of frequencies": {tensors: []modeltest.GGUFTensor{vector("rope_freqs.weight", 1, 8)},
			want: fieldsOf{"rope_scaling": map[string]any{"rope_type": "longrope", "short_factor": []any{1., 8.},
				"long_factor": []any{1., 8.}, "attention_factor": 1., "original_max_position_embeddings": 512.}}},
		"a linear scaling": {fields: fieldsOf{"llama.rope.scaling.type": "linear",
			"llama.rope.scaling.factor": float32(4)},
			want: fieldsOf{"rope_scaling": map[string]any{"rope_type": "linear", "factor": 4.}}},
		"a factor of 1": {fields: fieldsOf{"llama.rope.scaling.type": "linear",
			"llama.rope.scaling.factor": float32(1)},
			want: fieldsOf{"rope_scaling": nil}},
		"no scaling": {fields: fieldsOf{"llama.rope.scaling.type": "none"}, want: fieldsOf{"rope_scaling": nil}},
		"yarn": {fields: fieldsOf{"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": float32(4),
			"llama.rope.scaling.original_context_length": uint32(128),
			"llama.rope.scaling.yarn_beta_fast":          float32(16)},
			want: fieldsOf{"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4., "beta_fast": 16.,
				"original_max_position_embeddings": 128.}}},
		"layers that draft": {fields: with(as("glm4moe"), fieldsOf{"glm4moe.block_count": uint32(3),
			"glm4moe.nextn_predict_layers": uint32(1), "glm4moe.expert_count": uint32(4),
			"glm4moe.expert_used_count": uint32(2), "glm4moe.expert_feed_forward_length": uint32(8),
			"glm4moe.expert_gating_func": uint32(2), "glm4moe.expert_weights_scale": float32(2.5)}),
			want: fieldsOf{"model_type": "glm4_moe", "num_hidden_layers": 2., "routed_scaling_factor": 2.5,
				"n_shared_experts": 0., "first_k_dense_replace": 0.}},
		"ends of texts": {fields: fieldsOf{"tokenizer.ggml.eos_token_id": uint32(2),
			"tokenizer.ggml.eot_token_id": uint32(3), "tokenizer.ggml.eom_token_id": uint32(2),
			"tokenizer.ggml.bos_token_id": uint32(1)}, want: fieldsOf{"model_type": "llama"}},
	} {
		t.Run(name, func(t *testing.T) {
			fields := llama()
			maps.Copy(fields, c.fields)
			m, err := modelOf(t, fields, tensorsOf(c.tensors...))
			require.Nil(t, err)
			var config map[string]any
			require.NoError(t, json.Unmarshal(m.Config, &config))
			for key, want := range c.want {
				require.Equal(t, want, config[key], key)
			}
		})
	}
	fields := llama()
	maps.Copy(fields, fieldsOf{"tokenizer.ggml.eos_token_id": uint32(2), "tokenizer.ggml.eot_token_id": uint32(3),
		"tokenizer.ggml.eom_token_id": uint32(2), "tokenizer.ggml.bos_token_id": uint32(1)})
	m, err := modelOf(t, fields, tensorsOf())
	require.Nil(t, err)
	require.JSONEq(t, `{"bos_token_id": 1, "eos_token_id": [2, 3]}`, string(m.Generation))
}

// Tensors of layers that only speculation runs are left out, and no others: what no layer has is refused by its name.
func TestTensorsOfDraftingLayersAreLeftOut(t *testing.T) {
	fields := with(as("glm4moe"), fieldsOf{"glm4moe.block_count": uint32(3), "glm4moe.nextn_predict_layers": uint32(1),
		"glm4moe.expert_count": uint32(4), "glm4moe.expert_used_count": uint32(2),
		"glm4moe.expert_feed_forward_length": uint32(8), "glm4moe.expert_gating_func": uint32(2)})
	file := llama()
	maps.Copy(file, fields)
	m, err := modelOf(t, file, tensorsOf(vector("blk.1.attn_norm.weight", 1), vector("blk.2.attn_norm.weight", 1),
		vector("blk.3.attn_norm.weight", 1)))
	require.Nil(t, err)
	var names []string
	for _, n := range m.Tensors {
		names = append(names, n.Name)
	}
	require.ElementsMatch(t, []string{"model.embed_tokens.weight", "lm_head.weight",
		"model.layers.1.input_layernorm.weight", "model.layers.3.input_layernorm.weight"}, names)
}

// mixture are the fields of a Llama with experts.
func mixture() fieldsOf {
	return fieldsOf{"llama.expert_count": uint32(2), "llama.expert_used_count": uint32(1)}
}

// Of a file of 10 MB that is nothing but experts, nearly as many as are read, a verdict comes within a second of
// processor time, in memory that is linear in the file.
func TestManyExpertsAreReadInLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const experts, columns = 1 << 15, 11
	fields := with(llama(), fieldsOf{"llama.expert_count": uint32(experts), "llama.expert_used_count": uint32(1)})
	tensors := tensorsOf()
	for i := range 7 {
		one := ofExperts(experts, columns)
		one.Name = fmt.Sprintf("blk.%d.ffn_up_exps.weight", i)
		tensors = append(tensors, one)
	}
	file := fileOf(fields, tensors)
	h, err := read(file)
	require.Nil(t, err)
	defer watch.Execution()()
	used := allocated(func() {
		m, err := h.Model(factors)
		require.Nil(t, err)
		require.Len(t, m.Tensors, 2+7*experts)
	})
	require.LessOrEqual(t, used, memoryBudget(len(file)))
	t.Logf("%d bytes of a file of %d", used, len(file))
}

func ofExperts(rows, columns int) modeltest.GGUFTensor {
	return modeltest.GGUFTensor{Name: "blk.0.ffn_up_exps.weight", Shape: []int{rows, columns},
		Data: make([]byte, 4*rows*columns)}
}

// Fields that change what a model computes and are not modelled are refused by name, and so are those that are not
// known.
func TestFactsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		fields     fieldsOf
		tensors    []modeltest.GGUFTensor // nil: the usual ones
		code, says string
	}{
		"another architecture": {fields: fieldsOf{"general.architecture": "mamba"}, code: "AMK1056",
			says: `is "mamba", which is not compiled; accepted: arcee, cohere2,`},
		"no architecture": {fields: fieldsOf{"general.architecture": nil}, code: "AMK1056", says: "is missing"},
		"a projector": {fields: fieldsOf{"general.architecture": "clip"}, code: "AMK1056",
			says: "a projector of images (mmproj)"},
		"an adapter": {fields: fieldsOf{"general.type": "adapter"}, code: "AMK1056",
			says: "a change to another model"},
		"a vocabulary": {tensors: []modeltest.GGUFTensor{}, code: "AMK1056", says: "has no tensors"},
		"an unknown field": {fields: fieldsOf{"llama.attention.sliding_window": uint32(4)}, code: "AMK1057",
			says: "llama.attention.sliding_window: error: is not a field that amkc knows for llama"},
		"experts of another family": {fields: with(as("granite"), fieldsOf{"granite.attention.scale": float32(1),
			"granite.logit_scale": float32(1), "granite.expert_count": uint32(8)}), code: "AMK1057",
			says: "granite.expert_count: error: is 8: the model is a mixture of experts, which is not read from GGUF"},
		"no experts": {fields: as("qwen3moe"), code: "AMK1057",
			says: "qwen3moe.expert_count: error: is missing; want how many experts a layer has"},
		"experts of no token": {fields: fieldsOf{"llama.expert_count": uint32(2)}, code: "AMK1057",
			says: "llama.expert_used_count: error: is missing"},
		"experts with sigmoids": {fields: with(mixture(), fieldsOf{"llama.expert_gating_func": uint32(2)}),
			code: "AMK1057", says: "expert_gating_func: error: is 2, which is not modelled for llama; accepted: 1"},
		"experts in groups": {fields: with(mixture(), fieldsOf{"llama.expert_group_count": uint32(4)}),
			code: "AMK1057", says: "llama.expert_group_count: error: is 4"},
		"softmax of a family with sigmoids": {fields: with(as("lfm2moe"), fieldsOf{"lfm2moe.expert_count": uint32(2),
			"lfm2moe.expert_used_count": uint32(1), "lfm2moe.expert_feed_forward_length": uint32(8),
			"lfm2moe.expert_gating_func": uint32(1)}), code: "AMK1057",
			says: "lfm2moe.expert_gating_func: error: is 1, which is not modelled for lfm2moe; accepted: 2"},
		"a tensor for each expert": {fields: mixture(), tensors: tensorsOf(modeltest.GGUFTensor{
			Name: "blk.0.ffn_gate.1.weight", Shape: []int{16, 8}, Data: make([]byte, 512)}), code: "AMK1057",
			says: "blk.0.ffn_gate.1.weight: error: is a matrix of expert 1 alone"},
		"layers that draft alone": {fields: with(as("glm4moe"), fieldsOf{
			"glm4moe.nextn_predict_layers": uint32(2)}), code: "AMK1057",
			says: "glm4moe.nextn_predict_layers: error: is 2, and there are 2 layers; want fewer"},
		"convolutions alone": {fields: with(as("lfm2"), fieldsOf{"lfm2.attention.head_count_kv": []int32{0, 0},
			"lfm2.shortconv.l_cache": uint32(3)}), code: "AMK1057",
			says: "lfm2.attention.head_count_kv: error: is 0 for all layers"},
		"heads that differ": {fields: with(as("lfm2"), fieldsOf{"lfm2.attention.head_count_kv": []int32{1, 2},
			"lfm2.shortconv.l_cache": uint32(3)}), code: "AMK1057", says: "is 2 for layer 1; want 0 for a convolution"},
		"fewer experts": {fields: mixture(), tensors: tensorsOf(ofExperts(3, 2)),
			code: "AMK1057", says: "blk.0.ffn_up_exps.weight: error: has shape [3 2]; want 2 of a shape"},
		"very many experts": {fields: with(mixture(), fieldsOf{"llama.expert_count": uint32(1<<18 + 1)}),
			tensors: tensorsOf(ofExperts(1<<18+1, 1)), code: "AMK1057",
			says: "become more than 262144"},
		"biases of gate without those of up": {fields: with(as("gpt-oss"), fieldsOf{
			"gpt-oss.expert_count": uint32(2), "gpt-oss.expert_used_count": uint32(1)}),
			tensors: tensorsOf(vector("blk.0.ffn_gate_exps.bias", 0, 2, 8)), code: "AMK1057",
			says: "want it and the biases of ffn_up_exps to be F32, and of one shape"},
		"a size that is missing": {fields: fieldsOf{"llama.block_count": nil}, code: "AMK1057",
			says: "llama.block_count: error: is missing; want an integer from 1"},
		"a size of 0":     {fields: fieldsOf{"llama.embedding_length": uint32(0)}, code: "AMK1057", says: "is 0"},
		"a size in words": {fields: fieldsOf{"llama.embedding_length": "8"}, code: "AMK1057", says: `is "8"`},
		"layers that differ": {fields: fieldsOf{"llama.feed_forward_length": []int32{8, 16}}, code: "AMK1057",
			says: "differs from layer to layer"},
		"values of another size": {fields: fieldsOf{"llama.attention.value_length": uint32(8)}, code: "AMK1057",
			says: "is 8, and keys have 4 elements"},
		"a part of a head": {fields: fieldsOf{"llama.rope.dimension_count": uint32(2)}, code: "AMK1057",
			says: "is 2, and a head has 4 elements"},
		"both directions": {fields: fieldsOf{"llama.attention.causal": false}, code: "AMK1057",
			says: "a token attends to those after it"},
		"embeddings": {fields: fieldsOf{"llama.pooling_type": uint32(1)}, code: "AMK1057", says: "makes embeddings"},
		"another scaling": {fields: fieldsOf{"llama.rope.scaling.type": "cubic"}, code: "AMK1057",
			says: `is "cubic", which is not modelled`},
		"another yarn": {fields: fieldsOf{"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": float32(4),
			"llama.rope.scaling.yarn_ext_factor": float32(2)}, code: "AMK1057", says: "yarn_ext_factor: error: is 2"},
		"a scaling and factors": {fields: fieldsOf{"llama.rope.scaling.type": "linear",
			"llama.rope.scaling.factor": float32(4)}, tensors: tensorsOf(vector("rope_freqs.weight", 1, 8)),
			code: "AMK1057", says: "not modelled together"},
		"too many factors": {tensors: tensorsOf(vector("rope_freqs.weight", 1, 8, 8)), code: "AMK1057",
			says: "want F32 [2]"},
		"factors of another kind": {fields: fieldsOf{"llama.rope.scaling.type": "longrope",
			"llama.rope.scaling.factor": float32(4)}, tensors: tensorsOf(vector("rope_freqs.weight", 1, 8)),
			code: "AMK1057", says: `is 4, which is not modelled with rope.scaling.type "longrope"; accepted: 1`},
		"a norm of a Gemma in fp16": {fields: as("gemma"), tensors: append(tensorsOf()[:1:1], modeltest.GGUFTensor{
			Name: "blk.0.attn_norm.weight", Type: 1, Shape: []int{8}, Data: make([]byte, 16)}), code: "AMK1057",
			says: "blk.0.attn_norm.weight: error: is stored as F16, and norms of gemma are stored plus one"},
		"a Granite without a scale of scores": {fields: as("granite"), code: "AMK1057",
			says: "granite.attention.scale: error: is missing"},
		"a Mistral 3 that llama.cpp scales": {fields: with(as("mistral3"), fieldsOf{
			"mistral3.rope.scaling.type": "yarn", "mistral3.rope.scaling.factor": float32(4),
			"mistral3.attention.temperature_scale": float32(0.1)}), code: "AMK1057",
			says: "mistral3.rope.scaling.yarn_log_multiplier: error: is missing, which is not modelled; accepted: 1"},
		"a bias in blocks": {tensors: tensorsOf(modeltest.GGUFTensor{Name: "blk.0.attn_q.bias", Type: 8,
			Shape: []int{32}, Data: make([]byte, 34)}), code: "AMK1057",
			says: "blk.0.attn_q.bias: error: is stored as Q8_0, and its elements are in another order"},
		"no epsilon": {fields: fieldsOf{"llama.attention.layer_norm_rms_epsilon": nil}, code: "AMK1057",
			says: "layer_norm_rms_epsilon: error: is missing; want a number"},
		"no number": {fields: fieldsOf{"llama.rope.freq_base": float32(0)}, code: "AMK1057",
			says: "is 0; want a number from 1 on"},
		"no embedding": {tensors: tensorsOf()[1:], code: "AMK1057", says: "token_embd.weight: error: is missing"},
		"another number of tokens": {fields: fieldsOf{"llama.vocab_size": uint32(6)}, code: "AMK1057",
			says: "is 6, and token_embd.weight has 5 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			fields, tensors := llama(), c.tensors
			maps.Copy(fields, c.fields)
			if tensors == nil {
				tensors = tensorsOf()
			}
			_, err := modelOf(t, fields, tensors)
			require.NotNil(t, err)
			require.Equal(t, c.code, err.Code, err.Error())
			require.Contains(t, err.Error(), c.says)
		})
	}
}
