#!/usr/bin/env python3
"""Compiles the emitted CUDA of small models for every supported architecture, warnings as errors.

--all compiles more combinations, as `make long` does. Needs amkc in the repository root (make build) and nvcc on PATH
or in .cuda (make cuda); no GPU.
"""

import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

UNROLLED = {"loop": {"roll": 0}}
BARRIERS = {"loop": {"barrier": 1}}
STOCK = {"ring": {"stock": 6, "in_flight_stocked": 2}}
AHEAD_OFF = {"ring": {"run_ahead": 0}}
NO_STOCK = {"ring": {"stock": 0}}  # as models of a billion parameters and more have it
SMALL_BLOCK = {"smem_bytes_per_block": 20480}  # of a compact scratch
LONG_VECTOR = {"warps": {"down": 1}}  # a warp has six quads of it: its digits are in shared memory
PAGES_IN_TURN = {"page_allocation": "none"}
SPLIT_WINDOW = {"attention": {"split_from": 16, "max_splits": 4}, "ring": {"chunk_bytes": 4096}}
# Of one kv head: lanes that join splits have four each. At first there are few.
MANY_SPLITS = {"attention": {"split_from": 16, "middle_splits": 8, "middle_until": 256, "max_splits": 128}}
# Variants that stream in ways of their own: with a stock in one of them, and running ahead in one of them.
LONG_STREAM = {"attention": {"split_from": 16, "max_splits": 4}, "long": {"pace": 500, "stock": 0}}
LONG_AHEAD = {"attention": {"split_from": 16, "max_splits": 4}, "ring": {"run_ahead": 0}, "long": {"run_ahead": 8}}

# (target, model, dtype, configuration, flags): every architecture in the dtype it is for, and every dtype on the oldest
# and on Hopper; what else the loop over layers can be, on each way of filling the ring; what else the stream can wait
# for; quantised weights; caches of integers, which bf16 and fp16 multiply in ways of their own; and passes.
CASES = [
    ("t4", "pycoder-5m", "fp16", {}),
    ("t4", "zoo/llama-gqa", "fp16", SMALL_BLOCK),
    ("t4", "zoo/qwen3-odd-dims", "fp32", {}),
    ("t4", "zoo/nemotron-half", "fp32", {"tiling": {"exchange": {"flagged": 0}}}),
    ("t4", "zoo/qwen3-odd-dims", "fp16", {}, "--cache", "int8"),
    ("a100", "pycoder-5m", "bf16", {}),
    ("a100", "zoo/llama-gqa", "bf16", {"tiling": BARRIERS}),
    ("a100", "pycoder-5m", "fp16", {}, "--weights", "int4:g64:sym,lm_head=int8,layers.0.*=none"),
    ("a10g", "zoo/llama-gqa", "fp16", {}),
    ("l4", "zoo/llama-odd-dims", "bf16", {}),
    ("jetson-orin", "zoo/llama-gqa", "bf16", {}),
    ("h200", "pycoder-5m", "bf16", {}),
    ("h200", "pycoder-5m", "bf16", {}, "--rows", "8", "--sequences", "8"),
    ("h200", "zoo/qwen3-qknorm", "bf16", {}),
    ("h200", "zoo/gemma2-split-k", "bf16", {}),
    ("h200", "zoo/mistral-wide-group", "bf16", {}),
    ("h200", "zoo/gpt-neox-parallel", "bf16", {}),
    ("h200", "zoo/olmo2-plain", "bf16", {}),
    ("h200", "quantised/models/llama-fp8-blocks", "bf16", {}),
    ("h200", "quantised/models/llama-ct-int4-layers", "bf16", {}),  # layers of three kinds, by how they are stored
    ("h200", "pycoder-5m", "fp16", {"tiling": LONG_VECTOR}, "--weights", "int8"),
    ("h200", "zoo/llama-gqa", "bf16", {"tiling": UNROLLED}),
    ("h200", "zoo/llama-gqa", "bf16", PAGES_IN_TURN),
    ("h200", "zoo/llama-odd-dims", "fp32", SMALL_BLOCK),
    ("h200", "zoo/llama-gqa", "bf16", {"tiling": STOCK}),
    ("h200", "zoo/llama-gqa", "bf16", {"tiling": LONG_STREAM}),
    ("h200", "zoo/mistral-window", "bf16", {"tiling": SPLIT_WINDOW}, "--cache", "int8"),
    ("h200", "zoo/gemma-tied", "bf16", {"tiling": MANY_SPLITS}),
    ("b200", "pycoder-5m", "bf16", {}),
    ("sm_103", "zoo/llama-gqa", "bf16", {}),
    ("sm_110", "zoo/llama-gqa", "bf16", {}),
    ("rtx5090", "zoo/llama-gqa", "bf16", {"tiling": AHEAD_OFF}),
    ("sm_121", "zoo/llama-gqa", "bf16", {}),
]

# With --all: the same in other combinations, and the code that other families have.
MORE = [
    ("t4", "zoo/llama-odd-dims", "bf16", {}),
    ("t4", "zoo/llama-gqa", "fp16", {"tiling": UNROLLED}),
    ("t4", "zoo/llama-gqa", "fp16", {"tiling": BARRIERS}),
    ("t4", "zoo/gemma-odd-dims", "fp16", {}),
    ("t4", "zoo/gemma2-uncapped", "fp32", {}),
    ("t4", "zoo/mistral-window", "fp16", {"tiling": SPLIT_WINDOW}),
    ("t4", "zoo/starcoder2-plain", "fp32", {}),
    ("t4", "zoo/olmo3-windows", "fp32", {}),
    ("t4", "quantised/models/llama-ct-fp8", "fp16", {}),
    ("t4", "pycoder-5m", "fp16", {"tiling": {"ring": {"chunk_bytes": 4096}}}, "--rows", "4", "--sequences", "4"),
    ("a100", "zoo/llama-gqa", "fp16", {}, "--cache", "int8"),
    ("a100", "quantised/models/llama-ct-fp8", "bf16", {}),  # which has no instruction that widens e4m3
    ("a100", "pycoder-5m", "bf16", {}, "--rows", "8", "--sequences", "8", "--cache", "int8"),
    ("h200", "zoo/gemma-tied", "bf16", {}),
    ("h200", "zoo/gemma3-tied", "bf16", {}),
    ("h200", "zoo/gemma2-split-k", "fp32", {}),
    ("h200", "zoo/llama-biases-yarn", "bf16", {}),
    ("h200", "zoo/phi3-short", "bf16", {}),
    ("h200", "zoo/starcoder2-tied", "bf16", {}),
    ("h200", "zoo/exaone4-windows", "bf16", {}),
    ("h200", "zoo/gpt2", "bf16", {}),
    ("h200", "zoo/olmo-clipped", "bf16", {}),
    ("h200", "zoo/apertus-llama3", "bf16", {}),
    ("h200", "zoo/stablelm-head-norms", "bf16", {}),
    ("h200", "pycoder-5m", "bf16", {}, "--weights", "int4:g32:asym"),
    ("h200", "pycoder-5m", "bf16", {}, "--weights", "int4:g32:asym", "--rows", "8", "--sequences", "8"),
    ("h200", "pycoder-5m", "fp32", {}, "--rows", "8", "--sequences", "8"),
    ("h200", "pycoder-5m", "bf16", {"tiling": LONG_VECTOR}, "--weights", "int4:g64:sym"),
    ("h200", "pycoder-5m", "bf16", {"tiling": BARRIERS}),
    ("h200", "zoo/llama-gqa", "bf16", SMALL_BLOCK),
    ("h200", "zoo/llama-gqa", "bf16", {"tiling": NO_STOCK}),
    ("h200", "zoo/llama-gqa", "bf16", {"tiling": LONG_AHEAD}),
    ("h200", "zoo/mistral-window", "bf16", {"tiling": SPLIT_WINDOW}),
    ("h200", "zoo/mistral-window", "fp32", {"tiling": SPLIT_WINDOW}),
    ("h200", "zoo/olmo2-plain", "bf16", {}, "--rows", "8", "--sequences", "8"),
]

# Where the kernel for prompts is compiled too, which takes as long as all else of a case: the first case of a target
# and a model here. Once for each architecture, and on Hopper for what its own code has several forms of: norms per
# head, all of q and k as one and a whole residual, LayerNorm and parallel branches, one kv head for many, and many
# splits.
PROMPTS = [("a100", "pycoder-5m"), ("a10g", "zoo/llama-gqa"), ("jetson-orin", "zoo/llama-gqa"),
           ("h200", "zoo/llama-gqa"), ("h200", "zoo/qwen3-qknorm"), ("h200", "zoo/olmo2-plain"),
           ("h200", "zoo/gpt-neox-parallel"), ("h200", "zoo/mistral-wide-group"), ("h200", "zoo/gemma-tied"),
           ("b200", "pycoder-5m"), ("sm_103", "zoo/llama-gqa"), ("sm_110", "zoo/llama-gqa"),
           ("rtx5090", "zoo/llama-gqa"), ("sm_121", "zoo/llama-gqa")]

# Where measure.cu is compiled with the kernel of a step in parts.
PARTS = ("h200", "pycoder-5m", "bf16", {})


def nvcc() -> str:
    local = os.path.join(ROOT, ".cuda/nvidia/cu13/bin/nvcc")
    return shutil.which("nvcc") or local


def sources(case, cases) -> list:
    """The sources of a case that say something which none of a case before it says. The kernel depends on everything.
    Its measured forms are the same bodies with other `if constexpr`s, so they are compiled once for an architecture,
    and once for a configuration. The reference knows the shapes, the dtype and the architecture, and no schedule.
    Of a build with passes, the kernels of these alone: the others are those of the build without.
    """
    target, model, dtype, config, *flags = case
    if "--rows" in flags:
        return [f"rows{flags[flags.index('--rows') + 1]}/megakernel.cu",
                f"sequences{flags[flags.index('--sequences') + 1]}/megakernel.cu"]
    before = cases[:cases.index(case)]
    out = ["megakernel.cu"]
    if all(target != c[0] for c in before) or all(config != c[3] for c in before):
        out.append("measure.cu")
    if all((target, model, dtype, *flags) != c[:3] + c[4:] for c in before):
        out.append("reference.cu")
    if (target, model) in PROMPTS and all((target, model) != c[:2] for c in before):
        out.append("prompt.cu")
    return out


def compile_case(case, cases, tmp):
    target, model, dtype, config, *flags = case
    out = os.path.join(tmp, f"{cases.index(case)}_{target}_{os.path.basename(model)}_{dtype}")
    with open(out + ".json", "w") as file:
        json.dump(config, file)
    start = time.time()
    emit = [os.path.join(ROOT, "amkc"), os.path.join(ROOT, "testdata/models", model), "-o", out,
            "--target", target, "--dtype", dtype, "--config", out + ".json", "--no-build", *flags]
    if target.startswith("sm_"):  # an architecture without a record of its own, of some size
        emit += ["--num-sms", "20"]
    run = subprocess.run(emit, capture_output=True, text=True)
    if run.returncode != 0:
        return case, f"amkc: {run.stderr}", 0.0
    gencode = next(line.split("-gencode ")[1].split()[0] for line in open(os.path.join(out, "Makefile"))
                   if "-gencode" in line)
    emitted = {os.path.relpath(f, out) for f in glob.glob(out + "/**/*.cu", recursive=True)}
    compiled = sources(case, cases)
    known = {"megakernel.cu", "measure.cu", "reference.cu", "prompt.cu", *compiled}
    if not known >= emitted or not emitted >= {"megakernel.cu", "measure.cu", "reference.cu", *compiled}:
        return case, f"amkc emits {sorted(emitted)}; say in sources() when each is compiled", 0.0
    for source in compiled:
        parts = ["-DAMK_PARTS=1"] if case == PARTS and source == "measure.cu" else []
        command = [nvcc(), "-O3", "-std=c++17", "-fmad=false", "-Werror", "all-warnings", *parts, "-gencode", gencode,
                   "-fatbin", "-o", source + ".fatbin", source]
        run = subprocess.run(command, cwd=out, capture_output=True, text=True)
        if run.returncode != 0:
            return case, f"{source}: {run.stdout}{run.stderr}", 0.0
    return case, "", time.time() - start


def main() -> int:
    cases = CASES + MORE if sys.argv[1:] == ["--all"] else CASES
    failed = 0
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, error, seconds in pool.map(lambda c: compile_case(c, cases, tmp), cases):
            print(f"{'FAIL' if error else 'ok  '} {case[0]:11} {case[1]:20} {case[2]}  {seconds:5.1f} s  "
                  f"{json.dumps(case[3]) if case[3] else ''} {' '.join(case[4:])}".rstrip(), flush=True)
            if error:
                failed += 1
                print(error)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
