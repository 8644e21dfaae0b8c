#!/usr/bin/env python3
"""What campaigns of amkc search have come to: docs/results/campaigns.json, and from it docs/campaigns.md.

    python3 bench/campaignpage.py --take campaigns.tar.gz     what bench/campaigns.py or bench/agent.py has packed, then
                                                              the page
    python3 bench/campaignpage.py --take FILE --again         the same, in the place of campaigns that came further
    python3 bench/campaignpage.py                             the page anew, from the JSON files

Of each campaign the trials are folded into a row, its report is kept, and in measured.jsonl what each trial has found.
A campaign that is there with more trials than in the pack stays as it is.
Needs the standard library alone.
"""

import argparse
import json
import math
import re
import statistics
import sys
import tempfile
import textwrap
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agentpage
import candidatespage
import drawings
import kept
import packing
import regret
import report
from ratios import interval

REPO = Path(__file__).resolve().parent.parent
SCHEMA = "amkc.campaigns/1"
AT = (60, 120, 150, 240, 480)  # GPU seconds that regrets are given at
PAUSE = 120  # seconds without a trial, after which a campaign was gone on with in another run

HEAD = """# Campaigns

Searches by `bench/campaigns.py` ([search.md](search.md) says how a search goes), in pieces of some minutes on GPUs
that were at hand for that long, each going on from what the piece before had packed. Where an agent proposes, it is
`bench/agent.py` that makes the trials. A name ends with that of the GPU. Written by `bench/campaignpage.py`; do not
edit. A ratio is a time over another, measured interleaved, with its 95 % interval: *confirmed* is the best over the
start, at positions that it was not chosen by, in a process of its own; where the interval is not below 1, it says so.
*Over the defaults* is the best of a search that began at the least clever value of each knob over the hand-set
defaults, which that search does not know. A search that has found nothing says so. *From* is where a search began: at
the least clever values (cold), or at the defaults of the time, by the number that they have under Candidates for
defaults.
"""

SOUND = """Nothing that a rule rejects is built or launched, and what has crashed, hung or computed something else is a
trial of that class and no more."""

REGRET = """Regret: the time of the best that a campaign knew after so many GPU seconds, over that of the best found by
any campaign with the same start, minus 1. Both times are estimates, chained through the trials of a campaign. *random*
changes two to four knobs of the incumbent and has the same rungs and rules; it has neither the cost model nor
combinations. Campaigns are compared where they have had the GPU for equally long, and not after as many trials or
minutes: what a rule refuses takes none of its time, and a screening less than a verdict in full. Builds and what a
proposer thinks take processors, which are not counted, and neither is what confirms the best. An empty cell is a
campaign that has not had the GPU for so long: nothing is said of it there."""

SAME_STEP = "AMK6109"  # why amkc eval rejects a candidate
NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
SEEDED_AT = (30, 60, 75, 90)
STARTS = """From the least clever values, a search that knows the cost model alone (cold) beside one whose proposals go
by what campaigns of other models have taught of its errors too (warm), each with several seeds. Regret: the time of
the best that a campaign knew after so many GPU seconds, over that of the best found by any campaign with the same
start, minus 1. A cell has the median of the seeds, their quartiles, and how many seeds those are: one that has found
all it can is as far as it came, and another one that has not had the GPU for so long is left out. What a warm one was
taught by is the models whose campaigns were there, and the GPU of each; in brackets, what it used of that, times or
refusals: each only where it predicts models that were left out better than what knows nothing of them."""

E3 = """Published: *AutoMegaKernel*, the account of E3: 60 candidates for each model, by predictions of its cost model
for an RTX 5090. Ours: 60 trials by amkc's, for the same target, some of which ask of one candidate more than of the
rest; the sizes of the two Llama shapes are not published, and ours are those of a model of that size. Each cost model
is its own, and so are the defaults that a gain is over: no time here is comparable with one of the other column.
*Valid* ones are proved and have a predicted time. What they compute is checked, on the reference VM, where all of
the weights have at most 48 MiB, and in full trials: of the toy. *Rejected* candidates are refused by a rule before
anything runs. A gain of 1.000 is a null result: nothing was found
that is predicted to be 1 % better than the defaults."""

FAULTS = """Published: the fault injection of E3, 20 of 60 candidates of the toy corrupted in three ways, all of them
rejected. Ours: every operator of `internal/population` damages the lowered schedules of small models, and each damaged
program is judged as a candidate on a GPU, made up, that finds it ten times as fast as its baseline and says whether it
computes something else, as the reference VM has found."""

# The published columns: valid, default and best in microseconds, gain.
PUBLISHED_E3 = {"e3-toy": ("toy, 1 layer", "60 of 60", "24.11", "24.06", "1.002"),
                "e3-125m": ("shape of 125M, 2 layers", "60 of 60", "50.83", "46.16", "1.101"),
                "e3-1b": ("shape of 1B, 4 layers", "60 of 60", "135.12", "105.87", "1.276")}


def without_gpu(searches):
    """What is shown without a GPU."""
    lines = []
    if any(name in searches for name in PUBLISHED_E3):
        lines += ["", "## E3, repeated", "", E3, "",
                  "| model | published: valid | default µs | best µs | gain | ours: valid | rejected | shortlisted | "
                  "of them unproved | default µs | best µs | gain |", "|" + "---|" * 12]
    gains = []
    for name, theirs in PUBLISHED_E3.items():
        r = searches.get(name)
        if r:
            gains.append(r["gain"])
            ours = (f"{r['valid']} of {r['candidates']}", r["rejected"], r["kept"], r["kept_unproved"],
                    f"{r['default_us']:.2f}", f"{r['best_us']:.2f}", f"{r['gain']:.3f}")
            lines.append("| " + " | ".join(map(str, theirs + ours)) + " |")
    if gains:
        lines.append(f"| geometric mean | | | | 1.121 | | | | | | | {math.prod(gains) ** (1 / len(gains)):.3f} |")
    f = searches.get("faults")
    if f:
        a = f["all"]
        lines += ["", "## Faults", "", FAULTS, "", textwrap.fill(
            f"Of {a['made']:,} damaged programs of {len(f['models'])} models, {a['rejected']:,} are rejected by a "
            f"rule, {a['failed']:,} are proved and compute something else, and {a['harmless']:,} are proved and "
            f"compute the same. Launched of the rejected: {a['launched']}. Kept of the rejected and of those that "
            f"compute something else: {a['kept']}.", 119), "",
            "| operator | programs | rejected | compute something else | harmless | rejected, and launched | kept |",
            "|---|---|---|---|---|---|---|"]
        lines += [f"| {name} | {o['made']} | {o['rejected']} | {o['failed']} | {o['harmless']} | {o['launched']} | "
                  f"{o['kept']} |" for name, o in f["operators"].items()]
        models = ", ".join(m.rpartition("/")[2] for m in f["models"])
        lines += ["", textwrap.fill(f"The models: {models}.", 119,
                                    break_on_hyphens=False)]
        never = [name for name, o in f["operators"].items() if not o["made"]]
        if never:
            none = "Have nothing to be applied to in a schedule of one token, which is what search judges: "
            lines += ["", textwrap.fill(none + ", ".join(never) + ".", 119, break_on_hyphens=False)]
    return lines


def fold(directory):
    """A campaign as a row, whose name says on what GPU it was."""
    campaign = json.loads((directory / "campaign.json").read_text(encoding="utf-8"))
    name = f"{directory.name}-{campaign['target']}"
    trials = packing.trials(directory)
    score, best, seconds, curve, classes, machines = {}, None, 0.0, [], {}, []
    confirmed = None
    for t in trials:
        v = t.get("verdict")
        if not v:
            classes["no proposal"] = classes.get("no proposal", 0) + 1
            continue
        classes[v["class"]] = classes.get(v["class"], 0) + 1
        if t["role"] != "confirm":
            seconds += v.get("gpu_seconds", 0)
        if v.get("machine") and v["machine"] not in machines:
            machines.append(v["machine"])
        if t["role"] == "start":
            best = v["id"]
            score[best] = 1.0
            curve.append([round(seconds, 1), 1.0])
        elif t["role"] == "confirm":
            confirmed = {"id": v["id"], "positions": v["positions"], "class": v["class"], "ratio": v.get("ratio"),
                         "gain": v["decision"] in ("keep", "shortlist") and v["ratio"]["high"] < 1}
        elif v["class"] in packing.TIMED and v["id"] != v["baseline_id"]:
            score[v["id"]] = score[v["baseline_id"]] * v["ratio"]["mean"]
        if t["best"]:
            best = v["id"]
            curve.append([round(seconds, 1), score[best]])
    took, runs = minutes(trials)
    row = {"name": name, "model": campaign["model"], "target": campaign["target"], "device": campaign["device"],
           "positions": campaign["positions"], "held_out": campaign["held_out"], "cold": campaign["cold"],
           "seed": campaign["seed"], "proposers": campaign["proposers"], "amkc": campaign["amkc"],
           "machines": machines, "trials": len(trials), "classes": classes, "gpu_seconds": round(seconds, 1),
           "minutes": round(took, 1), "runs": runs, "begun": trials[0]["started"],
           "best": next((t["settings"] for t in reversed(trials) if t["best"]), campaign["start"]),
           "null": best is None or score.get(best) == 1.0, "estimate": score.get(best, 1.0), "curve": curve,
           "confirmed": confirmed if confirmed and confirmed["id"] == best else None}
    if key := kept.key_of(campaign):
        row["key"] = key
    if campaign["start"] and not campaign["cold"]:
        row["start"] = campaign["start"]
    if prior := campaign.get("prior"):  # what it uses of what it was taught
        row["prior"] = [part for part in ("times", "refusals") if prior[part]["used"]]
    taught = directory / "taught.json"
    if taught.exists():
        row["taught_by"] = json.loads(taught.read_text(encoding="utf-8"))
    if tried := agentpage.experiments(directory):
        row["experiments"] = tried
    ended = directory / "ended"
    if ended.exists():
        row["ended"] = ended.read_text(encoding="utf-8").strip()
    against = directory / "against.json"
    if against.exists():
        v = json.loads(against.read_text(encoding="utf-8"))["verdict"]
        row["against"] = {"class": v["class"], "ratio": v.get("ratio"), "settings": v["settings"]}
        if "reason" in v:
            row["against"]["code"] = v["reason"]["code"]
    return row


def minutes_of(row):
    return f"{row['minutes']:.0f}" if "minutes" in row else ""  # rows that were made before do not say


def minutes(trials):
    """How long a campaign has run, without the pauses between its runs, and in how many runs."""
    spans = sorted((datetime.fromisoformat(t["started"]).timestamp(), t["seconds"]) for t in trials)
    total, runs, end = 0.0, 0, None
    for start, seconds in spans:
        if end is None or start - end > PAUSE:
            end = start
            runs += 1
        total += max(0.0, start + seconds - end)
        end = max(end, start + seconds)
    return total / 60, runs


def take(file, out, known):
    """Rows of what was packed, but those that are known with more trials. The reports are kept, and what was
    measured."""
    with tempfile.TemporaryDirectory() as tmp:
        packing.resume(file, Path(tmp))
        rows, lines = {}, []
        set_aside = {r.get("begun") for name, r in known.items() if packing.EARLIER in name}
        out.mkdir(parents=True, exist_ok=True)
        for directory in sorted(Path(tmp).iterdir()):
            if (directory / "trials.jsonl").exists() and (directory / "trials.jsonl").stat().st_size:
                row = fold(directory)
                if not NAME.fullmatch(row["name"]):  # files are called by it
                    print(f"{ascii(row['name'])} is left out; want a name of letters, digits, . and -", file=sys.stderr)
                    continue
                if row["device"] != "cuda":
                    print(f"{directory.name} has predictions and no times: it is left out", file=sys.stderr)
                    continue
                if packing.EARLIER not in row["name"] and row["begun"] in set_aside:
                    print(f"{row['name']} is known as that of an earlier amkc: it is left out", file=sys.stderr)
                    continue
                before = known.get(row["name"], {}).get("trials", 0)
                anew = (directory.parent / f"{directory.name}{packing.EARLIER}").exists()
                if before > row["trials"] and not anew:
                    print(f"{row['name']} is kept as it is, with {before} trials; {file} has {row['trials']} of it "
                          "(--again takes those)", file=sys.stderr)
                    continue
                rows[row["name"]] = row
                if "key" in row:
                    kept.publish(row["key"], out)
                lines += kept.measured(directory, row)
                html = directory / "report.html"
                if html.exists() and not regret.SEEDED.fullmatch(row["name"]):
                    (out / f"{row['name']}.html").write_bytes(html.read_bytes())
        kept.keep_measured(out / kept.MEASURED, lines)
        kept.keep_trials(Path(tmp), rows, out)
        return rows


def over(against):
    """What the best is over the defaults. The best of a cold campaign may be the step of the defaults, though its
    settings say more: there is nothing to measure then."""
    return interval(against["ratio"]) or ("the same step" if against.get("code") == SAME_STEP else against["class"])


def held(confirmed):
    """What the held-out positions have said of the best."""
    ratio = interval(confirmed["ratio"]) or confirmed["class"]
    return ratio if confirmed["gain"] else f"**not confirmed**: {ratio}"


def by_start(rows):
    """The lines about cold starts and warm ones, by model and GPU."""
    groups, lines = {}, []
    for name, row in rows.items():
        if m := regret.SEEDED.fullmatch(name):
            by = "; ".join(row.get("taught_by", ()))
            by += f" ({' and '.join(row['prior'])})" if row.get("prior") else ""
            groups.setdefault((m[1], m[3]), {}).setdefault(m[2] + (f", taught by {by}" if by else ""), []).append(row)
    for (model, target), starts in groups.items():
        least = min(r["estimate"] for of in starts.values() for r in of)
        lines += ["", f"### {model}, {target}", "", "| start | seeds | " + " | ".join(f"{s} s" for s in SEEDED_AT) +
                  " |", "|---|---|" + "---|" * len(SEEDED_AT)]
        for start, of in starts.items():
            cells = [regrets_at(of, s, least) for s in SEEDED_AT]
            lines.append(f"| {start} | {len(of)} | " + " | ".join(cells) + " |")
    return ["", "## Cold and warm", "", STARTS] + lines if lines else []


def regrets_at(rows, seconds, least):
    """The regrets of campaigns after so many GPU seconds, of those that have come so far or have found all they can."""
    known = [regret.best_at(r, seconds) or r["estimate"] for r in rows
             if r["gpu_seconds"] >= seconds or r.get("ended", packing.SPENT).partition(":")[0] != packing.SPENT]
    if not known:
        return ""
    low, middle, high = (100 * (k / least - 1) for k in quartiles(known))
    return f"{middle:.1f} % ({low:.1f} to {high:.1f}), {len(known)} seed{'s' if len(known) > 1 else ''}"


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values


def page(rows, searches, candidates):
    lines = ([HEAD] + (on_gpus(rows) if rows else ["No campaign on a GPU is recorded yet."]) +
             candidatespage.section(candidates) + without_gpu(searches))
    return "\n".join(lines).rstrip() + "\n"


def together(rows):
    """What all campaigns amount to."""
    runs = [r.get("runs", 1) for r in rows]
    trials, took, gpu = (sum(r.get(k, 0) for r in rows) for k in ("trials", "minutes", "gpu_seconds"))
    return (f"In total, with the seeds under Cold and warm: {len(runs)} campaigns, {trials:,} trials, {took:.0f} "
            f"minutes and {gpu:,.0f} s of GPU time. Resumed in a later run: {sum(n > 1 for n in runs)} of them, in "
            f"at most {max(runs)} runs each.")


def verifiable(rows):
    """What of the trials of campaigns somebody else can verify, and how."""
    parts = []
    by_key = {}
    for name, r in rows.items():
        by_key.setdefault(r.get("key"), []).append(name)
    secret = by_key.pop(None, [])
    for key, names in by_key.items():
        file = kept.key_file(key)
        parts.append(f"`amkc campaign verify DIR --key FILE` verifies {', '.join(names)} with the public key "
                     f"[{file.partition('/')[2]}](results/campaigns/{file})")
    if secret:
        which = f"{', '.join(secret)} were" if by_key else "All of them were"
        parts.append(f"{which} signed with a secret key before verdicts had a public one: **nobody can verify them**, "
                     "and amkc refuses them (AMK6018). They are data, without proof of where they come from")
    return ". ".join(parts)


def on_gpus(every):
    rows = {name: r for name, r in every.items() if not regret.SEEDED.fullmatch(name)}
    records = [f"[{t}.tar.gz](results/campaigns/{t}.tar.gz)" for t in sorted({r["target"] for r in every.values()})
               if (REPO / f"docs/results/campaigns/{t}.tar.gz").exists()]
    more = f"; trials, with their verdicts, in {', '.join(records)}" if records else ""
    if records:
        there = kept.recorded(REPO / "docs/results/campaigns")
        if missing := [name for name in every if name not in there]:
            more += f", but for those of {', '.join(missing)}, which were not kept"
        more += ". " + verifiable({name: r for name, r in every.items() if name in there})
    lines = [textwrap.fill(f"In full: [results/campaigns.json](results/campaigns.json){more}.", 119,
                           break_on_hyphens=False), "",
             "| campaign | model, target | positions | from | trials | minutes | GPU s | estimate | confirmed | over "
             "the defaults | report |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, r in rows.items():
        c, a = r["confirmed"], r.get("against")
        says = "nothing better than the start" if r["null"] else held(c) if c else "not confirmed yet"
        lines.append(f"| {name} | {r['model']}, {r['target']} | {', '.join(map(str, r['positions']))} | "
                     f"{regret.began(r)} | {r['trials']} | {minutes_of(r)} | {r['gpu_seconds']:.0f} | "
                     f"{r['estimate']:.4f} | {says} | {over(a) if a else ''} | "
                     f"[report](results/campaigns/{name}.html) |")
    lines += ["", textwrap.fill(together(every.values()), 119)]
    classes = ("PASS", "PREDICTED", "REJECTED", "FAIL", "TIMEOUT", "CRASH", "no proposal")
    lines += ["", "## Soundness", "", SOUND, "", "| campaign | " + " | ".join(classes) + " |",
              "|---|" + "---|" * len(classes)]
    lines += [f"| {name} | " + " | ".join(str(r["classes"].get(k, 0)) for k in classes) + " |"
              for name, r in rows.items()]
    if not all(r["null"] for r in rows.values()):
        lines += ["", "## What the best set", ""]
    for name, r in rows.items():
        if not r["null"]:
            settings = regret.spelled(r["best"])
            lines.append(textwrap.fill(f"* {name}: {settings}.", 119, subsequent_indent="  ",
                                       break_on_hyphens=False))
    regrets = regret.starts(rows.values())
    if regrets:
        lines += ["", "## Regret, at equal GPU seconds", "", REGRET, "",
                  "| campaign | " + " | ".join(f"{s} s" for s in AT) + " | as far as it came |",
                  "|---|" + "---|" * (len(AT) + 1)]
        for group in regrets.values():
            least = regret.least(group)
            for r in group:
                known = [regret.best_at(r, s) for s in AT]
                lines.append(f"| {r['name']} | " +
                             " | ".join("" if k is None else f"{100 * (k / least - 1):.1f} %" for k in known) +
                             f" | {100 * (r['estimate'] / least - 1):.1f} % after {r['gpu_seconds']:.0f} s |")
        drawing = drawings.REGRET
        if drawing.path.exists() and drawings.drawn(drawing.path) == drawings.digest(regret.curves(rows.values())):
            lines += ["", f"![{drawing.shows}](img/{drawing.path.name})"]
    machines = sorted({m for r in every.values() for m in r["machines"]})
    lines += agentpage.section(rows) + by_start(every)
    return lines + ["", textwrap.fill("Measured on " + "; ".join(machines) + ".", 119)]


def committed(docs):
    """The rows of campaigns, of what bench/searches.py has made, and of bench/candidates.py."""
    files = [docs / "results" / f"{name}.json" for name in ("campaigns", "searches", "candidates")]
    campaigns, searches, candidates = (report.load(f) if f.exists() else {} for f in files)
    return campaigns.get("campaigns", {}), searches, candidates.get("rows", {})


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--take", type=Path, metavar="FILE", help="what bench/campaigns.py or bench/agent.py has packed")
    p.add_argument("--again", action="store_true", help="take campaigns that are there with more trials, too")
    p.add_argument("--docs", type=Path, default=REPO / "docs", metavar="DIR")
    args = p.parse_args(argv)
    if args.again and not args.take:
        p.error("--again says how to take a pack; want --take")
    return args


def main(argv=None):
    args = parse(argv)
    try:
        write(args)
    except (packing.Unusable, report.Damaged) as e:
        print(f"campaignpage.py: error: {e}", file=sys.stderr)
        return 2
    return 0


def write(args):
    """Takes a pack, if there is one, and writes the page."""
    store = args.docs / "results" / "campaigns.json"
    rows, searches, candidates = committed(args.docs)
    if args.take:
        store.parent.mkdir(parents=True, exist_ok=True)
        rows |= take(args.take, args.docs / "results" / "campaigns", {} if args.again else rows)
        store.write_text(json.dumps({"schema": SCHEMA, "campaigns": rows}, indent=1) + "\n", encoding="utf-8")
    (args.docs / "campaigns.md").write_text(page(rows, searches, candidates), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
