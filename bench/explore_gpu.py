#!/usr/bin/env python3
"""Holds the machine of amkc explore to a GPU, stage by stage: builds of small models for few SMs are compiled for both,
the GPU traces some steps of each, and the machine repeats these with the GPU's inputs of each stage.

    bench/explore_gpu.py --out DIR             # needs an H200, nvcc, g++ and the amkc of this checkout
    bench/explore_gpu.py --out DIR --traces T  # compares again with traces that the first left in T: needs g++ alone
    bench/explore_gpu.py --page DIR/gpu.json   # writes docs/results/explore-gpu.md; needs neither

Needs the standard library alone. docs/explore.md says what is compared, and how far stages may be apart.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "explore" / "testdata" / "gpu.json"
PAGE = ROOT / "docs" / "results" / "explore-gpu.md"
TARGET = ("--target", "sm_90", "--num-sms", "4")

# As twoLayers of explore/fixtures_test.go.
TWO_LAYERS = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


def run(command, log, **more):
    """Runs a command, with what it says appended to a file; returns its exit code."""
    with open(log, "ab") as to:
        to.write(f"$ {' '.join(str(word) for word in command)}\n".encode())
        to.flush()
        return subprocess.run([str(word) for word in command], stdout=to, stderr=subprocess.STDOUT, check=False,
                              **more).returncode


def emit(amkc, fixture, work, log):
    """Emits the build of a fixture."""
    model, build = work / "model", work / "build"
    model.mkdir(parents=True)
    config = TWO_LAYERS
    if "base" in fixture:
        config = json.loads((ROOT / "testdata" / "models" / "zoo" / fixture["base"] / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(json.dumps(config | fixture.get("config", {})), "utf-8")
    schedule = work / "schedule.json"
    schedule.write_text(json.dumps({"tiling": {"prompt": {"tokens": 0}} | fixture.get("tiling", {})}), "utf-8")
    flags = ["--no-build", "--random-weights", 0, "--config", schedule, "--max-seq", fixture["positions"]]
    for name in ("dtype", "weights", "cache", "rows"):
        if name in fixture:
            flags += [f"--{name}", fixture[name]]
    if run([amkc, model, "-o", build, "--name", fixture["name"], *TARGET, *flags], log):
        raise RuntimeError(f"{fixture['name']}: amkc does not compile it; {log} says why")
    return build


def trace_on_gpu(amkc, fixture, build, trace, log):
    """Has nvcc compile the kernels that a check needs, and the GPU trace them; returns whether the check passed."""
    kernels = ["megakernel.fatbin", "reference.fatbin"]
    if "rows" in fixture:
        kernels.append(f"rows{fixture['rows']}/megakernel.fatbin")
    if run(["make", "-C", build, f"-j{len(kernels)}", *kernels], log):
        raise RuntimeError(f"{fixture['name']}: nvcc does not compile it; {log} says why")
    return run([amkc, "check", build, "--trace", trace], log) == 0


def compare(amkc, fixture, traces, out, work):
    """The report of explore on one fixture, after the GPU has traced it, or with what it has traced before."""
    name = fixture["name"]
    log, trace = out / f"{name}.log", (traces or out) / f"{name}.trace.json"
    build = emit(amkc, fixture, work / name, log)
    row = {"name": name, "covers": fixture["covers"], "problem": None}
    if not traces and not trace_on_gpu(amkc, fixture, build, trace, log):
        row["problem"] = "amkc check fails on the GPU"
        return row
    begun = time.monotonic()
    done = subprocess.run([amkc, "explore", build, "--job", "gpu", "--schedules", "1", "--trace", trace, "--json",
                           "-o", out / f"{name}.scripts"], capture_output=True, check=False)
    row["cpu_seconds"] = round(time.monotonic() - begun, 2)
    with open(log, "ab") as to:
        to.write(done.stdout + done.stderr)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        row["problem"] = "amkc explore gives no report"
        return row
    report = report.get("result", report) or {}
    row["stages"] = report.get("stages", [])  # none of a run that crashed, which is a finding
    row["findings"] = [{key: finding[key] for key in ("kind", "message")} for finding in report.get("findings", [])]
    if not row["stages"] and not row["findings"]:
        row["problem"] = "amkc explore compares nothing"
        return row
    recorded = json.loads(trace.read_text("utf-8"))
    row["device"], row["steps"] = recorded["device"], len(recorded["steps"])
    return row


def measure(out, amkc, traces):
    out.mkdir(parents=True, exist_ok=True)
    fixtures = json.loads(FIXTURES.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(len(fixtures)) as pool:
        rows = list(pool.map(lambda fixture: compare(amkc, fixture, traces, out, Path(work)), fixtures))
    compilers = {name: said(name) for name in (os.environ.get("CXX", "c++"), "nvcc")}
    if traces:
        compilers["nvcc"] = json.loads((traces / "gpu.json").read_text("utf-8"))["compilers"]["nvcc"]
    result = {"compilers": compilers, "amkc": said(amkc, "version"), "fixtures": rows}
    (out / "gpu.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    for row in rows:
        print(row["name"], row["problem"] or f"{len(row['findings'])} findings")
        for finding in row.get("findings", ()):
            print("   ", finding["kind"], finding["message"])
    return any(row["problem"] or row["findings"] for row in rows)


def said(*command):
    """The line in which a program says what it is."""
    command = command if len(command) > 1 else (*command, "--version")
    if shutil.which(command[0]) is None:
        return ""
    lines = subprocess.run(command, capture_output=True, check=False, text=True).stdout.strip().splitlines()
    return lines[-1] if "nvcc" in str(command[0]) and lines else lines[0] if lines else ""


def page(result):
    """The page of docs/results."""
    rows = result["fixtures"]
    devices = sorted({row["device"] for row in rows if "device" in row})
    findings = sum(len(row.get("findings", ())) for row in rows)
    lines = ["# The machine and a GPU, stage by stage", "",
             "Written by `bench/explore_gpu.py`; do not edit.", "",
             f"Builds for 4 SMs, sm_90, compiled for {' and '.join(devices)} and for the machine of [amkc "
             "explore](../explore.md#against-a-gpu).",
             f"Each stage of the machine was given what the same stage of the GPU was given. **{findings} findings.**",
             ""]
    lines += ["| build | covers | steps | elements | must be equal | other bits | findings |",
              "|---|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        stages = row.get("stages", [])
        lines.append(f"| {row['name']} | {row['covers']} | {row.get('steps', 0)} | "
                     f"{sum(s['elements'] for s in stages):,} | {sum(s['exact'] for s in stages):,} | "
                     f"{sum(s['different'] for s in stages):,} | {row['problem'] or len(row['findings'])} |")
    lines += ["", "Ulp are those of the type that the stage publishes, at the element, or at the root mean square of",
              "its vector where that is larger; parts of a context are fp32, made of probabilities of 16 bits.",
              "`allowed` is the most that follows from documented errors for any of the elements, and `share` the",
              "largest difference as a part of what was allowed for it.", "",
              "| build | kernel | stage | elements | must be equal | other bits | ulp | allowed | share |",
              "|---|---|---|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        for s in row.get("stages", []):
            lines.append(f"| {row['name']} | {s.get('kernel') or 'one token'} | {s['stage']} | {s['elements']:,} | "
                         f"{s['exact']:,} | {s['different']:,} | {s['ulp']:.3g} | {s['bound']:.3g} | "
                         f"{s['share']:.2g} |")
    lines += ["", f"Compilers: {'; '.join(text for text in result['compilers'].values() if text)}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where results go")
    parser.add_argument("--traces", type=Path, help="compare with the traces in this directory, without a GPU")
    parser.add_argument("--amkc", type=Path, default=ROOT / "amkc")
    parser.add_argument("--page", type=Path, help="write the page of these results")
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page(json.loads(given.page.read_text("utf-8"))), "utf-8")
        return 0
    if not given.out:
        parser.error("--out says where results go")
    return int(measure(given.out.resolve(), given.amkc.resolve(), given.traces and given.traces.resolve()))


if __name__ == "__main__":
    sys.exit(main())
