"""Models of generate.py some of whose layers have something else in place of attention, in the form of
rmsnorm.MODELS."""

from experts import DOWN
from rmsnorm import SMALL



def without(fields, *names):
    return {key: value for key, value in fields.items() if key not in names}


PLAIN = without(SMALL, "rms_norm_eps")
LFM2 = {**PLAIN, "num_hidden_layers": 4, "norm_eps": 1e-3}
DELTA = {**SMALL, "num_hidden_layers": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8,
         "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 6, "head_dim": 16,
         "rope_theta": 1e2}  # a quarter of a head turns, by two frequencies: both are to tell positions apart
RULE = ["linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight", "linear_attn.in_proj_b.weight",
        "linear_attn.in_proj_a.weight", "linear_attn.conv1d.weight", "linear_attn.A_log", "linear_attn.dt_bias",
        "linear_attn.norm.weight", "linear_attn.out_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight"]
MIXED = {"layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"]}
PARTS = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e2, "partial_rotary_factor": 0.5,
                             "mrope_section": [2, 1, 1], "mrope_interleaved": True}}
ROUTED = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 20, "shared_expert_intermediate_size": 28}
SHARED = [DOWN, "mlp.gate.weight", "shared_expert.down_proj.weight", "shared_expert_gate.weight",
          {"num_experts_per_tok": 2}]
NEXT = ["linear_attn.in_proj_qkvz.weight", "linear_attn.in_proj_ba.weight", *RULE[4:]]
CONV = ["operator_norm.weight", "ffn_norm.weight", "embedding_norm.weight", "conv.in_proj.weight", "conv.conv.weight",
        "conv.out_proj.weight", "self_attn.q_proj.weight", "self_attn.q_layernorm.weight", "self_attn.out_proj.weight",
        {"norm_eps": 3e-2}, {"rope_theta": 5e4}]
MODELS = {
    "lfm2-former": ("Lfm2Config", {**LFM2, "full_attn_idxs": [1, 3], "block_auto_adjust_ff_dim": True,
                                   "block_multiple_of": 20, "block_ffn_dim_multiplier": 1.3},
                    [*CONV, "feed_forward.w1.weight"], "former"),
    "lfm2-biases": ("Lfm2Config", {**LFM2, "conv_bias": True, "conv_L_cache": 5, "tie_word_embeddings": False,
                                   "block_auto_adjust_ff_dim": False,
                                   "layer_types": ["conv", "conv", "full_attention", "conv"]},
                    [*CONV, "feed_forward.w1.weight", "conv.in_proj.bias", "conv.conv.bias", "conv.out_proj.bias"],
                    "present"),
    "qwen3-5-text": ("Qwen3_5TextConfig", {**DELTA, "rope_parameters": {"partial_rotary_factor": 0.25},
        "layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"]}, RULE, "present"),
    "qwen3-5-tied": ("Qwen3_5TextConfig", {**DELTA, "attention_bias": True, "tie_word_embeddings": True,
                                           "linear_num_value_heads": 4, "linear_key_head_dim": 16,
                                           "linear_conv_kernel_dim": 3},
                     [*RULE, "self_attn.q_proj.bias"], "present"),
    "qwen3-5": ("Qwen3_5Config", {**without(DELTA, "rope_theta"), **MIXED, **PARTS}, RULE, "present"),
    "qwen3-5-moe": ("Qwen3_5MoeConfig", {**without(DELTA, "rope_theta", "intermediate_size"), **MIXED, **PARTS, **ROUTED},
                    [*RULE, *SHARED], "stacked"),
    "qwen3-5-moe-text": ("Qwen3_5MoeTextConfig", {**without(DELTA, "intermediate_size"), **ROUTED, "attention_bias": True,
        "tie_word_embeddings": True, "linear_conv_kernel_dim": 2, "rope_parameters": {"partial_rotary_factor": 0.25},
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"]},
                         [*RULE, *SHARED, "self_attn.o_proj.bias"], "present"),
    "qwen3-next": ("Qwen3NextConfig", {**DELTA, **ROUTED, "num_hidden_layers": 5, "mlp_only_layers": [2],
                                       "full_attention_interval": 2, "partial_rotary_factor": 0.5},
                   [*NEXT, *SHARED, "mlp.down_proj.weight", {"norm_topk_prob": False}], "former"),
    "lfm2-moe": ("Lfm2MoeConfig", {**LFM2, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 20,
                                   "num_dense_layers": 1, "routed_scaling_factor": 1.5,
                                   "layer_types": ["conv", "full_attention", "conv", "conv"]},
                 [*CONV, "experts.down_proj", "feed_forward.gate.weight", "expert_bias",
                  {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False}, {"num_experts_per_tok": 2}], "present"),
}
