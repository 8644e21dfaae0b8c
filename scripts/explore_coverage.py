"""Which lines of the device runtime builds run on the CPU (make explore-coverage).

As a compiler, `explore_coverage.py cxx g++ ARGS`, it compiles kernels with --coverage and keeps what gcov needs in the
directory of AMKC_COVERAGE; all else is compiled as it is. As a program, `explore_coverage.py report`, it adds up what
runs have counted there, over all kernels, and writes docs/results/explore-coverage.md.
"""

import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "runtime" / "cuda" / "amk"
PAGE = ROOT / "docs" / "results" / "explore-coverage.md"


def compile_or_link(command, args, where):
    """Runs the compiler; kernels, which alone have hooks, are counted."""
    if args == ["--version"]:
        said = subprocess.run([command, *args], check=True, capture_output=True, text=True).stdout
        print(said + f"--coverage, in {where}")  # other objects than those without
        return 0
    is_kernel = "-fsanitize=thread" in args
    is_object = not is_kernel and "-shared" in args and not any(a.endswith("-soname,libamkcpu.so") for a in args)
    if is_object:
        return subprocess.run([command, *args, "--coverage"], check=False).returncode
    if not is_kernel:
        return subprocess.run([command, *args], check=False).returncode
    out = pathlib.Path(args[args.index("-o") + 1])
    kept = where / hashlib.sha256(str(out).encode()).hexdigest()[:24]  # whose path counts are written to
    kept.mkdir(parents=True)
    args = [str(kept / out.name) if a == str(out) else a for a in args]
    code = subprocess.run([command, *args, "--coverage"], check=False).returncode
    if code == 0:
        shutil.copy(kept / out.name, out)
    return code


def counted(where):
    """Counts of lines, by header and number."""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    for counts in sorted(where.glob("*/*.gcda")):
        said = subprocess.run(["gcov", "--json-format", "--stdout", counts.name], cwd=counts.parent, check=True,
                              capture_output=True, text=True).stdout
        for text in said.splitlines():
            for file in json.loads(text)["files"]:
                name = os.path.normpath(file["file"])
                parts = pathlib.PurePath(name).parts
                if "amk" not in parts or "amk_cpu" in parts:
                    continue
                header = "/".join(parts[parts.index("amk") + 1:])
                for line in file["lines"]:
                    lines[header][line["line_number"]] += line["count"]
    return lines


def spans(numbers):
    """Numbers as ranges: 3-5, 9."""
    parts = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


# Why lines of a header do not run. A header of which all lines run has no reason here, and one with gaps has.
GAPS = {
    "attention_rows_mma.cuh": "a second block of a warp: texts of jobs have few rows",
    "choice.cuh": "equal scores, penalties by count, and logits of which none may be chosen",
    "context.cuh": "stalls, and aborts that only the eager kernel looks for",
    "drawing.cuh": "draws that rounding leaves open between tokens, and vocabularies of more rows than threads",
    "ending.cuh": "draws that rounding leaves open, and logits of which none may be chosen",
    "gemm_fma.cuh": "matrices of more columns than a warp has at once",
    "gemm_mma.cuh": "matrices of more columns than a warp has at once",
    "gemv_mma.cuh": "matrices of more columns than a warp has at once",
    "heads_mma.cuh": "a larger maximum in a later block: texts of jobs have few rows",
    "prompt_gemm.cuh": "matrices of more columns than a stage has",
    "read.cuh": "regions of more words than the threads of a launch read at once",
    "reference_attention.cuh": "rows of the cache beside those that should be there, which `ends` does not ask for",
    "step.cuh": "embeddings that the caller gives in the place of a token",
}


def rows_of(lines):
    """Of each header with code: its lines that run, all of its lines, and those that do not run; and the others."""
    rows, without = [], []
    for path in sorted(HEADERS.rglob("*.cuh")):
        name = path.relative_to(HEADERS).as_posix()
        of = lines.get(name)
        if of:
            missed = [n for n, count in of.items() if count == 0]
            rows.append((name, len(of) - len(missed), len(of), missed))
        else:
            without.append(name)
    return rows, without


def unexplained(rows, gaps):
    """What is wrong with reasons for gaps."""
    missed = {name for name, _, _, numbers in rows if numbers}
    return ([f"{name} has lines that do not run: say why in GAPS" for name in sorted(missed - set(gaps))] +
            [f"{name} has a reason in GAPS, and no line that does not run" for name in sorted(set(gaps) - missed)])


def page(rows, without, compiler):
    some, every = sum(r[1] for r in rows), sum(r[2] for r in rows)
    out = f"""# Lines of the device runtime that run on the CPU

Written by `make explore-coverage`, with {compiler}; do not edit.

Of the builds of [make explore](../explore.md), compiled with `--coverage`, and their jobs under the default schedule:
{some:,} of {every:,} lines of code in `runtime/cuda/amk` run, which is {100 * some / every:.1f} %. A line is one that
a build has instantiated; a line of a template counts once, and runs if it does in any build.

| header | lines | run | do not run | why |
|---|---:|---:|---|---|
"""
    for name, covered, total, missed in rows:
        out += f"| `{name}` | {total} | {covered} | {spans(missed)} | {GAPS.get(name, '')} |\n"
    names = ", ".join(f"`{n}`" for n in without)
    return out + (f"\nWithout a line of code, being names and types, or what compilers for a GPU see alone: {names}.\n")


def main():
    where = pathlib.Path(os.environ["AMKC_COVERAGE"]).resolve()
    if sys.argv[1] == "cxx":
        return compile_or_link(sys.argv[2], sys.argv[3:], where)
    rows, without = rows_of(counted(where))
    if not rows:
        sys.exit(f"{where} has no counts: no kernel was run")
    for name, covered, total, missed in rows:
        print(f"{name:32} {covered:5} / {total:5}  {spans(missed)}")
    wrong = unexplained(rows, GAPS)
    if wrong:
        sys.exit("\n".join(wrong))
    gcov = subprocess.run(["gcov", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    PAGE.write_text(page(rows, without, gcov))
    return 0


if __name__ == "__main__":
    sys.exit(main())
