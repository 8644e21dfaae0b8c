"""Models of generate.py whose families have LayerNorm: all that must move their logits is listed in their rows."""

WITHOUT_ROTATION = ["GPT2Config", "OPTConfig", "BloomConfig"]  # that learn positions, or have none


def class_of(kind):
    """The class of a config that generates text."""
    return "GPT2LMHeadModel" if kind == "GPT2Config" else kind.replace("Config", "ForCausalLM")


PARTIAL = {"rope_parameters": {"partial_rotary_factor": 0.5}}
SMALL = {"hidden_size": 64, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4,
         "vocab_size": 223}
ODD = {"hidden_size": 72, "intermediate_size": 70, "num_hidden_layers": 3, "num_attention_heads": 6, "vocab_size": 211}
ATTENTION = ["self_attn.q_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight"]
BIASES = ["self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"]
NORMS = ["input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight", "input_layernorm.bias",
         "post_attention_layernorm.bias", "model.norm.bias"]
STARCODER2 = [*NORMS, *ATTENTION, "mlp.c_fc.weight", {"norm_epsilon": 3e-2}, {"rope_theta": 5e4}]
STABLELM = ["input_layernorm.weight", "input_layernorm.bias", "model.norm.bias", *ATTENTION, "mlp.gate_proj.weight",
            {"layer_norm_eps": 3e-2}, {"rope_theta": 5e4}]
NEMOTRON = [*NORMS, *ATTENTION, "mlp.up_proj.weight", {"norm_eps": 3e-2}, {"rope_theta": 5e4}, {"hidden_act": "relu"}]
NEOX = ["input_layernorm.weight", "input_layernorm.bias", "post_attention_layernorm.weight",
        "post_attention_layernorm.bias", "final_layer_norm.bias", "attention.query_key_value.weight",
        "attention.dense.weight", "mlp.dense_h_to_4h.weight", "mlp.dense_4h_to_h.bias", {"layer_norm_eps": 3e-2},
        {"rope_theta": 5e4}, {"hidden_act": "relu"}]
PHI = ["input_layernorm.weight", "input_layernorm.bias", "final_layernorm.bias", *ATTENTION[:2],
       "self_attn.dense.weight", *BIASES, "self_attn.dense.bias", "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.bias",
       "lm_head.bias", {"layer_norm_eps": 3e-2}, {"rope_theta": 5e4}, {"hidden_act": "relu"}]
FALCON = ["ln_f.weight", "ln_f.bias", "self_attention.query_key_value.weight", "self_attention.dense.weight",
          "mlp.dense_h_to_4h.weight", "mlp.dense_4h_to_h.weight", {"layer_norm_epsilon": 3e-2}, {"rope_theta": 5e4},
          {"activation": "relu"}]
FALCON_BIASES = ["self_attention.query_key_value.bias", "self_attention.dense.bias", "mlp.dense_h_to_4h.bias",
                 "mlp.dense_4h_to_h.bias"]
FALCON_SMALL = {"hidden_size": 60, "num_hidden_layers": 3, "num_attention_heads": 5, "vocab_size": 223,
                "layer_norm_epsilon": 1e-5}
COHERE = ["input_layernorm.weight", "model.norm.weight", *ATTENTION, "mlp.gate_proj.weight", {"layer_norm_eps": 3e-2},
          {"rope_theta": 5e4}, {"logit_scale": 0.25}]
OPT = ["embed_positions.weight", "self_attn.q_proj.weight", "self_attn.out_proj.weight", "fc1.weight", "fc2.weight"]
OLMO = [*ATTENTION, "mlp.gate_proj.weight", {"rope_theta": 5e4}]

MODELS = {
    "starcoder2-tied": ("Starcoder2Config", {
        "hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 223, "norm_epsilon": 1e-5, "sliding_window": 12},
                        [*STARCODER2, *BIASES, "self_attn.o_proj.bias", "mlp.c_fc.bias", "mlp.c_proj.bias",
                         {"sliding_window": 11}, {"sliding_window": 13}, {"hidden_act": "relu"}], "former"),
    "starcoder2-plain": ("Starcoder2Config", {
        "hidden_size": 44, "intermediate_size": 70, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 3, "vocab_size": 211, "head_dim": 20, "norm_epsilon": 1e-3, "use_bias": False,
        "hidden_act": "gelu", "tie_word_embeddings": False, "dtype": "float32"},
                         [*STARCODER2, {"sliding_window": 24}, {"hidden_act": "relu"}], "present"),
    "stablelm-parallel": ("StableLmConfig", {**SMALL, "num_key_value_heads": 2, "use_parallel_residual": True,
                                             "use_qkv_bias": True, "layer_norm_eps": 1e-5, **PARTIAL},
                          [*STABLELM, *BIASES, {"use_parallel_residual": False},
                           {"rope_parameters": {"partial_rotary_factor": 0.25}}], "former"),
    "stablelm-odd-dims": ("StableLmConfig", {**ODD, "num_key_value_heads": 3, "layer_norm_eps": 1e-3,
                                             "tie_word_embeddings": True, "dtype": "float32",
                                             "rope_parameters": {"partial_rotary_factor": 0.5}},
                          [*STABLELM, "post_attention_layernorm.weight", "post_attention_layernorm.bias"], "present"),
    "nemotron-half": ("NemotronConfig", {**SMALL, "num_key_value_heads": 2, "norm_eps": 1e-5},
                      [*NEMOTRON, {"rope_parameters": {"partial_rotary_factor": 1.0}}], "former"),
    "nemotron-biases": ("NemotronConfig", {**ODD, "num_key_value_heads": 1, "head_dim": 20, "norm_eps": 1e-3,
                                           "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
                                           "rope_parameters": {"partial_rotary_factor": 1.0}},
                        [*NEMOTRON, *BIASES, "self_attn.o_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias"],
                        "present"),
    "gpt-neox-parallel": ("GPTNeoXConfig", {**SMALL, "rotary_emb_base": 1e4, "rotary_pct": 0.25},
                          [*NEOX, "attention.query_key_value.bias", "attention.dense.bias",
                           {"use_parallel_residual": False}, {"rope_parameters": {"partial_rotary_factor": 0.5}}],
                          "former"),
    "gpt-neox-sequential": ("GPTNeoXConfig", {**ODD, "layer_norm_eps": 1e-3, "use_parallel_residual": False,
                                              "attention_bias": False, "tie_word_embeddings": True,
                                              "hidden_act": "gelu_fast", "dtype": "float32",
                                              "rope_parameters": {"partial_rotary_factor": 1.0}},
                            [*NEOX, {"use_parallel_residual": True}], "present"),
    "phi-half": ("PhiConfig", {**SMALL, **PARTIAL}, [*PHI, {"rope_parameters": {"partial_rotary_factor": 1.0}}],
                 "former"),
    "phi-odd-dims": ("PhiConfig", {**ODD, "num_key_value_heads": 3, "hidden_act": "gelu", "layer_norm_eps": 1e-3,
                                   "tie_word_embeddings": True, "rope_parameters": {"partial_rotary_factor": 0.4}},
                     PHI, "present"),
    "falcon-multi-query": ("FalconConfig", FALCON_SMALL, [
        *FALCON, "input_layernorm.weight", "input_layernorm.bias", {"parallel_attn": False}], "former"),
    "falcon-sequential": ("FalconConfig", {**FALCON_SMALL, "multi_query": False, "parallel_attn": False, "bias": True,
                                           "ffn_hidden_size": 88, "tie_word_embeddings": False},
                          [*FALCON, *FALCON_BIASES, "input_layernorm.weight", "post_attention_layernorm.weight",
                           "post_attention_layernorm.bias"], "present"),
    "falcon-groups": ("FalconConfig", {**FALCON_SMALL, "hidden_size": 64, "num_attention_heads": 8, "num_kv_heads": 2,
                                       "new_decoder_architecture": True},
                      [*FALCON, "ln_attn.weight", "ln_mlp.weight", "ln_attn.bias", "ln_mlp.bias"], "present"),
    "falcon-groups-one-norm": ("FalconConfig", {**FALCON_SMALL, "num_attention_heads": 3, "num_kv_heads": 3,
                                                "new_decoder_architecture": True, "num_ln_in_parallel_attn": 1,
                                                "activation": "gelu_new", "dtype": "float32"},
                               [*FALCON, "input_layernorm.weight", "input_layernorm.bias"], "former"),
    "cohere-tied": ("CohereConfig", {**SMALL, "num_key_value_heads": 2, "logit_scale": 0.75, "pad_token_id": None},
                    COHERE, "former"),
    "cohere-biases": ("CohereConfig", {**ODD, "num_key_value_heads": 3, "logit_scale": 1.5, "attention_bias": True,
                                       "tie_word_embeddings": False, "layer_norm_eps": 1e-3, "pad_token_id": None,
                                       "dtype": "float32"},
                      [*COHERE, *BIASES, "self_attn.o_proj.bias"], "present"),
    "cohere2-tied": ("Cohere2Config", {**SMALL, "num_hidden_layers": 4, "num_key_value_heads": 2, "logit_scale": 0.75,
                                       "sliding_window": 12, "sliding_window_pattern": 3, "pad_token_id": None},
                     [*COHERE, {"sliding_window": 11}, {"sliding_window": 13},
                      {"layer_types": 4 * ["sliding_attention"]}, {"layer_types": 4 * ["full_attention"]}], "former"),
    "cohere2-listed": ("Cohere2Config", {**ODD, "num_key_value_heads": 1, "logit_scale": 1.0, "attention_bias": True,
                                         "tie_word_embeddings": False, "sliding_window": 17, "pad_token_id": None,
                                         "layer_types": ["full_attention", "full_attention", "sliding_attention"]},
                       [*COHERE, *BIASES, "self_attn.o_proj.bias", {"sliding_window": 16},
                        {"layer_types": 3 * ["sliding_attention"]}], "present"),
    "cohere2-head-dim": ("Cohere2Config", {**ODD, "head_dim": 14, "num_key_value_heads": 2, "logit_scale": 0.75,
                                           "sliding_window": 9, "sliding_window_pattern": 3, "pad_token_id": None},
                         [*COHERE, {"sliding_window": 8}, {"layer_types": 3 * ["sliding_attention"]}], "present"),
    "gpt2-odd-dims": ("GPT2Config", {"n_embd": 72, "n_layer": 3, "n_head": 6, "n_inner": 70, "vocab_size": 211,
                                     "n_positions": 64, "activation_function": "gelu", "layer_norm_epsilon": 1e-3,
                                     "tie_word_embeddings": False, "dtype": "float32"},
                      ["transformer.wpe.weight", "ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias", "ln_f.weight",
                       "ln_f.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
                       "attn.c_proj.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight",
                       "mlp.c_proj.bias", {"layer_norm_epsilon": 0.3}, {"activation_function": "relu"}], "present"),
    "opt-tied": ("OPTConfig", {"hidden_size": 64, "ffn_dim": 88, "num_hidden_layers": 3, "num_attention_heads": 4,
                               "vocab_size": 223, "word_embed_proj_dim": 64, "max_position_embeddings": 64,
                               "pad_token_id": None},
                 [*OPT, "self_attn_layer_norm.weight", "layers.2.final_layer_norm.bias",
                  "decoder.final_layer_norm.weight", BIASES[0], BIASES[2], "self_attn.out_proj.bias", "fc1.bias",
                  "fc2.bias", {"activation_function": "gelu"}],
                 "former"),
    "opt-plain": ("OPTConfig", {"hidden_size": 60, "ffn_dim": 70, "num_hidden_layers": 3, "num_attention_heads": 5,
                                "vocab_size": 211, "max_position_embeddings": 64, "enable_bias": False,
                                "layer_norm_elementwise_affine": False, "activation_function": "gelu",
                                "tie_word_embeddings": False, "pad_token_id": None, "dtype": "float32"},
                  [*OPT, {"activation_function": "relu"}], "present"),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 223,
                               "tie_word_embeddings": False}, [], "present"),
    "stablelm-head-norms": ("StableLmConfig", {**SMALL, "num_key_value_heads": 2, "use_parallel_residual": True,
                                               "qk_layernorm": True, "use_qkv_bias": True, **PARTIAL},
                            [*STABLELM, *BIASES, "self_attn.q_layernorm.norms.3.weight",
                             "self_attn.k_layernorm.norms.1.weight"], "former"),
    "phi-head-norms": ("PhiConfig", {**SMALL, "num_key_value_heads": 2, "qk_layernorm": True, **PARTIAL},
                       [*ATTENTION[:2], "self_attn.dense.weight", "self_attn.v_proj.bias", "mlp.fc1.weight",
                        "self_attn.q_layernorm.weight", "self_attn.q_layernorm.bias", "self_attn.k_layernorm.weight",
                        {"layer_norm_eps": 0.3}, {"rope_parameters": {"partial_rotary_factor": 1.0}}], "former"),
    "cohere-head-norms": ("CohereConfig", {**SMALL, "num_key_value_heads": 2, "logit_scale": 0.75,
                                           "use_qk_norm": True, "pad_token_id": None},
                          [*COHERE, "self_attn.q_norm.weight", "self_attn.k_norm.weight"], "former"),
    "cohere-head-norms-odd": ("CohereConfig", {**ODD, "num_key_value_heads": 1, "logit_scale": 1.5,
                                               "use_qk_norm": True, "tie_word_embeddings": False,
                                               "layer_norm_eps": 1e-3, "pad_token_id": None, "dtype": "float32"},
                              [*COHERE, "self_attn.q_norm.weight", "self_attn.k_norm.weight"], "present"),
    "olmo-plain": ("OlmoConfig", {**SMALL, "num_key_value_heads": 2, "pad_token_id": None}, OLMO, "former"),
    "olmo-biases": ("OlmoConfig", {**ODD, "num_key_value_heads": 3, "attention_bias": True, "pad_token_id": None,
                                   "tie_word_embeddings": True},
                    [*OLMO, *BIASES, "self_attn.o_proj.bias"], "present"),
    "olmo-clipped": ("OlmoConfig", {**ODD, "num_key_value_heads": 2, "attention_bias": True, "clip_qkv": 1.25,
                                    "pad_token_id": None},
                     [*OLMO, *BIASES, {"clip_qkv": None}, {"clip_qkv": 1.5}], "former"),
}
