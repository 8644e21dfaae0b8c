"""Sections passes and sequences: what is decoded by passes is what single tokens give, to the bit.

Each section is a list of tasks; sections.py says what a task is.
"""

from sections import Task
from workshop import Case, OutOfTime, last_object

PYCODER = "testdata/models/pycoder-5m"
ZOO = "testdata/models/zoo/"
SEED = 1  # of what is random
CASES = 1000  # of a build
PASSES_SECONDS = 600
# Of each family a model that has kernels for prompts, for rows and for sequences; then those that have two of these
# kernels.
FAMILIES = tuple(Case(ZOO + name, "bf16", rows=8, sequences=8) for name in (
    "apertus-llama3", "arcee-plain", "cohere-tied", "cohere2-tied", "cwm-windows", "ernie4-5-tied", "exaone4-windows",
    "falcon-groups", "falcon-multi-query", "gemma-tied", "gemma2-split-k", "gemma2-tied", "gemma3-tied", "glm-half",
    "glm4-half", "gpt-neox-parallel", "granite-scaled", "helium-plain", "hunyuan-alpha", "internlm3-plain",
    "iquestcoder", "llama-gqa", "mistral-nemo", "mistral-window", "mistral3-small", "nemotron-half", "olmo-plain",
    "olmo2-plain", "olmo3-windows", "phi-half", "phi-head-norms", "phi3-short", "qwen2-tied", "qwen3-qknorm",
    "seed-oss-biases", "smollm3-tied", "stablelm-head-norms", "stablelm-parallel", "starcoder2-tied"))
FAMILIES += tuple(Case(ZOO + name, "bf16", rows=8) for name in ("cohere-head-norms", "gpt2", "opt-tied"))
# In fp32 there are no such kernels: other ways than single tokens are cuts of a prompt, and prefixes.
FORMATS = (Case(ZOO + "llama-gqa", "fp16", rows=8, sequences=8),
           Case(ZOO + "llama-gqa", "fp32"),
           *(Case(ZOO + "llama-gqa", dtype, weights=weights, rows=8, sequences=8)
             for dtype, weights in (("bf16", "int8"), ("fp16", "int8:g32"), ("bf16", "int4:g32"),
                                    ("fp16", "int4:g64:sym"), ("bf16", "fp8"))),
           Case(ZOO + "llama-gqa", "bf16", cache="int8", rows=8, sequences=8),
           Case(ZOO + "llama-gqa", "bf16", weights="int4:g32", cache="int8", rows=8, sequences=8),
           Case(PYCODER, "bf16", rows=8, sequences=8),
           Case(PYCODER, "bf16", weights="int4:g64", rows=8, sequences=8),
           Case(PYCODER, "bf16", rows=2, sequences=3))
SOAKED = (Case(PYCODER, "bf16", rows=8, sequences=8),
          Case(PYCODER, "bf16", weights="int4:g64", cache="int8", rows=8, sequences=8))
SOAK_MINUTES = 9
SOAK_SPARE_SECONDS = 180  # to open the build, and to decode what is there to its end


def passes_row(shop, case):
    directory = shop.finish(case)
    done = shop.on_device(directory, "passes", "--cases", str(CASES), "--seed", str(SEED), seconds=PASSES_SECONDS,
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
    missing = [kind for kind in wanted if not r["kinds"].get(kind)]
    if not findings and missing:
        findings = ["nothing was compared of " + ", ".join(missing)]
    if not findings and (not r["passed"] or r["cases"] < CASES or not r["from_prefix"]):
        findings = [f"{r['cases']} cases, {r['compared']} positions compared, {r['from_prefix']} from a prefix; "
                    f"{CASES} cases are needed, and all of these"]
    return {"passed": not findings, "findings": findings} | {
        k: r[k] for k in ("seed", "cases", "kinds", "from_prefix", "drafts", "compared", "beside", "differing")}


def sequences_row(shop, case):
    directory = shop.finish(case)
    shop.settle()
    if shop.budget.remaining() < 60 * SOAK_MINUTES:
        raise OutOfTime  # rather than most of it for nothing
    done = shop.on_device(directory, "sequences", "--minutes", str(SOAK_MINUTES), "--seed", str(SEED),
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
    return [Task("passes", case.key, case, lambda shop, case=case: passes_row(shop, case))
            for case in (*FAMILIES, *FORMATS)]


def sequences():
    return [Task("sequences", case.key, case, lambda shop, case=case: sequences_row(shop, case)) for case in SOAKED]
