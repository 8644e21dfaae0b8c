package quantised

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
)

// compression_config is what files said before quantization_config, and it named no method.
func TestCompressionConfig(t *testing.T) {
	document, err := checkpoint.ParseDocument("config.json", []byte(`{"compression_config": {"format": "pack-quantized",
		"config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 64}}}}}`))
	require.NoError(t, err)
	scheme, d := Read(document, nil)
	require.Nil(t, d)
	require.Equal(t, "compressed-tensors", scheme.Method)
	require.Equal(t, &Element{Type: "I4", Group: 64, Scale: checkpoint.BF16},
		scheme.Expected("m", 256, InLayer, checkpoint.BF16))
}

// What the configs of published models say is read: each gives a matrix of 4096 columns the element that the model has.
func TestPublished(t *testing.T) {
	w4 := Element{Type: "I4", Group: 128, Scale: checkpoint.F16}
	scales := func(e Element, of checkpoint.DType) Element {
		e.Scale = of
		return e
	}
	for name, c := range map[string]struct {
		settings string
		want     Element
		head     bool // the matrix of the logits is quantised too
		inputs   bool
	}{
		"Qwen2.5 GPTQ": {`{"batch_size": 1, "bits": 4, "block_name_to_quantize": null, "cache_block_outputs": true,
			"damp_percent": 0.01, "dataset": null, "desc_act": false, "exllama_config": {"version": 1}, "group_size":
			128,
			"max_input_length": null, "model_seqlen": null, "module_name_preceding_first_block": null,
			"modules_in_block_to_quantize": null, "pad_token_id": null, "quant_method": "gptq", "sym": true,
			"tokenizer": null, "true_sequential": true, "use_cuda_fp16": false, "use_exllama": true}`, w4, false,
			false},
		"AutoGPTQ, in order of activations": {`{"bits": 4, "group_size": 128, "damp_percent": 0.1, "desc_act": true,
			"static_groups": false, "sym": true, "true_sequential": true, "model_name_or_path": null,
			"model_file_base_name": "model", "quant_method": "gptq"}`, w4, false, false},
		"GPTQModel": {`{"bits": 4, "checkpoint_format": "gptq", "desc_act": false, "dynamic": null, "group_size": 32,
			"lm_head": false, "meta": {"damp_auto_increment": 0.0015, "damp_percent": 0.1, "mse": 0.0, "quantizer":
			["gptqmodel:1.4.0"], "static_groups": false, "true_sequential": true, "uri": "u"}, "quant_method": "gptq",
			"sym": true}`, Element{Type: "I4", Group: 32, Scale: checkpoint.F16}, false, false},
		"GPTQModel with the head": {`{"bits": 8, "checkpoint_format": "gptq_v2", "desc_act": false, "group_size": 64,
			"lm_head": true, "pack_dtype": "int32", "quant_method": "gptq", "sym": false}`,
			Element{Type: "I8", Group: 64, Scale: checkpoint.F16, Zeros: true}, true, false},
		"Qwen2.5 AWQ": {`{"bits": 4, "group_size": 128, "modules_to_not_convert": null, "quant_method": "awq",
			"version": "gemm", "zero_point": true}`,
			Element{Type: "I4", Group: 128, Scale: checkpoint.F16, Zeros: true}, false, false},
		"AutoAWQ by transformers": {`{"backend": "autoawq", "bits": 4, "do_fuse": false, "exllama_config": null,
			"fuse_max_seq_len": null, "group_size": 128, "modules_to_fuse": null, "modules_to_not_convert":
			["visual"],
			"quant_method": "awq", "version": "GEMM", "zero_point": true}`,
			Element{Type: "I4", Group: 128, Scale: checkpoint.F16, Zeros: true},
			false,
			false},
		"Qwen3 FP8": {`{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size":
			[128, 128]}`, Element{Type: "F8E4M3", Group: 128, Scale: checkpoint.F32}, false, true},
		"Ministral FP8": {`{"activation_scheme": "static", "dequantize": false, "modules_to_not_convert":
			["model.vision_tower", "model.multi_modal_projector", "lm_head"], "quant_method": "fp8",
			"weight_block_size":
			null}`, Element{Type: "F8E4M3", Group: 128, Scale: checkpoint.F32}, false, true},
		"MiniMax FP8": {`{"activation_scheme": "dynamic", "fmt": "float8_e4m3fn", "ignored_layers": ["gate",
			"e_score_correction_bias", "lm_head"], "quant_method": "fp8", "weight_block_size": [128, 128]}`,
			Element{Type: "F8E4M3", Group: 128, Scale: checkpoint.F32}, false, true},
		"llm-compressor W4A16": {`{"config_groups": {"group_0": {"input_activations": null, "output_activations":
			null,
			"targets": ["Linear"], "weights": {"actorder": "weight", "block_structure": null, "dynamic": false,
			"group_size": 128, "num_bits": 4, "observer": "minmax", "observer_kwargs": {}, "strategy": "group",
			"symmetric": true, "type": "int"}}}, "format": "pack-quantized", "global_compression_ratio": 1.89,
			"ignore": ["lm_head"], "kv_cache_scheme": null, "quant_method": "compressed-tensors",
			"quantization_status":
			"compressed", "sparsity_config": {"format": "dense", "global_sparsity": 0.01, "ignore": [],
			"registry_requires_subclass":
			false, "sparsity_structure": "unstructured", "targets": []}, "transform_config": {}, "version": "0.10.2"}`,
			scales(w4, checkpoint.BF16), false, false},
		"llm-compressor FP8-dynamic": {`{"config_groups": {"group_0": {"input_activations": {"actorder": null,
			"block_structure": null, "dynamic": true, "group_size": null, "num_bits": 8, "observer": null,
			"observer_kwargs": {}, "strategy": "token", "symmetric": true, "type": "float"}, "output_activations":
			null,
			"targets": ["Linear"], "weights": {"actorder": null, "block_structure": null, "dynamic": false,
			"group_size":
			null, "num_bits": 8, "observer": "minmax", "observer_kwargs": {}, "strategy": "channel", "symmetric":
			true,
			"type": "float"}}}, "format": "float-quantized", "global_compression_ratio": 1.5, "ignore": ["lm_head"],
			"kv_cache_scheme": null, "quant_method": "compressed-tensors", "quantization_status": "compressed"}`,
			Element{Type: "F8E4M3", Group: 128, Scale: checkpoint.BF16}, false, true},
		"llm-compressor W8A8": {`{"config_groups": {"group_0": {"input_activations": {"dynamic": true, "num_bits": 8,
			"strategy": "token", "symmetric": true, "type": "int"}, "targets": ["Linear"], "weights": {"dynamic":
			false,
			"num_bits": 8, "observer": "mse", "strategy": "channel", "symmetric": true, "type": "int"}}}, "format":
			"int-quantized", "ignore": [], "quant_method": "compressed-tensors", "quantization_status": "compressed"}`,
			Element{Type: "I8", Group: 128, Scale: checkpoint.BF16}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := checkpoint.ParseDocument("config.json", []byte(`{"quantization_config": `+c.settings+`}`))
			require.NoError(t, err)
			scheme, d := Read(document, nil)
			if d != nil {
				require.NoError(t, d)
			}
			require.Equal(t, c.inputs, scheme.Inputs)
			require.Equal(t, &c.want, scheme.Expected("model.layers.0.mlp.up_proj", 4096, InLayer, checkpoint.BF16))
			require.Equal(t, c.head, scheme.Expected("lm_head", 4096, Head, checkpoint.BF16) != nil)
		})
	}
}
