#!/usr/bin/env python3
"""Run fuzz targets one after another, each for a time, and say which failed.

    scripts/fuzz.py --time 30s --workers 2 ir:FuzzParseText internal/hostile:FuzzPrograms

A target that fails does not keep the others from running. Exit code 0: none failed; 1: some did, and their inputs are
in testdata/fuzz of their packages.
"""

import argparse
import re
import subprocess
import sys

# When a target's time ends while an input is running, Go before 1.27 may report the end as a failure, golang/go#75804.
END_OF_TIME = re.compile(r"^--- FAIL: \w+ \([\d.]+s\)\n\s+context deadline exceeded\n", re.M)
SAVED = "Failing input written to"


def failed(code, output):
    """Whether a run of `go test -fuzz` with this exit code and output has found something."""
    return code != 0 and (SAVED in output or not END_OF_TIME.search(output))


def run(target, time, workers):
    package, name = target.split(":")
    print(f"== {target}", flush=True)
    command = ["go", "test", f"./{package}", "-run", "^$", "-fuzz", f"^{name}$", "-fuzztime", time,
               "-fuzzminimizetime", "20x", "-parallel", str(workers), "-timeout", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return failed(process.wait(), "".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", default="30s", help="of each target, as Go spells durations")
    parser.add_argument("--workers", type=int, default=2, help="processes that a target runs in")
    parser.add_argument("targets", nargs="+", metavar="PACKAGE:TARGET")
    options = parser.parse_args()
    bad = [t for t in options.targets if run(t, options.time, options.workers)]
    if bad:
        print("failed: " + " ".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
