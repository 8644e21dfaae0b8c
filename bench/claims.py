"""What README.md and the tables of docs say of the rows of docs/results, and where they are wrong.

The schemes by which they name their rows are in bench/README.md. Functions yield faults as texts: a document is right
if it has none.
"""

import functools
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

# A unit, or a word in the name of a field: what it measures, and how much of that it is.
UNITS = {"µs": ("time", 1), "ms": ("time", 1e3), "s": ("time", 1e6),
         "%": ("part", 0.01), "×": ("times", 1), "times": ("times", 1)}
WORDS = {"us": UNITS["µs"], "ms": UNITS["ms"], "s": UNITS["s"], "percent": UNITS["%"], "share": ("part", 1),
         "acceptance": ("part", 1), "ratio": UNITS["×"], "times": UNITS["×"], "over": UNITS["×"],
         "lowest": UNITS["×"], "highest": UNITS["×"]}
PLAIN = ("number", 1)
UNIT = re.compile(r"(?<![\w/])(?:µs|ms|s|%|×|times)(?!\w)")

# What a number in README.md is of, where that is said, and the links that numbers are.
GPU = r"\b(?:RTX |[A-Z]{1,2})\d+[A-Z]?\b"
MODEL = r"(?:a Llama of the size of )?\b[A-Za-z][\w.]*(?:-[\w.]+)*-\d[\d.]*[BMm]\b"
WEIGHTS = r"\b(?:bf16|fp16|fp32|int8|int4|fp8)\b"
POSITION = r"\b(?:context|prompt of) (?P<position>[\d,]+)"
SAID = re.compile(rf"\[(?P<claim>[^\]]+)\]\[(?P<link>[\w-]+)\]|{POSITION}"
                  rf"|(?P<GPU>{GPU})|(?P<model>{MODEL})|(?P<weights>{WEIGHTS})")
DEFINED = re.compile(r'^\[([\w-]+)\]: (\S+)\s+"([^"]+)"$', re.MULTILINE)
NOT_PROSE = re.compile(r"^<!-- families.*?end of families -->$|^```.*?^```$|^    .*?$|\]\([^)]*\)", re.M | re.S)
MEASURED = re.compile(
    r"(?<!\w)(?:\d[\d.,]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|hundred|thousand)\b)"
    r"[\s-]*(?:[%×]|(?:[µumn]?s|sec|seconds?|min|minutes?|h|hours?|days?|percent|per cent|x|times|fold|[KMGT]i?B"
    r"|tokens? (?:a|per) second|tokens/s)\b)|\b(?:twice|thrice|half) (?:as|the)\b", re.IGNORECASE)

TABLE = re.compile(r"<!-- (rows: [^>]*?)\s*-->\n\n((?:\|.*\n)+)")


@functools.cache
def rows(file):
    """The rows of docs/results/FILE.json by their names; none if there is no such file."""
    path = REPO / "docs/results" / f"{file}.json"
    return {r["id"]: r for r in json.loads(path.read_text(encoding="utf-8"))["rows"]} if path.exists() else {}


def value(row, field):
    """A field of a row, as latency_us.median; of a list the element whose `how` begins so; or N / FIELD."""
    over, slash, path = field.rpartition(" / ")
    for key in path.split("."):
        row = {e["how"][:len(key)]: e for e in row}[key] if isinstance(row, list) else row[key]
    return float(over) / row if slash else row


def spans(files, fields):
    """The least and the most of each field, with two digits, of the rows of files that have all of them and passed."""
    found = [row for file in files for row in rows(file).values() if row["passed"] and all(f in row for f in fields)]
    return [f"{min(r[f] for r in found):.2f} to {max(r[f] for r in found):.2f}" for f in fields]


def rounds_to(exact, claim):
    """Whether a claim is a value rounded to as many digits as the claim has."""
    number = NUMBER.search(claim).group()
    return abs(exact - float(number.replace(",", ""))) <= 0.5 * 10**-len(number.partition(".")[2]) + 1e-9


def wrong(claim, column, row, field):
    """Why a claim is not what a field says, or nothing. Its unit stands beside it, or in the title of its column."""
    try:
        exact = value(row, field)
    except LookupError:
        return f"{row['id']} has no field {field}"
    if row["passed"] is not True:
        return f"{row['id']} has not passed"
    if isinstance(exact, str):
        return "" if claim == exact else f"{claim} is {exact} in {row['id']}"
    unit = UNIT.search(NUMBER.sub("", claim)) or UNIT.search(column)
    kind, size = UNITS[unit.group()] if unit else PLAIN
    of, scale = next((WORDS[w] for w in re.split(r"[._ ]", field) if w in WORDS), PLAIN)
    if kind == of and len(NUMBER.findall(claim)) == 1 and rounds_to(exact * scale / size, claim):
        return ""
    return f"{claim} ({column}) is not {field} of {row['id']}, {exact}"


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


@functools.cache
def parts(path):
    """What stands below each heading of a file, by its anchor on GitHub."""
    found, times = {}, {}
    for part in re.split(r"(?m)^#+ ", path.read_text(encoding="utf-8"))[1:]:
        title, _, text = part.partition("\n")
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        times[anchor] = times.get(anchor, -1) + 1
        found[f"{anchor}-{times[anchor]}" if times[anchor] else anchor] = text
    return found


def pieces(section):
    """The paragraphs of a text, and the cells of its tables with the titles of their columns."""
    for block in re.split(r"\n\s*\n", section):
        if block.lstrip().startswith("|"):
            head, _, *lines = map(cells, block.strip().splitlines())
            for line in lines:
                yield from zip(line, head)
        else:
            yield " ".join(block.split()), ""


def whose(file, row):
    """What is to be said of a row, before its number."""
    weights = re.search(r"-(int\d|fp8)\b", row["id"])
    return {"GPU": file, "model": row["model"], "weights": weights.group(1) if weights else row["dtype"],
            "position": row.get("position", row.get("prompt"))}


def plain(kind, text):
    """A GPU, a model or a position as rows spell it."""
    if kind == "position":
        return int(text.replace(",", ""))
    alike = text.removeprefix("a Llama of the size of ")
    return alike.lower().replace(" ", "") + ("-as-llama" if alike != text else "")


def claim_faults(claim, column, target, title, said):
    """The faults of a number in README.md that links to a target with a title, where what was said stands before it."""
    file, name, field = title.split(" ", 2)
    row = rows(file).get(name)
    if row is None:
        yield f"{claim}: no row {name} in {file}.json"
        return
    if fault := wrong(claim, column, row, field):
        yield fault
    path, _, anchor = target.partition("#")
    if f"`{row['command']}`" not in parts(REPO / path).get(anchor, ""):
        yield f"{claim}: {target} is not where {name} stands"
    for what, right in whose(file, row).items():
        if right is None or what == "weights" and what not in said:
            continue  # the row has none, or the text leaves the type out
        if said.get(what) != right:
            yield f"{claim}: {what} {right} does not stand before it, but {said.get(what)}"


def readme_faults(text):
    """The faults of README.md: numbers that differ from their rows, and numbers of measurements without rows."""
    defined = {name: (target, title) for name, target, title in DEFINED.findall(text)}
    used = set()
    for section in re.split(r"(?m)^## ", NOT_PROSE.sub("", DEFINED.sub("", text))):
        said = {}
        for piece, column in pieces(section):
            rest = SAID.sub("", piece)
            if MEASURED.search(f"{rest} {column}") or column and re.fullmatch(r"\W*\d[\d.,]*\W*", rest):
                yield f"no row backs: {piece}"
            for found in SAID.finditer(piece):
                kind = found.lastgroup
                if kind != "link":
                    said[kind] = plain(kind, found[kind])
                elif found["link"] in defined:
                    used.add(found["link"])
                    yield from claim_faults(found["claim"], column, *defined[found["link"]], said)
                else:
                    yield f"{found['link']} is not defined"
    if set(defined) - used:
        yield f"nothing links to {set(defined) - used}"


@functools.cache
def matching(pattern):
    """The rows that FILE ID stands for, where ID may have stars."""
    file, _, name = pattern.partition(" ")
    return [row for row in rows(file).values() if fnmatchcase(row["id"], name)]


def table_faults(comment, table):
    """The faults of a table whose comment names its rows."""
    lines = [line.strip() for line in comment.splitlines()]
    patterns = [line.removeprefix("rows: ") for line in lines if line.startswith("rows: ")]
    means = dict(line.rsplit(" = ", 1) for line in lines if not line.startswith("rows: "))
    head, _, *body = map(cells, table.splitlines())
    names = [c for c in head if "{" + c + "}" in comment]
    if len(set(head)) < len(head) or set(head) - set(names) - set(means):
        yield f"columns without a field, or twice: {head}"
    above = {}
    for line in body:
        cell = dict(zip(head, line))
        if len(line) != len(head):
            yield f"{line}: {len(line)} cells, {len(head)} columns"
            continue
        above.update({c: cell[c] for c in names if cell[c]})
        filled = {c: means.get(text, text.lower().replace(",", "")) for c, text in above.items()}

        def fill(text):
            return re.sub(r"{(.*?)}", lambda m: filled.get(m[1], ""), text)

        found = [row for pattern in patterns for row in matching(fill(pattern))]
        if len(found) != 1:
            yield f"{line}: {len(found)} rows are named so"
            continue
        for column in head:
            if column not in names and column in means and cell[column]:
                if fault := wrong(cell[column], column, found[0], fill(means[column])):
                    yield fault
