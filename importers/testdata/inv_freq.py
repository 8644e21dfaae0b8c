#!/usr/bin/env python3
"""Writes inv_freq.json: what transformers computes for rotary embeddings of every type that is modelled.

    python3 importers/testdata/inv_freq.py

Needs torch and transformers; no test runs it. A case is the object rope_parameters of a Llama's config, the size of its
heads and max_position_embeddings, with the float32 bits of LlamaRotaryEmbedding(config).inv_freq and its
attention_scaling; of type longrope, for texts of max_seq positions. Each case is read in both forms of a config, which
must agree.
"""

import json
import os

import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
# rope_parameters, head_dim, max_position_embeddings
CASES = [({"rope_type": "default", "rope_theta": theta}, head_dim, 8192)
         for theta in (1e4, 1e5, 5e5, 5e6, 1e6, 1.3e5) for head_dim in (8, 16, 24, 48, 64, 80, 96, 128, 256)]
CASES += [({**LLAMA3, "rope_theta": theta, "factor": factor, "original_max_position_embeddings": original}, head_dim,
           131072) for theta, head_dim, factor, original in (
               (5e5, 64, 32.0, 8192), (5e5, 128, 8.0, 8192), (5e5, 16, 8.0, 64), (1e6, 128, 8.0, 8192),
               (1e4, 48, 3.0, 100))]
CASES += [({**LLAMA3, "rope_theta": 5e5, "factor": 8.0}, 64, 8192)]
CASES += [({"rope_type": kind, "rope_theta": theta, "factor": factor}, head_dim, 4096)
          for kind in ("linear", "dynamic") for theta, head_dim, factor in (
              (1e4, 128, 4.0), (1e4, 80, 2), (5e5, 64, 1.5), (1e6, 24, 8.0), (1e5, 16, 1.0))]
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768}
CASES += [(dict(YARN), 128, 32768), (dict(YARN), 64, 131072)]
CASES += [({**YARN, **keys}, 64, 131072) for keys in (
    {"factor": 32}, {"factor": 1.0}, {"factor": None}, {"rope_theta": 1e4, "original_max_position_embeddings": 4096},
    {"rope_theta": 1.5e5, "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
    {"truncate": True}, {"truncate": False}, {"beta_fast": 16.0}, {"beta_slow": 2}, {"beta_fast": None,
                                                                                  "beta_slow": None},
    {"beta_fast": 3.0, "beta_slow": 8.0}, {"beta_fast": 2.0, "beta_slow": 2.0}, {"beta_fast": 500.0},
    {"beta_fast": 1e5, "beta_slow": 9e4}, {"beta_slow": 0.001}, {"attention_factor": 0.75}, {"attention_factor": 1.0},
    {"attention_factor": 2}, {"attention_factor": None}, {"mscale": 0.707}, {"mscale_all_dim": 0.707},
    {"mscale": 1.0, "mscale_all_dim": 0.707}, {"mscale": 0.707, "mscale_all_dim": 1.0},
    {"mscale": 1.0, "mscale_all_dim": 0}, {"mscale": 1.0, "mscale_all_dim": None},
    {"mscale": 1.0, "mscale_all_dim": 0.707, "attention_factor": 1.5})]
CASES += [({"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.5}, head_dim, 1000) for head_dim in (6, 20, 96)]
CASES += [({"rope_type": "proportional", "rope_theta": theta, **keys}, head_dim, 4096)
          for theta, head_dim, keys in (
              (1e4, 128, {}), (1e4, 80, {"factor": 2}), (1e6, 256, {"partial_rotary_factor": 0.25}),
              (5e5, 64, {"partial_rotary_factor": 0.3, "factor": 1.5}), (1e6, 24, {"partial_rotary_factor": 0.99}),
              (1e4, 16, {"partial_rotary_factor": 0.1}), (1e6, 96, {"partial_rotary_factor": 1, "factor": 8.0}))]
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 4096,
            "short_factor": [1 + 0.03 * j for j in range(32)], "long_factor": [1.05 * 1.14 ** j for j in range(32)]}
# and the positions of the text
LONG_CASES = [({**LONGROPE, **keys}, 64, positions, text)
              for keys, positions in (({}, 131072), ({}, 4096), ({"factor": 8.0}, 131072), ({"factor": 1}, 131072),
                                      ({"attention_factor": 1.25}, 131072), ({"rope_theta": 2.5e5}, 16384))
              for text in (64, 4096, 4097)]


def rope_of(head_dim, positions, text=None, **fields):
    config = transformers.LlamaConfig(hidden_size=2 * head_dim, num_attention_heads=2, num_key_value_heads=2,
                                      head_dim=head_dim, max_position_embeddings=positions, **fields)
    rope = LlamaRotaryEmbedding(config)
    freq, scale = rope.inv_freq, rope.attention_scaling
    if text is not None:
        freq, scale = ROPE_INIT_FUNCTIONS[config.rope_parameters["rope_type"]](config, seq_len=text)
    return [f"{x & 0xffffffff:08x}" for x in freq.view(torch.int32).tolist()], float(scale)


def main():
    transformers.utils.logging.set_verbosity_error()
    lines = []
    for rope, head_dim, positions, text in [(*case, None) for case in CASES] + LONG_CASES:
        bits, scale = rope_of(head_dim, positions, text, rope_parameters=dict(rope))
        former = {"type" if key == "rope_type" else key: v for key, v in rope.items() if key != "rope_theta"}
        if (bits, scale) != rope_of(head_dim, positions, text, rope_scaling=former, rope_theta=rope["rope_theta"]):
            raise RuntimeError(f"{rope}: differs in its former spelling")
        of = {"rope_parameters": rope, "head_dim": head_dim, "max_position_embeddings": positions}
        lines.append(json.dumps({**of, **({"max_seq": text} if text else {}), "scale": scale, "bits": bits}))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inv_freq.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} cases, by torch {torch.__version__} and transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
