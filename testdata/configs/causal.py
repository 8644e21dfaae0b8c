#!/usr/bin/env python3
"""Writes causal.txt beside it: the model types that transformers generates text with, and what is in their classes.

    python3 testdata/configs/causal.py

Needs torch and transformers; no test does. Each class is built from the default config of its type, without memory for
its weights, and what amkc has no importer for is looked for among its modules and parameters: a line is

    TYPE TRAIT ...

passes holds the reasons that it gives for refusing a type to these traits.
"""

import inspect
import os
import re
import sys

import torch
import transformers
from transformers.models.auto.modeling_auto import (MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
                                                    MODEL_FOR_MASKED_LM_MAPPING_NAMES)

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "causal.txt")
# Fields without which the default config of a type builds no model, or none that shows its layers.
INDEXER = {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 64,
           "indexer_compress_ratio": 4}
FIELDS = {"hunyuan_v1_dense": {"head_dim": 128}, "hunyuan_v1_moe": {"head_dim": 128}, "ministral": {"head_dim": 128},
          "nemotron": {"head_dim": 128, "num_key_value_heads": 8},
          "dots1": {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2},
          "lfm2": {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2},
          "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_hidden_layers": 4},
          "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0,
                                               "num_hidden_layers": 4, "num_kv_shared_layers": 4}},
          "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
          "qwen4_exp": {"text_config": INDEXER}, "qwen4_exp_text": INDEXER,
          "dbrx": {"attn_config": {"rope_theta": 1e4}}}
OF_TEXT = {"musicgen": "decoder", "musicgen_melody": "decoder"}  # configs of several parts: that of the decoder
PARAMETERS = {"experts": r"experts\.|\.moe\.", "latent": r"kv_a_proj", "sinks": r"\.sinks$|sink_proj",
              "recurrent": r"A_log$|time_decay$|rg_lru|mlstm", "encoder": r"(encoder_attn|layers\.\d+\.cross_attn)\."}
MODULES = {"experts": r"Experts$", "recurrent": r"Lightning|DeltaNet|DeltaAttention|Mamba.*Mixer|MambaLayer",
           "convolution": r"ShortConv|CCAProjection"}
SOURCE = {"images": r"pixel_values", "sound": r"\baudio|codebook"}  # of any part of the model


def config_of(kind):
    config = transformers.AutoConfig.for_model(kind, **FIELDS.get(kind, {}))
    if hasattr(config, "is_decoder"):
        config.is_decoder = True
    return config


def build(kind, name):
    """The model, and its config."""
    config, cls = config_of(kind), getattr(transformers, name)
    if kind in OF_TEXT:
        of = [getattr(config, OF_TEXT[kind])]
    else:
        of = [config] + ([config.get_text_config()] if config.get_text_config() is not config else [])
    for i, part in enumerate(of):
        try:
            with torch.device("meta"):
                return cls(part), config
        except (AttributeError, TypeError):  # of a class that takes the other config
            if i == len(of) - 1:
                raise


def traits(kind, name):
    model, config = build(kind, name)
    classes = {type(m).__name__ for m in model.modules()}
    names = [n for n, _ in model.named_parameters()]
    out = {t for t, pattern in PARAMETERS.items() if any(re.search(pattern, n) for n in names)}
    out |= {t for t, pattern in MODULES.items() if any(re.search(pattern, c) for c in classes)}
    source = inspect.getsource(sys.modules[type(model).__module__])
    out |= {t for t, pattern in SOURCE.items() if re.search(pattern, source)}
    if re.search(r"def build_\w*alibi", source) and getattr(config, "alibi", True):
        out.add("alibi")
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        out.add("masked")
    return sorted(out)


def main():
    transformers.utils.logging.set_verbosity_error()
    lines, unbuilt = [], []
    for kind, name in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()):
        try:
            found = traits(kind, name if isinstance(name, str) else name[0])
        except Exception as e:  # whatever keeps a class from being built
            unbuilt.append(f"{kind}: {type(e).__name__}: {e}")
            found = ["unbuilt"]
        lines.append(" ".join([kind, *found]))
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(f"# Written by causal.py from transformers {transformers.__version__}; do not edit.\n")
        file.write("\n".join(lines) + "\n")
    print(f"{len(lines)} types, {len(unbuilt)} not built")
    print("\n".join(unbuilt))


if __name__ == "__main__":
    main()
