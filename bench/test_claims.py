"""Holds the numbers of README.md and of the tables of docs to their rows: python3 -m unittest discover bench.

Beside that the documents have no fault, mistakes are made in copies of them, one by one, and each is to be found.
"""

import re
import unittest

import claims

README = (claims.REPO / "README.md").read_text(encoding="utf-8")
TABLES = {f"{path.stem} {i}": table for path in sorted((claims.REPO / "docs").glob("*.md"))
          for i, table in enumerate(claims.TABLE.findall(path.read_text(encoding="utf-8")))}
OTHER = {"µs": "ms", "ms": "s", "s": "ms", "%": "×", "×": "%", "times": "%"}
# What no row has, in the place of what is said of one.
STRANGE = {"GPU": "RTX 4090", "model": "Llama-3.2-70B", "weights": "fp8", "position": "context 777"}


def with_other_digit(text):
    """A text whose last digit is another."""
    return re.sub(r"\d(?=\D*$)", lambda m: str((int(m[0]) + 1) % 10), text)


def with_other_unit(text):
    return claims.UNIT.sub(lambda m: OTHER[m[0]], text)


def replaced(found, text):
    return found.string[:found.start()] + text + found.string[found.end():]


class Readme(unittest.TestCase):
    def refused(self, text, why):
        self.assertFalse(text == README, why)
        self.assertTrue(list(claims.readme_faults(text)), f"not found: {why}")

    def links(self):
        return [m for m in claims.SAID.finditer(README) if m["link"]]

    def test_it_says_what_its_rows_say(self):
        self.assertEqual(list(claims.readme_faults(README)), [])
        self.assertGreater(len(self.links()), 20)

    def test_another_digit_is_found(self):
        for link in self.links():
            self.refused(replaced(link, f"[{with_other_digit(link['claim'])}][{link['link']}]"), link[0])

    def test_another_unit_is_found(self):
        for link in self.links():
            if claims.UNIT.search(link["claim"]):
                self.refused(replaced(link, f"[{with_other_unit(link['claim'])}][{link['link']}]"), link[0])
        head = re.search(r"^\| GPU \|.*$", README, re.MULTILINE)
        for column in re.finditer(claims.UNIT, head[0]):
            self.refused(replaced(head, replaced(column, OTHER[column[0]])), head[0])

    def test_another_gpu_model_format_or_position_is_found(self):
        """Of each kind, what is said last before some link."""
        changed = set()
        for section in re.finditer(r"(?ms)^## .*?(?=^## )", README):
            last = {}
            for said in claims.SAID.finditer(section[0]):
                last[said.lastgroup] = said
                for kind in STRANGE.keys() & last.keys() if said["link"] else ():
                    text = section[0][:last[kind].start()] + STRANGE[kind] + section[0][last[kind].end():]
                    if text not in changed:
                        self.refused(replaced(section, text), f"{last[kind][0]} before {said[0]}")
                    changed.add(text)
        self.assertGreater(len(changed), 10)

    def test_a_link_elsewhere_is_found(self):
        for link in claims.DEFINED.finditer(README):
            other = link[2][:-2] if link[2].endswith("-1") else link[2] + "-1"  # of the other GPU
            for target in (other, "docs/results/README.md#h200", "docs/results/README.md#nowhere"):
                self.refused(replaced(link, link[0].replace(link[2], target)), target)

    def test_a_number_without_a_row_is_found(self):
        for said in ("takes 61 s", "97 % of", "2.0 times", "565 µs", "61 seconds", "3.5x faster", "4,400 GB/s",
                     "1,770 tokens a second", "eight minutes", "twice as fast", "12 hours", "30 min", "5 us",
                     "3 percent", "40 GiB"):
            for place in re.finditer("(?m)^## (What you get|How fast|Which GPUs)$", README):
                self.refused(replaced(place, f"{place[0]}\n\nIt is {said}."), said)
        self.refused(README.replace("| Llama-3.2-1B |", "| Llama-3.2-1B 565 |", 1), "a number beside a model")
        table = "\n\n| file | ms |\n|---|---|\n| megakernel.cu | about 9 |\n\n"
        self.refused(README.replace("## What you get\n", f"## What you get{table}"), "a table without links")
        self.refused(re.sub(r"\| \[[^|]*\] \|\n", "| 3.1 |\n", README, count=1), "a cell without a link")

    def test_links_and_definitions_match(self):
        link = self.links()[0]
        self.refused(replaced(link, f"[{link['claim']}][nothing]"), "a link without a definition")
        self.refused(replaced(link, "soon"), "a definition without a link")


class Tables(unittest.TestCase):
    def test_they_say_what_their_rows_say(self):
        self.assertEqual({name.partition(" ")[0] for name in TABLES}, {"passes", "performance", "sampling", "serving"})
        self.assertEqual(len(TABLES), 6)
        for name, table in TABLES.items():
            self.assertEqual(list(claims.table_faults(*table)), [], name)

    def refused(self, comment, before, after):
        self.assertFalse(before == after, "nothing is changed")
        self.assertTrue(list(claims.table_faults(comment, after)), f"not found: {after}")

    def test_another_digit_is_found_in_any_cell(self):
        for comment, table in TABLES.values():
            start = table.index("|\n|-")
            for number in claims.NUMBER.finditer(table, table.index("\n", start + 2)):
                last = number.end() - 1
                digit = str((int(table[last]) + 1) % 10)
                self.refused(comment, table, table[:last] + digit + table[last + 1:])

    def test_another_unit_is_found_in_any_place(self):
        for comment, table in TABLES.values():
            head, rest = table.split("\n", 1)
            for unit in claims.UNIT.finditer(rest):
                self.refused(comment, table, f"{head}\n{replaced(unit, OTHER[unit[0]])}")
            for unit in claims.UNIT.finditer(head):
                self.refused(comment.replace(head, replaced(unit, OTHER[unit[0]])), table,
                             f"{replaced(unit, OTHER[unit[0]])}\n{rest}")

    def test_another_gpu_or_model_is_found(self):
        for comment, table in TABLES.values():
            for kind, said in (("GPU", claims.GPU), ("model", claims.MODEL)):
                for found in re.finditer(said, table):
                    self.refused(comment, table, replaced(found, STRANGE[kind]))
            for gpu, other in (("H200", "H100"), ("H100", "H200")):
                if gpu in table:
                    self.refused(comment, table, table.replace(gpu, other))

    def test_a_column_that_the_comment_does_not_name_is_found(self):
        for comment, table in TABLES.values():
            head, rule, first, rest = table.split("\n", 3)
            self.refused(comment, table, "\n".join((head + " more |", rule, first + " 3 |", rest)))
            self.refused(comment, table, "\n".join((head, rule, first + " 3 |", rest)))


class Errors(unittest.TestCase):
    SAID = re.compile(r"the RMS error of the logits is (.*?) of that of transformers' own run in the same type, "
                      r"and the largest error (.*?) of its largest")

    def test_the_rationale_says_how_far_errors_are_from_those_of_transformers(self):
        text = " ".join((claims.REPO / "docs/RATIONALE.md").read_text(encoding="utf-8").split())
        said = self.SAID.search(text)
        self.assertTrue(said, "the sentence is there")
        self.assertEqual(list(said.groups()), claims.spans(("h100", "h200"), ("rms_ratio", "max_ratio")))


class Faults(unittest.TestCase):
    def test_rows_that_failed_and_fields_that_are_not_there(self):
        row = {"id": "a row", "passed": True, "latency_us": {"median": 565.03},
               "kinds": [{"how": "a mask", "percent": 9}]}
        self.assertEqual(claims.wrong("565", "µs", row, "latency_us.median"), "")
        self.assertEqual(claims.wrong("0.57 ms", "", row, "latency_us.median"), "")
        self.assertEqual(claims.wrong("9 %", "", row, "kinds.a mask.percent"), "")
        self.assertIn("is not", claims.wrong("565, 7", "µs", row, "latency_us.median"))
        self.assertIn("is not", claims.wrong("565", "", row, "latency_us.median"))
        self.assertIn("no field", claims.wrong("565", "µs", row, "latency_us.mean"))
        self.assertIn("no field", claims.wrong("9 %", "", row, "kinds.a bias.percent"))
        self.assertIn("not passed", claims.wrong("565", "µs", {**row, "passed": False}, "latency_us.median"))


if __name__ == "__main__":
    unittest.main()
