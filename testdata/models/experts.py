"""Models of generate.py whose layers have experts, in the form of rmsnorm.MODELS."""

from rmsnorm import SMALL

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16, "truncate": False}
ROUTED = {**SMALL, "num_experts_per_tok": 2}
QWEN = {**ROUTED, "num_experts": 6, "moe_intermediate_size": 20}
FUSED = {"mlp.gate_proj.weight": "experts.gate_up_proj"}
# Of generate.EVERY, the first half of experts in place of an MLP's.
INSTEAD = {kind: FUSED for kind in ("Qwen3MoeConfig", "MixtralConfig", "OlmoeConfig", "Qwen2MoeConfig", "GptOssConfig",
                                    "GraniteMoeConfig", "GraniteMoeSharedConfig")}
DOWN = "experts.down_proj"
SINKS = ["self_attn.sinks", "router.bias", "gate_up_proj_bias", "down_proj_bias", {"swiglu_limit": 4.0},
         {"swiglu_alpha": 1.2}]
MODELS = {
    "qwen3-moe-dense-layer": ("Qwen3MoeConfig", {**QWEN, "head_dim": 20, "num_hidden_layers": 4, "mlp_only_layers": [2],
                                                 "norm_topk_prob": True, "num_experts_per_tok": 3},
                              [DOWN, "mlp.gate.weight", {"norm_topk_prob": False}, {"num_experts_per_tok": 2}],
                              "former"),
    "qwen3-moe-windows": ("Qwen3MoeConfig", {**QWEN, "head_dim": 12, "num_hidden_layers": 4, "decoder_sparse_step": 2,
                                             "use_sliding_window": True, "sliding_window": 13, "attention_bias": True},
                          [DOWN, "mlp.gate.weight", "mlp.down_proj.weight", {"sliding_window": 20},
                           {"norm_topk_prob": True}, {"num_experts_per_tok": 1}], "present"),
    "mixtral-window": ("MixtralConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 5, "sliding_window": 14},
                       [DOWN, "mlp.gate.weight", {"num_experts_per_tok": 1}, {"sliding_window": 20}], "former"),
    "olmoe-plain": ("OlmoeConfig", {**ROUTED, "intermediate_size": 20, "num_experts": 7, "num_experts_per_tok": 3},
                    [DOWN, "mlp.gate.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
                     {"norm_topk_prob": True}], "former"),
    "qwen2-moe-shared": ("Qwen2MoeConfig", {**QWEN, "shared_expert_intermediate_size": 36, "mlp_only_layers": [1],
                                            "norm_topk_prob": True},
                         [DOWN, "mlp.gate.weight", "shared_expert.down_proj.weight", "shared_expert_gate.weight",
                          "mlp.down_proj.weight", {"norm_topk_prob": False}], "former"),
    "gpt-oss-sinks": ("GptOssConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 6, "head_dim": 16,
                                       "num_experts_per_tok": 3, "sliding_window": 12, "swiglu_limit": 1.5,
                                       "num_hidden_layers": 4, "rope_parameters": YARN},
                      [DOWN, *SINKS, {"sliding_window": 18}, {"num_experts_per_tok": 2}], "present"),
    "granite-moe-scaled": ("GraniteMoeConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 6,
                                                "embedding_multiplier": 2.5, "attention_multiplier": 0.2,
                                                "residual_multiplier": 0.7, "logits_scaling": 1.5},
                           [DOWN, "router.weight", {"num_experts_per_tok": 3}, {"residual_multiplier": 0.9}], "former"),
    "granite-moe-shared": ("GraniteMoeSharedConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 5,
                                                      "shared_intermediate_size": 36, "tie_word_embeddings": True,
                                                      "residual_multiplier": 0.8, "attention_multiplier": 0.25},
                           [DOWN, "router.weight", "shared_mlp.output_linear.weight"], "former"),
}
