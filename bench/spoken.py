#!/usr/bin/env python3
"""Models that can be talked to, where a checkpoint or a config has no tokenizer or no chat template.

    python3 bench/spoken.py MODEL OUT               a model like MODEL, with what it lacks of the two
    python3 bench/spoken.py MODEL OUT --weights N   and with the random weights of seed N, in bf16, from the GPU

OUT gets links to the files of MODEL. A tokenizer that is made has as many tokens as the config has ids: bytes, and
merges of two tokens that a generator of random numbers has picked, always the same. It reads and writes any text; its
words are not words. The chat template writes one message under the other. Needs the standard library, and PyTorch and
transformers for weights.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
TOKENIZER, TEMPLATE_FILE = "tokenizer.json", "chat_template.jinja"
LONGEST = 12  # characters of a token
PARTS = 20_000  # tokens that others are made of
# Pieces that are encoded on their own: words with the space before them, digits, the rest, white space.
SPLIT = r" ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"


def bytes_as_letters():
    """The characters that stand for the 256 bytes in byte-level tokenizers: printable ones for themselves."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (b for b in range(256) if b not in plain)
    return [chr(b) for b in plain] + [chr(256 + i) for i, _ in enumerate(others)]


def tokenizer(vocab):
    """A byte-level BPE of so many tokens, as tokenizer.json has it."""
    tokens, pick = bytes_as_letters(), random.Random(1)
    if vocab < len(tokens):
        raise ValueError(f"a vocabulary of {vocab} ids; {len(tokens)} bytes need one each")
    known, merges = set(tokens), []
    while len(tokens) < vocab:
        parts = min(len(tokens), PARTS)
        a, b = tokens[pick.randrange(parts)], tokens[pick.randrange(parts)]
        if len(a + b) <= LONGEST and a + b not in known:
            known.add(a + b)
            tokens.append(a + b)
            merges.append([a, b])
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges},
    }


def make(model, out, seed=None):
    """Makes OUT, unless it is there: it is complete when it has its name."""
    model, out = Path(model).resolve(), Path(out)
    if out.exists():
        return out
    partial = out.with_name(out.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    for file in model.iterdir():
        link = partial / file.name
        link.unlink(missing_ok=True)
        link.symlink_to(file)
    if not (partial / TOKENIZER).exists():
        vocab = json.loads((model / "config.json").read_text(encoding="utf-8"))["vocab_size"]
        (partial / TOKENIZER).write_text(json.dumps(tokenizer(vocab), ensure_ascii=False), encoding="utf-8")
    if not (partial / TEMPLATE_FILE).exists():
        (partial / TEMPLATE_FILE).write_text(TEMPLATE, encoding="utf-8")
    if seed is not None:
        write_weights(model, partial, seed)
    os.replace(partial, out)
    return out


def write_weights(model, out, seed):
    import reference
    with reference.invented(str(model), seed, "bf16", "bf16") as m:
        m.model.save_pretrained(out / "saved")
    for file in (out / "saved").iterdir():
        if "safetensors" in file.name:
            os.replace(file, out / file.name)
        else:
            file.unlink()
    (out / "saved").rmdir()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("out", type=Path)
    p.add_argument("--weights", type=int, metavar="N", help="with random weights of this seed")
    args = p.parse_args()
    try:
        make(args.model, args.out, args.weights)
    except (OSError, ValueError) as e:
        print(f"spoken.py: error: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
