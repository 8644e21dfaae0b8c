"""Sections endurance, soak, sanitizer, bench and roofline: what is run for how it behaves and not for its logits.

Each section is a list of tasks (workshop.py).
"""

import re

import blocks
from accuracy import SEED, SHAPE_POSITIONS
from turns import kept
from workshop import Case, NotRun, OutOfTime, StepFailed, Task, first_complaint, last_object

PYCODER = "testdata/models/pycoder-5m"
SOAK_TOKENS = 10_000
SOAK_SECONDS = 300
SANITIZED = (Case("testdata/models/zoo/llama-odd-dims", "bf16"), Case("testdata/models/zoo/llama-gqa", "fp32"),
             Case("testdata/models/zoo/llama-gqa", "fp16"),
             Case("testdata/models/zoo/llama-gqa", "bf16", knobs=(("ring", "stock", 0),)),  # as large models have it
             Case("testdata/models/zoo/qwen3-qknorm", "bf16"),
             Case("testdata/models/zoo/mistral-window-narrow", "bf16"),
             # down keeps the digits of its vector in shared memory
             Case(PYCODER, "bf16", knobs=(("warps", "down", 1),), weights="int4:g64:sym"))
# Those that have kernels for prompts and for passes too, which are compared with single tokens under the tool.
SANITIZED_PASSES = (Case("testdata/models/zoo/llama-gqa", "bf16", rows=8, sequences=8),
                    Case("testdata/models/zoo/llama-gqa", "fp16", weights="int4:g32", cache="int8", rows=8,
                         sequences=8),
                    Case("testdata/models/zoo/llama-gqa", "fp32", rows=8, sequences=8),
                    Case(PYCODER, "bf16", sequences=4, sequence_rows=2))
SANITIZED_CASES = 16
SANITIZED_PASS_POSITIONS = 40  # more than two blocks of the cache
SANITIZED_POSITIONS = 14  # of a pass, more than the narrow window; there are two passes of each kind
SANITIZER_SECONDS = 900
# The line of each tool with the number of errors in it. Another one, of the same form, may say how many of them were
# not printed.
SUMMARIES = dict.fromkeys(("memcheck", "synccheck", "initcheck"), r"ERROR SUMMARY: (\d+) errors?\b(?! were not)") | {
    "racecheck": r"RACECHECK SUMMARY: (\d+) hazard"}
FOUND = 99  # exit code for errors that the tool found
PLACES = 4  # of what a tool found, at most so many are kept
BENCHED = (
    (Case(PYCODER, "bf16"), (0, 1008)),
    (Case("testdata/configs/smollm2-135m", "bf16", SEED, SHAPE_POSITIONS), (0, 2032)),
    (Case("testdata/configs/llama-3.2-1b", "bf16", SEED, SHAPE_POSITIONS), (0, 2032)),
    (Case("testdata/configs/llama-3.1-8b", "bf16", SEED, SHAPE_POSITIONS), (0, 2032)),
)
# What AutoMegaKernel's paper compares with the peak of memory, at position 0; in fp32 too, which nobody tunes amkc for;
# and published shapes in 4 bits.
SMALL = "testdata/configs/llama-2048h-4l"
ROOFLINE = tuple(Case(model, dtype, SEED, SHAPE_POSITIONS) for model, dtype in (
    (SMALL, "bf16"), (SMALL, "fp32"), ("testdata/configs/llama-3.2-1b", "fp32"),
    ("testdata/configs/smollm2-135m", "fp32"))) + tuple(
    Case(SMALL, "bf16", SEED, SHAPE_POSITIONS, weights=weights) for weights in ("int8", "int4:g128:sym")) + tuple(
    Case(f"testdata/configs/{name}", "bf16", SEED, SHAPE_POSITIONS, weights="int4:g128:sym")
    for name in ("llama-3.2-1b", "llama-3.1-8b")) + tuple(
    Case("testdata/configs/llama-3.1-8b", "bf16", SEED, SHAPE_POSITIONS, weights=kind) for kind in blocks.KINDS)

LONG_POSITIONS = 33_024

SOAKED = Case("testdata/configs/llama-3.2-1b", "bf16", SEED, SHAPE_POSITIONS)
LONG_SOAK_SECONDS = 480
LONG_SOAK_TOKENS = 600_000
GROWTH = 1.01  # of the last tenth of the passes over the first


# What each tool needs: definitions to compile the kernel with, and options. memcheck would count the driver's "no such
# parameter" answers, by which a launch learns how many parameters a kernel has. racecheck cannot follow barriers on
# which one lane arrives for its warp, nor acquire and release on plain words; AMK_RACECHECK spells both in a way that
# it can.
SANITIZERS = {"memcheck": ((), ("--report-api-errors", "no")), "racecheck": (("AMK_RACECHECK=1",), ()),
              "synccheck": ((), ()), "initcheck": ((), ())}


def soak_row(shop, case):
    directory = shop.finish(case)
    done = shop.on_device(directory, "soak", "--tokens", str(SOAK_TOKENS), seconds=SOAK_SECONDS, accept=(0, 1))
    r = last_object(done.stdout)
    findings = [r["difference"]] if r["difference"] else []
    if not findings and min(r["free"], r["forced"]) < SOAK_TOKENS:
        findings = [f"{r['free']} and {r['forced']} tokens were decoded; {SOAK_TOKENS} are needed"]
    return {"passed": not findings, "findings": findings} | {k: r[k] for k in ("free", "forced", "passes", "positions")}


def long_soak_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    if shop.budget.remaining() < LONG_SOAK_SECONDS:
        raise OutOfTime  # rather than most of it for nothing
    done = shop.on_device(directory, "soak", "--seconds", str(LONG_SOAK_SECONDS), "--tokens", "1",
                          seconds=LONG_SOAK_SECONDS + SOAK_SECONDS,
                          accept=(0, 1))
    return judge_long_soak(last_object(done.stdout))


def judge_long_soak(r):
    """The criteria: no pass differs, as many tokens as a healthy kernel decodes in the time, and no growing latency."""
    findings = [r["difference"]] if r["difference"] else []
    if not findings:
        us = r["latency_us"]
        if r["free"] < LONG_SOAK_TOKENS or r["seconds"] < LONG_SOAK_SECONDS:
            findings.append(f"{r['free']} tokens were decoded in {r['seconds']:.0f} s; {LONG_SOAK_TOKENS} in "
                            f"{LONG_SOAK_SECONDS} s are needed")
        if not us["last_tenth"] <= GROWTH * us["first_tenth"]:
            findings.append(f"a token took {us['first_tenth']:.1f} µs in the first tenth of the passes and "
                            f"{us['last_tenth']:.1f} µs in the last; {GROWTH:g} times as long is allowed")
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("free", "forced", "passes", "positions", "seconds", "latency_us") if k in r}


def sanitizer_row(shop, case, tool):
    sanitizer = shop.tools.need("compute-sanitizer")
    defines, options = SANITIZERS[tool]
    directory = shop.finish(case, defines)
    verb = ("soak", "--tokens", str(2 * SANITIZED_POSITIONS), "--positions", str(SANITIZED_POSITIONS))
    if case in SANITIZED_PASSES:
        verb = ("passes", "--cases", str(SANITIZED_CASES), "--positions", str(SANITIZED_PASS_POSITIONS))
        if case.sequence_rows > 1:
            verb += ("--kinds", "mixed")  # of so few cases all others might be of other kinds
    done = shop.on_device(
        directory, *verb, "--spin-limit", "10m",
        under=(sanitizer, "--tool", tool, *options, "--error-exitcode", str(FOUND)),
        seconds=SANITIZER_SECONDS, accept=(0, 1, 2, FOUND))
    return judge_sanitizer(tool, done.returncode, done.stdout, done.stderr) | {"tool": tool}


def judge_sanitizer(tool, code, stdout, stderr):
    """The verdict on a run under compute-sanitizer. It counts only if the tool has worked and all was decoded."""
    text = stdout + stderr
    if "Device not supported" in text:
        raise NotRun("compute-sanitizer does not support this device")
    summary = re.findall(SUMMARIES[tool], text)
    if not summary:
        raise StepFailed(f"{tool} printed no summary (exit code {code}): {first_complaint(text)}")
    errors = int(summary[-1])
    findings = [f"{tool} found {errors} errors: " + first_finding(text)] if errors else []
    if not errors and code != 0:
        findings = [f"{tool} found nothing, but the program exited with {code}: {first_complaint(stderr or text)}"]
    if findings:
        return {"passed": False, "findings": findings, "errors": errors}
    r = last_object(stdout)
    return {"passed": True, "findings": [], "errors": 0,
            "tokens": r["compared"] if "compared" in r else r["free"] + r["forced"]}


def first_finding(text):
    """The first line of the tool's report that is about an error, and the places in kernels that the report names."""
    lines = [line.strip("= ") for line in text.splitlines() if line.startswith("=========")]
    first = next((line for line in lines if re.search(r"Invalid|Uninitialized|Race|Error|hazard|error", line)), "")
    places = dict.fromkeys(line for line in lines if re.match(r"at \S", line))
    return ", ".join([first, *list(places)[:PLACES]])[:300]


def bench_row(shop, case, position):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "bench", "--json", "--position", str(position))
    return judge_bench(last_object(done.stdout))


def judge_bench(r):
    """A latency counts if the check that goes with it has passed in the same run."""
    findings = [] if r["check"]["passed"] else ["the kernel and the plain kernels differ: " + r["check"]["failures"][0]]
    return {"passed": not findings, "findings": findings} | ({} if findings else kept(r))


def endurance():
    return [Task("endurance", case.key, case, lambda shop, case=case: soak_row(shop, case))
            for case in (Case(PYCODER, dtype) for dtype in ("bf16", "fp16", "fp32"))]


def soak():
    return [Task("soak", SOAKED.key, SOAKED, lambda shop: long_soak_row(shop, SOAKED), seconds=LONG_SOAK_SECONDS)]


def sanitizer():
    runs = [(case, tool) for case in SANITIZED for tool in ("memcheck", "racecheck")]
    runs += [(case, tool) for case in SANITIZED_PASSES for tool in SANITIZERS]
    return [Task("sanitizer", f"{case.key}-{tool}", case,
                 lambda shop, case=case, tool=tool: sanitizer_row(shop, case, tool), SANITIZERS[tool][0])
            for case, tool in runs]


def bench():
    return [Task("bench", f"{case.key}-{position}", case, lambda shop, c=case, p=position: bench_row(shop, c, p))
            for case, positions in BENCHED for position in positions]


def roofline():
    return [Task("roofline", f"{case.key}-0", case, lambda shop, c=case: bench_row(shop, c, 0)) for case in ROOFLINE]
