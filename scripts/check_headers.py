#!/usr/bin/env python3
"""Fails if a Go package, a device header or a template does not open with what it does and what it must not touch."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in out.stdout.splitlines() if "/testdata/" not in line and not line.startswith("testdata/")]


def main() -> int:
    bad = []
    packages = {}
    for path in tracked("*.go"):
        if not path.endswith("_test.go"):
            packages.setdefault(os.path.dirname(path), []).append(path)
    for folder, paths in sorted(packages.items()):
        texts = [open(os.path.join(ROOT, p)).read() for p in paths]
        if not any(re.search(r"^// (Package|Command) ", t, re.M) for t in texts):
            bad.append(f"{folder}: no package comment")
    for path in tracked("runtime/cuda/amk/*.cuh"):
        text = open(os.path.join(ROOT, path)).read()
        if not text.startswith("// ") or not re.match(r"(// .*\n){2,}#pragma once", text):
            bad.append(f"{path}: does not open with a comment before #pragma once")
    print("\n".join(bad) if bad else f"{len(packages)} packages, all with their comment")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
