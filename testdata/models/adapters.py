#!/usr/bin/env python3
"""Writes testdata/models/adapters: adapters as PEFT saves them for models of the zoo, and what PEFT merges them to.

    python3 testdata/models/adapters.py            writes everything
    python3 testdata/models/adapters.py NAME ...   writes those; any other word lists the names

Needs torch, transformers and peft; no test runs it. Each folder has:

    adapter_config.json, adapter_model.safetensors    as save_pretrained writes them, with random weights
    case.json         the model of the zoo, the adapters that are merged before this one, and for each tensor that
                      differs from the model's the SHA-256 of its float32 bytes, merged in float32
    merged.f32        of the tensors that DoRA computes, whose norms depend on the order of a sum: their values
    ids.npy           int32 [16]
    logits.npy        float32 [16, vocab], of the merged model in float32
"""

import hashlib
import json
import os
import sys

import numpy as np
import peft
import torch

import generate

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapters")
POSITIONS = 16

# Name: the model, the adapters before, and the fields of LoraConfig.
ADAPTERS = {
    "llama": ("llama-gqa", [], {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj", "down_proj"]}),
    "llama-patterns": ("llama-gqa", ["llama"], {
        "r": 3, "lora_alpha": 5, "use_rslora": True, "target_modules": ["q_proj", "k_proj", "up_proj"],
        "rank_pattern": {r"layers\.0\..*_proj": 5, "up_proj": 2}, "alpha_pattern": {"1.self_attn.k_proj": 7.5}}),
    "llama-dora": ("llama-gqa", [], {"r": 2, "lora_alpha": 4, "use_dora": True, "target_modules": ["o_proj"]}),
    "llama-dora-after": ("llama-gqa", ["llama-dora"], {"r": 2, "lora_alpha": 3, "use_dora": True,
                                                       "target_modules": ["o_proj"]}),
    "llama-whole": ("llama-gqa", [], {"r": 2, "target_modules": ["gate_proj", "embed_tokens"],
                                      "modules_to_save": ["norm", "lm_head"]}),
    "llama-biases": ("llama-attention-bias", [], {"r": 2, "bias": "all", "lora_bias": True,
                                                  "target_modules": ["q_proj", "o_proj"]}),
    "gpt2": ("gpt2", [], {"r": 3, "lora_alpha": 4, "target_modules": ["c_attn", "c_proj", "c_fc"]}),
    "gpt2-dora": ("gpt2", [], {"r": 2, "use_dora": True, "target_modules": r".*\.0\.attn\.(c_attn|c_proj)"}),
    "phi3": ("phi3-window", [], {"r": 4, "target_modules": ["qkv_proj", "gate_up_proj"],
                                 "layers_to_transform": [0]}),
}


def adapt(model, name, fields, seed):
    """A model with an adapter of random numbers."""
    rng = torch.Generator().manual_seed(seed)
    config = peft.LoraConfig(task_type="CAUSAL_LM", **fields)
    adapted = peft.get_peft_model(model, config)
    for key, p in adapted.named_parameters():
        if "lora_magnitude" in key:
            p.data = p.data * (1 + torch.randn(p.shape, generator=rng) / 8)
        elif "lora_" in key:
            p.data = torch.randn(p.shape, generator=rng) / 8
        elif p.requires_grad:
            p.data = p.data + torch.randn(p.shape, generator=rng) / 32
    return adapted


def make(name):
    base, before, fields = ADAPTERS[name]
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(generate.ZOO, base)
    plain = generate.load(source)
    model = generate.load(source)
    adapted = None
    for i, other in enumerate(before):
        path = os.path.join(FOLDER, other)
        if adapted is None:
            adapted = peft.PeftModel.from_pretrained(model, path, adapter_name=other)
        else:
            adapted.load_adapter(path, adapter_name=other)
    adapt(generate.load(source), name, fields, len(name)).save_pretrained(folder)
    readme = os.path.join(folder, "README.md")
    if os.path.exists(readme):
        os.remove(readme)
    with open(os.path.join(folder, "adapter_config.json"), encoding="utf-8") as file:
        saved = json.load(file)
    saved["base_model_name_or_path"] = base
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
        json.dump(saved, file, indent=1)
    if adapted is None:
        adapted = peft.PeftModel.from_pretrained(model, folder, adapter_name=name)
    else:
        adapted.load_adapter(folder, adapter_name=name)
    merged = adapted.merge_and_unload(adapter_names=[*before, name])
    old, digests, values = plain.state_dict(), {}, {}
    for key, p in merged.state_dict().items():
        p = p.float().contiguous()
        if key in old and torch.equal(old[key], p):
            continue
        if fields.get("use_dora") and p.dim() == 2:
            values[key] = p.numpy()
        else:
            digests[key] = hashlib.sha256(p.numpy().tobytes()).hexdigest()
    ids = np.random.default_rng(len(name)).integers(0, plain.config.vocab_size, POSITIONS)
    np.save(os.path.join(folder, "ids.npy"), ids.astype(np.int32))
    np.save(os.path.join(folder, "logits.npy"), generate.logits(merged, ids.tolist()).astype(np.float32))
    if values:
        np.concatenate([values[k].ravel() for k in sorted(values)]).tofile(os.path.join(folder, "merged.f32"))
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump({"model": base, "before": before, "sha256": digests, "merged": sorted(values)}, file, indent=1)
    moved = np.abs(generate.logits(merged, ids.tolist()) - generate.logits(plain, ids.tolist())).max()
    print(f"{name}: {len(digests)} tensors by digest, {len(values)} by value, logits move by {moved:.2g}")


def main():
    names = sys.argv[1:] or list(ADAPTERS)
    if any(name not in ADAPTERS for name in names):
        sys.exit("names: " + " ".join(ADAPTERS))
    for name in names:
        make(name)


if __name__ == "__main__":
    main()
