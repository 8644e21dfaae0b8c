"""What campaigns of bench/campaigns.py and bench/agent.py have come to, packed for the next run: trials, reports, what
priors have learnt by, what an agent has tried, and the key that verdicts are signed with. Needs the standard library
alone.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
import zlib
from fnmatch import fnmatchcase
from pathlib import Path

PACKED = "campaigns.tar.gz"
TIMED = ("PASS", "PREDICTED")  # classes of verdicts that have times; what only the cost model has seen is no PASS
SPENT = "the GPU seconds are spent"  # why a campaign has ended that could have gone on
KEY = "verdict.key"
KEPT = ("campaign.json", "trials.jsonl", "plan.json", "results.tsv", "report.html", "against.json", "taught.json",
        "log.txt", "ended")
RECORDED = ("campaign.json", "trials.jsonl", "against.json", "taught.json", "ended")
MADE = "made"  # of a campaign: trials that were planned
EARLIER = "-earlier"  # of a campaign that was set aside
EXPERIMENTS = "experiments"  # of an agent's campaign: N.json, why in N.txt, and its verdict in N.verdict.json
BELOW = {MADE: r".+\.json", EXPERIMENTS: r"[1-9][0-9]*(\.json|\.txt|\.verdict\.json)"}  # names of files in these


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
    files = [work / KEY, *sorted(work.glob("*.corpus"))]
    for d in sorted(work.iterdir()):
        if (d / "campaign.json").exists():
            files += [*(d / name for name in KEPT), *(f for name in BELOW for f in below(d, name))]
    with tarfile.open(path.with_suffix(".part"), "w:gz") as tar:
        for file in files:
            if file.exists():
                tar.add(file, arcname=str(file.relative_to(work)))
    os.replace(path.with_suffix(".part"), path)
    return path


def below(directory, name):
    """The files of a campaign in a directory of its own, in order."""
    return [f for f in sorted((directory / name).glob("*")) if re.fullmatch(BELOW[name], f.name)]


def record(work, path):
    """Packs the trials of campaigns to be published: without the private key, with which alone they can be gone on
    with. The same trials give the same bytes."""
    files = sorted(work.glob("*.corpus"))
    for d in sorted(work.iterdir()):
        files += [*(d / name for name in RECORDED), *below(d, EXPERIMENTS)]
    with open(path, "wb") as out, gzip.GzipFile("", "wb", mtime=0, fileobj=out) as zipped, \
            tarfile.open(fileobj=zipped, mode="w") as tar:
        for file in files:
            if file.is_file():
                member = tarfile.TarInfo(str(file.relative_to(work)))
                member.size = file.stat().st_size
                with open(file, "rb") as source:
                    tar.addfile(member, source)


def resume(file, work):
    """Unpacks what an earlier run has packed. What is here and has gone further stays."""
    try:
        with tarfile.open(file) as tar:
            unpack(tar, accepted(tar, file), work)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as e:
        raise Unusable(f"{file} cannot be unpacked: {e}; want what bench/campaigns.py or bench/agent.py has "
                       "packed") from None


def unpack(tar, members, work):
    for name in sorted({m.name.split("/")[0] for m in members}):
        here = work / name
        own = [m for m in members if m.name == name or m.name.startswith(name + "/")]
        lines = next((tar.extractfile(m).read().count(b"\n") for m in own if m.name == f"{name}/trials.jsonl"), 0)
        if not here.exists() or len(trials(here)) < lines:
            tar.extractall(work, members=own, filter="data")


def accepted(tar, file):
    """The members of a pack that a run may write: a pack is from elsewhere, and beside campaigns is what is executed.
    The others are said."""
    campaigns = {m.name.split("/")[0] for m in tar if m.isreg() and fnmatchcase(m.name, "*/campaign.json")
                 and m.name.count("/") == 1}
    members = [m for m in tar if m.isreg() and expected(m.name.split("/"), campaigns)]
    if skipped := sorted({m.name for m in tar if not m.isdir()} - {m.name for m in members}):
        print(f"{file}: left out, as no campaign has it: {', '.join(map(ascii, skipped))}", file=sys.stderr)
    return members


def expected(parts, campaigns):
    """Whether pack writes a file of this path."""
    if ".." in parts or "" in parts:
        return False
    if len(parts) == 1:
        return parts[0] == KEY or fnmatchcase(parts[0], "*.corpus")
    return parts[0] in campaigns and (len(parts) == 2 and parts[1] in KEPT or
                                      len(parts) == 3 and parts[1] in BELOW and
                                      re.fullmatch(BELOW[parts[1]], parts[2]) is not None)


class Unusable(ValueError):
    """A pack, or a key, that campaigns cannot go on with."""


def elsewhere(file, work):
    """Unpacks campaigns that only teach, and takes over their key: verdicts are believed with the key here alone.
    Returns their directory."""
    there = work / f"taught-by-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}"
    there.mkdir(exist_ok=True)
    resume(file, there)
    if not (there / KEY).exists():
        raise Unusable(f"{file} has no {KEY}, with which its verdicts are believed; want a pack of bench/campaigns.py")
    take_key(there / KEY, work)
    return there


def take_key(file, work):
    """Has the campaigns of a directory signed with the key of a file."""
    key = work / KEY
    if not key.exists():
        shutil.copy(file, key)
    if key.read_bytes() != file.read_bytes():
        raise Unusable(f"{file} is another key than that of the campaigns of {work}; want another --work")
