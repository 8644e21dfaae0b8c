"""Models of generate.py that have several parts, of which amkc compiles the language model. A row is one of rmsnorm.py
whose fields are those of the language model. The weights of the other parts stay as they are initialised: no text
depends on them.

COMPOSITES has what the class of the config takes beside the language model: fields, the other parts among them.
"""

import copy

import layernorm
from layernorm import COHERE
from rmsnorm import BIASES, HEAD_NORMS, ODD, PIXTRAL, SMALL, VISION

CLIP = {**VISION, "model_type": "clip_vision_model", "projection_dim": 16}
IDEFICS = {key: v for key, v in VISION.items() if key != "model_type"}
GEMMA4 = {**IDEFICS, "num_key_value_heads": 2, "head_dim": 8, "position_embedding_size": 16,
          "model_type": "gemma4_vision"}
INTERN = {**IDEFICS, "num_attention_heads": 2}
QWEN2 = {"depth": 1, "embed_dim": 16, "num_heads": 2, "patch_size": 14}
QWEN25 = {"depth": 1, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "patch_size": 14,
          "fullatt_block_indexes": [0]}
QWEN3 = {"depth": 1, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "patch_size": 14,
         "deepstack_visual_indexes": [0], "num_position_embeddings": 16}
QWEN35 = {key: v for key, v in QWEN3.items() if key != "deepstack_visual_indexes"}
COMPOSITES = {
    "AyaVisionConfig": {"vision_config": VISION, "image_token_index": 1},
    "Cohere2VisionConfig": {"vision_config": VISION, "image_token_id": 1, "alignment_intermediate_size": 32},
    "Gemma3Config": {"vision_config": VISION, "mm_tokens_per_image": 4, "image_token_index": 1},
    "Gemma4Config": {"vision_config": GEMMA4, "image_token_id": 400, "video_token_id": 401, "audio_token_id": 402},
    "Idefics3Config": {"vision_config": IDEFICS, "image_token_id": 1},
    "InternVLConfig": {"vision_config": INTERN, "image_token_id": 1},
    "LlavaConfig": {"vision_config": CLIP, "image_token_index": 1},
    "LlavaNextConfig": {"vision_config": CLIP, "image_token_index": 1},
    "LlavaOnevisionConfig": {"vision_config": VISION, "image_token_index": 1, "video_token_index": 2},
    "Mistral3Config": {"vision_config": PIXTRAL, "spatial_merge_size": 1},
    "Qwen2VLConfig": {"vision_config": QWEN2, "image_token_id": 1, "video_token_id": 2},
    "Qwen2_5_VLConfig": {"vision_config": QWEN25, "image_token_id": 1, "video_token_id": 2},
    "Qwen3_5Config": {"vision_config": QWEN35, "image_token_id": 1, "video_token_id": 2},
    "Qwen3_5MoeConfig": {"vision_config": QWEN35, "image_token_id": 1, "video_token_id": 2},
    "Qwen3VLConfig": {"vision_config": QWEN3, "image_token_id": 1, "video_token_id": 2},
    "SmolVLMConfig": {"vision_config": IDEFICS, "image_token_id": 1},
}
GEMMAS = ("Gemma3Config", "Gemma4Config")  # whose embeddings are tied unless the config says otherwise
# What a part has that takes the size of the language model from its own config.
SIZED = {"Qwen2VLConfig": "hidden_size", "Qwen2_5_VLConfig": "out_hidden_size", "Qwen3VLConfig": "out_hidden_size",
         "Qwen3_5Config": "out_hidden_size", "Qwen3_5MoeConfig": "out_hidden_size"}


def parts(kind, fields):
    """What the class of a config takes for a language model of these fields."""
    more = {"text_config": copy.deepcopy(fields), **COMPOSITES[kind]}
    if kind in SIZED:
        more["vision_config"] = {**more["vision_config"], SIZED[kind]: fields["hidden_size"]}
    return more


def config_of(transformers, kind, fields):
    """The config of a composite whose language model has the fields."""
    own = {"bos_token_id": 0, "eos_token_id": 1} if kind in GEMMAS else {}
    tied = fields.get("tie_word_embeddings", kind in GEMMAS)
    return getattr(transformers, kind)(**own, **parts(kind, fields), tie_word_embeddings=tied, dtype=fields["dtype"],
                                       architectures=[kind.replace("Config", "ForConditionalGeneration")])


WINDOWS = {"sliding_window": 12, "sliding_window_pattern": 3, "num_hidden_layers": 4, "pad_token_id": None}
MODELS = {
    "aya-vision": ("AyaVisionConfig", {**layernorm.SMALL, **WINDOWS, "model_type": "cohere2", "logit_scale": 0.75,
                                       "tie_word_embeddings": True},
                   [*COHERE[:-1], {"sliding_window": 11}, {"layer_types": 4 * ["full_attention"]}], "present"),
    "cohere2-vision": ("Cohere2VisionConfig", {**layernorm.ODD, **WINDOWS, "model_type": "cohere2", "logit_scale": 1.0,
                                               "tie_word_embeddings": False},
                       [*COHERE[:-1], {"sliding_window": 13}], "present"),
    "idefics3": ("Idefics3Config", {**SMALL, "model_type": "llama", "pad_token_id": None}, [], "present"),
    "internvl": ("InternVLConfig", {**SMALL, "model_type": "qwen3", "head_dim": 20}, HEAD_NORMS, "present"),
    "llava": ("LlavaConfig", {**ODD, "hidden_size": 72, "model_type": "llama", "rope_parameters": {
        "rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}, [{"rope_parameters": {"factor": 2.0}}], "present"),
    "llava-next": ("LlavaNextConfig", {**SMALL, "model_type": "mistral", "sliding_window": 12, "head_dim": 20},
                   [{"sliding_window": 11}, {"sliding_window": 13}], "present"),
    "llava-onevision": ("LlavaOnevisionConfig", {**SMALL, "model_type": "qwen2", "tie_word_embeddings": True}, BIASES,
                        "present"),
    "qwen2-vl": ("Qwen2VLConfig", {**SMALL, "tie_word_embeddings": True, "use_sliding_window": True,
                                   "sliding_window": 12, "max_window_layers": 1, "rope_parameters": {
                                       "rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2]}},
                 [*BIASES, {"sliding_window": 11}, {"max_window_layers": 2}], "present"),
    "qwen2-5-vl": ("Qwen2_5_VLConfig", {**SMALL, "num_attention_heads": 3, "num_key_value_heads": 1,
                                        "rope_theta": 1e6, "rope_scaling": {"type": "mrope",
                                                                            "mrope_section": [2, 3, 3]}},
                   BIASES, "beside"),
    "qwen3-vl": ("Qwen3VLConfig", {**SMALL, "head_dim": 20, "tie_word_embeddings": True, "attention_bias": True,
                                   "rope_parameters": {"rope_type": "default", "rope_theta": 5e6,
                                                       "mrope_section": [4, 3, 3], "mrope_interleaved": True}},
                 [*HEAD_NORMS, *BIASES, "self_attn.o_proj.bias"], "present"),
    "smolvlm": ("SmolVLMConfig", {**ODD, "hidden_size": 72, "model_type": "llama", "pad_token_id": None,
                                  "tie_word_embeddings": True}, [], "present"),
}
