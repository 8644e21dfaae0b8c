"""What campaigns of bench/campaigns.py have come to, packed for the next run: trials, reports, what priors have learnt
by, and the key that verdicts are signed with. Needs the standard library alone.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

PACKED = "campaigns.tar.gz"
KEPT = ("campaign.json", "trials.jsonl", "plan.json", "results.tsv", "report.html", "against.json", "taught.json",
        "log.txt")


def trials(directory):
    """The trials of a campaign, as far as whole lines of them are there."""
    path = Path(directory) / "trials.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def gpu_seconds(directory):
    return sum((t.get("verdict") or {}).get("gpu_seconds", 0) for t in trials(directory))


def pack(work, out):
    """Packs what campaigns have come to. Returns the path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / PACKED
    files = [work / "verdict.key", *sorted(work.glob("*.corpus"))]
    for d in sorted(work.iterdir()):
        if (d / "campaign.json").exists():
            files += [*(d / name for name in (*KEPT, "ended")), *sorted((d / "made").glob("*.json"))]
    with tarfile.open(path.with_suffix(".part"), "w:gz") as tar:
        for file in files:
            if file.exists():
                tar.add(file, arcname=str(file.relative_to(work)))
    os.replace(path.with_suffix(".part"), path)
    return path


def resume(file, work):
    """Unpacks what an earlier run has packed. What is here and has gone further stays."""
    with tarfile.open(file) as tar:
        names = tar.getnames()
        for name in sorted({n.split("/")[0] for n in names}):
            here = work / name
            members = [m for m in tar.getmembers() if m.name == name or m.name.startswith(name + "/")]
            lines = next((tar.extractfile(m).read().count(b"\n") for m in members if m.name == f"{name}/trials.jsonl"),
                         0)
            if not here.exists() or len(trials(here)) < lines:
                tar.extractall(work, members=members, filter="data")


def elsewhere(file, work):
    """Unpacks campaigns that only teach, and takes over their key: verdicts are believed with the key here alone.
    Returns their directory."""
    there = work / f"taught-by-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}"
    there.mkdir(exist_ok=True)
    resume(file, there)
    key = work / "verdict.key"
    if not key.exists():
        shutil.copy(there / key.name, key)
    if key.read_bytes() != (there / key.name).read_bytes():
        print(f"campaigns.py: error: {file} is signed with another key than the campaigns of {work}; want another "
              "--work", file=sys.stderr)
        sys.exit(2)
    return there
