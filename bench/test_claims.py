"""Holds the numbers of README.md to the rows that they link to: python3 -m unittest discover bench.

A number is a link by reference, whose definition has the row in its title: "FILE ROW FIELD" of docs/results/FILE.json,
or "FIRST CELLS: COLUMN" of a table in the file that is linked to.
"""

import json
import re
import unittest
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
README = REPO / "README.md"
SECTIONS = ("## How fast", "## From a checkpoint to an answer")
DEFINED = re.compile(r'^\[([\w-]+)\]: (\S+) "([^"]+)"$', re.MULTILINE)
USED = re.compile(r"\[([^\]]+)\]\[([\w-]+)\]")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
MEASURED = re.compile(r"\d\s*(µs|ms|s\b|seconds|minutes|%|times)")
MICROSECONDS = {"µs": 1, "ms": 1000}


def sections(text):
    return "\n".join(text.partition(title + "\n")[2].partition("\n## ")[0] for title in SECTIONS)


def number(text):
    return float(NUMBER.search(text).group().replace(",", ""))


def unit(text):
    return next((u for u in MICROSECONDS if re.search(rf"\b{u}$", text.strip())), None)


def rounds_to(value, claim):
    """Whether a claim is a value rounded to as many digits as the claim has."""
    digits = len(NUMBER.search(claim).group().partition(".")[2])
    return abs(value - number(claim)) <= 0.5 * 10**-digits + 1e-9


def in_results(title):
    """The value of "FILE ROW FIELD", or None if the title is no such."""
    parts = title.split(" ")
    path = REPO / "docs/results" / f"{parts[0]}.json"
    if len(parts) != 3 or not path.exists():
        return None
    row = next(r for r in json.loads(path.read_text(encoding="utf-8"))["rows"] if r["id"] == parts[1])
    if row["passed"] is not True:
        raise AssertionError(f"{parts[1]} has not passed")
    for key in parts[2].split("."):
        row = row[key]
    return row


def in_table(path, title):
    """The cell of "FIRST CELLS: COLUMN", and the title of its column."""
    wanted, _, column = title.partition(": ")
    head = None
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            head = None
        elif head is None:
            head = cells
        elif column in head and ", ".join(cells[:wanted.count(", ") + 1]) == wanted:
            return cells[head.index(column)], column
    raise AssertionError(f"{path.name} has no row {wanted} with a column {column}")


def holds(claim, target, title):
    """Whether a claim says what its row says."""
    value = in_results(title)
    if value is not None:
        return rounds_to(value * 100 if claim.endswith("%") else value, claim)
    cell, column = in_table(REPO / target.partition("#")[0], title)
    value, of = number(cell), unit(cell) or unit(column)
    if unit(claim):
        value *= MICROSECONDS[of] / MICROSECONDS[unit(claim)]
    return rounds_to(value, claim)


class Claims(unittest.TestCase):
    def setUp(self):
        self.text = sections(README.read_text(encoding="utf-8"))
        self.defined = {name: (target, title) for name, target, title in DEFINED.findall(self.text)}

    def test_numbers_are_those_of_their_rows(self):
        used = USED.findall(self.text)
        self.assertGreater(len(used), 20)
        self.assertEqual({name for _, name in used}, set(self.defined), "links and their definitions")
        for claim, name in used:
            with self.subTest(claim=claim, row=self.defined[name][1]):
                self.assertTrue(holds(claim, *self.defined[name]))

    def test_every_measurement_has_its_row(self):
        plain = USED.sub("", DEFINED.sub("", self.text))
        for line in plain.splitlines():
            if line.startswith("|"):
                for cell in line.strip("|").split("|")[2:]:
                    self.assertNotRegex(cell, r"\d", f"no row backs {line}")
            else:
                self.assertNotRegex(line, MEASURED, f"no row backs {line}")

    def test_anchors_exist(self):
        for target, _ in self.defined.values():
            path, _, anchor = target.partition("#")
            titles = re.findall(r"^#+ (.*)$", (REPO / path).read_text(encoding="utf-8"), re.MULTILINE)
            self.assertIn(anchor, [re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles], path)

    def test_a_wrong_number_fails(self):
        row = ("docs/results/README.md#h200", "h200 contexts/llama-3.2-1b-bf16-seed1-max33024-128 latency_us.median")
        self.assertTrue(holds("565", *row))
        self.assertFalse(holds("564", *row))
        self.assertFalse(holds("565.4", *row))
        for plain in ("takes 61 s.", "97 % of", "2.0 times", "565 µs", "61 seconds"):
            self.assertRegex(plain, MEASURED)
        self.assertFalse(holds("95 %", row[0], row[1].replace("latency_us.median", "share_of_ceiling")))
        table = ("docs/performance.md#prompts", "Llama-3.1-8B on an H100, bf16: 2,048")
        self.assertTrue(holds("182 ms", *table))
        self.assertFalse(holds("182 µs", *table))
        with self.assertRaisesRegex(AssertionError, "has no row"):
            holds("182 ms", table[0], "Llama-3.1-9B, bf16: 2,048")


if __name__ == "__main__":
    unittest.main()
