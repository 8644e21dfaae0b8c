#!/usr/bin/env python3
"""PyTorch as a process of its own, which bench/comparing.py asks for logits and latencies: one JSON object a line.

    python3 bench/torch_peer.py MODEL --seed N --dtype bf16 [--weights int8|int4:gN]

With --weights the step multiplies with matrices that bench/torch_quantised.py has quantised, and the reference with
the values of these. Requests, and what is added to {"ok": true} in the answer:

    {"do": "reference", "ids": [...], "fp32": FILE, "own": FILE}   logits of one pass in fp32 and in the dtype, as .npy
    {"do": "open", "name": X, "attention": "sdpa", "compile": false, "length": N}
                                                        "seconds", "peak_bytes", "weights" (how many a step reads, and
                                                        "weight_bytes", how large they are)
    {"do": "products", "name": X, "form": F}             "worst", "products", "weight_bytes": the products of a step
                                                        alone, in a form of bench/torch_products.py, each held to a
                                                        plain one
    {"do": "forced", "name": X, "ids": [...], "out": FILE}         logits of the decode step after each id, as .npy
    {"do": "prefill", "ids": [...], "attention": "sdpa", "times": N}      "ms" (each time), "token" behind them
    {"do": "timed", "name": X, "token": T, "position": P, "steps": N, "launches": N, "warm_up": N,
     "captured": true}                                                                               "us", "repeats"

A request that fails is answered with {"ok": false, "error": ...}. What libraries print goes to stderr. Needs torch and
transformers; must not know amkc.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np

import reference


class Peer:
    """Answers requests. device and graph are the GPU's unless a test says otherwise."""

    def __init__(self, model, seed, dtype, weights="", device="cuda", graph=None):
        self.model, self.seed, self.dtype, self.quantised = model, seed, dtype, weights
        self.device, self.graph = device, graph
        self.steps = {}  # by name
        self.weights = None  # the model that all steps share
        self.sizes = {}
        self.held = contextlib.ExitStack()

    def answer(self, request):
        return getattr(self, "do_" + request.pop("do"))(**request)

    def do_reference(self, ids, fp32, own):
        for dtype, path in (("fp32", fp32), (self.dtype, own)):
            with self.invented(dtype) as m:
                if self.quantised:
                    import torch_quantised

                    torch_quantised.dequantise(m.model, self.quantised, reference.torch_dtype(self.dtype))
                np.save(path, m.logits(ids))
        return {}

    def invented(self, dtype):
        return reference.invented(self.model, self.seed, self.dtype, dtype, self.device)

    def do_open(self, name, attention, compile, length):
        import torch

        import torch_step

        started = time.monotonic()
        if self.weights is None:
            self.make()
        self.steps[name] = torch_step.DecodeStep(self.weights, length, attention, compile,
                                                 self.graph or torch_step.CudaGraph)
        peak = torch.cuda.max_memory_allocated() if self.device == "cuda" else 0
        return {"seconds": time.monotonic() - started, "peak_bytes": peak} | self.sizes

    def do_products(self, name, form):
        import torch_products
        import torch_step

        if self.weights is None:
            self.make()
        step = self.steps[name] = torch_products.Products(self.weights, form, self.graph or torch_step.CudaGraph)
        return {"worst": step.check(), "products": len(step.matrices), "weight_bytes": step.weight_bytes}

    def make(self):
        """Makes the model of all steps."""
        import torch_quantised

        model = self.held.enter_context(self.invented(self.dtype)).model
        before = torch_quantised.streamed(model)
        if self.quantised:
            torch_quantised.quantise(model, self.quantised)
        self.sizes = {"weights": before // reference.torch_dtype(self.dtype).itemsize,
                      "weight_bytes": torch_quantised.streamed(model)}
        self.weights = model

    def do_forced(self, name, ids, out):
        np.save(out, self.steps[name].forced(ids))
        return {}

    def do_prefill(self, ids, attention, times):
        """Milliseconds from ids to the token behind them, by one dense pass that leaves a cache, each time anew."""
        import torch

        if self.weights is None:
            self.make()
        self.weights.set_attn_implementation(attention)
        ms = []
        with torch.inference_mode():
            for _ in range(1 + times):  # the first does not count
                started = time.perf_counter()
                row = torch.tensor([ids], device=self.device)
                out = self.weights(input_ids=row, use_cache=True, logits_to_keep=1)
                token = int(out.logits[0, -1].argmax())  # waits for the device
                ms.append(1e3 * (time.perf_counter() - started))
                del out
        return {"ms": ms[1:], "token": token}

    def do_timed(self, name, token, position, steps, launches, warm_up, captured=True):
        us, repeats = self.steps[name].timed(token, position, steps, launches, warm_up, captured)
        return {"us": us, "repeats": repeats}


def serve(peer, requests, answers):
    for line in requests:
        try:
            answer = {"ok": True} | peer.answer(json.loads(line))
        except Exception as e:  # whatever PyTorch raises is an answer
            answer = {"ok": False, "error": " ".join(f"{type(e).__name__}: {e}".split())[:600]}
        print(json.dumps(answer), file=answers, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--dtype", choices=list(reference.SAFETENSORS), required=True)
    p.add_argument("--weights", default="", help="int8 or int4:gN (default: as they are)")
    args = p.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(Peer(args.model, args.seed, args.dtype, args.weights), sys.stdin, answers)


if __name__ == "__main__":
    main()
