"""What docs/results/campaigns keeps of campaigns alongside their reports: what each trial has found, the trials
themselves, and the public keys that verify their verdicts. Needs the standard library alone.
"""

import base64
import json
import re
import shutil
import tarfile
import tempfile
from pathlib import Path

import packing

MEASURED = "measured.jsonl"
KEYS = "keys"  # a file for each public key
PUBLIC = bytes.fromhex("302a300506032b6570032100")  # what goes before an Ed25519 key in PKIX (RFC 8410)


def measured(directory, row):
    """What a campaign has measured and refused, a line for each verdict: what a prior and a cost model can be held to.
    It is not signed, and so no corpus."""
    for t in packing.trials(directory):
        v = t.get("verdict")
        if not v:
            continue
        line = {"campaign": row["name"], "model": row["model"], "target": row["target"], "n": t["n"], "role": t["role"],
                "rung": v["rung"], "class": v["class"], "settings": v["settings"], "baseline": v["baseline"]}
        if "reason" in v:
            line["code"] = v["reason"]["code"]
        if "at" in v:
            line["at"] = [{"position": a["position"], "us": digits(a["candidate_us"]["median"]),
                           "baseline_us": digits(a["baseline_us"]["median"]), "ratio": digits(a["ratio"]["mean"]),
                           **({"predicted_us": digits(p["candidate_us"]), "predicted_baseline_us":
                               digits(p["baseline_us"]), "traits": {k: digits(x) for k, x in p["traits"].items()}}
                              if (p := a.get("predicted")) else {})} for a in v["at"]]
        yield json.dumps(line, sort_keys=True)


def digits(x):
    """A number with as many digits as are worth something."""
    return float(f"{x:.6g}")


def keep_measured(path, lines):
    """Puts lines into a file, in the place of those that it has of the same campaigns."""
    new = {json.loads(line)["campaign"] for line in lines}
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = [line for line in old if json.loads(line)["campaign"] not in new] + lines
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def recorded(out):
    """The names, with that of their GPU, of campaigns whose trials are kept."""
    names = set()
    for path in out.glob("*.tar.gz"):
        with tarfile.open(path) as tar:
            names |= {f"{m.name.split('/')[0]}-{path.name.removesuffix('.tar.gz')}" for m in tar if m.name.endswith(
                "/trials.jsonl")}
    return names


def keep_trials(work, rows, out):
    """Puts the trials of campaigns into the record of their GPU, in the place of those that it has of them."""
    for target in sorted({r["target"] for r in rows.values()}):
        path = out / f"{target}.tar.gz"
        with tempfile.TemporaryDirectory() as tmp:
            if path.exists():
                packing.resume(path, Path(tmp))
            for name in [n.removesuffix(f"-{target}") for n, r in rows.items() if r["target"] == target]:
                shutil.rmtree(Path(tmp) / name, ignore_errors=True)
                shutil.copytree(work / name, Path(tmp) / name)
            for corpus in work.glob("*.corpus"):
                shutil.copy(corpus, tmp)
            packing.record(Path(tmp), path)


def key_of(campaign):
    """The public key of a campaign.json, or None: earlier ones have the name of a secret key, with which nobody but its
    holder could verify anything."""
    key = campaign.get("key", "")
    return key if re.fullmatch("[0-9a-f]{64}", key) else None


def key_file(key):
    """The name of the file that a public key is published in, below docs/results/campaigns."""
    return f"{KEYS}/{key[:16]}.pub"


def publish(key, out):
    """Writes a public key, as amkc campaign verify --key reads it."""
    path = out / key_file(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = base64.b64encode(PUBLIC + bytes.fromhex(key)).decode()
    path.write_text(f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n", encoding="ascii")
