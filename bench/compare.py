#!/usr/bin/env python3
"""Compares the emitted kernel with PyTorch on the GPU of this machine, and writes docs/results/NAME.json and NAME.md.

    python3 bench/compare.py                  Llama-3.2-1B, Llama-3.1-8B and the 0.6B shape, context 128
    python3 bench/compare.py --model llama-3.2-1b --position 2000 --rounds 3
    python3 bench/compare.py --no-compile
    python3 bench/compare.py --weights int8   Llama-3.1-8B, matrices in 8 bits; also int4:g128:sym

amkc, transformers' step in a CUDA graph and the same through torch.compile (max-autotune) are interleaved, by rounds,
with the same random weights in bf16, batch 1; the logits of each are held to transformers in fp32 first. With
--weights each quantises in its own way, and amkc is held to the plain kernels of its build; eager PyTorch is left out.
It needs an NVIDIA GPU, nvcc, PyTorch and transformers, and Go, or else --tools with what `make results-tools` has put
into dist/results on another machine.
Exit codes: 0 all have run and compute the same; 1 some have not, or differ; 2 bad usage or a broken environment.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine

machine.need_numpy()

import comparing
import results
from accuracy import config
from endurance import LONG_POSITIONS


def parse(argv):
    defaults = comparing.Options()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", action="append", choices=[*comparing.MODELS, "smollm2-135m"],
                   help="of testdata/configs; may be repeated")
    p.add_argument("--weights", choices=list(comparing.FORMATS), default="", help="quantise matrices (default: bf16)")
    p.add_argument("--position", type=int, default=comparing.POSITION,
                   help=f"rows in the cache (default: {comparing.POSITION})")
    p.add_argument("--rounds", type=int, default=defaults.rounds, help=f"turns of each (default: {defaults.rounds})")
    p.add_argument("--no-compile", action="store_true", help="leave torch.compile out, which takes minutes")
    p.add_argument("--compile-seconds", type=float, default=defaults.compile_seconds, metavar="SECONDS",
                   help=f"give torch.compile up after this (default: {defaults.compile_seconds:g})")
    results.add_common(p)
    args = p.parse_args(argv)
    args.model = args.model or list(comparing.QUANTISED if args.weights else comparing.MODELS)
    if args.rounds < 1 or args.compile_seconds <= 0:
        p.error("--rounds and --compile-seconds must be positive")
    for model in args.model:
        trained = config(machine.REPO / "testdata/configs" / model)["max_position_embeddings"]
        most = min(LONG_POSITIONS, trained) - comparing.STEPS
        if not 0 <= args.position <= most:
            p.error(f"--position {args.position}: 0 to {most} are possible for {model}")
    return args


def command_of(args, model):
    words = ["python3 bench/compare.py --target", args.target, "--model", model, "--position", str(args.position),
             "--rounds", str(args.rounds)]
    words += ["--weights", args.weights] if args.weights else []
    words += ["--no-compile"] if args.no_compile else ["--compile-seconds", f"{args.compile_seconds:g}"]
    return " ".join(words)


def main(argv=None):
    args = parse(argv)
    options = comparing.Options(rounds=args.rounds, compile_seconds=0 if args.no_compile else args.compile_seconds)
    chosen = [comparing.task(model, args.position, options, args.weights) for model in args.model]
    return results.carry_out(args, chosen, lambda task: command_of(args, task.case.name))


if __name__ == "__main__":
    sys.exit(main())
