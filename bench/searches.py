#!/usr/bin/env python3
"""What of search is shown without a GPU: docs/results/searches.json, and from it a part of docs/campaigns.md.

    python3 bench/searches.py                  E3 of the prior art by predictions, and faults in schedules of all models
    python3 bench/searches.py --only e3-toy    one row
    python3 bench/searches.py --faults FILE... faults that go test has counted in pieces (-fault-save)

It needs Go. E3 is the published experiment of that name: 60 candidates for each of three models, by predictions.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import campaignpage
import machine
import packing
import report

CANDIDATES = 60
TARGET = "rtx5090"  # the published one
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
         "max_position_embeddings": 2048}


def shape(layers, hidden, heads, kv_heads, intermediate, vocab):
    return LLAMA | {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
                    "num_key_value_heads": kv_heads, "intermediate_size": intermediate, "vocab_size": vocab}


# The published sizes are not stated beyond these names and numbers of layers.
E3 = {"e3-toy": shape(1, 64, 4, 2, 128, 256), "e3-125m": shape(2, 768, 12, 12, 2048, 32000),
      "e3-1b": shape(4, 2048, 32, 8, 8192, 128256)}


def searched(amkc, name, config):
    """A search of so many candidates from the defaults, by predictions."""
    with tempfile.TemporaryDirectory() as tmp:
        model, out = Path(tmp) / name, Path(tmp) / "campaign"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
        key = ["--key", str(Path(tmp) / "key")]
        run(amkc, "search", str(model), "-o", str(out), "--random-weights", "1", "--target", TARGET, "--jobs", "2",
            "--trials", str(CANDIDATES + 1), "--registers=false", *key)  # nothing is decided by registers
        sound = json.loads(run(amkc, "campaign", "verify", str(out), "--json", *key))["soundness"]
        return judged([json.loads(line) for line in (out / "trials.jsonl").read_text("utf-8").splitlines()], sound)


def judged(trials, sound):
    """The published columns, of trials. One that was asked more than once is one candidate."""
    start = trials[0]["verdict"]["at"][0]["baseline_us"]["median"]
    of = {}
    for t in trials:
        if t["role"] in ("candidate", "hop"):
            of.setdefault(t["verdict"]["id"], t)
    best = [t for t in trials if t["best"]]
    last = best[-1]["verdict"]["at"][0]["candidate_us"]["median"] if best else start
    return {"candidates": len(of), "valid": sum(t["verdict"]["class"] in packing.TIMED for t in of.values()),
            "rejected": sum(t["verdict"]["class"] == "REJECTED" for t in of.values()),
            "kept": len(best), "kept_unproved": sound["best_unproved"], "default_us": start, "best_us": last,
            "gain": start / last, "trials": len(trials), "best_at": best[-1]["n"] if best else 0,
            "best": best[-1]["settings"] if best else {}}


def faults(files):
    """The sums of pieces that `go test` has counted. The files say of what models."""
    models, operators, seeds = [], {}, set()
    for file in files:
        piece = report.load(file)
        if set(models) & set(piece["models"]):
            raise SystemExit(f"{file}: a model of it is in another file too; want each model once")
        models += piece["models"]
        seeds.add(piece["seeds"])
        for o in piece["operators"]:
            sums = operators.setdefault(o["operator"], dict.fromkeys((k for k in o if k != "operator"), 0))
            for k in sums:
                sums[k] += o[k]
    total = {k: sum(o[k] for o in operators.values()) for k in next(iter(operators.values()))}
    return {"models": sorted(models), "seeds": sorted(seeds), "operators": operators, "all": total}


def run(*args):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", metavar="PATTERN", default="*", help="rows whose name matches")
    p.add_argument("--faults", nargs="+", metavar="FILE", help="take these, and make no row")
    p.add_argument("--amkc", metavar="FILE", help="take this amkc (default: go builds one)")
    p.add_argument("--docs", type=Path, default=campaignpage.REPO / "docs", metavar="DIR")
    args = p.parse_args(argv)
    try:
        make(args)
    except (machine.Missing, report.Damaged) as e:
        p.error(str(e))
    return campaignpage.main(["--docs", str(args.docs)])


def make(args):
    """Makes or takes rows, each of which is saved as it is made."""
    store = args.docs / "results" / "searches.json"
    rows = report.load(store) if store.exists() else {}

    def keep(name, row):
        rows[name] = row
        store.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")

    if args.faults:
        keep("faults", faults(args.faults))
    else:
        with tempfile.TemporaryDirectory() as tmp:
            amkc = args.amkc
            if not amkc:
                machine.build_tools(Path(tmp))
                amkc = str(Path(tmp) / "amkc")
            for name, config in E3.items():
                if fnmatch.fnmatch(name, args.only):
                    keep(name, searched(amkc, name, config))
            if fnmatch.fnmatch("faults", args.only):
                file = os.path.join(tmp, "faults.json")
                subprocess.run(["go", "test", "./compiler/evaluate", "-run", "DamagedSchedulesAreNeverKept", "-timeout",
                                "5h", "-args", "-fault-models", "all", "-fault-save", file], check=True,
                               cwd=campaignpage.REPO)
                keep("faults", faults([file]))


if __name__ == "__main__":
    sys.exit(main())
