"""Answers to the published figures of search (bench/answers.py says what an answer is): by predictions, which need no
GPU, and of campaigns on GPUs, as far as there are any. Needs the standard library alone.
"""

import math
import statistics

from answers import MODELS, NO_GPU, SMALL, Answer, compared, shown
from regret import SEEDED

E3 = {"search-toy": "e3-toy", "search-125m": "e3-125m", "search-1b": "e3-1b"}
FAULTS = {"faults-wait": "wait-on-own-counter", "faults-buffer": "no-such-buffer", "faults-counter": "no-such-counter"}
PREDICTED = "python3 bench/searches.py"
MEASURED = "python3 bench/campaigns.py"
BY_AGENT = "python3 bench/agent.py"
OWN_MODEL = "each by its own cost model, for an RTX 5090, and over its own defaults; of 1.000× nothing was found"
NOT_YET = "not measured yet: it wants a GPU, and "


def search(r):
    return by_predictions(r) | on_gpus(r)


def by_predictions(r):
    rows = {key: r.searches.get(name) for key, name in E3.items()}
    if not all(rows.values()):
        return {key: Answer("", PREDICTED, "not predicted yet") for key in (
            *E3, *FAULTS, "search-valid", "search-kept", "search-proved", "search-faults", "search-geomean",
            "search-measured", "search-error", "search-trials", "search-best")}
    all_rows = rows.values()
    count = {name: sum(row[name] for row in all_rows)
             for name in ("candidates", "valid", "rejected", "kept", "kept_unproved")}
    out = {key: Answer(f"{row['default_us']:.2f} to {row['best_us']:.2f} µs, {row['gain']:.3f}×", PREDICTED, OWN_MODEL)
           for key, row in rows.items()}
    gain = math.prod(row["gain"] for row in all_rows) ** (1 / len(rows))
    of_toy = "of the toy nothing is predicted to be better than the defaults, so there is nothing to " \
        if rows["search-toy"]["gain"] == 1.0 else ""
    out |= {
        "search-valid": Answer(f"{count['valid']} of {count['candidates']}", PREDICTED,
                               f"{count['rejected']} are refused by a rule, and nothing of them is run; valid ones are "
                               "proved, and what they compute is checked of the toy alone; one that is asked more "
                               "than once is one candidate"),
        "search-kept": Answer(", ".join(str(row["kept"]) for row in all_rows), PREDICTED, "kept is what is predicted "
                              "to be at least 1 % better than the best so far"),
        "search-proved": Answer(f"{count['kept'] - count['kept_unproved']} of {count['kept']}", PREDICTED,
                                "kept ones that are proved") if count["kept"] else
        Answer("", PREDICTED, "nothing was kept; defaults are proved in every build"),
        "search-best": best(rows),
        "search-error": Answer("", MEASURED, of_toy + "run; errors of what amkc makes by itself are [above]"
                               "(#e1-errors-on-gpus)" if of_toy else NO_GPU.format("RTX 5090")),
        "search-geomean": Answer(f"{gain:.3f}×", PREDICTED, OWN_MODEL),
        "search-measured": Answer("", MEASURED, of_toy + "measure" if of_toy else NO_GPU.format("RTX 5090")),
        "search-trials": trials_to_best(rows),
        "search-faults": faults(r.searches.get("faults"))}
    return out | {key: fault(r.searches.get("faults"), operator) for key, operator in FAULTS.items()}


def trials_to_best(rows):
    of = "; ".join(f"{key.removeprefix('search-')}: " +
                   (f"{row['best_at']} of {row['trials'] - 1}" if row["best_at"] else "nothing found")
                   for key, row in rows.items())
    return Answer(of, PREDICTED, "the start is trial 0; the last ones challenge the best and confirm it") \
        if any(row["best_at"] for row in rows.values()) else Answer("", PREDICTED, "nothing was found")


def best(rows):
    """The settings of the best of each search, which has none where nothing is better than the defaults."""
    of = "; ".join(f"{name}: " + (", ".join(f"{k} {v}" for k, v in sorted(row["best"].items())) or "the defaults")
                   for name, row in ((key.removeprefix("search-"), row) for key, row in rows.items()))
    return Answer(of, PREDICTED, "amkc's knobs are others ([knobs.md](knobs.md)), and its defaults set by hand")


def fault(row, operator):
    if not row:
        return Answer("", PREDICTED, "not counted yet")
    f = row["operators"][operator]
    return Answer(f"{f['rejected']} of {f['made']} rejected", PREDICTED,
                  f"operator {operator}, once in each of {f['made']} models; all are in "
                  "[campaigns.md](campaigns.md#faults)")


def faults(row):
    if not row:
        return Answer("", PREDICTED, "not counted yet")
    f = row["all"]
    return Answer(f"{f['rejected']:,} of {f['made']:,}, {f['launched'] + f['kept']} launched or kept", PREDICTED,
                  f"{len(row['operators'])} ways to damage schedules of {len(row['models'])} models in place of 3 of "
                  f"one; of the rest {f['failed']} compute something else, which their check finds, and "
                  f"{f['harmless']} the same")


def gain(c):
    """What a campaign has confirmed, and how that compares with the defaults, which it does not know."""
    text = f"{1 / c['confirmed']['ratio']['mean']:.2f}×" if c["confirmed"] else "nothing found"
    against = c.get("against") or {}
    return text + (f" ({beside(against['ratio']['mean'])} the defaults)" if against.get("ratio") else "")


def beside(ratio):
    """How far a time is from another, of which it is so many times."""
    return f"{100 * abs(ratio - 1):.1f} % {'slower' if ratio > 1 else 'faster'} than"


def starts(campaigns):
    """What the first bracket of warm campaigns has found beside that of cold ones: medians of the seeds."""
    seeds = {}
    for name, c in campaigns.items():
        if m := SEEDED.fullmatch(name):
            seeds.setdefault((m[1], m[3]), {"cold": [], "warm": []})[m[2]].append(c)
    of = []
    for (model, target), s in sorted(seeds.items()):
        first = {kind: [c["curve"][1][1] for c in every if len(c["curve"]) > 1] for kind, every in s.items()}
        if first["cold"] and first["warm"]:
            of.append(f"{model}, {target}: {statistics.median(first['cold']) / statistics.median(first['warm']):.2f}× ("
                      + ", ".join(seeded(kind, s[kind]) for kind in ("cold", "warm")) + ")")
    used = sorted({part for c in campaigns.values() for part in c.get("prior", ())})
    why = "published is where a campaign starts, ours the median of the first gains of those that had one, all from " \
          "the least clever values; of what others had taught them, warm ones used " \
          f"{' and '.join(used) or 'nothing'}, and no times ([search.md](search.md#the-corpus-and-the-prior))"
    return Answer("; ".join(of), MEASURED, why) if of else \
        Answer("", MEASURED, NOT_YET + "a prior wants measured campaigns of two models to learn from")


def seeded(kind, campaigns):
    """How many seeds of a kind had a gain, and a confirmed one, in how much time."""
    seconds = [c["gpu_seconds"] for c in campaigns]
    confirmed = sum(bool(c["confirmed"] and c["confirmed"]["gain"]) for c in campaigns)
    return f"{kind}: {sum(len(c['curve']) > 1 for c in campaigns)} of {len(campaigns)} seeds had one, " \
           f"{confirmed} confirmed, {min(seconds):.0f} to {max(seconds):.0f} s of the GPU"


def long_ones(campaigns):
    of = "; ".join(f"{c['name']}: {c['minutes']:.0f} minutes, {c['trials']} trials, {len(c['curve']) - 1} kept, " +
                   gain(c) for c in campaigns if c.get("minutes", 0) >= 10)
    return Answer(of, MEASURED, "campaigns of ten minutes and more on one GPU, in pieces; every trial is compiled, "
                  "checked and measured beside the incumbent") if of else \
        Answer("", MEASURED, NOT_YET + "no campaign has had one for as long")


def by_agent(campaigns):
    """What came of the experiments that an agent has proposed."""
    of = "; ".join(f"{c['name']}: {len(c['experiments'])} experiments, "
                   f"{sum(e['decision'] == 'keep' for e in c['experiments'])} kept, {gain(c)}" for c in campaigns)
    return Answer(of, BY_AGENT, "from the hand-set defaults, at long contexts; each experiment and what the agent "
                  "expected of it is in [campaigns.md](campaigns.md#by-an-agent)") if of else \
        Answer("", BY_AGENT, NOT_YET + "no experiment of an agent has had one")


def slowest_start(campaigns):
    """How many times the defaults' time the slowest start takes, as far as both are known."""
    times = [c["against"]["ratio"]["mean"] / c["confirmed"]["ratio"]["mean"] for c in campaigns
             if c["confirmed"] and (c.get("against") or {}).get("ratio")]
    return f", which takes up to {max(times):.1f} times as long as amkc's defaults" if times else ""


def interval(c):
    """What the confirmation of a campaign's best came to."""
    ratio = c["confirmed"]["ratio"]
    text = f"{c['name']}: {1 / ratio['high']:.3f} to {1 / ratio['low']:.3f}×"
    return text + (", a loss: not confirmed" if ratio["low"] > 1 else ", not confirmed" if ratio["high"] >= 1 else "")


def on_gpus(r):
    every = {name: c for name, c in r.campaigns.items() if c["device"] == "cuda" and not SEEDED.fullmatch(name)}
    cold = [c for c in every.values() if c["cold"]]
    of = "; ".join(f"{c['name']}: {c['trials']} trials, {c['gpu_seconds']:.0f} s of the GPU, "
                   + gain(c) for c in cold)
    out = {
        "cold": Answer(of, MEASURED, "published is over AutoMegaKernel's own default, ours over the least clever value "
                       f"of each knob{slowest_start(cold)}; as far as campaigns have come "
                       "([campaigns.md](campaigns.md) says what each is)")
        if cold else Answer("", MEASURED, NOT_YET + "no campaign has had one"),
        "agent": by_agent([c for c in every.values() if c.get("experiments")]),
        "warm": starts(r.campaigns),
        "ten-minutes": long_ones(c for c in every.values() if not c.get("experiments"))}
    out |= {key: Answer("", "amkc search", NO_GPU.format("L4")) for key in ("l4-3b", "l4-2b")}
    for key, engine in {"ten-graph": "eager", "ten-eager": "ops"}.items():
        out[key] = shown(compared(r, SMALL + MODELS, "", engine, rounds=True), SMALL[0][0] + "-0",
                         "without a search: as amkc makes it; larger is faster; other GPU; in brackets the least and "
                         "the most of the rounds")
    confirmed = "; ".join(interval(c) for c in every.values() if c["confirmed"])
    return out | {
        "single-shot": Answer(confirmed, MEASURED, "95 % intervals of the confirmation of each campaign's best, "
                              "interleaved with what it started from; single shots are not kept")
        if confirmed else Answer("", MEASURED, NOT_YET + "no campaign has confirmed a gain"),
        "floor-guard": Answer("", "amkc search", "refused too, with AMK6103, whether predicted or measured; no row "
                              "keeps such a time"),
        "parity": Answer("", "amkc search", f"{NO_GPU.format('L4')}; as amkc makes it, int8 stands [below]"
                         "(#precision-and-gpus) without a search"),
        "int8-config": Answer("", "amkc search", f"{NO_GPU.format('RTX 5090')}; no campaign has searched int8")}
