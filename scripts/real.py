#!/usr/bin/env python3
"""Holds amkc to transformers on a published checkpoint: SmolLM2-135M-Instruct as a GGUF file in Q4_1. Called by
`make real`, in a virtual environment that has torch, transformers, gguf and accelerate.

    logits        of 512 positions of a text, in float32: no element differs by more than 1e-3
    continuation  256 tokens of a conversation, the likeliest each time: the same; where transformers' two likeliest
                  tokens are within 1e-3, a difference is named and the comparison ends there
    perplexity    of a text of 4,000 tokens in windows of 500: within 0.05 %
    template      a conversation as the chat template formats it: the same text

The text is docs/ir.md. Prints what it measures, and fails if one of these does not hold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMKC = os.path.join(ROOT, "amkc")
LOGITS, TIE, PERPLEXITY = 1e-3, 1e-3, 5e-4
MESSAGES = [{"role": "system", "content": "You answer in one sentence."},
            {"role": "user", "content": "What is the capital of France?"},
            {"role": "assistant", "content": "It is Paris."}, {"role": "user", "content": "Tell me about its river."}]


class Reference:
    """The model as transformers reads it from the file, in float32."""

    def __init__(self, path):
        folder, name = os.path.split(path)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name,
                                                                       dtype=torch.float32).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)

    def logits(self, ids):
        with torch.inference_mode():
            return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()

    def greedy(self, ids, count):
        """The continuation, and how far apart the two likeliest tokens are at each step."""
        out, margins, cache, fed = [], [], None, ids
        with torch.inference_mode():
            for _ in range(count):
                step = self.model(torch.tensor([fed]), past_key_values=cache, use_cache=True)
                last, cache = step.logits[0, -1].numpy(), step.past_key_values
                second, first = np.sort(last)[-2:]
                fed = [int(np.argmax(last))]
                out += fed
                margins.append(float(first - second))
        return out, margins


def amkc(*args):
    done = subprocess.run([AMKC, *args, "--device", "ref", "--dtype", "fp32"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"amkc {args[0]}: {done.stderr}")
    return done.stdout


def logits(model, ids, folder):
    out = os.path.join(folder, "logits.npy")
    amkc("logits", model, "--ids", ",".join(map(str, ids)), "--max-seq", str(len(ids)), "-o", out)
    return np.load(out)


def prompt_ids(model, folder, messages):
    """The tokens that amkc makes of a conversation."""
    path = os.path.join(folder, "messages.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(messages, file)
    return json.loads(amkc("run", model, "--messages", path, "--max-tokens", "1", "--json"))["prompt_ids"]


def surprise(rows, ids):
    """The sum of the negative log-likelihoods of ids[1:]."""
    rows = rows[:-1].astype(np.float64)
    rows -= rows.max(1, keepdims=True)
    return float(np.sum(np.log(np.exp(rows).sum(1)) - rows[np.arange(len(ids) - 1), ids[1:]]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the GGUF file")
    parser.add_argument("--windows", type=int, default=8, help="of 500 tokens, whose perplexity is measured")
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    reference, failed = Reference(options.model), []

    def report(what, ok, text):
        print(f"{what:14}{'ok  ' if ok else 'FAIL'}  {text}", flush=True)
        failed.extend([] if ok else [what])

    with tempfile.TemporaryDirectory() as folder:
        formatted = reference.tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
        ids = prompt_ids(options.model, folder, MESSAGES)
        decoded = reference.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        report("template", decoded == formatted, f"{len(ids)} tokens")

        want, margins = reference.greedy(ids, 256)
        got = json.loads(amkc("run", options.model, "--ids", ",".join(map(str, ids)), "--max-tokens", "256",
                              "--ignore-eos", "--max-seq", str(len(ids) + 256), "--json"))["ids"]
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), None)
        if at is None:
            report("continuation", len(got) == len(want), f"{len(got)} tokens, nearest tie {min(margins):.2g}")
        else:
            report("continuation", margins[at] <= TIE, f"differs at token {at}: {got[at]} instead of {want[at]}, whose "
                   f"logits are {margins[at]:.2g} apart")

        with open(os.path.join(ROOT, "docs", "ir.md"), encoding="utf-8") as file:
            text = reference.tokenizer(file.read()[:14000])["input_ids"][: 500 * options.windows]
        worst, sums, count = 0.0, [0.0, 0.0], 0
        for i, first in enumerate(range(0, len(text), 500)):
            window = text[first : first + (512 if i == 0 else 500)]  # bar of logits: 512 positions
            a, b = logits(options.model, window, folder), reference.logits(window)
            if i == 0:
                worst = float(np.abs(a - b).max())
                report("logits", worst <= LOGITS and len(window) == 512,
                       f"{len(window)} positions, max |error| {worst:.2g}")
            sums = [sums[0] + surprise(a, window), sums[1] + surprise(b, window)]
            count += len(window) - 1
        mine, other = np.exp(sums[0] / count), np.exp(sums[1] / count)
        report("perplexity", abs(mine / other - 1) <= PERPLEXITY,
               f"{mine:.6g}, of transformers {other:.6g}, over {len(text)} tokens")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
