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


def table(lines):
    rows, without = [], []
    for path in sorted(HEADERS.rglob("*.cuh")):
        name = str(path.relative_to(HEADERS))
        of = lines.get(name)
        if not of:
            without.append(name)
            continue
        missed = [n for n, count in of.items() if count == 0]
        rows.append((name, len(of) - len(missed), len(of), missed))
    return rows, without


def main():
    where = pathlib.Path(os.environ["AMKC_COVERAGE"]).resolve()
    if sys.argv[1] == "cxx":
        return compile_or_link(sys.argv[2], sys.argv[3:], where)
    rows, without = table(counted(where))
    if not rows:
        sys.exit(f"{where} has no counts: no kernel was run")
    covered, total = sum(r[1] for r in rows), sum(r[2] for r in rows)
    for name, some, all_of_it, missed in rows:
        print(f"{name:32} {some:5} / {all_of_it:5}  {spans(missed)}")
        source = (HEADERS / name).read_text().splitlines()
        if "--lines" in sys.argv:
            for n in missed:
                print(f"      {n:4}  {source[n - 1]}")
    print(f"{covered} of {total} lines, in {len(rows)} headers; without lines that run: {', '.join(without)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
