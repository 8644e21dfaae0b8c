"""Tests of how rows are dealt out to GPUs and put together again, with processes that only look like results.py."""

import contextlib
import io
import json
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import report
import results
import several
from sections import Task
from workshop import Case
from test_results import HERE, row

# Makes the rows that it is asked for and that have not passed, and remembers how it was called.
CHILD = """\
    import json, os, sys
    from pathlib import Path
    sys.path.insert(0, {bench!r})
    import report
    args = sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    only = [b for a, b in zip(args, args[1:]) if a == "--only"]
    store = report.Store(Path(after("--out")) / "h200.json")
    here = {here!r}
    Path(after("--work"), "calls").write_text(json.dumps([os.environ["CUDA_VISIBLE_DEVICES"], args]))
    for id in only:
        if not store.done(id, here):
            store.put({{"section": id.partition("/")[0], "id": id, "model": "m", "dtype": "bf16", "passed": True,
                       "findings": [], "command": "", "steps": [], "max_error": 9}}, here)
            print(id + ": pass")
    sys.exit(1 if "bench/broken" in only else 0)
"""


def task(name, model):
    return Task("bench", name, Case(model, "bf16"), None)


class Several(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        child = self.dir / "child.py"
        child.write_text(textwrap.dedent(CHILD).format(bench=str(Path(__file__).parent), here=HERE), encoding="utf-8")
        self.enterContext(mock.patch.object(several, "COMMAND", (sys.executable, str(child))))

    def run_it(self, tasks, *args):
        said = io.StringIO()
        with mock.patch.object(results, "tasks", return_value=tasks), mock.patch.object(results, "render") as render, \
                contextlib.redirect_stdout(said):
            code = results.main(["--out", str(self.dir / "out"), "--work", str(self.dir / "work"), "--tools",
                                 str(self.dir), "--name", "h200", "--gpus", "0,3", "--jobs", "6", *args])
        return code, said.getvalue(), render

    def call(self, gpu):
        return json.loads((self.dir / "work" / f"gpu{gpu}" / "calls").read_text("utf-8"))

    def test_rows_of_a_build_stay_together(self):
        tasks = [task("a-1", "a"), task("a-2", "a"), task("b-1", "b"), task("a-3", "a"), task("c-1", "c")]
        self.assertEqual([[t.name for t in l] for l in several.deal(tasks, 2)],
                         [["a-1", "a-2", "a-3"], ["b-1", "c-1"]])

    def test_rows_are_put_together(self):
        store = report.Store(self.dir / "out" / "h200.json")
        store.put(row("bench/a-1", max_error=1), HERE)
        store.put(row("bench/b-1", False, max_error=1), HERE)
        store.put(row("bench/other", max_error=1), HERE)
        code, said, render = self.run_it([task("a-1", "a"), task("b-1", "b"), task("b-2", "b")], "--budget", "100")
        self.assertEqual((code, render.call_count), (0, 1))
        rows = report.Store(self.dir / "out" / "h200.json").rows
        self.assertEqual({i: r["max_error"] for i, r in rows.items()},
                         {"bench/a-1": 1, "bench/b-1": 9, "bench/b-2": 9, "bench/other": 1})
        self.assertIn("GPU 3: bench/b-2: pass\n", said)
        for gpu in (0, 3):
            visible, args = self.call(gpu)
            self.assertEqual(visible, str(gpu))
            self.assertEqual(args[args.index("--jobs") + 1], "3")
            self.assertLess(float(args[args.index("--budget") + 1]), 96)

    def test_one_that_fails_is_said(self):
        code, _, _ = self.run_it([task("broken", "a"), task("b", "b")])
        self.assertEqual(code, 1)

    def test_builds_alone(self):
        code, _, render = self.run_it([task("a", "a")], "--build")
        self.assertEqual((code, render.call_count), (0, 0))
        self.assertIn("--build", self.call(0)[1])


if __name__ == "__main__":
    unittest.main()
