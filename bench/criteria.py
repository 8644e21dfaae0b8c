"""How far logits are from a reference, and what is close enough.

Logits are arrays [positions, vocab]; they may be memory-mapped, since no more than a few rows are held in float64.
Needs numpy alone, and must not know where logits come from.
"""

from dataclasses import dataclass

import numpy as np

FP32_MAX = 1e-4  # max |logit error| of an fp32 build
RMS_FACTOR = 1.0  # RMS error of a 16-bit build, in that of the rival
MAX_FACTOR = 1.5  # its max error, likewise
MARGIN_FACTOR = 2.0  # the argmax is decided where the reference's margin exceeds so many max errors of the rival
ROWS = 64  # compared at a time
SHOWN = 5  # findings of a kind that are spelled out


@dataclass(frozen=True)
class Distance:
    """The errors of logits over all positions; NaN if any logit is not finite."""

    max: float
    rms: float
    at: tuple  # (position, id) of the largest error, or of the first logit that is not finite


def blocks(positions):
    for first in range(0, positions, ROWS):
        yield slice(first, min(first + ROWS, positions))


def distance(got, ref):
    """The Distance of logits from a reference of the same shape."""
    if got.shape != ref.shape or got.ndim != 2:
        raise ValueError(f"logits of shape {got.shape}, a reference of shape {ref.shape}; the same [positions, vocab] "
                         "is needed")
    worst, at, squares = -1.0, (0, 0), 0.0
    for rows in blocks(len(ref)):
        error = np.abs(got[rows].astype(np.float64) - ref[rows])
        finite = np.isfinite(error)
        if not finite.all():
            return Distance(float("nan"), float("nan"), place(np.argmin(finite), rows, ref))
        if error.max() > worst:
            worst, at = float(error.max()), place(np.argmax(error), rows, ref)
        squares += float(np.square(error).sum())
    return Distance(worst, (squares / ref.size) ** 0.5, at)


def place(flat, rows, ref):
    return rows.start + int(flat) // ref.shape[1], int(flat) % ref.shape[1]


def choices(logits):
    """The greedy choice at each position: the lowest id among the largest logits."""
    return np.concatenate([np.argmax(logits[rows], axis=1) for rows in blocks(len(logits))])


def margins(logits):
    """By how much the largest logit of each position exceeds the second largest."""
    tops = [np.partition(logits[rows], -2, axis=1)[:, -2:].astype(np.float64) for rows in blocks(len(logits))]
    return np.concatenate([top[:, 1] - top[:, 0] for top in tops])


def judge_fp32(got, ref, exact=None):
    """The verdict on an fp32 build: the errors, and the same choice everywhere. A dict that goes into a row of
    results. Where the errors are too large, exact() may say how far the reference is from itself in float64: a model
    that amplifies rounding is allowed as much again."""
    d = distance(got, ref)
    allowed, own = FP32_MAX, {}
    if exact and not d.max <= allowed:
        reference_error = distance(ref, exact()).max
        allowed = max(allowed, MAX_FACTOR * reference_error)
        own = {"transformers_max_error": number(reference_error), "max_ratio": number(ratio(d.max, reference_error))}
    wrong = np.flatnonzero(choices(got) != choices(ref))
    findings = []
    if not d.max <= allowed:  # NaN too
        findings.append(f"max |logit error| {d.max:.3g} at position {d.at[0]}, id {d.at[1]}; {allowed:g} is allowed")
    findings += disagreements(got, ref, wrong)
    return verdict(findings, len(ref), d, decided=len(ref), wrong=len(wrong)) | own


def judge_half(got, rival, ref, rms_factor=RMS_FACTOR):
    """The verdict on a bf16 or fp16 build against transformers' own run in that type, the rival; ref is fp32."""
    d, own = distance(got, ref), distance(rival, ref)
    decided = margins(ref) > MARGIN_FACTOR * own.max
    wrong = np.flatnonzero((choices(got) != choices(ref)) & decided)
    findings = []
    if not d.rms <= rms_factor * own.rms:
        findings.append(f"RMS error {d.rms:.3g}, {ratio(d.rms, own.rms):.3f} of transformers' {own.rms:.3g}; "
                        f"{rms_factor:g} is allowed")
    if not d.max <= MAX_FACTOR * own.max:
        findings.append(f"max error {d.max:.3g} at position {d.at[0]}, id {d.at[1]}, {ratio(d.max, own.max):.3f} of "
                        f"transformers' {own.max:.3g}; {MAX_FACTOR:g} is allowed")
    findings += disagreements(got, ref, wrong)
    return verdict(findings, len(ref), d, decided=int(decided.sum()), wrong=len(wrong)) | {
        "transformers_max_error": number(own.max), "transformers_rms_error": number(own.rms),
        "max_ratio": number(ratio(d.max, own.max)), "rms_ratio": number(ratio(d.rms, own.rms))}


def verdict(findings, positions, d, decided, wrong):
    return {"passed": not findings, "findings": findings, "positions": positions, "max_error": number(d.max),
            "rms_error": number(d.rms), "argmax_decided": decided, "argmax_wrong": wrong}


def disagreements(got, ref, positions):
    """Says where another id was chosen, and how close it was."""
    findings = []
    for p in positions[:SHOWN]:
        a, b = int(np.argmax(got[p])), int(np.argmax(ref[p]))
        findings.append(f"position {p}: argmax {a} instead of {b}, by {got[p, a] - got[p, b]:.3g}; the reference has "
                        f"{b} ahead by {ref[p, b] - ref[p, a]:.3g}")
    if len(positions) > SHOWN:
        findings.append(f"argmax wrong at {len(positions) - SHOWN} positions more")
    return findings


def judge_greedy(got, want):
    """Findings about a greedy continuation that should be the same ids."""
    if list(got) == list(want):
        return []
    same = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    return [f"greedy continuation: token {same} of {len(want)} is {list(got[same:same + 1])} instead of "
            f"{list(want[same:same + 1])}"]


def ratio(a, b):
    if b == 0:
        return 0.0 if a == 0 else float("inf")
    return a / b


def number(x):
    """A float for JSON, which knows neither NaN nor infinity."""
    return float(x) if np.isfinite(x) else None
