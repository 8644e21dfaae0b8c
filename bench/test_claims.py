"""Holds the numbers of README.md that are links, and those of tables of docs, to their rows of docs/results.

bench/README.md says how a link and a table name their rows. Besides, digits are changed one by one, and each change is
to be found.
"""

import functools
import json
import re
import unittest
from fnmatch import fnmatchcase
from pathlib import Path

import report

REPO = Path(__file__).resolve().parent.parent
README = (REPO / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[([^\]]+)\]\[([\w-]+)\]")
DEFINED = re.compile(r'^\[([\w-]+)\]: (\S+)#(\S+)\s+"(\S+) (\S+) ([^"]+)"$', re.MULTILINE)
TABLE = re.compile(r"<!-- (rows: [^>]*?)\s*-->\n\n((?:\|.*\n)+)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
UNIT = re.compile(r"(?<![\w/])(?:µs|ms|s|%|×|times)(?!\w)")
# A unit, or a word in the name of a field: what it measures, and how much of that it is.
UNITS = {"µs": ("time", 1), "ms": ("time", 1e3), "s": ("time", 1e6), "%": ("part", 0.01), "×": ("times", 1),
         "times": ("times", 1)}
WORDS = {"us": UNITS["µs"], "ms": UNITS["ms"], "s": UNITS["s"], "percent": UNITS["%"], "share": ("part", 1),
         "acceptance": ("part", 1), **dict.fromkeys(("ratio", "times", "over", "lowest", "highest"), UNITS["×"])}
PLAIN = ("number", 1)


@functools.cache
def rows(file):
    """The rows of docs/results/FILE.json by their ids; none if there is no such file."""
    path = REPO / "docs/results" / f"{file}.json"
    return {r["id"]: r for r in json.loads(path.read_text(encoding="utf-8"))["rows"]} if path.exists() else {}


def value(row, field):
    """A field of a row, as latency_us.median; of a list the element whose `how` begins so; or N / FIELD."""
    over, slash, path = field.rpartition(" / ")
    for key in path.split("."):
        row = {e["how"][:len(key)]: e for e in row}[key] if isinstance(row, list) else row[key]
    return float(over) / row if slash else row


def wrong(claim, column, row, field):
    """Why a claim is not what a field says, or nothing. Its unit stands in it, or in the title of its column."""
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
    numbers = [n.replace(",", "") for n in NUMBER.findall(claim)]
    if kind == of and len(numbers) == 1 and abs(exact * scale / size - float(numbers[0])) <= (
            0.5 * 10**-len(numbers[0].partition(".")[2]) + 1e-9):
        return ""
    return f"{claim} ({column}) is not {field} of {row['id']}, {exact}"


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


def readme_faults(text):
    """What is wrong with the links of README.md."""
    defined = {name: rest for name, *rest in DEFINED.findall(text)}
    used, head = set(), []
    for line in DEFINED.sub("", text).splitlines():
        head = (head or cells(line)) if line.startswith("|") else []
        for column, piece in zip(head, cells(line)) if head else [("", line)]:
            for claim, name in LINK.findall(piece):
                used.add(name)
                if name not in defined or defined[name][3] not in rows(defined[name][2]):
                    yield f"{claim}: no row is named by {name}"
                    continue
                page, anchor, file, row, field = defined[name]
                if fault := wrong(claim, column, rows(file)[row], field):
                    yield fault
                part = {report.anchor(p.partition("\n")[0]): p for p in (REPO / page).read_text("utf-8").split("\n## ")}
                if f"| {row.partition('/')[2]} |" not in part.get(anchor, ""):
                    yield f"{claim}: {row} is not at {page}#{anchor}"
    if set(defined) - used:
        yield f"nothing links to {set(defined) - used}"


def table_faults(comment, table):
    """What is wrong with a table whose comment names its rows."""
    lines = [line.strip() for line in comment.splitlines()]
    patterns = [line.removeprefix("rows: ") for line in lines if line.startswith("rows: ")]
    means = dict(line.rsplit(" = ", 1) for line in lines if not line.startswith("rows: "))
    head, _, *body = map(cells, table.splitlines())
    names = [c for c in head if "{" + c + "}" in comment]
    if len(set(head)) < len(head) or set(head) - set(names) - set(means):
        yield f"columns without a field, or twice: {head}"
    above = {}
    for line in body:
        if len(line) != len(head):
            yield f"{line}: {len(line)} cells, {len(head)} columns"
            continue
        cell = dict(zip(head, line))
        above.update({c: cell[c] for c in names if cell[c]})
        filled = {c: means.get(text, text.lower().replace(",", "")) for c, text in above.items()}

        def fill(text):
            return re.sub(r"{(.*?)}", lambda m: filled.get(m[1], ""), text)

        found = [row for file, _, ids in (fill(p).partition(" ") for p in patterns) for row in rows(file).values()
                 if fnmatchcase(row["id"], ids)]
        if len(found) != 1:
            yield f"{line}: {len(found)} rows are named so"
            continue
        yield from filter(None, (wrong(cell[c], c, found[0], fill(means[c])) for c in head
                                 if c not in names and c in means and cell[c]))


def with_other_digits(text, start=0):
    """A text once for each number after start, whose last digit is another."""
    for number in NUMBER.finditer(text, start):
        last = number.end() - 1
        yield text[:last] + str((int(text[last]) + 1) % 10) + text[last + 1:]


class Claims(unittest.TestCase):
    TABLES = [(path.name, *table) for path in sorted((REPO / "docs").glob("*.md"))
              for table in TABLE.findall(path.read_text(encoding="utf-8"))]

    def test_the_readme_says_what_its_rows_say(self):
        self.assertEqual(list(readme_faults(README)), [])
        self.assertGreater(len(LINK.findall(README)), 20)

    def test_another_digit_or_link_in_the_readme_is_found(self):
        for link in LINK.finditer(README):
            for claim in with_other_digits(link[1]):
                text = README[:link.start(1)] + claim + README[link.end(1):]
                self.assertTrue(list(readme_faults(text)), claim)
        for link in DEFINED.finditer(README):
            text = README[:link.start(3)] + "nowhere" + README[link.end(3):]
            self.assertTrue(list(readme_faults(text)), link[0])

    def test_tables_say_what_their_rows_say(self):
        self.assertGreater(len(self.TABLES), 3)
        for page, *table in self.TABLES:
            self.assertEqual(list(table_faults(*table)), [], page)

    def test_another_digit_in_a_table_is_found(self):
        for page, comment, table in self.TABLES:
            for text in with_other_digits(table, table.index("\n", table.index("|\n|-") + 2)):
                self.assertTrue(list(table_faults(comment, text)), f"{page}: {text}")

    def test_rows_that_failed_and_fields_that_are_not_there(self):
        row = {"id": "a row", "passed": True, "latency_us": {"median": 565.03},
               "kinds": [{"how": "a mask", "percent": 9}]}
        for claim, column, field in (("565", "µs", "latency_us.median"), ("0.57 ms", "", "latency_us.median"),
                                     ("9 %", "", "kinds.a mask.percent")):
            self.assertEqual(wrong(claim, column, row, field), "")
        for claim, column, field in (("565, 7", "µs", "latency_us.median"), ("565", "", "latency_us.median"),
                                     ("565", "ms", "latency_us.median"), ("9 %", "", "kinds.a bias.percent"),
                                     ("565", "µs", "latency_us.mean")):
            self.assertTrue(wrong(claim, column, row, field), (claim, column, field))
        self.assertIn("not passed", wrong("565", "µs", row | {"passed": False}, "latency_us.median"))

    def test_the_rationale_says_how_far_errors_are_from_those_of_transformers(self):
        text = " ".join((REPO / "docs/RATIONALE.md").read_text(encoding="utf-8").split())
        said = re.search(r"the RMS error of the logits is (.*?) of that of transformers' own run in the same type, "
                         r"and the largest error (.*?) of its largest", text)
        found = [r for file in ("h100", "h200") for r in rows(file).values()
                 if r["passed"] and "rms_ratio" in r and "max_ratio" in r]
        self.assertEqual(said.groups(), tuple(
            f"{min(r[f] for r in found):.2f} to {max(r[f] for r in found):.2f}" for f in ("rms_ratio", "max_ratio")))


if __name__ == "__main__":
    unittest.main()
