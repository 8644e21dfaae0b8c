#!/usr/bin/env python3
"""Compiles testdata/models/pycoder-5m, shows the build, and decodes a prompt that must match the reference token for token.

Runs on the GPU if there is one, else on the reference VM, and says which. Called by `make demo`.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL = os.path.join(ROOT, "testdata/models/pycoder-5m")
BUILD = os.path.join(ROOT, "build")


def run(args, **kwargs):
    print("$ " + " ".join(os.path.relpath(a, ROOT) if a.startswith(ROOT) else a for a in args), flush=True)
    return subprocess.run(args, **kwargs)


def main() -> int:
    amkc = os.path.join(ROOT, "amkc")
    probe = subprocess.run([amkc, MODEL, "--target", "auto", "-o", BUILD, "--name", "pycoder", "--no-build"], capture_output=True)
    target = "auto" if probe.returncode == 0 else "h200"
    if run([amkc, MODEL, "-o", BUILD, "--target", target, "--name", "pycoder"]).returncode != 0:
        return 1
    print("\nThe stage that multiplies by the down projection, in schedule.h:\n")
    text = open(os.path.join(BUILD, "schedule.h")).read()
    start = text.index("// stage Down ")
    print(text[start:text.index("};", start) + 2])

    device = "cuda" if target == "auto" else "ref"
    case = json.load(open(os.path.join(MODEL, "reference.json")))["greedy"][0]
    print(f"\nDecoding on {'the GPU' if device == 'cuda' else 'the reference VM (no GPU here)'}:\n", flush=True)
    source = BUILD if device == "cuda" else MODEL
    result = run([amkc, "run", source, "--prompt", case["prompt"], "--max-tokens", str(len(case["greedy_ids"])),
                  "--ignore-eos", "--device", device, "--json"], stdout=subprocess.PIPE)
    if result.returncode != 0:
        return 1
    out = json.loads(result.stdout)
    print(case["prompt"] + out["text"])
    if out["ids"] != case["greedy_ids"]:
        print("\nThe tokens differ from the reference.")
        return 1
    print(f"\nAll {len(out['ids'])} tokens equal the reference (testdata/models/pycoder-5m/reference.json).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
