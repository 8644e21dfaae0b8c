"""Models whose matrices are stored in the blocks of GGUF files: configs, for random weights.

    python3 bench/blocks.py MODEL OUT KIND       OUT gets the config.json of MODEL, with matrices as KIND has them

amkc rounds random weights plainly to such blocks, so their mean is 0 in every matrix. That matters: blocks of random
bits have means of some percent of their spread, which add up in a common direction of all positions, and a model of
those either ignores any error or magnifies it (docs/gguf.md). Needs the standard library alone.
"""

import argparse
import json
from pathlib import Path

MIXED = "Q4_K_M"  # Q4_K, with Q6_K for the head, and for values and down in half of the layers
KINDS = ("Q4_0", "Q8_0", MIXED)
LINEARS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
           "mlp.up_proj", "mlp.down_proj")


def types(layers, kind):
    """The type of each matrix, by its module, as llama.cpp chooses them for the mix."""
    plain = "Q4_K" if kind == MIXED else kind
    found = {"model.embed_tokens": plain, "lm_head": "Q6_K" if kind == MIXED else plain}
    for i in range(layers):
        more = kind == MIXED and (i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2)
        for module in LINEARS:
            larger = more and module in ("self_attn.v_proj", "mlp.down_proj")
            found[f"model.layers.{i}.{module}"] = "Q6_K" if larger else plain
    return found


def write(model, out, kind):
    config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "gguf", "types": types(config["num_hidden_layers"], kind)}
    Path(out).mkdir(parents=True, exist_ok=True)
    (Path(out) / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def arguments(doc, kinds):
    """Arguments of a program that writes a model in blocks: MODEL OUT KIND."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", metavar="MODEL")
    p.add_argument("out", metavar="OUT")
    p.add_argument("kind", metavar="KIND", choices=kinds, help=" ".join(kinds))
    return p.parse_args()


if __name__ == "__main__":
    write(**vars(arguments(__doc__, KINDS)))
