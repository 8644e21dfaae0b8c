"""The small config of each family, whose fields fields.py flips: as transformers 5 writes it, and as before."""

import copy
import dataclasses
import json

import composites
import generate
import rmsnorm
import transformers

LAYERS = 2
SIZES = {"hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 61, "rms_norm_eps": 1e-2, "max_position_embeddings": 64,
         "pad_token_id": None, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False}
GEMMA = {"head_dim": 16, "pad_token_id": 0, "bos_token_id": 2}
MIXED = {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 9}
GEMMA4 = {**GEMMA, **MIXED, "layer_types": ["sliding_attention", "full_attention"], "global_head_dim": 24,
          "num_global_key_value_heads": 1, "attention_k_eq_v": True, "hidden_size_per_layer_input": 0,
          "final_logit_softcapping": 3.0}
WINDOWS = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}
HALF = {"hidden_size": 64, "layer_norm_eps": 1e-2, "rope_parameters": {
    "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}
SCALED = {"embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.7, "logits_scaling": 2.0}
COHERE2 = {**MIXED, "layer_norm_eps": 1e-2, "logit_scale": 0.75, "sliding_window_pattern": 2}
EXPERTS = {"num_experts_per_tok": 2, "norm_topk_prob": True}
QWEN_MOE = {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 24, "mlp_only_layers": [1]}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
SCORED = {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
          "n_group": 4, "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 1.5}
PARTS = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2]}
LFM2 = {"norm_eps": 1e-2, "layer_types": ["conv", "full_attention"], "conv_L_cache": 3}
DELTA = {"head_dim": 16, "layer_types": ["linear_attention", "full_attention"], "linear_key_head_dim": 8,
         "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
SHARED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
          "shared_expert_intermediate_size": 32}
# The small config of each family, beside what its class says: one in which as many switches as can be do something.
FAMILIES = {
    "apertus": {"head_dim": 16, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
        "original_max_position_embeddings": 16}},
    "arcee": {},
    "aya_vision": {"text_config": COHERE2},
    "cohere": {"layer_norm_eps": 1e-2, "logit_scale": 0.75},
    "cohere2": COHERE2,
    "cohere2_vision": {"text_config": COHERE2},
    "cwm": {**MIXED, "head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    "dots1": {**SCORED, "first_k_dense_replace": 1, "head_dim": 16, "sliding_window": 9, "max_window_layers": 1},
    "ernie4_5": {"head_dim": 16},
    "ernie4_5_moe": {"moe_k": 2, "moe_num_experts": 4, "moe_intermediate_size": 24, "head_dim": 16,
                     "moe_norm_min": 0.6},
    "exaone4": {**MIXED, "head_dim": 16, "sliding_window_pattern": 2},
    "falcon": {"ffn_hidden_size": 40, "num_kv_heads": 2, "layer_norm_epsilon": 1e-2, "new_decoder_architecture": True},
    "flex_olmo": {**EXPERTS, "num_experts": 4},
    "gemma": GEMMA,
    "gemma2": {**GEMMA, **MIXED, "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0,
               "final_logit_softcapping": 3.0},
    "gemma3": {"text_config": {
        **GEMMA, **MIXED, "query_pre_attn_scalar": 20, "sliding_window_pattern": 2}},
    "gemma3_text": {**GEMMA, **MIXED, "query_pre_attn_scalar": 20, "final_logit_softcapping": 3.0,
                    "sliding_window_pattern": 2},
    "gemma4": {"text_config": {"model_type": "gemma4_text", **GEMMA4}},
    "gemma4_text": GEMMA4,
    "glm": {"head_dim": 16},
    "glm4": {"head_dim": 16},
    "glm4_moe": {**SCORED, "head_dim": 16},
    "gpt2": {"n_embd": 48, "n_layer": LAYERS, "n_head": 4, "n_inner": 40, "n_positions": 64,
             "layer_norm_epsilon": 1e-2},
    "gpt_neox": HALF,
    "gpt_oss": {**LOCAL, "head_dim": 16, "sliding_window": 9, "swiglu_limit": 1.5, "rope_parameters": rmsnorm.YARN},
    "granite": SCALED,
    "granitemoe": {**SCALED, **LOCAL},
    "granitemoeshared": {**SCALED, **LOCAL, "shared_intermediate_size": 32},
    "helium": {"head_dim": 12},
    "hunyuan_v1_dense": {"head_dim": 16, "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 50.0,
                                                             "factor": 1.0}},
    "hyperclovax": {**SCALED, "residual_multiplier": 1.0},
    "idefics3": {"text_config": {"model_type": "llama"}},
    "internlm3": {"head_dim": 16},
    "internvl": {"text_config": {"model_type": "qwen2", **WINDOWS}},
    "iquestcoder": {"head_dim": 16},
    "lfm2": {**LFM2, "block_multiple_of": 8, "block_ffn_dim_multiplier": 2.0},
    "lfm2_moe": {**LFM2, **EXPERTS, "num_experts": 4, "moe_intermediate_size": 24, "num_dense_layers": 1,
                 "routed_scaling_factor": 1.5},
    "llama": {},
    "llava": {"text_config": {"model_type": "llama"}},
    "llava_next": {"text_config": {"model_type": "mistral", "sliding_window": 9}},
    "llava_onevision": {"text_config": {"model_type": "qwen2", **WINDOWS}},
    "minimax_m2": {**LOCAL, "head_dim": 16},
    "ministral": {**MIXED, "head_dim": 12},
    "ministral3": {"head_dim": 16, "sliding_window": 9, "rope_parameters": rmsnorm.MINISTRAL3},
    "mistral": {"sliding_window": 9},
    "mistral3": {"text_config": {
        "model_type": "mistral", "head_dim": 16, "sliding_window": 9}},
    "mixtral": {**LOCAL, "head_dim": 16, "sliding_window": 9},
    "nemotron": {"head_dim": 16, "norm_eps": 1e-2},
    "olmo": {},
    "olmo2": {},
    "olmo3": MIXED,
    "olmoe": {**EXPERTS, "num_experts": 4},
    "opt": {"ffn_dim": 40},
    "phi": HALF,
    "phi3": {"sliding_window": 9, "original_max_position_embeddings": 16},
    "phimoe": {**LOCAL, "head_dim": 16, "router_jitter_noise": 0.2, "sliding_window": 9},
    "qwen2": WINDOWS,
    "qwen2_5_vl": {"text_config": {**WINDOWS, "rope_parameters": PARTS}},
    "qwen2_moe": {**QWEN_MOE, "shared_expert_intermediate_size": 32},
    "qwen2_vl": {"text_config": {**WINDOWS, "rope_parameters": PARTS}},
    "qwen3": {**WINDOWS, "head_dim": 16},
    "qwen3_5": {"text_config": {**DELTA, "rope_parameters": {**PARTS, "partial_rotary_factor": 0.75}}},
    "qwen3_5_moe": {"text_config": {**DELTA, **SHARED, "rope_parameters": {**PARTS, "partial_rotary_factor": 0.75}}},
    "qwen3_5_moe_text": {**DELTA, **SHARED},
    "qwen3_5_text": DELTA,
    "qwen3_moe": {**QWEN_MOE, "head_dim": 16, "use_sliding_window": True, "sliding_window": 9},
    "qwen3_next": {**DELTA, **SHARED, "norm_topk_prob": False, "mlp_only_layers": [1]},
    "qwen3_vl": {"text_config": {"head_dim": 16, "rope_parameters": {**PARTS, "mrope_section": [4, 2, 2],
                                                                     "mrope_interleaved": True}}},
    "seed_oss": {"head_dim": 16},
    "smollm3": {"use_sliding_window": True, "sliding_window": 9, "no_rope_layers": [1, 0]},
    "smolvlm": {"text_config": {"model_type": "llama"}},
    "solar_open": {**SCORED, "head_dim": 16},
    "stablelm": HALF,
    "starcoder2": {"norm_epsilon": 1e-2, "sliding_window": 9},
}
# Families whose published configs list the kinds of layers.
LISTED = {"lfm2_moe", "olmo3", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next"}
# Composites whose language model is of a family that is asked of each type of its rotary embedding by itself.
BRIEF = {"aya_vision", "cohere2_vision", "idefics3", "internvl", "llava_onevision", "smolvlm"}
# Fields of a second config of a family, in which other switches do something.
SECOND = {"ernie4_5_moe": {"moe_layer_start_index": 0},
          "falcon": {"new_decoder_architecture": False, "num_kv_heads": SIZES["num_attention_heads"]}}


def json_config(family):
    """The config.json of a family's row, as transformers writes it."""
    kind = transformers.CONFIG_MAPPING[family]
    has = {f.name for f in dataclasses.fields(kind)}
    row = {**{name: v for name, v in SIZES.items() if name in has}, **FAMILIES[family], "dtype": "float32"}
    if "text_config" in row:
        row |= composites.parts(kind.__name__, {**SIZES, **row["text_config"]})
    config = json.loads(kind(**row).to_json_string())
    config.pop("transformers_version")
    model = generate.auto_class(kind)._model_mapping[kind]
    return {**config, "architectures": [model.__name__]}


def former(config):
    """The form in which most models are published: see rewrite_config of generate.py."""
    config = copy.deepcopy(config)
    if "text_config" in config:
        text = former(config["text_config"])
        if config["model_type"] in ("qwen2_vl", "qwen2_5_vl"):  # which have its fields beside the others
            return {**text, **former({key: v for key, v in config.items() if key != "text_config"})}
        return {**config, "text_config": text}
    if config["model_type"] == "gemma4_text":  # published since there are objects of kinds of layers
        (own,) = config.pop("per_layer_config").values()
        return {**config, "global_head_dim": own["head_dim"], "num_global_key_value_heads": own["num_key_value_heads"]}
    rope = config.pop("rope_parameters", None)
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    if config["model_type"] == "lfm2":  # those of LFM2 list the layers with attention
        config["full_attn_idxs"] = [i for i, kind in enumerate(config["layer_types"]) if kind == "full_attention"]
    if config["model_type"] not in LISTED:
        config.pop("layer_types", None)
    if rope is None:
        return config
    named = "type"
    if "full_attention" in rope:
        if config["model_type"] == "gemma3_text":
            config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope, named = rope["full_attention"], "rope_type"  # of a kind of layers, type is not read
    kind = rope.pop("rope_type")
    for key, neox in (("rope_theta", "rotary_emb_base"), ("partial_rotary_factor", "rotary_pct")):
        # OLMo 3 reads a base beside the object for one kind of layers alone.
        if key in rope and (config["model_type"] != "olmo3" or kind == "default"):
            config[neox if config["model_type"] == "gpt_neox" else key] = rope.pop(key)
    if kind != "default":
        config["rope_scaling"] = {named: kind, **rope}
    return config
