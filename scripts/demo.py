#!/usr/bin/env python3
"""Compiles testdata/models/pycoder-5m, shows the build, and decodes a prompt that must match the reference token for
token. Then says what a build in int4 saves and costs.

Decodes on the GPU if there is one, else on the reference VM, and says which; int4 is measured on the reference VM.
Called by `make demo`. With --picture it prints what is the same on every machine, in seconds: sources for an H200, and
a decode on the reference VM. docs/img/demo.svg shows that.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AMKC = "./amkc"
MODEL = "testdata/models/pycoder-5m"
BUILD = "build"
INT4 = "dist/int4"


def run(args, **kwargs):
    print("$ " + shlex.join(args), flush=True)
    return subprocess.run(args, **kwargs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", action="store_true")
    if not parser.parse_args().picture:
        os.chdir(ROOT)
        probe = subprocess.run([AMKC, "dump", MODEL, "--target", "auto"], capture_output=True)
        target = "auto" if probe.returncode == 0 else "h200"
        return decode(target, "--name", "pycoder") or int4(target)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("amkc", "testdata"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        os.chdir(folder)
        return decode("h200", "--no-build")


def decode(target: str, *flags: str) -> int:
    """Builds the model, shows a stage of it, and decodes a prompt."""
    if run([AMKC, MODEL, "-o", BUILD, "--target", target, *flags]).returncode != 0:
        return 1
    print("\nThe stage that multiplies by the down projection, in build/schedule.h:\n")
    with open(os.path.join(BUILD, "schedule.h"), encoding="utf-8") as f:
        text = f.read()
    start = text.index("// stage Down ")
    print(text[start:text.index("};", start) + 2])

    device = "cuda" if target == "auto" else "ref"
    with open(os.path.join(MODEL, "reference.json"), encoding="utf-8") as f:
        case = json.load(f)["greedy"][0]
    print(f"\nDecoding on {'the GPU' if device == 'cuda' else 'the reference VM'}:\n", flush=True)
    source = BUILD if device == "cuda" else MODEL
    result = run([AMKC, "run", source, "--prompt", case["prompt"], "--max-tokens", str(len(case["greedy_ids"])),
                  "--ignore-eos", "--device", device, "--json"], stdout=subprocess.PIPE)
    if result.returncode != 0:
        return 1
    out = json.loads(result.stdout)
    print(case["prompt"] + out["text"])
    if out["ids"] != case["greedy_ids"]:
        print("\nThe tokens differ from the reference.")
        return 1
    print(f"\nAll {len(out['ids'])} tokens equal the reference (testdata/models/pycoder-5m/reference.json).\n")
    return 0


def int4(target: str) -> int:
    """Builds the model in int4, and prints in a line how large its weights are and how much worse it predicts."""
    built = run([AMKC, MODEL, "-o", INT4, "--target", target, "--weights", "int4", "--no-build", "--quiet"])
    if built.returncode != 0:
        return 1
    measured = run([AMKC, "quality", INT4, "--against", MODEL, "--target", target, "--ids-file",
                    os.path.join(MODEL, "eval_ids.npy"), "--tokens", "1k", "--greedy", "0", "--device", "ref",
                    "--json"], stdout=subprocess.PIPE)
    if measured.returncode != 0:
        return 1
    result = json.loads(measured.stdout)
    sizes = [os.path.getsize(os.path.join(build, "weights.safetensors")) / 1e6 for build in (BUILD, INT4)]
    now, was = result["perplexity"]["model"], result["perplexity"]["against"]
    print(f"int4: {sizes[1]:.1f} MB of weights in place of {sizes[0]:.1f} MB; perplexity {now:.3f} in place of "
          f"{was:.3f} ({now / was - 1:+.2%}), over {result['tokens']:,} tokens of Python")
    return 0


if __name__ == "__main__":
    sys.exit(main())
