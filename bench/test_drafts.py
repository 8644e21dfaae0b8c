"""Tests of the verdicts of bench/drafts.py: python3 -m unittest discover bench. They need numpy."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import drafts
from workshop import Case

EIGHT = Case("testdata/configs/llama-3.1-8b", "bf16", 1, 8448, rows=8, sequences=8)


def counts(ratio):
    return {"tokens": 400, "passes": 50, "drafted": 350, "accepted": 200, "acceptance": 200 / 350,
            "tokens_per_pass": 5.0, "tokens_per_read": 2.0, "ratio": ratio, "lowest": ratio - 0.1,
            "highest": ratio + 0.1, "tokens_per_s": 400.0, "plain_tokens_per_s": 200.0}


def report(edit=2.5, quotes=2.0, fresh=1.1):
    kinds = {"edit": edit, "fresh": fresh, "quotes": quotes}
    return {"scripted": True, "rows": 8, "rounds": 3, "check": {"passed": True}, "difference": "", "passed": True,
            "texts": [{"name": f"{k}-a", "kind": k, "prompt": 700, "cut": 0, "same": True} | counts(x)
                      for k, x in kinds.items()],
            "kinds": [{"kind": k, "texts": 4} | counts(x) for k, x in kinds.items()]}


class Drafts(unittest.TestCase):
    def test_rows(self):
        tasks = {t.name: t for t in drafts.drafts()}
        self.assertEqual(sorted(t.case.name for t in tasks.values()), ["llama-3.1-8b", "llama-3.2-1b", "pycoder-5m"])
        self.assertIn(EIGHT, [t.case for t in tasks.values()], "the build of section pass_times")
        self.assertIn(drafts.JUDGED, [t.case.name for t in tasks.values()])

    def test_what_is_needed(self):
        row = drafts.judge_drafts(EIGHT, True, report())
        self.assertTrue(row["passed"], row["findings"])
        self.assertEqual(row["kinds"]["quotes"]["acceptance"], 200 / 350)
        for slow, want in (({"edit": 1.89}, "edit: 1.890"), ({"quotes": 1.5}, "quotes: 1.500"),
                           ({"fresh": 1.07}, "fresh: 0.970"), ({"fresh": float("nan")}, "fresh: nan")):
            row = drafts.judge_drafts(EIGHT, True, report(**slow))
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])
        other = Case(drafts.PYCODER, "bf16", rows=8)
        self.assertTrue(drafts.judge_drafts(other, False, report(edit=0.5) | {"scripted": False})["passed"])

    def test_what_is_wrong(self):
        failed = report() | {"check": {"passed": False, "failures": ["position 0"]}, "kinds": None, "texts": None,
                             "passed": False}
        for r, want in ((failed, "position 0"),
                        (report() | {"difference": "text edit-a, round 1: ...", "passed": False}, "text edit-a"),
                        (report() | {"passed": False}, "not what"),
                        (report() | {"scripted": False}, "not what"),
                        (report() | {"kinds": report()["kinds"][1:]}, "no texts of kind edit")):
            row = drafts.judge_drafts(EIGHT, True, r)
            self.assertFalse(row["passed"])
            self.assertIn(want, row["findings"][0])


if __name__ == "__main__":
    unittest.main()
