"""Models of generate.py whose layers have experts, in the form of rmsnorm.MODELS."""

import json
import os
import re

import torch
from safetensors.torch import load_file, save_file

from rmsnorm import SMALL

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16, "truncate": False}
ROUTED = {**SMALL, "num_experts_per_tok": 2}
QWEN = {**ROUTED, "num_experts": 6, "moe_intermediate_size": 20}
FUSED = {"mlp.gate_proj.weight": "experts.gate_up_proj"}
# Of generate.EVERY, the first half of experts in place of an MLP's.
INSTEAD = {kind: FUSED for kind in ("Qwen3MoeConfig", "MixtralConfig", "OlmoeConfig", "Qwen2MoeConfig", "GptOssConfig",
                                    "GraniteMoeConfig", "GraniteMoeSharedConfig", "Glm4MoeConfig", "SolarOpenConfig",
                                    "Dots1Config", "Ernie4_5_MoeConfig", "PhimoeConfig", "MiniMaxM2Config",
                                    "Qwen3_5MoeConfig", "Qwen3_5MoeTextConfig", "Qwen3NextConfig")}
INSTEAD["FlexOlmoConfig"] = {**FUSED, "input_layernorm.weight": "post_feedforward_layernorm.weight"}
DOWN = "experts.down_proj"
SINKS = ["self_attn.sinks", "router.bias", "gate_up_proj_bias", "down_proj_bias", {"swiglu_limit": 4.0},
         {"swiglu_alpha": 1.2}]
SCORED = {**ROUTED, "moe_intermediate_size": 20, "n_shared_experts": 2, "routed_scaling_factor": 1.5,
          "num_hidden_layers": 3}
GROUPS = {"n_routed_experts": 8, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 3}
BIAS = "e_score_correction_bias"
LONG = {"rope_type": "longrope", "rope_theta": 1e4, "short_mscale": 1.2, "long_mscale": 1.4,
        "original_max_position_embeddings": 64, "short_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
        "long_factor": [1.0, 2.0, 4.0, 6.0, 8.0, 9.0]}
MODELS = {
    "glm4-moe-groups": ("Glm4MoeConfig", {**SCORED, **GROUPS, "head_dim": 16, "attention_bias": True,
                                          "first_k_dense_replace": 1, "partial_rotary_factor": 0.5},
                        [DOWN, "mlp.gate.weight", BIAS, "shared_experts.down_proj.weight", "q_proj.bias",
                         {"n_group": 1, "topk_group": 1}, {"topk_group": 3}, {"norm_topk_prob": False},
                         {"routed_scaling_factor": 1.0}, {"num_experts_per_tok": 2}], "former"),
    "glm4-moe-head-norms": ("Glm4MoeConfig", {**SCORED, "n_routed_experts": 6, "use_qk_norm": True, "head_dim": 24,
                                              "norm_topk_prob": False, "first_k_dense_replace": 2,
                                              "tie_word_embeddings": True},
                            [DOWN, BIAS, "self_attn.q_norm.weight", {"norm_topk_prob": True}], "present"),
    "solar-open": ("SolarOpenConfig", {**SCORED, "n_routed_experts": 6, "head_dim": 12, "n_shared_experts": 1},
                   [DOWN, BIAS, "mlp.gate.weight", {"routed_scaling_factor": 1.0}, {"norm_topk_prob": False}], "former"),
    "dots1-windows": ("Dots1Config", {**SCORED, **GROUPS, "head_dim": 16, "first_k_dense_replace": 1,
                                      "norm_topk_prob": True, "sliding_window": 13, "max_window_layers": 1,
                                      "attention_bias": True},
                      [DOWN, BIAS, "mlp.gate.weight", "self_attn.k_norm.weight", {"sliding_window": 20},
                       {"norm_topk_prob": False}, {"topk_group": 3}], "former"),
    "ernie4-5-moe-biases": ("Ernie4_5_MoeConfig", {**SMALL, "moe_k": 3, "moe_num_experts": 6, "use_bias": True,
                                                   "moe_intermediate_size": 20, "num_hidden_layers": 4,
                                                   "moe_layer_start_index": 1, "moe_layer_end_index": 2,
                                                   "moe_norm_min": 0.7, "tie_word_embeddings": False},
                            [DOWN, BIAS, "mlp.gate.weight", "shared_experts.down_proj.bias", "lm_head.bias",
                             {"moe_norm_min": 1e-12}, {"moe_k": 2}], "former"),
    "ernie4-5-moe-tied": ("Ernie4_5_MoeConfig", {**SMALL, "moe_k": 2, "moe_num_experts": 5, "num_hidden_layers": 4,
                                                 "moe_intermediate_size": 20, "moe_num_shared_experts": 0,
                                                 "moe_layer_start_index": 0, "moe_layer_interval": 2,
                                                 "tie_word_embeddings": True},
                          [DOWN, BIAS, "mlp.gate.weight", {"moe_k": 3}], "present"),
    "phimoe-long": ("PhimoeConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 6, "lm_head_bias": True,
                                     "attention_bias": True, "router_jitter_noise": 0.2, "rope_parameters": LONG},
                    [DOWN, "mlp.router.weight", "lm_head.bias", {"router_jitter_noise": 0.01}], "former"),
    "phimoe-window": ("PhimoeConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 5, "sliding_window": 14},
                      [DOWN, "mlp.router.weight", {"router_jitter_noise": 0.2}, {"sliding_window": 20}], "former"),
    "minimax-m2-part": ("MiniMaxM2Config", {**ROUTED, "intermediate_size": 20, "num_local_experts": 6, "head_dim": 16,
                                            "num_experts_per_tok": 3, "partial_rotary_factor": 0.5},
                        [DOWN, BIAS, "mlp.gate.weight", "self_attn.q_norm.weight", {"num_experts_per_tok": 2}], "former"),
    "flex-olmo": ("FlexOlmoConfig", {**ROUTED, "pad_token_id": 0, "intermediate_size": 20, "num_experts": 6, "num_experts_per_tok": 3,
                                     "norm_topk_prob": True},
                  [DOWN, "mlp.gate.weight", "self_attn.k_norm.weight", {"num_experts_per_tok": 2}], "former"),
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
    "gpt-oss-mxfp4": ("GptOssConfig", {**ROUTED, "hidden_size": 64, "intermediate_size": 32, "num_local_experts": 4,
                                       "head_dim": 16, "sliding_window": 12, "rope_parameters": YARN},
                      [*SINKS[:4], {"num_experts_per_tok": 1}], "mxfp4"),
    "granite-moe-scaled": ("GraniteMoeConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 6,
                                                "embedding_multiplier": 2.5, "attention_multiplier": 0.2,
                                                "residual_multiplier": 0.7, "logits_scaling": 1.5},
                           [DOWN, "router.weight", {"num_experts_per_tok": 3}, {"residual_multiplier": 0.9}], "former"),
    "granite-moe-shared": ("GraniteMoeSharedConfig", {**ROUTED, "intermediate_size": 20, "num_local_experts": 5,
                                                      "shared_intermediate_size": 36, "tie_word_embeddings": True,
                                                      "residual_multiplier": 0.8, "attention_multiplier": 0.25},
                           [DOWN, "router.weight", "shared_mlp.output_linear.weight"], "former"),
}


E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def store_mxfp4(folder):
    """Rounds the matrices of experts to MXFP4, and stores them as gpt-oss is published: as transposed blocks."""
    path = os.path.join(folder, "model.safetensors")
    state = load_file(path)
    for name in [name for name in state if name.endswith(("gate_up_proj", "down_proj"))]:
        w = state.pop(name).float().transpose(1, 2)
        groups = w.reshape(*w.shape[:2], -1, 32)
        exponent = torch.floor(torch.log2(groups.abs().amax(3))) - 2
        scaled = groups / torch.exp2(exponent)[..., None]
        code = (scaled.abs()[..., None] - E2M1).abs().argmin(4).to(torch.uint8) + 8 * (scaled < 0).to(torch.uint8)
        state[name + "_blocks"] = (code[..., 0::2] + 16 * code[..., 1::2]).contiguous()
        state[name + "_scales"] = (exponent + 127).to(torch.uint8)
    save_file(state, path, metadata={"format": "pt"})
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def store_stacked(folder):
    """Stores the matrices of all experts as one tensor each, as Qwen3.5 is published."""
    path = os.path.join(folder, "model.safetensors")
    state = load_file(path)
    of = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")
    found = {}
    for name in list(state):
        if match := of.fullmatch(name):
            found.setdefault(match[1], {})[int(match[2]), match[3]] = state.pop(name)
    for layer, w in found.items():
        count = 1 + max(expert for expert, _ in w)
        state[layer + ".gate_up_proj"] = torch.stack([torch.cat([w[e, "gate"], w[e, "up"]]) for e in range(count)])
        state[layer + ".down_proj"] = torch.stack([w[e, "down"] for e in range(count)])
    save_file(state, path, metadata={"format": "pt"})
