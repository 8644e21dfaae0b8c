"""Candidates for the defaults of amkc: where each comes from, for which models and positions bench/candidates.py judges
it, and what came of it. Needs the standard library alone.
"""

from dataclasses import dataclass

# The defaults so far, as far as candidates have changed them. Verdicts over earlier ones are made again.
OVER = ("16 splits of every context from position 512 on",
        "8, 16 or 32 splits by the kv heads and the position (knobs.md, tiling.attention)")
DEFAULTS = len(OVER)  # the number of today's
SINCE = ("", "2026-11-28T02:00")  # the time from which campaigns were begun over each, in UTC


UNCHANGED_BELOW = 512  # up to this position none of them splits the context


def earlier(row):
    """Whether a row was measured with earlier defaults that can differ from today's there. Builds for passes of several
    sequences have always had the same."""
    return (row.get("defaults", 1) < DEFAULTS and row.get("position", UNCHANGED_BELOW) >= UNCHANGED_BELOW
            and row.get("sequences", 1) == 1)


def over(begun):
    """The number of the defaults that a campaign begun at a time, in the form of a trial, is over."""
    return sum(begun >= since for since in SINCE)


@dataclass(frozen=True)
class Shape:
    model: str
    positions: str
    max_seq: int
    trained: bool = False  # else with random weights


@dataclass(frozen=True, eq=False)
class Candidate:
    name: str
    found: str  # where it comes from
    config: dict
    shapes: tuple
    settled: str = ""  # what came of it; nothing: it is to be judged


SMALL = tuple(Shape(m, "128,2048,8192", 8448) for m in ("qwen3-0.6b", "llama-3.2-1b"))
EIGHT_HEADS = (*SMALL, Shape("llama-3.1-8b", "2048,8192", 8448))
FEW_HEADS = (Shape("qwen2.5-1.5b", "2048,8192", 8448), Shape("qwen2.5-7b", "2048,8192", 8448),
             Shape("smollm2-135m", "2048,8000", 8192), Shape("pycoder-5m", "600,1000", 1024, True))

LONG = "4096,8192,16384,32000"


def splits(n):
    return {"tiling": {"attention": {"max_splits": n}}}


CANDIDATES = (
    Candidate("round-robin", "campaigns of Qwen3-0.6B on H200s, 1.5 % at 2,048", {"sm_assignment": "round_robin"},
              EIGHT_HEADS, "no default, since other models do not gain by it"),
    Candidate("splits-12", "a race of qwen3-0.6b-far on an H100, 4.2 % at 8,192", splits(12), EIGHT_HEADS,
              "no default, since 1B loses by it at 2,048; see splits-12-beyond"),
    # As many splits as SMs that read 36 GB/s each, as fast as the memory of an H100. 8B and 1B lose nothing at 8,192.
    Candidate("splits-12-beyond", "splits-12 at 8,192 on an H100, where Qwen3-0.6B gains 4.3 % over 16 of them",
              {"tiling": {"attention": {"max_splits": 12, "middle_splits": 8, "middle_until": 4096}}},
              (Shape("qwen3-0.6b", "5000,8192,16384,32000", 32768), Shape("llama-3.2-1b", "5000,16384", 16640),
               Shape("llama-3.1-8b", "5000,16384", 16640))),
    Candidate("middle-8", "8 splits of the context in place of 16: 2.4 to 2.8 % at 2,032 on an H200, and a loss beyond",
              {"tiling": {"attention": {"middle_splits": 8}}}, EIGHT_HEADS,
              "a default with 5 to 8 kv heads, up to 2,048 where heads have 128 elements, and to 4,096 with 64"),
    Candidate("splits-8", "what splits cost where contexts are short", splits(8), tuple(
        Shape(m, "600,1024,2048", 8448) for m in ("qwen2.5-1.5b", "qwen3-0.6b", "llama-3.2-1b")),
              "a default with 5 to 8 kv heads, as for middle-8; 2 kv heads gain nothing by it"),
    # The default of 8 splits against the 16 of before, for models and GPUs that had no verdict on it.
    Candidate("splits-16", "the default of before, now that it is 8 splits", splits(16), tuple(
        Shape(m, "600,1024,1900", 2048) for m in ("llama-3.2-1b", "qwen3-0.6b", "llama-3.1-8b"))),
    Candidate("splits-32", "16 splits leave most SMs without rows where there are few kv heads", splits(32), FEW_HEADS,
              "a default with up to 4 kv heads, from 4,096 or further on"),
    Candidate("splits-32-long", "32 splits of 2 kv heads: 3.9 % at 8,192 on an H200, and a loss of 1.9 % at 2,048",
              splits(32), (Shape("qwen2.5-1.5b", LONG, 32768), Shape("qwen2.5-7b", "16384,32000", 32768)),
              "a default, as for splits-32"),
    Candidate("splits-64", "16 splits leave most SMs without rows where there are few kv heads", splits(64),
              FEW_HEADS[:1], "no default, since up to 8,192 it gains no more than 32 splits"),
    Candidate("splits-64-long", "twice as many as in splits-32-long", splits(64), (Shape("qwen2.5-1.5b", LONG, 32768),),
              "over 16 splits a gain from 8,192 on; over 32, the default there, not judged yet"),
    Candidate("splits-64-of-32", "2 % more than 32 splits at 16,384 and 3 % at 32,000, on an H100",
              splits(64), (Shape("qwen2.5-1.5b", "8192,16384,32000", 32768),)),
    Candidate("best-from-16-splits", "what qwen2.5-1.5b-from-16-splits has found, 4.1 % over 16 splits on an H200",
              {"sm_assignment": "contiguous", "tiling": {
                  "attention": {"max_splits": 24, "middle_until": 0, "split_from": 256},
                  "ring": {"run_ahead": 24}, "rotation": {"gate_up": 1, "qkv": 32},
                  "warps": {"gate_up": 4, "o": 4, "qkv": 4}}},
              (Shape("qwen2.5-1.5b", "2048,8192,16384", 16640), Shape("qwen2.5-7b", "2048,8192", 8448))),
    Candidate("split-from-384", "below 512 as many SMs attend as there are kv heads, of which these have few",
              {"tiling": {"attention": {"split_from": 384}}},
              (Shape("qwen2.5-1.5b", "390,500", 8448), Shape("qwen2.5-7b", "390,500", 8448)),
              "no default: what is gained at 500 is lost below"),
    # Rows of 12 quads: of eight warps four have two and four have one.
    Candidate("warps-4", "predicted to gain 1.2 % where eight warps share 12 quads", {"tiling": {"warps": {
        "qkv": 4, "gate_up": 4, "lm_head": 4}}}, (Shape("qwen2.5-1.5b", "128,2048", 8448),)),
    Candidate("ring-of-far", "what qwen3-0.6b-far has kept on an H100",
              {"pipelining_depth": 6, "sm_assignment": "contiguous",
               "tiling": {"long": {"pace": 800}, "ring": {"pace": 0, "run_ahead": 4, "stock": 3}}}, EIGHT_HEADS,
              "no default, since 1B loses by it"),
    Candidate("depth-6-stock-3", "the part of ring-of-far that is not about placement, at long contexts alone",
              {"pipelining_depth": 6, "tiling": {"long": {"pace": 800, "run_ahead": 4, "stock": 3}}}, SMALL,
              "no default, since 1B loses by it"),
)
