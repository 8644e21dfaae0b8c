"""Writes processors.json: logits and settings, and what transformers' logits processors leave of them.

    python3 make_processors.py       # needs torch and transformers

transformers itself puts the processors in order. It has no presence and frequency penalties; they are a processor of
the caller's here, by OpenAI's formula, and stand where transformers puts those. Processors are given float64 scores, as
package sampling computes in float64; in float32, as generate() has them, they are to keep the same tokens.

Which of equals come first, torch.sort leaves open, so that top-p may keep others on another machine. Here it is stable:
among equals those with the higher ids are kept.
"""

import functools
import json
import pathlib
import random

import torch
import transformers
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList
from transformers.generation import GenerationMixin

INF = float("inf")
torch.sort = functools.partial(torch.sort, stable=True)


class Penalties(LogitsProcessor):
    """mu[j] - c[j]*frequency - (c[j] > 0)*presence, with c[j] how often the output has j."""

    def __init__(self, prompt, presence, frequency):
        self.prompt, self.presence, self.frequency = prompt, presence, frequency

    def __call__(self, input_ids, scores):
        counts = torch.bincount(input_ids[0, self.prompt:], minlength=scores.shape[-1])[None].to(scores.dtype)
        return scores - self.frequency * counts - self.presence * (counts > 0)


class Decoder:
    """What _get_logits_processor asks of a model."""

    config = transformers.PretrainedConfig()
    _merge_criteria_processor_list = GenerationMixin._merge_criteria_processor_list


def final(case, dtype):
    """The scores that transformers would draw by."""
    o, ids = case["options"], case["prompt"] + case["output"]
    config = GenerationConfig(do_sample=True, num_beams=1, temperature=o.get("temperature", 1.0), top_k=o.get("top_k"),
                              top_p=o.get("top_p"), min_p=o.get("min_p"),
                              repetition_penalty=o.get("repetition_penalty"),
                              sequence_bias=[[[i], b] for i, b in case["bias"]] or None)
    allowed = case["allowed"]
    processors = GenerationMixin._get_logits_processor(
        Decoder(), config, input_ids_seq_length=len(ids),
        prefix_allowed_tokens_fn=None if allowed is None else lambda batch, ids: allowed,
        logits_processor=LogitsProcessorList([Penalties(len(case["prompt"]), o.get("presence_penalty", 0.0),
                                                        o.get("frequency_penalty", 0.0))]))
    logits = torch.tensor([[-INF if x is None else x for x in case["logits"]]], dtype=torch.float32).to(dtype)
    return processors(torch.tensor([ids], dtype=torch.long), logits)[0]


def logits_of(rng, vocab, kind):
    """float32 logits; None is -inf."""
    scale = rng.choice([0.5, 2, 6, 30])
    values = [rng.gauss(0, scale) for _ in range(vocab)]
    if kind == "ties":
        values = [round(v) for v in values]
    elif kind == "plateau":
        values = [rng.choice([0.0, 0.0, 0.0, -1.0, 2.0]) for _ in range(vocab)]
    elif kind == "far":
        values = [v * 1000 for v in values]
    elif kind == "holes":
        values = [None if rng.random() < 0.4 else v for v in values]
        values[rng.randrange(vocab)] = 0.25
    return [v if v is None else torch.tensor(round(v, 3), dtype=torch.float32).item() for v in values]


def case_of(rng, number):
    vocab = rng.choice([1, 2, 3, 9, 17, 40, 64, 64])
    kind = ["normal", "ties", "plateau", "far", "holes"][number % 5]
    case = {"kind": kind, "logits": logits_of(rng, vocab, kind), "prompt": [rng.randrange(vocab) for _ in range(5)],
            "output": [rng.randrange(vocab) for _ in range(rng.randrange(9))], "bias": [], "allowed": None}
    o = case["options"] = {}
    some = lambda share: rng.random() < share
    if some(0.7):
        o["temperature"] = rng.choice([0.1, 0.6, 0.7, 1.3, 5.0])
    if some(0.4):
        o["top_k"] = rng.choice([1, 2, 5, 20, 50, 100])
    if some(0.5):
        o["top_p"] = rng.choice([0.0, 0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.999])
    if some(0.3):
        o["min_p"] = rng.choice([0.0, 0.01, 0.1, 0.3, 1.0])
    if some(0.4):
        o["repetition_penalty"] = rng.choice([0.5, 1.1, 1.5, 3.0])
    if some(0.3):
        o["presence_penalty"] = rng.choice([-1.5, 0.5, 2.0])
    if some(0.3):
        o["frequency_penalty"] = rng.choice([-0.5, 0.25, 1.0])
    if some(0.3):
        ids = rng.sample(range(vocab), min(vocab, 4))
        case["bias"] = [[i, rng.choice([-100.0, -2.5, 3.0, 100.0])] for i in ids]
    if some(0.2):
        finite = [i for i, v in enumerate(case["logits"]) if v is not None]
        case["allowed"] = sorted(set(rng.sample(finite, max(1, len(finite) // 3))))
    return case


def edges():
    """Sums that end exactly at the share that goes, and ties at the last of the k."""
    def case(logits, **options):
        return {"kind": "edge", "logits": logits, "prompt": [0], "output": [], "bias": [], "allowed": None,
                "options": options}
    for p in (0.25, 0.5, 0.75, 0.125, 0.875, 0.0):
        yield case([0.0] * 8, top_p=p)
        yield case([1.5] * 4 + [None] * 4, top_p=p)
    for k in (1, 3, 4, 5, 7, 9):
        yield case([3.0, 1.0, 3.0, 1.0, 2.0, 1.0, 0.0, 1.0], top_k=k)
        yield case([None, 1.0, None, 1.0, None, -1.0], top_k=k)
        yield case([3.0, 1.0, 3.0, 1.0, 2.0, 1.0, 0.0, 1.0], top_k=k, top_p=0.5)
    yield case([0.0, 0.0, -1.0], min_p=1.0)
    yield case([-0.0, 0.0, -1.0], repetition_penalty=2.0, top_k=1)


def main():
    rng = random.Random(20)
    cases = [case_of(rng, i) for i in range(200)] + list(edges())
    differ = 0
    for case in cases:
        scores = final(case, torch.float64)
        kept = torch.isfinite(scores)
        case["kept"] = kept.nonzero()[:, 0].tolist()
        case["probabilities"] = [float(f"{p:.10g}") for p in scores.softmax(-1)[kept].tolist()]
        differ += case["kept"] != torch.isfinite(final(case, torch.float32)).nonzero()[:, 0].tolist()
    out = {"transformers": transformers.__version__, "kept_otherwise_in_float32": differ, "cases": cases}
    lines = ",\n".join(json.dumps(case) for case in cases)
    head = json.dumps({k: v for k, v in out.items() if k != "cases"})[:-1]
    pathlib.Path(__file__).with_name("processors.json").write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {differ} of which keep other tokens in float32")


if __name__ == "__main__":
    main()
