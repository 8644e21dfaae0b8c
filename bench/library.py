"""Section library: the Python package of a build, on the GPU.

The examples of its docstrings are run by cmd/libamkref/test_library.py, as CI does on the reference VM.
"""

import sys
from pathlib import Path

import machine
from workshop import RUN_SECONDS, Case, NotRun, Task, first_complaint, spell

CASE = Case("testdata/models/pycoder-5m", "bf16")  # the model that the examples are about
LIBRARY = "libamk.so"
TESTS = "cmd/libamkref/test_library.py"


def examples():
    """How many the docstrings have."""
    return sum(line.lstrip().startswith(">>> ") for file in (machine.REPO / "app/python/amk").glob("*.py")
               for line in file.read_text(encoding="utf-8").splitlines())


def library_row(shop, case):
    directory = Path(shop.finish(case))
    found = [p for p in (directory / "library" / LIBRARY, shop.tools.directory / LIBRARY) if p.exists()]
    if not found:
        raise NotRun(f"there is no {LIBRARY}: make results-tools makes it where there are Go and gcc")
    shop.settle()
    args = ["env", f"AMK_LIBRARY={found[0]}", f"AMK_MODEL={directory}", "PYTHONDONTWRITEBYTECODE=1", sys.executable,
            TESTS, "Examples.test_docstrings"]
    shop.log.append(spell(args))
    done = shop.execute(args, RUN_SECONDS, accept=(0, 1))
    return judge_library(done.returncode, done.stdout + done.stderr)


def judge_library(code, said):
    """unittest says how many tests it has run on stderr; what an example printed instead is on stdout."""
    findings = [] if code == 0 and "Ran 1 test" in said else ["an example is not as it says: " + first_complaint(said)]
    return {"passed": not findings, "findings": findings, "examples": examples()}


def library():
    return [Task("library", CASE.key, CASE, lambda shop: library_row(shop, CASE))]
