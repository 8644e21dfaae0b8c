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
from workshop import Case, Task
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
    if "bench/killed" in only: os.kill(os.getpid(), 9)
    sys.exit(1 if "bench/broken" in only else 2 if "bench/misused" in only else 0)
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

    def test_what_a_signal_ends_is_said(self):
        code, _, _ = self.run_it([task("killed", "a"), task("b", "b")])
        self.assertEqual(code, 1, "though the other is fine")
        rows = report.Store(self.dir / "out" / "h200.json").rows
        self.assertEqual(set(rows), {"bench/killed", "bench/b"}, "what it has made is there")

    def test_bad_usage_outweighs_failure(self):
        code, _, _ = self.run_it([task("broken", "a"), task("misused", "b")])
        self.assertEqual(code, 2)

    def test_an_exception_is_a_failure(self):
        process = several.process

        def broken(args, gpu, *more):
            if gpu == 0:
                raise OSError("no space")
            return process(args, gpu, *more)

        with mock.patch.object(several, "process", broken), contextlib.redirect_stderr(io.StringIO()) as said:
            code, _, render = self.run_it([task("a", "a"), task("b", "b")])
        self.assertEqual((code, render.call_count), (1, 1))
        self.assertIn("no space", said.getvalue())
        self.assertEqual(set(report.Store(self.dir / "out" / "h200.json").rows), {"bench/b"})

    def test_what_a_killed_run_has_made_is_taken(self):
        out, gpu = self.dir / "out" / "h200.json", self.dir / "work" / "gpu5"
        store = report.Store(out)
        store.put(row("bench/a", False, max_error=1), HERE)
        store.put(row("bench/b", max_error=1), HERE)
        (gpu / several.ROWS).mkdir(parents=True)
        (gpu / several.ROWS / "h200.json").write_bytes(out.read_bytes())
        left = report.Store(gpu / several.ROWS / "h200.json")
        left.put(row("bench/a", max_error=2), HERE)
        left.put(row("bench/c", max_error=2), HERE)
        store.put(row("bench/b", max_error=3), HERE | {"amkc": "2"})  # made since, by another run
        code, _, _ = self.run_it([task("a", "a"), task("c", "c")])
        self.assertEqual(code, 0)
        store = report.Store(out)
        self.assertEqual({i: r["max_error"] for i, r in store.rows.items()},
                         {"bench/a": 2, "bench/b": 3, "bench/c": 2}, "and not made again")
        store.put(row("bench/a", max_error=4), HERE)
        self.run_it([task("a", "a")])
        self.assertEqual(report.Store(out).rows["bench/a"]["max_error"], 4, "it is taken once")

    def test_what_is_made_before_an_interrupt_is_kept(self):
        with mock.patch.object(several.threading.Thread, "join", side_effect=KeyboardInterrupt), \
                mock.patch.object(several.threading.Thread, "start", lambda t: t.run()), \
                self.assertRaises(KeyboardInterrupt):
            self.run_it([task("a", "a")])
        self.assertEqual(set(report.Store(self.dir / "out" / "h200.json").rows), {"bench/a"})

    def test_builds_alone(self):
        code, _, render = self.run_it([task("a", "a")], "--build")
        self.assertEqual((code, render.call_count), (0, 0))
        self.assertIn("--build", self.call(0)[1])


if __name__ == "__main__":
    unittest.main()
