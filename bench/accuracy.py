"""Sections fixtures, quantised, shapes, sizes and fallbacks: logits of builds against those of transformers; and
looping: those of a loop over layers against those of layers one by one.

Each section is a list of tasks (workshop.py).
"""

import functools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import criteria
import random_weights
import reference
from workshop import FEATURES, Case, Task

DTYPES = ("fp32", "bf16", "fp16")
PYCODER = "testdata/models/pycoder-5m"
# The small models of testdata/models. Which rows are planned follows from the names, and so pages are rendered alike
# where the models are not.
ZOO = ("llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-rope-llama3", "llama-sharded-fp16",
       "llama-biases-yarn", "llama-attention-bias", "llama-layer-heads", "llama-layer-widths", "llama-mlp-bias",
       "llama-rope-linear", "llama-rope-dynamic", "llama-rope-proportional", "llama-rope-yarn", "qwen3-qknorm",
       "qwen3-odd-dims", "qwen3-window-half", "qwen3-tied", "qwen3-attention-bias", "qwen3-rope-yarn", "qwen2-bias",
       "qwen2-odd-dims", "qwen2-window-half", "qwen2-tied", "mistral-full", "mistral-head-dim", "mistral-nemo",
       "mistral-window", "mistral-window-narrow", "mistral-wide-group", "ministral-windows", "gemma-tied",
       "gemma-odd-dims", "gemma2-tied", "gemma2-split-k", "gemma2-uncapped", "gemma3-tied", "gemma3-odd-dims",
       "gemma3-images", "phi3-short", "phi3-long", "phi3-partial", "phi3-window", "apertus-biases", "apertus-gelu",
       "apertus-llama3", "arcee-biases", "arcee-plain",
       "cohere-biases", "cohere-head-norms", "cohere-head-norms-odd", "cohere-tied", "cohere2-head-dim",
       "cohere2-listed", "cohere2-tied",
       "cwm-listed", "cwm-windows", "ernie4-5-biases", "ernie4-5-tied", "exaone4-full", "exaone4-windows",
       "falcon-groups", "falcon-groups-one-norm", "falcon-multi-query", "falcon-sequential", "glm-half",
       "glm-three-quarters", "glm4-half", "glm4-plain", "gpt-neox-parallel", "gpt-neox-sequential", "gpt2",
       "gpt2-odd-dims", "granite-biases", "granite-scaled", "helium-biases", "helium-plain", "hunyuan-alpha",
       "hunyuan-biases", "hyperclovax-bare", "hyperclovax-post", "internlm3-biases", "internlm3-plain", "iquestcoder",
       "ministral3-window", "ministral3-yarn", "mistral3-ministral", "mistral3-small", "nemotron-biases",
       "nemotron-half", "olmo-biases", "olmo-clipped", "olmo-plain", "olmo2-biases", "olmo2-plain", "olmo3-former",
       "olmo3-windows", "opt-plain", "opt-tied", "phi-half", "phi-head-norms", "phi-odd-dims", "seed-oss-biases",
       "seed-oss-odd-dims", "smollm3-listed", "smollm3-tied", "smollm3-windows", "stablelm-head-norms",
       "stablelm-layernorm", "stablelm-odd-dims", "stablelm-parallel", "starcoder2-plain", "starcoder2-tied",
       "aya-vision", "cohere2-vision", "idefics3", "internvl", "llava", "llava-next", "llava-onevision", "qwen2-5-vl",
       "qwen2-vl", "qwen3-vl", "smolvlm")
ONLY_FP32 = ("cohere2-head-dim", "llama-rope-linear", "phi3-partial")  # tensor cores do not take heads of such sizes
FIXTURES = (PYCODER,) + tuple(f"testdata/models/zoo/{name}" for name in ZOO)
# Between them they have every stage body: what internal/kernels compiles for Hopper.
BODIES = ("pycoder-5m", "llama-gqa", "llama-odd-dims", "llama-biases-yarn", "llama-layer-heads", "qwen3-qknorm",
          "mistral-wide-group", "mistral-window", "gemma-tied", "gemma2-split-k", "gemma3-tied", "phi3-short",
          "apertus-llama3", "exaone4-windows", "gpt-neox-parallel", "gpt2", "olmo-clipped", "olmo2-plain",
          "stablelm-head-norms", "starcoder2-tied")
GPT2_NAMES = {"max_position_embeddings": "n_positions", "hidden_size": "n_embd", "num_attention_heads": "n_head"}
FALLBACK_MODELS = (PYCODER, "testdata/models/zoo/llama-odd-dims")
QUANTISED = tuple(f"testdata/models/quantised/models/{name}" for name in (
    "gpt-neox-ct-int8", "llama-ct-fp8", "llama-ct-int4", "llama-ct-int4-layers", "llama-ct-int8-embedding",
    "llama-ct-int8-mixed", "llama-ct-mxfp4", "llama-ct-nvfp4", "llama-fp8-blocks", "llama-fp8-layers", "llama-gptq-v2",
    "llama-gptq-zeros", "mistral3-ct-fp8", "phi3-ct-int4", "qwen2-ct-int4-zeros", "qwen2-gptq", "qwen3-awq"))
STORED_MODEL = PYCODER
STORED = ("int8", "int8:g32:asym", "fp8", "int4", "int4:g32:sym", "int4:g32:asym", "int4:g64:sym", "int4:g64:asym",
          "int4:g128:sym", "int4:g128:asym", "int4,lm_head=none",
          "int4,lm_head=int8,layers.0.*=none")
# Loops of every form: one kind of layers or several in any order, and a residual of which each SM has rows, or all.
LOOPED = (PYCODER,) + tuple(f"testdata/models/zoo/{name}" for name in (
    "llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-rope-llama3", "llama-sharded-fp16", "cohere2-tied",
    "exaone4-windows", "gemma2-split-k", "gemma3-tied", "gpt2", "smollm3-listed"))
UNROLLED = (("loop", "roll", 0),)
SEED = 1
SHAPE_POSITIONS = 2048
SHAPES = (  # of a model that needs more than a GPU has in fp32, the types that fit
    ("testdata/configs/smollm2-135m", ("bf16", "fp16", "fp32")),
    ("testdata/configs/llama-3.2-1b", ("bf16", "fp16", "fp32")),
    ("testdata/configs/llama-3.1-8b", ("bf16", "fp16")),
)
SIZE_POSITIONS = 700  # past the first position of the variant that splits the context
SIZES = sorted(str(path.parent) for path in Path("testdata/configs/sizes").glob("*/config.json"))


def config(model):
    return json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))


def spread_ids(n, vocab, first=0):
    """Ids of positions from first on: fixed, and spread over the vocabulary."""
    return [random_weights.mix(i + 1) % vocab for i in range(first, first + n)]


def text_config(model):
    """The config of the decoder, which a model of images too has inside its own."""
    c = config(model)
    c = c.get("text_config", c)
    return c | {name: c[former] for name, former in GPT2_NAMES.items() if former in c}


def committed_ids(model):
    name = "eval_ids.npy" if (Path(model) / "eval_ids.npy").exists() else "ref_input_ids.npy"
    return name, [int(i) for i in np.load(Path(model) / name)]


@functools.cache  # the fixtures are read for every case, and a list of tasks has a thousand
def fixture_positions(model):
    """How many positions a fixture is compiled for: all, but one whose committed ids fit the original context of
    longrope ends there. transformers turns all positions by the long factors once a text is longer, and a build is for
    one side. Queries that are scaled from the original context on are compiled up to there alone. None where the model
    is not: no row of it can be made there, and what its rows are called does not depend on it."""
    if not (Path(model) / "config.json").exists():
        return None
    c = text_config(model)
    rope = c.get("rope_parameters") or {}
    scaled = rope.get("original_max_position_embeddings") if rope.get("llama_4_scaling_beta") else None
    original = c.get("original_max_position_embeddings") or scaled or 0
    return original if original >= len(committed_ids(model)[1]) else c["max_position_embeddings"]


def fixture_dtypes(model):
    """The dtypes of a fixture."""
    return ("fp32",) if Path(model).name in ONLY_FP32 else DTYPES


def fixture_ids(model):
    """The ids of a fixture's whole context, and where they are from: those that are committed beside it, and after them
    made-up ones."""
    c, n = text_config(model), fixture_positions(model)
    name, ids = committed_ids(model)
    ids = ids[:n]
    made_up = spread_ids(n - len(ids), c["vocab_size"], first=len(ids))
    where = f"{name}[:{len(ids)}]"
    if made_up:
        where += f", then spread_ids({len(made_up)}, {c['vocab_size']}, {len(ids)})"
    return ids + made_up, where


def prompts(model):
    """What a fixture is asked to continue, and with how many tokens."""
    path = Path(model) / "reference.json"
    if path.exists():
        return [(g["prompt_ids"], len(g["greedy_ids"])) for g in json.loads(path.read_text(encoding="utf-8"))["greedy"]]
    return [(fixture_ids(model)[0][:8], len(np.load(Path(model) / "ref_greedy_from8.npy")))]


class References:
    """Logits and continuations of transformers, of the last model that was asked for: tasks come model by model."""

    def __init__(self):
        self.model, self.kept = None, {}

    def of(self, model, what, make):
        if model != self.model:
            self.model, self.kept = model, {}
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]

    def fixture(self, model, dtype):
        """Logits of a fixture in a dtype, and for fp32 the greedy continuations."""
        def make():
            with reference.checkpoint(model, dtype) as m:
                greedy = [m.greedy(prompt, n) for prompt, n in prompts(model)] if dtype == "fp32" else None
                return m.logits(fixture_ids(model)[0]), greedy
        return self.of(model, dtype, make)


def fixture_row(shop, references, case, defines=()):
    ids, where = fixture_ids(case.model)
    ref, greedy = references.fixture(case.model, "fp32")
    rival = None if case.dtype == "fp32" else references.fixture(case.model, case.dtype)[0]
    directory = shop.finish(case, defines)
    got = shop.logits(directory, ids, where)
    if rival is not None:
        return criteria.judge_half(got, rival, ref)
    row = criteria.judge_fp32(got, ref, lambda: references.fixture(case.model, "fp64")[0])
    for (prompt, n), want in zip(prompts(case.model), greedy):
        row["findings"] += criteria.judge_greedy(shop.complete(directory, prompt, n), want)
    return row | {"passed": not row["findings"], "greedy_tokens": sum(map(len, greedy))}


def quantised_row(shop, references, case, defines=()):
    """The reference has the values of the build's matrices, and computes in fp32."""
    values = shop.dequantised(case)
    ids = committed_ids(case.model)[1][:fixture_positions(case.model)]

    def of(dtype):
        def make():
            with reference.checkpoint(values, dtype) as m:
                return m.logits(ids)
        return references.of(values, dtype, make)
    got = shop.logits(shop.finish(case, defines), ids, f"committed ids [:{len(ids)}]")
    if case.dtype == "fp32":
        return criteria.judge_fp32(got, of("fp32"), lambda: of("fp64"))
    return criteria.judge_half(got, of(case.dtype), of("fp32"))


def shape_row(shop, case):
    """The reference has the weights that the build has, those of its dtype, and computes in fp32."""
    ids = spread_ids(case.max_seq, config(case.model)["vocab_size"])
    with reference.invented(case.model, case.seed, case.dtype, "fp32") as m:
        ref = m.logits(ids)
    rival = None
    if case.dtype != "fp32":
        with reference.invented(case.model, case.seed, case.dtype, case.dtype) as m:
            rival = m.logits(ids)
    got = shop.logits(shop.finish(case), ids, f"spread_ids({len(ids)}, {config(case.model)['vocab_size']})")
    return criteria.judge_fp32(got, ref) if rival is None else criteria.judge_half(got, rival, ref)


def equality_row(shop, case):
    """Logits of the looped build and of one in which every layer has its own stages, bit for bit."""
    ids, where = fixture_ids(case.model)
    looped = np.array(shop.logits(shop.finish(case), ids, where))  # a copy: the next logits go into the same file
    unrolled = shop.logits(shop.finish(replace(case, knobs=UNROLLED)), ids, where)
    return judge_equality(looped, unrolled)


def judge_equality(looped, unrolled):
    """Whether two builds give the same bits; not a number is equal to itself."""
    if looped.shape != unrolled.shape:
        return {"passed": False, "findings": [f"logits of shape {looped.shape} and {unrolled.shape}"]}
    differ = np.argwhere(looped.view(np.uint32) != np.ascontiguousarray(unrolled).view(np.uint32))
    findings = []
    if len(differ):
        position, i = (int(n) for n in differ[0])
        findings = [f"{len(differ)} of {looped.size} logits differ, the first at position {position}, id {i}: "
                    f"{looped[position, i]!r} looped, {unrolled[position, i]!r} unrolled"]
    return {"passed": not findings, "findings": findings, "positions": int(looped.shape[0]), "logits": int(looped.size)}


def fixtures():
    references = References()
    return [Task("fixtures", case.key, case, lambda shop, case=case: fixture_row(shop, references, case))
            for case in (Case(model, dtype, max_seq=fixture_positions(model)) for model in FIXTURES
                         for dtype in fixture_dtypes(model))]


def quantised():
    """Checkpoints as the libraries write them that quantise, and others that amkc quantises."""
    references = References()
    cases = [Case(model, dtype) for model in QUANTISED for dtype in DTYPES]
    cases += [Case(STORED_MODEL, dtype, max_seq=fixture_positions(STORED_MODEL), weights=weights) for weights in STORED
              for dtype in DTYPES]
    return [Task("quantised", case.key, case, lambda shop, case=case: quantised_row(shop, references, case))
            for case in cases]


def shapes():
    return [Task("shapes", case.key, case, lambda shop, case=case: shape_row(shop, case))
            for case in (Case(model, dtype, SEED, SHAPE_POSITIONS) for model, dtypes in SHAPES for dtype in dtypes)]


def sizes():
    return [Task("sizes", case.key, case, lambda shop, case=case: shape_row(shop, case))
            for case in (Case(model, dtype, SEED, SIZE_POSITIONS) for model in SIZES for dtype in DTYPES)]


def switched_off(defines):
    return {"defines": ", ".join(d.removeprefix("AMK_").removesuffix("=0") for d in defines)}


def fallbacks():
    """Each feature switched off on top of those before it. fp32 has no use for tensor cores in the first place. What
    widens fp8 is one more, where a matrix is in fp8."""
    references = References()
    tasks = []
    for model in FALLBACK_MODELS:
        for dtype in DTYPES:
            for n in range(1, len(FEATURES) if dtype == "fp32" else len(FEATURES) + 1):
                case, defines = Case(model, dtype), FEATURES[:n]
                run = lambda shop, case=case, defines=defines: (
                    fixture_row(shop, references, case, defines) | switched_off(defines))
                tasks.append(Task("fallbacks", f"{case.key}-{n}", case, run, defines))
    for dtype in ("bf16", "fp16"):
        for n, defines in enumerate((("AMK_FP8_CONVERT=0",), ("AMK_TENSOR_CORES=0",)), 1):
            case = Case(STORED_MODEL, dtype, max_seq=fixture_positions(STORED_MODEL), weights="fp8")
            run = lambda shop, case=case, defines=defines: (
                quantised_row(shop, references, case, defines) | switched_off(defines))
            tasks.append(Task("fallbacks", f"{case.key}-{n}", case, run, defines))
    return tasks


def looping():
    return [Task("looping", case.key, case, lambda shop, case=case: equality_row(shop, case),
                 also=((replace(case, knobs=UNROLLED), ()),))
            for case in (Case(model, dtype) for model in LOOPED for dtype in fixture_dtypes(model))]
