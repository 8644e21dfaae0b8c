"""Looks for tests whose verdict depends on how busy the machine is.

A test may not compare what a clock says: time.Since, time.After and limits of a context in Go, time.monotonic and its
like in Python. Events are waited for, time that goes by is that of testing/synctest, and what must be linear is held to
the time of a processor (internal/watch, Thread). Exceptions are listed with their reason.
"""

import pathlib
import re
import subprocess
import sys

GO = re.compile(r"\btime\.(Since|Until|After)\(|\.WithTimeout\(|\.WithDeadline\(")
PYTHON = re.compile(r"assert\w*\(.*\b(time\.(time|monotonic|perf_counter)\(\)|elapsed)")
EXCEPT = {
    "runtime/driver/live_test.go": "prints what a GPU takes, and compares nothing",
    "internal/loopsize/measure_test.go": "measures, where AMKC_LONG asks for it",
    "compiler/cli/kill_test.go": "draws the moment at which a build is killed, and any will do",
    "scripts/test_check_clocks.py": "has examples of what is found",
    "search/evaluate/evaluate_test.go": "a limit of a nanosecond, which is always over",
}


def found(path, text):
    """Returns the lines of a test that look at a clock, with their numbers."""
    pattern = GO if path.endswith(".go") else PYTHON
    return [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def main():
    paths = subprocess.run(["git", "ls-files", "*_test.go", "*/test_*.py"], capture_output=True, text=True,
                           check=True).stdout.split()
    bad, used = 0, set()
    for path in paths:
        lines = found(path, pathlib.Path(path).read_text(encoding="utf-8"))
        if lines and path in EXCEPT:
            used.add(path)
            continue
        for n, line in lines:
            bad += 1
            print(f"{path}:{n}: {line}: no test watches the clock")
    for path in sorted(EXCEPT.keys() - used):
        bad += 1
        print(f"{path}: is listed in scripts/check_clocks.py and looks at no clock")
    if not bad:
        print(f"{len(paths)} files of tests, none compares elapsed times")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
