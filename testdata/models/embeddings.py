#!/usr/bin/env python3
"""Writes what transformers makes of embeddings in the place of tokens, for some models of testdata/models/zoo.

    python3 testdata/models/embeddings.py            writes embeddings/NAME for each
    python3 testdata/models/embeddings.py NAME ...   writes those

Needs torch and transformers; no test runs it. Each folder has, for one text of 10 positions:

    ids.npy       int32 [10], and -1 where an embedding stands
    given.npy     float32 [embeddings, hidden], as amkc takes them: what enters the first layer, before the row of its
                  position is added where the model has learned positions
    logits.npy    float32 [10, vocab], computed in float32
    hidden.npy    float32 [10, hidden], the last hidden state: transformers' last_hidden_state

A model of transformers takes inputs_embeds where its class has them, and may multiply them then (Granite). What
it multiplies them with is found by two passes, whose first layers see f * e + p of the embeddings e that they are given.
"""

import os
import sys

import numpy as np
import torch
import transformers

import generate

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "embeddings")
MODELS = ["llama-gqa", "gemma-tied", "gemma2-tied", "gemma3-tied", "granite-scaled", "gpt2", "opt-tied", "cohere-tied",
          "gpt-neox-parallel", "qwen3-tied"]
POSITIONS = 10
EMBEDDED = [0, 3, 4, 9]


def first_layer(model):
    """The first block of a decoder, the module that its layers are a list of."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)[0]


def run(model, embeds):
    """What the first layer is given, the logits, and the last hidden state, of inputs_embeds [positions, hidden]."""
    seen = []
    hook = first_layer(model).register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(args[0] if args else kwargs["hidden_states"]), with_kwargs=True)
    with torch.inference_mode():
        out = model(inputs_embeds=embeds[None], use_cache=False, output_hidden_states=True)
    hook.remove()
    return seen[0][0], out.logits[0], out.hidden_states[-1][0]


def generate_one(name):
    model = generate.load(os.path.join(generate.ZOO, name))
    rng = np.random.default_rng(11)
    table = model.get_input_embeddings()
    ids = rng.integers(0, table.num_embeddings, POSITIONS)
    embeds = table(torch.tensor(ids)).detach()
    noise = torch.tensor(rng.normal(size=embeds.shape), dtype=torch.float32)
    before, _, _ = run(model, embeds)
    moved, _, _ = run(model, embeds + noise)
    factor = float(((moved - before) / noise).median())
    assert torch.allclose(moved - before, factor * noise, atol=1e-4), name
    scale = float(before.std())
    given = torch.tensor(rng.normal(size=(len(EMBEDDED), embeds.shape[1])) * scale, dtype=torch.float32)
    embeds[EMBEDDED] = given / factor
    _, logits, hidden = run(model, embeds)
    ids[EMBEDDED] = -1
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    for what, value in dict(ids=ids.astype(np.int32), given=given.numpy(), logits=logits.numpy(),
                            hidden=hidden.numpy()).items():
        np.save(os.path.join(folder, what + ".npy"), value)
    print(f"{name}: embeddings times {factor:.6g}, of deviation {scale:.3g}; logits up to {logits.abs().max():.3g}")


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        generate_one(name)


if __name__ == "__main__":
    main()
