"""Tests of which rows are planned on which GPU (numpy, and what bench imports, alone)."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accuracy
import machine
import report
import results
from test_rendering import NOT_RUN


class Plan(unittest.TestCase):
    IDS = [task.id for task in results.tasks([], [])]

    def test_all_is_planned_where_it_was_aimed_for(self):
        self.assertEqual(results.planned("h200"), self.IDS)

    def test_another_gpu_runs_every_stage_body(self):
        planned = results.planned("h100")
        self.assertLess(len(planned), len(self.IDS))
        self.assertEqual({i.partition("/")[0] for i in planned}, set(results.SECTIONS) - set(results.ON_REFERENCE))
        self.assertEqual({i for i in planned if i.startswith("fixtures/")},
                         {f"fixtures/{name}-{dtype}" for name in accuracy.BODIES for dtype in accuracy.DTYPES})
        cases = (machine.REPO / "internal/kernels/cases_test.go").read_text()
        names = dict(re.findall(r'^\t(\w+) += "([\w./-]+)"', cases, re.M))
        compiled = {names.get(model, model.strip('"'))
                    for model in re.findall(r'{target: "h200", model: ([\w"./-]+),', cases)}
        quantised = {model for model in compiled if f"testdata/models/{model}" in accuracy.QUANTISED}
        not_run = {f"zoo/{name}" for name in NOT_RUN} | {m for m in compiled if m.startswith("gguf/")}
        self.assertEqual({Path(model).name for model in compiled - quantised - not_run}, set(accuracy.BODIES))

    def test_the_commands_of_rows_work(self):
        for path in (machine.REPO / "docs/results").glob("h*.json"):
            gone = [i for i in report.Store(path).rows
                    if i not in self.IDS and i.partition("/")[0] not in report.FROZEN]
            self.assertEqual(gone, [], path)


if __name__ == "__main__":
    unittest.main()
