#!/usr/bin/env python3
"""Fails if a line is wider than it may be: 120 columns for Go, Python and Markdown, 100 for what amkc emits.

A tab counts as four columns. Test data is exempt but for the golden builds, which are what amkc emits. In Markdown, a
row of a table, an image and what stands in a code block cannot be broken. docs/results, and what stands
between <!-- NAME --> and <!-- end of NAME --> in a document are written by programs.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAB = 4
WIDTH, EMITTED = 120, 100
GOLDEN = "testdata/golden/"
RUNTIME = "runtime/cuda/"  # copied into every build
# Schedules and programs are data in the golden builds: a line is one op or one number, however long.
DATA = (".amk", ".json", ".mod", ".sum")
WRITTEN = ("docs/results/",)
# Not broken yet. A name that is listed for nothing is reported.
PENDING = ("text/tokenizer/",)


def limit(path):
    """The columns that the lines of a file may have, or None if they may have any number."""
    if path.startswith(GOLDEN):
        return None if path.endswith(DATA) else EMITTED
    if path.startswith(RUNTIME) and path.endswith(".cuh"):
        return EMITTED
    if path.startswith("testdata/") or "/testdata/" in path or path.startswith(WRITTEN):
        return None
    return WIDTH if path.endswith((".go", ".py", ".md")) else None


def wide(path, text):
    """The numbers of the lines that are too wide, with their widths."""
    most = limit(path)
    if most is None:
        return []
    found, block, written = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        columns = len(line.expandtabs(TAB))
        if path.endswith(".md"):
            if re.match(r"\s*```", line):
                block = not block
            if mark := re.fullmatch(r"<!-- (end of )?\w+ -->", line):
                written = not mark[1]
            if block or written or re.match(r"\||!\[|    ", line):
                continue
        if columns > most:
            found.append((number, columns, most))
    return found


def main() -> int:
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    bad, pending, checked = [], set(), 0
    for path in out.stdout.splitlines():
        if limit(path) is None or not os.path.exists(os.path.join(ROOT, path)):
            continue
        checked += 1
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            found = wide(path, f.read())
        later = [p for p in PENDING if path.startswith(p)]
        if found and later:
            pending.update(later)
            continue
        bad += [f"{path}:{number}: {columns} columns, {most} are allowed" for number, columns, most in found]
    bad += [f"{p}: is listed as pending, and has no line that is too wide" for p in PENDING if p not in pending]
    print("\n".join(bad) if bad else f"{checked} files, no line too wide")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
