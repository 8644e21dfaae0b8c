#!/usr/bin/env python3
"""Makes most small checkpoints of testdata/models/zoo, with what transformers computes for them.

    python3 testdata/models/generate.py            writes every model
    python3 testdata/models/generate.py NAME ...   writes those; any other word lists the names

Needs torch and transformers; no test runs it. Each model is a folder zoo/NAME:

    config.json, generation_config.json, model.safetensors    as transformers saves them, in bfloat16
                            or the dtype of a model's fields
    ref_input_ids.npy       int32 [n], the ids of one text; n is 48 but for the models of LONG
    ref_logits_f32.npy      float32 [n, vocab], the logits after each of them, computed in float32
    ref_greedy_from8.npy    int32 [n-8], the continuation of the first 8, the likeliest id each time

The weights are random, of scales at which each part of a model moves the logits. That is checked: where a switch or a
tensor named in `matters` changes, some logit must change by 1000 times what amkc may be off; and the likeliest id must
be so by a clear margin. A seed for which either fails is passed over for the next one.
"""

import json
import os
import sys

import numpy as np
import torch
import transformers

import layernorm

ZOO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo")
POSITIONS, PROMPT = 48, 8
MATTERS = 0.1  # amkc is held to 1e-4
MARGIN = 0.01  # between the two largest logits of a step
DISTINCT = 12  # ids that the continuation has at least: one that repeats a single id tells nothing

# Sizes that no tile, fragment or cache line divides, and sizes of which the heads are hidden_size together.
ODD = {"hidden_size": 44, "intermediate_size": 70, "num_hidden_layers": 3, "num_attention_heads": 6,
       "num_key_value_heads": 3, "vocab_size": 211, "rms_norm_eps": 1e-3}
SMALL = {"hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 223, "rms_norm_eps": 1e-5}
GEMMA = ["embed_scale", {"hidden_act": "silu"}]
GEMMA2 = ["embed_scale", "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight",
          {"hidden_activation": "silu"}, {"query_pre_attn_scalar": 60}]
VISION = {"model_type": "siglip_vision_model", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
          "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
PIXTRAL = {"model_type": "pixtral", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
           "num_attention_heads": 2, "head_dim": 8, "image_size": 28, "patch_size": 14}
GLOBAL = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
BIASES = ["self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"]
MLP_BIASES = ["mlp.gate_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias"]
HEAD_NORMS = ["self_attn.q_norm.weight", "self_attn.k_norm.weight"]
GEMMA3 = [*GEMMA2, *HEAD_NORMS, {"sliding_window": 11}, {"sliding_window": 13}]
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
PHI3 = {"pad_token_id": None}  # its class has one that is beyond the vocabulary
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4}
SHORT_FACTORS = [1.0, 1.05, 1.1, 1.3, 1.6, 2.0, 2.2, 2.5, 2.75]
LONG_FACTORS = [1.0, 1.25, 2.0, 3.5, 6.0, 9.5, 17.0, 31.0, 62.5]
# name: (class of the config, its fields, what must move the logits beside EVERY, form of config.json). What must move
# them is the end of a tensor's name, or fields with other values, of rope_parameters some keys. The form is "present" as
# transformers 5 writes it, or "former" as most published models have it.
MODELS = {
    "llama-rope-linear": ("LlamaConfig", {**ODD, "hidden_size": 60, "rope_parameters": {"rope_type": "linear", "factor": 2.5}},
                          [{"rope_parameters": {"factor": 2.0}}], "former"),
    "llama-rope-dynamic": ("LlamaConfig", {**SMALL, "rope_parameters": {"rope_type": "dynamic", "factor": 2.0},
                                           "max_position_embeddings": POSITIONS},
                           [{"max_position_embeddings": 24}], "former"),
    "llama-rope-yarn": ("LlamaConfig", {**SMALL, "hidden_size": 96, "head_dim": 32, "rope_parameters": YARN},
                        [{"rope_parameters": keys} for keys in (
                            {"factor": 3.0}, {"original_max_position_embeddings": 24}, {"attention_factor": 1.0},
                            {"beta_fast": 0.5}, {"beta_slow": 0.3}, {"truncate": False},
                            {"mscale": 2.0, "mscale_all_dim": 0.5})], "former"),
    "llama-attention-bias": ("LlamaConfig", {**SMALL, "tie_word_embeddings": True, "attention_bias": True},
                             [*BIASES, "self_attn.o_proj.bias"], "former"),
    "llama-mlp-bias": ("LlamaConfig", {**ODD, "hidden_size": 72, "num_key_value_heads": 1, "mlp_bias": True},
                       MLP_BIASES, "former"),
    "llama-biases-yarn": ("LlamaConfig", {**ODD, "hidden_size": 72, "attention_bias": True, "mlp_bias": True,
                                          "rope_parameters": YARN},
                          [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES, {"rope_parameters": {"factor": 2.0}}],
                          "present"),
    "qwen3-attention-bias": ("Qwen3Config", {**SMALL, "head_dim": 20, "attention_bias": True},
                             [*HEAD_NORMS, *BIASES, "self_attn.o_proj.bias"], "present"),
    "qwen3-rope-yarn": ("Qwen3Config", {**ODD, "head_dim": 24, "rope_parameters": {
        **YARN, "rope_theta": 1e6, "factor": 8.0, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False,
        "mscale": 1.0, "mscale_all_dim": 0.4}},
                        [*HEAD_NORMS, *({"rope_parameters": keys} for keys in (
                            {"factor": 3.0}, {"beta_fast": 2.0}, {"beta_slow": 1.5}, {"truncate": True},
                            {"mscale": 2.0}, {"mscale_all_dim": 1.0}))], "present"),
    "qwen2-tied": ("Qwen2Config", {**SMALL, "tie_word_embeddings": True, "hidden_size": 60, "num_attention_heads": 3,
                                   "num_key_value_heads": 3, "rope_theta": 1e6}, BIASES, "former"),
    "qwen2-odd-dims": ("Qwen2Config", {**ODD, "head_dim": 20}, BIASES, "present"),
    "qwen2-window-unused": ("Qwen2Config", {**SMALL, "num_attention_heads": 2, "num_key_value_heads": 1,
                                            "use_sliding_window": False, "sliding_window": 12, "max_window_layers": 0},
                            [*BIASES, {"use_sliding_window": True, "sliding_window": 12}], "former"),
    "qwen2-window-of-no-layer": ("Qwen2Config", {**SMALL, "use_sliding_window": True, "sliding_window": 12,
                                                 "max_window_layers": 3},
                                 [*BIASES, {"max_window_layers": 2}], "present"),
    "qwen2-window-half": ("Qwen2Config", {**SMALL, "num_hidden_layers": 4, "use_sliding_window": True,
                                          "sliding_window": 17, "max_window_layers": 2},
                          [*BIASES, {"max_window_layers": 4}, {"max_window_layers": 0}, {"sliding_window": 16}],
                          "present"),
    "qwen3-tied": ("Qwen3Config", {**SMALL, "tie_word_embeddings": True, "head_dim": 32, "rope_theta": 1e6},
                   HEAD_NORMS, "former"),
    "qwen3-odd-dims": ("Qwen3Config", {**ODD, "head_dim": 24}, HEAD_NORMS, "present"),
    "qwen3-window-half": ("Qwen3Config", {**SMALL, "head_dim": 20, "use_sliding_window": True, "sliding_window": 33,
                                          "max_window_layers": 1},
                          [*HEAD_NORMS, {"max_window_layers": 3}, {"max_window_layers": 0}, {"sliding_window": 32}],
                          "present"),
    "mistral-full": ("MistralConfig", {**SMALL, "sliding_window": None, "rope_theta": 1e6}, [], "former"),
    "mistral-head-dim": ("MistralConfig", {**ODD, "head_dim": 24, "sliding_window": None}, [], "present"),
    "mistral-window-wide": ("MistralConfig", {**SMALL, "sliding_window": 64}, [{"sliding_window": 32}], "present"),
    "mistral-window-narrow": ("MistralConfig", {**ODD, "head_dim": 20, "sliding_window": 12},
                              [{"sliding_window": None}, {"sliding_window": 11}, {"sliding_window": 13}], "present"),
    "ministral-windows": ("MinistralConfig", {**ODD, "head_dim": 20, "num_hidden_layers": 5, "sliding_window": 12,
                                              "layer_types": ["full_attention"] + 3 * ["sliding_attention"] +
                                              ["full_attention"], "rope_theta": 1e8},
                          [{"sliding_window": 11}, {"sliding_window": 13},
                           {"layer_types": 5 * ["sliding_attention"]}, {"layer_types": 5 * ["full_attention"]}],
                          "present"),
    "mistral-nemo": ("MistralConfig", {**SMALL, "hidden_size": 80, "head_dim": 16, "sliding_window": None,
                                       "rope_theta": 1e6}, [{"sliding_window": 24}], "former"),
    "mistral-window": ("MistralConfig", {**SMALL, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8,
                                         "head_dim": 32, "sliding_window": 72},
                       [{"sliding_window": None}, {"sliding_window": 71}, {"sliding_window": 73}], "present"),
    "gemma-tied": ("GemmaConfig", {**SMALL, "hidden_size": 60, "head_dim": 32, "num_key_value_heads": 1}, GEMMA,
                   "present"),
    "gemma-odd-dims": ("GemmaConfig", {**ODD, "head_dim": 24, "tie_word_embeddings": False, "hidden_act": "gelu",
                                       "hidden_activation": None, "dtype": "float32"}, GEMMA, "former"),
    "gemma2-tied": ("Gemma2Config", {**SMALL, "hidden_size": 60, "head_dim": 32, "num_hidden_layers": 4,
                                     "query_pre_attn_scalar": 24, "sliding_window": 12, "attn_logit_softcapping": 2.0,
                                     "final_logit_softcapping": 3.0},
                    [*GEMMA2, {"sliding_window": 11}, {"sliding_window": 13}, {"layer_types": ["sliding_attention"] * 4},
                     {"layer_types": ["full_attention"] * 4}, {"attn_logit_softcapping": None},
                     {"final_logit_softcapping": None}], "former"),
    "gemma2-uncapped": ("Gemma2Config", {**ODD, "head_dim": 24, "num_attention_heads": 4, "num_key_value_heads": 4,
                                         "tie_word_embeddings": False, "query_pre_attn_scalar": 24,
                                         "layer_types": ["full_attention", "full_attention", "sliding_attention"],
                                         "sliding_window": 17, "attn_logit_softcapping": None,
                                         "final_logit_softcapping": None, "dtype": "float32"},
                        [*GEMMA2, {"sliding_window": 16}, {"attn_logit_softcapping": 2.0},
                         {"final_logit_softcapping": 3.0}], "present"),
    "gemma3-tied": ("Gemma3TextConfig", {**SMALL, "hidden_size": 60, "head_dim": 32, "num_hidden_layers": 4,
                                         "query_pre_attn_scalar": 8, "sliding_window": 12, "layer_types": GLOBAL,
                                         "rope_parameters": {
                                             "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e3},
                                             "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}},
                    [*GEMMA3, {"layer_types": ["sliding_attention"] * 4}, {"layer_types": ["full_attention"] * 4},
                     {"final_logit_softcapping": 3.0},
                     {"rope_parameters": {"full_attention": {"factor": 2.0}}},
                     {"rope_parameters": {"sliding_attention": {"rope_theta": 1e4}}}], "present"),
    "gemma3-odd-dims": ("Gemma3TextConfig", {**ODD, "head_dim": 24, "num_attention_heads": 4,
                                             "num_key_value_heads": 4, "tie_word_embeddings": False,
                                             "num_hidden_layers": 4, "query_pre_attn_scalar": 6, "sliding_window": 12,
                                             "sliding_window_pattern": 3, "final_logit_softcapping": 20.0,
                                             "rope_theta": 1e3, "rope_local_base_freq": 100.0,
                                             "rope_scaling": {"rope_type": "linear", "factor": 3.0},
                                             "dtype": "float32"},
                        [*GEMMA3, {"layer_types": ["sliding_attention"] * 4}, {"final_logit_softcapping": None}],
                        "former"),
    "gemma3-images": ("Gemma3Config", {**SMALL, "hidden_size": 60, "head_dim": 20, "sliding_window": 12,
                                       "query_pre_attn_scalar": 5, "num_hidden_layers": 4, "layer_types": GLOBAL},
                      GEMMA3, "present"),
}
MODELS |= {
    "phi3-window": ("Phi3Config", {**SMALL, **PHI3, "num_key_value_heads": 4, "sliding_window": 12},
                    [{"sliding_window": None}, {"sliding_window": 11}, {"sliding_window": 13}], "former"),
    "phi3-partial": ("Phi3Config", {**ODD, **PHI3, "hidden_size": 84, "dtype": "float32", "rope_parameters": {
        "partial_rotary_factor": 0.6}}, [{"rope_parameters": {"partial_rotary_factor": 0.5}},
                                         {"rope_parameters": {"partial_rotary_factor": 1.0}}], "present"),
    "phi3-short": ("Phi3Config", {**SMALL, **PHI3, "hidden_size": 96, "tie_word_embeddings": True,
                                  "original_max_position_embeddings": 64,
                                  "rope_parameters": {**LONGROPE, "partial_rotary_factor": 0.75,
                                                      "short_factor": SHORT_FACTORS, "long_factor": LONG_FACTORS}},
                   [{"original_max_position_embeddings": 32}, {"max_position_embeddings": 64},
                    {"rope_parameters": {"short_factor": 9 * [1.0]}}, {"rope_parameters": {"attention_factor": 1.0}}],
                   "former"),
    "phi3-long": ("Phi3Config", {**SMALL, **PHI3, "hidden_size": 96, "original_max_position_embeddings": 7,
                                 "rope_parameters": {**LONGROPE, "partial_rotary_factor": 0.75,
                                                     "short_factor": SHORT_FACTORS, "long_factor": LONG_FACTORS}},
                  [{"original_max_position_embeddings": 64}, {"max_position_embeddings": 64},
                   {"rope_parameters": {"long_factor": 9 * [1.0]}}, {"rope_parameters": {"attention_factor": 1.0}}],
                  "present"),
}
MODELS |= {
    "granite-scaled": ("GraniteConfig", {**SMALL, "tie_word_embeddings": True, "rope_theta": 1e6,
                                         "embedding_multiplier": 3.0, "residual_multiplier": 0.6,
                                         "attention_multiplier": 0.15, "logits_scaling": 0.75},
                       [{"embedding_multiplier": 1.0}, {"residual_multiplier": 1.0}, {"attention_multiplier": 0.3},
                        {"logits_scaling": 1.0}], "former"),
    "granite-biases": ("GraniteConfig", {**ODD, "hidden_size": 72, "attention_bias": True, "mlp_bias": True,
                                         "residual_multiplier": 0.4},
                       [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES, {"embedding_multiplier": 3.0},
                        {"residual_multiplier": 1.0}, {"attention_multiplier": 0.3}, {"logits_scaling": 0.75}],
                       "present"),
}
MODELS |= {
    "smollm3-tied": ("SmolLM3Config", {**SMALL, "num_hidden_layers": 3, "no_rope_layer_interval": 2,
                                       "tie_word_embeddings": True, "pad_token_id": None, "rope_theta": 5e6},
                     [{"no_rope_layers": 3 * [1]}, {"no_rope_layers": [1, 1, 0]}], "former"),
    "smollm3-windows": ("SmolLM3Config", {**SMALL, "num_hidden_layers": 4, "attention_bias": True, "mlp_bias": True,
                                          "use_sliding_window": True, "sliding_window": 12, "pad_token_id": None,
                                          "no_rope_layers": [0, 0, 1, 1], "tie_word_embeddings": False},
                        [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES, {"no_rope_layers": 4 * [1]},
                         {"sliding_window": 11}, {"sliding_window": 13}, {"layer_types": 4 * ["full_attention"]}],
                        "former"),
    "smollm3-listed": ("SmolLM3Config", {**ODD, "head_dim": 20, "num_hidden_layers": 4, "use_sliding_window": True,
                                         "sliding_window": 12, "pad_token_id": None, "no_rope_layers": [1, 1, 0, 0],
                                         "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                                                         "full_attention"]},
                       [{"no_rope_layers": 4 * [1]}, {"no_rope_layers": [1, 0, 1, 0]}, {"sliding_window": 11},
                        {"layer_types": 4 * ["full_attention"]}], "present"),
    "seed-oss-biases": ("SeedOssConfig", {**SMALL, "head_dim": 20, "attention_out_bias": True, "mlp_bias": True,
                                          "rope_theta": 1e7}, [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES],
                        "present"),
    "seed-oss-odd-dims": ("SeedOssConfig", {**ODD, "head_dim": 24}, BIASES, "former"),
    "internlm3-plain": ("InternLM3Config", {**SMALL, "head_dim": 16, "attention_bias": False, "mlp_bias": False,
                                            "rope_parameters": {"rope_type": "dynamic", "factor": 6.0}},
                        [], "former"),
    "internlm3-biases": ("InternLM3Config", {**SMALL, "head_dim": 20, "attention_bias": True, "mlp_bias": True},
                         [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES], "present"),
    "iquestcoder": ("IQuestCoderConfig", {**SMALL, "head_dim": 20, "num_key_value_heads": 1, "rope_theta": 5e5}, [],
                    "present"),
    "cwm-windows": ("CwmConfig", {**SMALL, "head_dim": 20, "num_hidden_layers": 6, "sliding_window": 12,
                                  "rope_parameters": {"rope_type": "llama3", "rope_theta": 1e6, "factor": 16.0,
                                                      "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                                      "original_max_position_embeddings": 32}},
                    [{"sliding_window": 11}, {"sliding_window": 13}, {"layer_types": 6 * ["full_attention"]},
                     {"layer_types": 6 * ["sliding_attention"]}, {"rope_parameters": {"factor": 2.0}}], "former"),
    "cwm-listed": ("CwmConfig", {**ODD, "hidden_size": 72, "sliding_window": 16, "mlp_bias": True,
                                 "head_dim": 12, "layer_types": ["sliding_attention", "sliding_attention",
                                                                 "full_attention"]},
                   [*MLP_BIASES, {"sliding_window": 15}, {"layer_types": 3 * ["full_attention"]}], "present"),
    "glm-half": ("GlmConfig", {**SMALL, "head_dim": 24, "pad_token_id": None},
                 [*BIASES, {"rope_parameters": {"partial_rotary_factor": 1.0}}], "present"),
    "glm-three-quarters": ("GlmConfig", {**ODD, "head_dim": 16, "pad_token_id": None, "attention_bias": False,
                                         "rope_parameters": {"partial_rotary_factor": 0.75}},
                           [{"rope_parameters": {"partial_rotary_factor": 0.5}}], "former"),
    "ernie4-5-tied": ("Ernie4_5Config", {**SMALL, "head_dim": 20, "tie_word_embeddings": True, "rope_theta": 5e5}, [],
                      "former"),
    "ernie4-5-biases": ("Ernie4_5Config", {**ODD, "head_dim": 24, "use_bias": True, "tie_word_embeddings": False},
                        [*BIASES, "self_attn.o_proj.bias", *MLP_BIASES], "present"),
    "helium-plain": ("HeliumConfig", {**SMALL, "head_dim": 12, "pad_token_id": None}, [], "former"),
    "helium-biases": ("HeliumConfig", {**SMALL, "hidden_size": 80, "head_dim": 20, "pad_token_id": None,
                                       "attention_bias": True, "mlp_bias": True}, [*BIASES, *MLP_BIASES], "present"),
}
MINISTRAL3 = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0, "original_max_position_embeddings": 64,
              "beta_fast": 4.0, "beta_slow": 0.5, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
MODELS |= {
    "arcee-plain": ("ArceeConfig", {**SMALL, "rope_theta": 1e6}, [{"hidden_act": "gelu"}], "former"),
    "arcee-biases": ("ArceeConfig", {**ODD, "hidden_size": 72, "attention_bias": True, "mlp_bias": True,
                                     "tie_word_embeddings": True},
                     [*BIASES, "self_attn.o_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias"], "present"),
    "glm4-half": ("Glm4Config", {**SMALL, "head_dim": 24, "pad_token_id": None},
                  [*BIASES, "post_self_attn_layernorm.weight", "post_mlp_layernorm.weight",
                   {"rope_parameters": {"partial_rotary_factor": 1.0}}], "present"),
    "glm4-plain": ("Glm4Config", {**ODD, "head_dim": 16, "pad_token_id": None, "attention_bias": False,
                                  "rope_parameters": {"partial_rotary_factor": 0.5}},
                   ["post_self_attn_layernorm.weight", "post_mlp_layernorm.weight",
                    {"rope_parameters": {"partial_rotary_factor": 1.0}}], "former"),
    "exaone4-windows": ("Exaone4Config", {**SMALL, "head_dim": 20, "num_hidden_layers": 4, "sliding_window": 12,
                                          "sliding_window_pattern": 2},
                        [*HEAD_NORMS, {"sliding_window": 11}, {"sliding_window": 13},
                         {"layer_types": 4 * ["sliding_attention"]}], "former"),
    "exaone4-full": ("Exaone4Config", {**ODD, "head_dim": 24, "sliding_window": None, "tie_word_embeddings": True,
                                       "layer_types": 3 * ["full_attention"], "dtype": "float32"},
                     [*HEAD_NORMS, {"sliding_window": 64}], "present"),
    "ministral3-yarn": ("Ministral3Config", {**SMALL, "head_dim": 32, "rope_parameters": MINISTRAL3,
                                             "pad_token_id": None},
                        [{"rope_parameters": {"factor": 2.0}}, {"rope_parameters": {"beta_fast": 32.0}}], "present"),
    "ministral3-window": ("Ministral3Config", {**ODD, "head_dim": 24, "rope_parameters": MINISTRAL3,
                                               "sliding_window": 12, "pad_token_id": None},
                          [{"sliding_window": 11}, {"sliding_window": None}], "present"),
    "mistral3-small": ("Mistral3Config", {**SMALL, "model_type": "mistral", "head_dim": 20, "sliding_window": None,
                                          "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
                       [{"sliding_window": 12}], "present"),
    "mistral3-ministral": ("Mistral3Config", {**SMALL, "model_type": "ministral3", "head_dim": 24,
                                              "rope_parameters": MINISTRAL3, "tie_word_embeddings": True,
                                              "pad_token_id": None},
                           [{"rope_parameters": {"factor": 2.0}}], "present"),
}
OLMO3_ROPE = {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4},
              "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}
MODELS |= {
    "olmo2-plain": ("Olmo2Config", {**SMALL, "pad_token_id": None, "rope_theta": 5e5}, HEAD_NORMS, "former"),
    "olmo2-biases": ("Olmo2Config", {**ODD, "hidden_size": 72, "attention_bias": True,
                                     "pad_token_id": None},
                     [*HEAD_NORMS, *BIASES, "self_attn.o_proj.bias"], "present"),
    "olmo3-windows": ("Olmo3Config", {**SMALL, "num_hidden_layers": 4, "sliding_window": 12, "layer_types": GLOBAL,
                                      "rope_parameters": OLMO3_ROPE, "pad_token_id": None},
                      [*HEAD_NORMS, {"sliding_window": 11}, {"sliding_window": 13},
                       {"layer_types": 4 * ["sliding_attention"]},
                       {"rope_parameters": {"full_attention": {"factor": 1.5}}},
                       {"rope_parameters": {"sliding_attention": {"rope_theta": 1e5}}}], "present"),
    "olmo3-former": ("Olmo3Config", {**ODD, "hidden_size": 72, "num_hidden_layers": 4, "sliding_window": 12,
                                     "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 4.0,
                                                      "beta_slow": 0.5, "original_max_position_embeddings": 16},
                                     "rope_theta": 5e5, "pad_token_id": None},
                     [*HEAD_NORMS, {"sliding_window": 11},
                      {"rope_parameters": {"full_attention": {"factor": 2.0}}}], "former"),
}
LATE_NORMS = ["self_attn.query_layernorm.weight", "self_attn.key_layernorm.weight"]
MODELS |= {
    "hunyuan-alpha": ("HunYuanDenseV1Config", {**SMALL, "head_dim": 20, "pad_token_id": None, "rope_parameters": {
        "rope_type": "dynamic", "rope_theta": 1e4, "alpha": 50.0, "factor": 1.0}},
                      [*LATE_NORMS, {"rope_parameters": {"alpha": 5.0}}], "former"),
    "hunyuan-biases": ("HunYuanDenseV1Config", {**ODD, "hidden_size": 72, "head_dim": 16, "attention_bias": True,
                                                "pad_token_id": None},
                       [*LATE_NORMS, *BIASES, "self_attn.o_proj.bias"], "present"),
}
MODELS |= {
    "hyperclovax-post": ("HyperCLOVAXConfig", {**SMALL, "embedding_multiplier": 3.0, "attention_multiplier": 0.15,
                                               "logits_scaling": 1.5},
                         ["post_norm1.weight", "post_norm2.weight", {"attention_multiplier": 0.3},
                          {"logits_scaling": 1.0}], "former"),
    "hyperclovax-bare": ("HyperCLOVAXConfig", {**ODD, "hidden_size": 72, "use_post_norm": False, "attention_bias": True,
                                               "residual_multiplier": 0.5, "mlp_bias": True},
                         [*BIASES, *MLP_BIASES, {"residual_multiplier": 1.0}], "present"),
}
MODELS |= layernorm.MODELS
LONG = {"mistral-window": 208}  # positions: its window leaves whole chunks of the cache behind
EVERY = ["input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "self_attn.q_proj.weight",
         "mlp.gate_proj.weight", {"rms_norm_eps": 3e-2}, {"rope_theta": 5e4}]
GATE_UP = {"mlp.gate_proj.weight": "mlp.gate_up_proj.weight"}
BARE = {"input_layernorm.weight": "post_feedforward_layernorm.weight"}
# Of EVERY, tensors that a class has not, with others in their place.
INSTEAD = {"Phi3Config": {"self_attn.q_proj.weight": "self_attn.qkv_proj.weight", **GATE_UP}, "GlmConfig": GATE_UP,
           "Glm4Config": GATE_UP, "ArceeConfig": {"mlp.gate_proj.weight": "mlp.up_proj.weight"},
           "Exaone4Config": BARE, "Olmo2Config": BARE, "Olmo3Config": BARE}


def config_of(kind, fields):
    fields = {**({} if kind == "GPT2Config" else {"max_position_embeddings": 512}), "dtype": "bfloat16", **fields}
    if kind == "Gemma3Config":
        return transformers.Gemma3Config(
            text_config=fields, vision_config=VISION, mm_tokens_per_image=4, dtype=fields["dtype"], bos_token_id=0,
            eos_token_id=1, image_token_index=1, architectures=["Gemma3ForConditionalGeneration"])
    if kind == "Mistral3Config":
        return transformers.Mistral3Config(
            text_config=fields, vision_config=PIXTRAL, spatial_merge_size=1, dtype=fields["dtype"],
            tie_word_embeddings=fields.get("tie_word_embeddings", False), architectures=[
                "Mistral3ForConditionalGeneration"])
    if kind in ("Gemma3TextConfig", "Olmo3Config"):  # whose rotary embeddings are two
        architecture = kind.replace("TextConfig", "Config").replace("Config", "ForCausalLM")
        return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, architectures=[architecture], **fields)
    if kind in layernorm.WITHOUT_ROTATION:
        return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, architectures=[layernorm.class_of(kind)],
                                           **fields)
    if kind == "GPTNeoXConfig":  # which has names of its own beside the object
        theta, part = fields.pop("rotary_emb_base", 1e4), fields.pop("rotary_pct", 0.25)
        fields["rope_parameters"] = {"rope_theta": theta, "partial_rotary_factor": part,
                                     **fields.get("rope_parameters", {})}
    rope = {"rope_type": "default", "rope_theta": fields.pop("rope_theta", 1e4), **fields.pop("rope_parameters", {})}
    return getattr(transformers, kind)(bos_token_id=0, eos_token_id=1, rope_parameters=rope,
                                       architectures=[kind.replace("Config", "ForCausalLM")], **fields)


def auto_class(config):
    seeing = config.model_type == "mistral3"
    return transformers.AutoModelForImageTextToText if seeing else transformers.AutoModelForCausalLM


def neutral(model):
    """The weight with which a norm multiplies by 1: a Gemma's and a Nemotron's by 1 + w."""
    return 0.0 if "Gemma" in type(model).__name__ or "Nemotron" in type(model).__name__ else 1.0


def set_weights(model, seed):
    """Normal matrices that keep activations of about the size 1, with scores that tell positions apart; biases that
    are not small; norms between 0.4 and 1.6."""
    random = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        if "vision_tower" in name or "multi_modal_projector" in name:
            continue
        part = name.split(".")[-2]
        if name.endswith("weight") and (part.endswith("norm") or part.startswith(("ln_", "post_norm"))):
            p.data = neutral(model) - 0.6 + 1.2 * torch.rand(p.shape, generator=random)
            if "Gemma3" in type(model).__name__ and name.endswith("model.norm.weight"):
                p.data = 3 * (1 + p.data) - 1
        elif name.endswith("bias"):
            p.data = 0.5 * torch.randn(p.shape, generator=random)
        elif part in ("embed_tokens", "embed_in", "word_embeddings", "wte", "wpe", "embed_positions"):
            size = 0.3 if model.config.tie_word_embeddings else 1.0
            if hasattr(model.get_input_embeddings(), "embed_scale"):
                size /= 3  # the root of hidden_size comes on top
            if "Gemma3" in type(model).__name__ and model.config.tie_word_embeddings:
                size /= 2  # or the text repeats an id; the last norm makes up for it
            p.data = size * torch.randn(p.shape, generator=random)
        else:
            gain = 2.0 if part in ("q_proj", "k_proj", "query_key_value", "c_attn") else 1.5
            columns = p.shape[0] if "GPT2" in type(model).__name__ else p.shape[1]
            p.data = gain * columns ** -0.5 * torch.randn(p.shape, generator=random)


def rewrite_config(folder, fields):
    """Puts config.json into the form that published models have: RoPE and the dtype under their former names, no list of
    kinds of layers, and each of fields as it was given, of which transformers drops what has no effect."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    rope = config.pop("rope_parameters", {})
    if "rope_type" in rope:  # for all layers
        neox = config["model_type"] == "gpt_neox"
        config["rotary_emb_base" if neox else "rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:  # beside the object
            config["rotary_pct" if neox else "partial_rotary_factor"] = rope.pop("partial_rotary_factor")
            rope.pop("original_max_position_embeddings", None)
        if rope["rope_type"] != "default":
            config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)
    config.update((field, value) for field, value in fields.items() if field != "rope_parameters")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def merged(old, new):
    return {**old, **{key: merged(old[key], v) if isinstance(v, dict) else v for key, v in new.items()}}


def load(folder, **changes):
    config = transformers.AutoConfig.from_pretrained(folder)
    text = config.get_text_config()
    if "rope_theta" in changes:
        changes = {"rope_parameters": {"full_attention": changes} if "full_attention" in text.rope_parameters else changes}
    if changes:
        fields = {**text.to_dict(), **changes}
        if hasattr(text, "rope_parameters"):
            fields["rope_parameters"] = merged(text.rope_parameters, changes.get("rope_parameters", {}))
        if "max_window_layers" in fields:
            fields.pop("layer_types", None)  # they follow from it
        changed = type(text)(**fields)
        if text is config:
            config = changed
        else:
            config.text_config = changed
    model = auto_class(config).from_pretrained(folder, config=config, dtype=torch.float32,
                                                              attn_implementation="eager").eval()
    for name, scale in model.named_buffers():
        if name.endswith("embed_scale"):  # rounded to the dtype of the embedding, which is that of the files
            scale.data = scale.to(config.dtype).to(torch.float32)
    return model


def logits(model, ids):
    """float32 [len(ids), vocab], in one pass without a cache."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


def unmoved(folder, matters, ids, want):
    """Those of matters whose change moves no logit by MATTERS."""
    out = []
    for what in matters:
        if isinstance(what, dict):
            model = load(folder, **what)
        else:
            model = load(folder)
            tensors = [p for name, p in [*model.named_parameters(), *model.named_buffers()] if name.endswith(what)]
            for p in tensors[-1:]:  # of the last layer
                is_norm = "weight" in what and ("norm" in what or "ln_" in what)
                p.data = torch.full_like(p, neutral(model) if is_norm else 1.0 if "scale" in what else 0.0)
        moved = np.abs(logits(model, ids) - want).max()
        if not moved >= MATTERS:
            out.append(f"{what}: {moved:.2g}")
    return out


def greedy(model, prompt, count):
    """The continuation, and the least margin of the likeliest id in it."""
    ids, margin = list(prompt), np.inf
    for _ in range(count):
        last = logits(model, ids)[-1]
        second, first = np.sort(last)[-2:]
        margin = min(margin, first - second)
        ids.append(int(np.argmax(last)))
    return ids[len(prompt):], margin


def generate(name):
    kind, fields, matters, form = MODELS[name]
    folder = os.path.join(ZOO, name)
    config = config_of(kind, fields)
    for seed in range(100):
        model = auto_class(config).from_config(config, attn_implementation="eager")
        set_weights(model, seed)
        model.to(config.dtype).save_pretrained(folder)
        if form == "former":
            rewrite_config(folder, fields)
        model = load(folder)  # what is computed is of the files
        positions = LONG.get(name, POSITIONS)
        ids = np.random.default_rng(seed).integers(0, fields["vocab_size"], positions).tolist()
        want = logits(model, ids)
        text, margin = greedy(model, ids[:PROMPT], positions - PROMPT)
        instead = INSTEAD.get(kind, {})
        every = [instead.get(what, what) if isinstance(what, str) else what for what in EVERY]
        idle = unmoved(folder, [*(every if "rms_norm_eps" in fields else []), *matters], ids, want)
        if margin >= MARGIN and len(set(text)) >= DISTINCT and not idle:
            break
        print(f"{name}: seed {seed} is passed over: margin {margin:.2g}, {len(set(text))} ids, idle: {idle}")
    else:
        raise RuntimeError(f"{name}: no seed will do")
    np.save(os.path.join(folder, "ref_input_ids.npy"), np.array(ids, np.int32))
    np.save(os.path.join(folder, "ref_logits_f32.npy"), want.astype(np.float32))
    np.save(os.path.join(folder, "ref_greedy_from8.npy"), np.array(text, np.int32))
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: seed {seed}, {size // 1024} KiB, logits up to {np.abs(want).max():.2g}, margin {margin:.2g}, "
          f"{len(set(text))} ids")


def main():
    names = sys.argv[1:] or list(MODELS)
    if unknown := [n for n in names if n not in MODELS]:
        sys.exit(f"{', '.join(unknown)}: not a model; the models are {', '.join(MODELS)}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in names:
        generate(name)


if __name__ == "__main__":
    main()
