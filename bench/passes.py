"""Sections passes, sequences and pass_times: what is decoded by passes is what single tokens give, to the bit, and how
long a pass takes beside a token.

Each section is a list of tasks (workshop.py).
"""

from endurance import judge_bench
from workshop import Case, OutOfTime, Task, last_object

PYCODER = "testdata/models/pycoder-5m"
ZOO = "testdata/models/zoo/"
SEED = 1  # of what is random, but for builds of RESEEDED
CASES = 1000  # of a build
PASSES_SECONDS = 600
# Of each family a model that has kernels for rows and for sequences, and most of them one for prompts. BLOOM has
# positions that amkc does not compile.
FAMILIES = tuple(Case(ZOO + name, "bf16", rows=8, sequences=8) for name in (
    "apertus-llama3", "arcee-plain", "aya-vision", "cohere-tied", "cohere2-tied", "cohere2-vision", "cwm-windows",
    "ernie4-5-tied", "exaone4-windows", "falcon-groups", "falcon-multi-query", "gemma-tied", "gemma2-split-k",
    "gemma2-tied", "gemma3-images", "gemma3-tied", "gemma4-images", "gemma4-keys-serve", "glm-half", "glm4-half",
    "gpt-neox-parallel", "gpt2", "granite-scaled", "helium-plain", "hunyuan-alpha", "hyperclovax-post", "idefics3",
    "internlm3-plain", "internvl", "iquestcoder", "lfm2-former", "llama-gqa", "llava", "llava-next", "llava-onevision",
    "ministral-windows", "mistral-nemo", "mistral-window", "mistral3-small", "nemotron-half", "olmo-plain",
    "olmo2-plain", "olmo3-windows", "opt-tied", "phi-half", "phi-head-norms", "phi3-short", "qwen2-5-vl", "qwen2-tied",
    "qwen2-vl", "qwen3-qknorm", "qwen3-vl", "seed-oss-biases", "smollm3-tied", "smolvlm", "stablelm-head-norms",
    "stablelm-parallel", "starcoder2-tied"))
FAMILIES += tuple(Case(ZOO + name, "bf16", rows=8) for name in ("cohere-head-norms", "gpt2", "opt-tied"))
# Its queries are scaled from position 64 on, which is not modelled.
FAMILIES += (Case(ZOO + "ministral3-window", "bf16", max_seq=64, rows=8, sequences=8),)
# Without tensor cores: in fp32, which has no kernel for prompts, and where a vector is not a multiple of four.
PLAIN = tuple(Case(ZOO + name, "fp32", rows=8, sequences=8) for name in (
    "cohere-head-norms-odd", "falcon-groups-one-norm", "gemma2-uncapped", "gpt2", "llama-gqa", "mistral-window-narrow",
    "qwen3-odd-dims", "stablelm-odd-dims"))
PLAIN += (Case(ZOO + "llama-gqa", "fp32", weights="int4:g32", cache="int8", rows=8, sequences=8),
          Case(ZOO + "llama-gqa", "fp32"), Case(ZOO + "arcee-biases", "fp16", rows=8, sequences=8))
FORMATS = (Case(ZOO + "llama-gqa", "fp16", rows=8, sequences=8),
           *(Case(ZOO + "llama-gqa", dtype, weights=weights, rows=8, sequences=8)
             for dtype, weights in (("bf16", "int8"), ("fp16", "int8:g32"), ("bf16", "int4:g32"),
                                    ("fp16", "int4:g64:sym"), ("bf16", "fp8"))),
           Case(ZOO + "llama-gqa", "bf16", cache="int8", rows=8, sequences=8),
           Case(ZOO + "llama-gqa", "bf16", weights="int4:g32", cache="int8", rows=8, sequences=8),
           Case(PYCODER, "bf16", rows=8, sequences=8),
           Case(PYCODER, "bf16", weights="int4:g64", rows=8, sequences=8),
           Case(PYCODER, "bf16", rows=2, sequences=3))
# A page for every exchange. In such a build prompts and single tokens once differed by the last bit, because nvcc had
# fused a product with a sum in one kernel and not in the other.
SCHEDULES = (Case("testdata/configs/qwen3-0.6b", "bf16", SEED, 2048, rows=8,
                  knobs=(("", "page_allocation", "none"), ("attention", "max_splits", 4))),)
# Of several rows of each of several sequences: with splits and windows, norms of heads and behind branches, learned
# positions, wide groups, other formats, and without tensor cores.
MIXED = (Case(PYCODER, "bf16", rows=8, sequences=4, sequence_rows=2),
         Case(PYCODER, "bf16", rows=8, sequences=2, sequence_rows=4),
         Case(PYCODER, "bf16", weights="int4:g64", cache="int8", rows=8, sequences=2, sequence_rows=4),
         *(Case(ZOO + name, "bf16", rows=8, sequences=4, sequence_rows=2) for name in (
             "gemma2-split-k", "gpt2", "mistral-window", "olmo2-plain", "qwen3-qknorm")),
         Case(ZOO + "mistral-wide-group", "bf16", sequences=2, sequence_rows=4),
         Case(ZOO + "exaone4-windows", "bf16", cache="int8", rows=8, sequences=2, sequence_rows=3),
         Case(ZOO + "llama-gqa", "fp32", cache="int8", rows=8, sequences=4, sequence_rows=2),
         Case(ZOO + "llama-gqa", "fp16", weights="fp8", rows=8, sequences=2, sequence_rows=4))
# Builds with one seed share their plan of cases. These have another one, and formats that other fixtures lack.
RESEEDED = tuple((Case(ZOO + name, "bf16", weights=weights, rows=8, sequences=8), 2)
                 for name, weights in (("gemma2-tied", "int8"), ("qwen3-qknorm", "int4:g32")))
# Those whose passes are given up in the middle too: kernels that look for an abort whenever they wait.
ABORTED = (Case(ZOO + "llama-gqa", "bf16", rows=8, sequences=8),
           Case(ZOO + "llama-gqa", "fp32", rows=8, sequences=8),
           Case(PYCODER, "bf16", weights="int4:g64", cache="int8", rows=8, sequences=8),
           Case(PYCODER, "bf16", rows=8, sequences=4, sequence_rows=2))
ABORT_DEFINES = ("AMK_EAGER_ABORT=1",)
# An hour of sequences that come and go, in pieces. Several may share a GPU: no time is measured.
SOAKED = tuple((Case(PYCODER, "bf16", rows=8, **rest), seed) for rest, seeds in (
    ({"sequences": 8}, (1, 2, 3)), ({"sequences": 4, "sequence_rows": 2}, (1, 2, 3)),  # the latter with drafts
    ({"weights": "int4:g64", "cache": "int8", "sequences": 8}, (1, 2))) for seed in seeds)
TIMED_POSITIONS = 8448  # of the contexts of builds whose passes are timed
TIMED_AT = (128, 2048, 8192)
TIMED_LAUNCHES = 40
SOAK_MINUTES = 8
SOAK_SPARE_SECONDS = 180  # to open the build, and to decode what is there to its end

# Of these builds the check compares both kinds of passes with single tokens, in the run that times them.
TIMED = tuple((Case(f"testdata/configs/{name}", "bf16", SEED, TIMED_POSITIONS, weights=weights, rows=8, sequences=8),
               TIMED_AT)
              for name, weights in (("llama-3.1-8b", ""), ("llama-3.1-8b", "int8"), ("llama-3.1-8b", "int4"),
                                    ("llama-3.2-1b", "")))
# Of a mixture of experts a pass streams an expert once for each token that has it.
TIMED += ((Case("testdata/configs/qwen3-30b-a3b", "bf16", SEED, TIMED_POSITIONS, rows=8, sequences=8, left_out=True),
           (128,)),)


def passes_row(shop, case, seed):
    directory = shop.finish(case)
    done = shop.on_device(directory, "passes", "--cases", str(CASES), "--seed", str(seed), seconds=PASSES_SECONDS,
                          accept=(0, 1))
    return judge_passes(case, last_object(done.stdout))


def judge_passes(case, r):
    """Nothing differs, and every kind of case that the build is for was among those that were compared."""
    findings = [f"{r['differing']} of {r['compared']}: {r['difference']}"] if r["difference"] else []
    wanted = ["prompts"]
    if case.rows > 1:
        wanted += ["drafts", "rows of 1", "rows of 2", "rows of 3", "rows of 5", "rows of 8"]
    if case.sequences > 1:
        wanted += ["sequences"]
    if case.sequence_rows > 1:
        wanted += ["mixed"]
    missing = [kind for kind in wanted if not r["kinds"].get(kind)]
    if not findings and missing:
        findings = ["nothing was compared of " + ", ".join(missing)]
    if not findings and (not r["passed"] or r["cases"] < CASES or not r["from_prefix"]):
        findings = [f"{r['cases']} cases, {r['compared']} positions compared, {r['from_prefix']} from a prefix; "
                    f"{CASES} cases are needed, and all of these"]
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("seed", "cases", "kinds", "from_prefix", "drafts", "compared", "beside", "differing")}


def aborts_row(shop, case):
    directory = shop.finish(case, ABORT_DEFINES)
    done = shop.on_device(directory, "passes", "--kinds", "aborts", "--cases", str(CASES), "--seed", str(SEED),
                          seconds=PASSES_SECONDS, accept=(0, 1))
    return judge_aborts(case, last_object(done.stdout))


def judge_aborts(case, r):
    """Nothing differs after passes of each kind were given up."""
    findings = [f"{r['differing']} of {r['compared']}: {r['difference']}"] if r["difference"] else []
    wanted = ["prompts", "rows", "sequences"] + (["mixed"] if case.sequence_rows > 1 else [])
    missing = [kind for kind in wanted if not r["given_up"].get(kind)]
    if not findings and missing:
        findings = ["nothing was given up of " + ", ".join(missing)]
    if not findings and (not r["passed"] or r["cases"] < CASES):
        findings = [f"{r['cases']} cases, {r['compared']} positions compared; {CASES} cases are needed"]
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("seed", "cases", "kinds", "given_up", "from_prefix", "drafts", "compared", "beside",
                          "differing")}


def sequences_row(shop, case, seed):
    directory = shop.finish(case)
    shop.settle()
    if shop.budget.remaining() < 60 * SOAK_MINUTES:
        raise OutOfTime  # rather than most of it for nothing
    done = shop.on_device(directory, "sequences", "--minutes", str(SOAK_MINUTES), "--seed", str(seed),
                          seconds=60 * SOAK_MINUTES + SOAK_SPARE_SECONDS, accept=(0, 1))
    return judge_sequences(last_object(done.stdout))


def judge_sequences(r):
    """Each text is what it is alone, steps were given up, and memory does not grow."""
    findings = [f"{r['differing']} texts: {r['difference']}"] if r["difference"] else []
    findings += [r["growth"]] if r["growth"] else []
    if not findings and (not r["passed"] or r["minutes"] < SOAK_MINUTES or not r["after_abort"] or not r["sampled"]):
        findings = [f"{r['finished']} texts in {r['minutes']:.1f} minutes, {r['sampled']} of them drawn, "
                    f"{r['after_abort']} after a step that was given up; {SOAK_MINUTES} minutes are needed, and all of "
                    "these"]
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("seed", "minutes", "finished", "left", "sampled", "tokens", "beside", "aborts", "after_abort",
                          "differing", "goroutines", "heap_mb", "resident_mb")}


def passes():
    return [Task("passes", case.key, case, lambda shop, case=case: passes_row(shop, case, SEED))
            for case in (*FAMILIES, *PLAIN, *FORMATS, *SCHEDULES, *MIXED)] + [
        Task("passes", f"{case.key}-seed{seed}", case, lambda shop, c=case, s=seed: passes_row(shop, c, s))
        for case, seed in RESEEDED] + [
        Task("passes", f"{case.key}-aborts", case, lambda shop, case=case: aborts_row(shop, case), ABORT_DEFINES)
        for case in ABORTED]


def sequences():
    return [Task("sequences", f"{case.key}-seed{seed}", case,
                 lambda shop, case=case, seed=seed: sequences_row(shop, case, seed), seconds=60 * SOAK_MINUTES)
            for case, seed in SOAKED]


def pass_times_row(shop, case, position):
    directory = shop.finish(case)
    shop.settle()
    done = shop.on_device(directory, "bench", "--json", "--position", str(position), "--launches", str(TIMED_LAUNCHES))
    return judge_pass_times(last_object(done.stdout))


def judge_pass_times(r):
    """A row of the latency, and of passes how long they take beside a token, if the check before them has passed."""
    row = judge_bench(r)
    if row["passed"]:
        token = r["latency_us"]["median"]
        for kind, several in (("rows", False), ("sequences", True)):
            us = [p["latency_us"]["median"] for p in r.get("passes", ()) if (p.get("sequences", 1) > 1) == several]
            if not us:
                return {"passed": False, "findings": [f"no pass of several {kind} was timed"]}
            row |= {f"{kind}_us": us[0], f"{kind}_over_token": us[0] / token}
    return row


def pass_times():
    return [Task("pass_times", f"{case.key}-{position}", case,
                 lambda shop, c=case, p=position: pass_times_row(shop, c, p))
            for case, positions in TIMED for position in positions]
