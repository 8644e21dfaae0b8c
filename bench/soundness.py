"""E2, soundness: the published population rebuilt, judged by validate and by oracles that run programs, and how many
schedules each judges in a second. Needs Go. Must not know how rows are kept or shown.
"""

import json
import re
from pathlib import Path

import published
from coverage import Task

WHOLE = 20_200  # programs of the smallest run that has the published population whole (internal/soundness)

COUNTED = {"class": "Class", "programs": "Programs", "accepted": "Accepted", "unsafe": "Unsafe", "rejected": "Rejected",
           "false_accepts": "FalseAccepts", "strict": "Strict", "seen": "Seen", "ordered": "Ordered",
           "unread": "Unread"}  # and the names in Go


def tasks():
    return [Task("soundness", "population", population), Task("soundness", "rejections", rejections),
            Task("soundness", "rates", rates)]


def population(shop):
    """Every class of the published population: what validate says, and what the oracles have seen."""
    out = Path(shop.path("soundness.json"))
    out.unlink(missing_ok=True)
    findings = []
    try:
        shop.go("test", "./internal/soundness", "-run", "^TestPopulation$", "-count=1", "-timeout", "1h", "-programs",
                str(WHOLE), "-save", str(out))
    except shop.Refused as e:  # a false accept fails the test, which has counted it
        if not out.exists():
            raise
        findings.append(str(e))
    rows = [r for r in json.loads(out.read_text(encoding="utf-8"))["Report"]["Rows"] if r["Group"] == "published"]
    classes = [{key: r[name] for key, name in COUNTED.items()} for r in rows]
    judged = sum(r["programs"] for r in classes)
    if judged != published.SCHEDULES:
        findings.insert(0, f"{judged:,} programs were judged, of {published.SCHEDULES:,}")
    false = sum(r["false_accepts"] for r in classes)
    if false:
        findings.insert(0, f"{false} programs that go wrong are accepted")
    return {"classes": classes, "passed": not findings, "findings": findings}


def rejections(shop):
    """What validate rejects of the population, by the code of the first error and by class: all of it, and what the
    oracles call safe."""
    out = Path(shop.path("rejections.json"))
    shop.go("test", "./internal/soundness", "-run", "^TestRejections$", "-count=1", "-save", str(out))
    counts = json.loads(out.read_text(encoding="utf-8"))
    rejected = sum(sum(classes.values()) for classes in counts["codes"].values())
    of = {r: sum(n for classes in counts["codes"].values() for name, n in classes.items() if name == r)
          for r in published.ALL_REJECTED}
    findings = [f"{n} of the {published.EACH} of {name} were rejected, and none is right"
                for name, n in of.items() if n != published.EACH]
    return {**counts, "rejected": rejected, "passed": not findings, "findings": findings}


def rates(shop):
    """Schedules in a second of processor time."""
    out = shop.go("test", "./internal/soundness", "-run", "^$", "-bench", "Published", "-benchtime", "4s", "-count=1")
    found = {name: float(n) for name, n in
             re.findall(r"^BenchmarkPublished/(\w+)-?\d*\s.*?([\d.]+) schedules/cpu-s", out, re.MULTILINE)}
    missing = {"flat", "memory", "file", "simulate"} - set(found)
    flat = re.search(r"^BenchmarkPublished/flat-?\d*\s.*?([\d.]+) programs", out, re.MULTILINE)
    return {"per_second": found, "flat": flat and int(float(flat[1])), "passed": not missing,
            "findings": [f"no rate of {', '.join(sorted(missing))} was printed"] if missing else []}
