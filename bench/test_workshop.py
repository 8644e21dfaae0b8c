"""Tests of how bench/results.py builds, runs, resumes and stops, with tools that only look like amkc: no GPU, numpy
alone."""

import contextlib
import io
import json
import os
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accuracy
import blocks
import machine
import reference
import report
import results
from workshop import Budget, Case, OutOfTime, StepFailed, Workshop, first_complaint, last_object

os.chdir(machine.REPO)

# What tools write their logits with: [positions, 512] float32 of `noise`, and 1 where the next id is. Hundreds of tools
# are started, and importing numpy would take most of their time.
SAVE = """\
    def save(path, ids, noise, vocab=512):
        head = str({{"descr": "<f4", "fortran_order": False, "shape": (len(ids), vocab)}}).ljust(117) + "\\n"
        rows = array.array("f", [noise]) * (len(ids) * vocab)
        for n, i in enumerate(ids): rows[n * vocab + (7 * i + 1) % vocab] = 1
        with open(path, "wb") as f: f.write(b"\\x93NUMPY\\x01\\0v\\0" + head.encode()); rows.tofile(f)
"""

# amkc whose models give logits that depend on the ids alone; behaviour is added by files beside it.
AMKC = """\
    #!{python} -IS
    import array, json, pathlib, sys, time
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
""" + SAVE + """\
    with open(here / "calls", "a") as f: f.write(args[0] + "\\n")
    if (here / "slow").exists(): time.sleep(60)
    if (here / "broken").exists(): sys.exit("x: error: it is broken [AMK5999]")
    if args[0] == "version": print(json.dumps({{"version": "v1"}}))
    elif args[0] == "logits":
        ids = [int(i) for i in after("--ids").split(",")]
        save(after("-o"), ids, 3e-4 if (here / "wrong").exists() else 0)
    elif args[0] == "run":
        ids = [int(i) for i in after("--ids").split(",")]
        new = []
        for _ in range(int(after("--max-tokens"))):
            new.append((7 * (ids + new)[-1] + 1) % 512)
        print(json.dumps({{"ids": new}}))
    else:
        d = pathlib.Path(after("-o")); d.mkdir(parents=True, exist_ok=True)
        (d / "megakernel.cu").write_text("")
        (d / "megakernel.fatbin").write_text("built")
        (d / "prompt.fatbin").write_text("built")
        for flag in ("rows", "sequences"):
            if "--" + flag in args:
                (d / (flag + after("--" + flag))).mkdir(exist_ok=True)
                (d / (flag + after("--" + flag)) / "megakernel.fatbin").write_text("built")
        (d / "weights.safetensors").write_text("weights")
        facts = {{"model": {{"name": "llama-gqa"}}, "target": {{"arch": "sm_90a"}}, "prompt": 512}}
        (d / "amkc.manifest.json").write_text(json.dumps({{"facts": facts, "weights": {{"sha256": "1"}}}}))
"""
NVCC = """\
    #!{python} -IS
    import sys
    if "-o" in sys.argv:
        defines = " ".join(a for a in sys.argv if a.startswith("-D"))
        open(sys.argv[sys.argv.index("-o") + 1], "w").write(defines)
"""


class FakeModel:
    def __init__(self, noise):
        self.noise = noise

    def logits(self, ids):
        out = np.full((len(ids), 512), self.noise, np.float32)
        out[np.arange(len(ids)), [(7 * i + 1) % 512 for i in ids]] = 1
        return out

    def greedy(self, prompt, n):
        ids = list(prompt)
        for _ in range(n):
            ids.append((7 * ids[-1] + 1) % 512)
        return ids[len(prompt):]


@contextlib.contextmanager
def fake_checkpoint(model, dtype):
    yield FakeModel(0 if dtype in ("fp32", "fp64") else 1e-3)


class Fake(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tools_dir = self.dir / "tools"
        self.tools_dir.mkdir()
        self.script("amkc", AMKC)
        for name in ("device", "dequantised"):
            self.script(name, "    #!{python} -IS\n")
        self.script("nvcc", NVCC)
        self.script("nvidia-smi", "    #!{python} -IS\n    print('NVIDIA H200, 580.159.04, 143771 MiB')\n")
        self.enterContext(mock.patch.dict(os.environ, {"PATH": f"{self.tools_dir}:{os.environ['PATH']}"}))
        self.enterContext(mock.patch.object(reference, "checkpoint", fake_checkpoint))
        self.case = Case("testdata/models/zoo/llama-gqa", "bf16")

    def script(self, name, text):
        path = self.tools_dir / name
        path.write_text(textwrap.dedent(text).format(python=sys.executable))
        path.chmod(0o755)

    def switch(self, name, on=True):
        (self.tools_dir / name).touch() if on else (self.tools_dir / name).unlink()

    def calls(self):
        lines = (self.tools_dir / "calls").read_text().splitlines()
        return [line if "/" not in line else "compile" for line in lines if line != "version"]

    def workshop(self, seconds=None):
        shop = Workshop(machine.Tools(self.tools_dir), self.dir / "work", "h200", 2, Budget(seconds))
        self.addCleanup(shop.close)
        return shop

    def results(self, *args, name=("--name", "fake")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = results.main(["--tools", str(self.tools_dir), "--work", str(self.dir / "work"), "--out",
                                 str(self.dir / "out"), *name, "--target", "h200", *args])
        return code, out.getvalue()

    def rows(self):
        return report.Store(self.dir / "out" / "fake.json").rows


class Workshops(Fake):
    def test_a_build_is_made_once_and_kept_for_the_next_time(self):
        shop = self.workshop()
        self.assertEqual(shop.finish(self.case), shop.finish(self.case))
        again = self.workshop()
        again.finish(self.case)
        self.assertEqual(self.calls(), ["compile"])
        self.assertRegex(again.log[0], r"amkc testdata/models/zoo/llama-gqa -o .*llama-gqa-bf16 --target h200 "
                         r"--dtype bf16$")
        with open(self.tools_dir / "amkc", "a") as f:
            f.write("# another version\n")
        self.workshop().finish(self.case)
        self.assertEqual(self.calls(), ["compile"] * 2)

    def test_flags_of_random_weights(self):
        self.assertEqual(Case("a/b", "fp16", 1, 2048).flags(),
                         ["--dtype", "fp16", "--max-seq", "2048", "--random-weights", "1"])
        case = Case("a/b", "bf16", 1, left_out=True)
        self.assertEqual((case.key, case.flags()),
                         ("b-bf16-seed1-left-out", ["--dtype", "bf16", "--random-weights", "1", "--leave-out"]))

    def test_blocks_of_gguf_files_are_said_by_a_config(self):
        case = Case("testdata/configs/llama-3.1-8b", "bf16", 1, 2048, weights="Q4_K_M")
        self.assertEqual((case.key, case.storage()), ("llama-3.1-8b-bf16-seed1-Q4_K_M", []))
        shop = self.workshop()
        shop.finish(case)
        self.assertRegex(shop.log[0], r"^python3 bench/blocks.py testdata/configs/llama-3.1-8b \S+ Q4_K_M$")
        self.assertRegex(shop.log[1], r"amkc \S+/llama-3.1-8b-Q4_K_M -o \S+ --target h200 --dtype bf16 --max-seq 2048 "
                         r"--random-weights 1$")
        config = json.loads((self.dir / "work/llama-3.1-8b-Q4_K_M/config.json").read_text())
        self.assertEqual(config["hidden_size"], 4096)
        types = config["quantization_config"]["types"]
        self.assertEqual(len(types), 2 + 32 * 7)
        self.assertEqual([i for i in range(32) if types[f"model.layers.{i}.mlp.down_proj"] == "Q6_K"],
                         [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31])
        self.assertEqual(set(blocks.types(4, "Q8_0").values()), {"Q8_0"})

    def test_a_fallback_is_a_copy(self):
        shop = self.workshop()
        defines = ("AMK_BULK_COPY=0", "AMK_ASYNC_COPY=0")
        directory = shop.finish(self.case, defines)
        self.assertEqual((directory / "megakernel.fatbin").read_text(), "-DAMK_BULK_COPY=0 -DAMK_ASYNC_COPY=0")
        self.assertEqual((shop.finish(self.case) / "megakernel.fatbin").read_text(), "built")
        self.assertIn("arch=compute_90a,code=sm_90a", shop.log[2])

    def test_a_fallback_without_what_prompts_need_has_no_kernel_for_them(self):
        def prompt(directory):
            facts = json.loads((directory / "amkc.manifest.json").read_text())["facts"]
            return facts.get("prompt"), (directory / "prompt.fatbin").read_text()

        shop = self.workshop()
        self.assertEqual(prompt(shop.finish(self.case, ("AMK_BULK_COPY=0",))), (512, "-DAMK_BULK_COPY=0"))
        self.assertIsNone(prompt(shop.finish(self.case, ("AMK_BULK_COPY=0", "AMK_ASYNC_COPY=0")))[0])
        self.assertEqual(prompt(shop.finish(self.case)), (512, "built"))

    def test_the_kernels_of_passes_are_compiled_again_too(self):
        case = Case("testdata/models/zoo/llama-gqa", "bf16", cache="int8", rows=8, sequences=4)
        self.assertEqual((case.key, case.flags()), ("llama-gqa-bf16-cache-int8-rows8-sequences4", [
            "--dtype", "bf16", "--cache", "int8", "--rows", "8", "--sequences", "4"]))
        directory = self.workshop().finish(case, ("AMK_RACECHECK=1",))
        for kernel in ("megakernel", "prompt", "rows8/megakernel", "sequences4/megakernel"):
            self.assertEqual((directory / f"{kernel}.fatbin").read_text(), "-DAMK_RACECHECK=1")

    def test_a_fallback_is_kept_as_long_as_its_base(self):
        defines = ("AMK_BULK_COPY=0",)
        fatbin = self.workshop().finish(self.case, defines) / "megakernel.fatbin"
        fatbin.write_text("kept")
        self.workshop().finish(self.case, defines)
        self.assertEqual(fatbin.read_text(), "kept")
        with open(self.tools_dir / "amkc", "a") as f:
            f.write("# another version\n")
        self.workshop().finish(self.case, defines)
        self.assertEqual(fatbin.read_text(), "-DAMK_BULK_COPY=0")

    def test_failures_say_why(self):
        self.switch("broken")
        with self.assertRaisesRegex(StepFailed, r"amkc exited with 1: x: error: it is broken \[AMK5999\]"):
            self.workshop().finish(self.case)
        self.assertEqual(first_complaint("a\nb\n"), "b")
        with self.assertRaises(StepFailed):
            last_object("no object\n")

    def test_a_hang_is_a_failure_and_the_budget_is_not(self):
        self.switch("slow")
        amkc = str(self.tools_dir / "amkc")
        with self.assertRaisesRegex(StepFailed, "no end after 0.3 s"):
            self.workshop().execute([amkc, "x"], 0.3)
        with self.assertRaises(OutOfTime):
            self.workshop(0.3).execute([amkc, "x"], 100)
        with self.assertRaises(OutOfTime):
            self.workshop(0.3).finish(self.case)

    def test_tools_that_are_missing_are_named(self):
        (self.tools_dir / "device").unlink()
        with self.assertRaisesRegex(machine.Missing, "make results-tools"):
            machine.Tools(self.tools_dir)


class Rows(Fake):
    SELECTED = ("--only", "fixtures/llama-gqa-*")

    def test_rows_are_made_rendered_and_not_made_again(self):
        code, out = self.results(*self.SELECTED)
        self.assertEqual(code, 0, out)
        row = self.rows()["fixtures/llama-gqa-fp32"]
        self.assertEqual((row["passed"], row["positions"], row["max_error"], row["greedy_tokens"]), (True, 512, 0, 40))
        self.assertEqual(row["command"], "python3 bench/results.py --target h200 --only fixtures/llama-gqa-fp32")
        self.assertEqual([Path(s.split()[0]).name for s in row["steps"]], ["amkc"] * 3)
        self.assertIn("512 ids: ref_input_ids.npy[:48]", row["steps"][1])
        self.assertIn("\n| llama-gqa-bf16 | ", (self.dir / "out" / "fake.md").read_text())
        before = self.calls()
        code, out = self.results(*self.SELECTED)
        self.assertEqual((code, self.calls()), (0, before))
        self.assertIn("3 of 3 rows have passed before", out)
        self.results(*self.SELECTED, "--again")
        self.assertGreater(len(self.calls()), len(before))

    def test_the_file_is_called_by_the_gpu(self):
        self.results("--only", "fixtures/llama-gqa-fp32", name=())
        self.assertEqual([f.name for f in (self.dir / "out").glob("*.json")], ["h200.json"])
        self.assertEqual(os.environ["CUDA_DEVICE_ORDER"], "PCI_BUS_ID", "as nvidia-smi numbers them")

    def test_without_a_gpu_nothing_is_written(self):
        self.script("nvidia-smi", "    #!{python} -IS\n    raise SystemExit('no driver')\n")
        code, out = self.results(*self.SELECTED)
        self.assertEqual(code, 2)
        self.assertIn("error: no GPU was found: nvidia-smi is not there, or fails", out)
        self.assertFalse((self.dir / "out").exists())
        self.assertEqual(self.results("--build", *self.SELECTED)[0], 0, "builds need none")

    def test_builds_of_later_rows_are_made_while_the_first_is(self):
        started, make_row = [], results.make_row

        def first(task, shop, command):
            started.append(set(shop.builds))
            return make_row(task, shop, command)

        with mock.patch.object(results, "make_row", first):
            self.assertEqual(self.results(*self.SELECTED, "--only", "fallbacks/llama-gqa-bf16*")[0], 0)
        self.assertLessEqual({"llama-gqa-fp32", "llama-gqa-fp16", "llama-gqa-bf16"}, started[0])
        self.assertEqual(started[0], started[-1], "all of them")

    def test_builds_can_be_made_alone(self):
        code, out = self.results("--build", *self.SELECTED)
        self.assertEqual((code, self.calls()), (0, ["compile"] * 3), out)
        self.assertIn("3 of 3 builds are made", out)
        self.assertFalse((self.dir / "out").exists())
        self.results(*self.SELECTED)
        self.assertEqual(self.calls().count("compile"), 3)

    def test_a_directory_of_builds_is_for_one_at_a_time(self):
        with machine.sole_use(self.dir / "work"):
            code, out = self.results("--build", *self.SELECTED)
            self.assertEqual(code, 2)
            self.assertIn("is in use by another invocation", out)
        self.assertEqual(self.results("--build", *self.SELECTED)[0], 0)

    def test_builds_that_fail_or_take_too_long_are_said(self):
        self.switch("broken")
        code, out = self.results("--build", "--only", "fixtures/llama-gqa-fp32")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"llama-gqa-fp32: amkc exited with 1: x: error: it is broken \[AMK5999\]\n0 of 1 builds "
                         r"are made")
        self.switch("slow")
        code, out = self.results("--build", *self.SELECTED, "--budget", "0.5")
        self.assertEqual(code, 1)
        self.assertIn("the time is up: some builds are left", out)
        self.assertIn("0 of 3 builds are made", out)

    def test_wrong_logits_fail_and_are_shown(self):
        self.switch("wrong")
        code, out = self.results(*self.SELECTED)
        self.assertEqual(code, 1)
        self.assertIn("fixtures/llama-gqa-fp32: **FAIL**: max |logit error| 0.0003", out)
        self.assertTrue(self.rows()["fixtures/llama-gqa-bf16"]["passed"], "the rival is further off")
        self.switch("wrong", False)
        code, out = self.results(*self.SELECTED)
        self.assertEqual(code, 0, out)
        self.assertIn("2 of 3 rows have passed before", out)

    def test_a_broken_tool_is_a_failed_row(self):
        self.switch("broken")
        code, _ = self.results("--only", "fixtures/llama-gqa-bf16")
        self.assertEqual(code, 1)
        self.assertIn("it is broken", self.rows()["fixtures/llama-gqa-bf16"]["findings"][0])

    def test_a_reference_that_refuses_a_model_costs_its_own_rows(self):
        class Refusal(Exception):
            pass

        with mock.patch.object(reference, "checkpoint", mock.Mock(side_effect=Refusal("not such heads"))):
            self.assertEqual(self.results("--only", "fixtures/llama-gqa-*")[0], 1)
        self.assertEqual([r["findings"] for r in self.rows().values()], [["Refusal: not such heads"]] * 3)

    def test_the_budget_leaves_rows_for_the_next_time(self):
        self.assertEqual(self.results("--only", "fixtures/llama-gqa-fp32")[0], 0)
        self.switch("slow")
        with mock.patch.object(machine, "environment", lambda tools: self.environment()):
            code, out = self.results(*self.SELECTED, "--budget", "0.5")
        self.assertEqual(code, 1)
        self.assertIn("2 rows are left", out)
        self.assertEqual(list(self.rows()), ["fixtures/llama-gqa-fp32"])

    def test_passes_and_sequences(self):
        self.script("device", """\
            #!{python} -IS
            import json, sys
            if sys.argv[2] == "passes":
                assert sys.argv[3:] == ["--cases", "1000", "--seed", "1"], sys.argv
                kinds = dict.fromkeys(("prompts", "rows of 1", "rows of 2", "rows of 3", "rows of 5", "rows of 8",
                                       "drafts", "sequences"), 40)
                print(json.dumps({{"seed": 1, "cases": 1000, "kinds": kinds, "from_prefix": 9, "drafts": 91,
                                  "compared": 5123, "beside": 701, "differing": 0, "difference": "",
                                  "passed": True}}))
                sys.exit()
            assert sys.argv[2:] == ["sequences", "--minutes", "8", "--seed", "2"], sys.argv
            for minutes in (1.0, 8.0):
                print(json.dumps({{"seed": 1, "minutes": minutes, "finished": 700, "left": 30, "sampled": 90,
                                  "tokens": 40321, "beside": 39000, "aborts": 40, "after_abort": 100, "differing": 0,
                                  "difference": "", "goroutines": 5, "heap_mb": 3.0, "resident_mb": 90.0, "growth": "",
                                  "passed": True}}))
        """)
        code, out = self.results("--only", "passes/llama-gqa-bf16-rows8-sequences8", "--only",
                                 "sequences/pycoder-5m-bf16-rows8-sequences8-seed2")
        self.assertEqual(code, 0, out)
        text = (self.dir / "out" / "fake.md").read_text()
        self.assertIn("| 1000 | 5123 | 701 | 91 | 9 | 0 |", text)
        self.assertIn("| 700 | 30 | 90 | 40321 | 39000 | 40 | 100 | 0 |", text)

    def test_eight_minutes_are_not_begun_without_the_time(self):
        self.script("device", """\
            #!{python} -IS
            import json, sys
            assert sys.argv[2:] == ["soak", "--seconds", "480", "--tokens", "1"], sys.argv
            us = dict.fromkeys(("first", "last", "median", "longest", "first_tenth", "last_tenth", "per_hour"), 600.0)
            print(json.dumps({{"positions": 2048, "passes": 390, "free": 798720, "forced": 4096, "difference": "",
                              "seconds": 480.5, "latency_us": us}}))
        """)
        code, out = self.results("--section", "soak", "--budget", "400")
        self.assertEqual((code, self.rows()), (1, {}))
        self.assertIn("1 rows are left", out)
        self.assertIn("seed1: it takes 480 s at a time; want --budget 600 or more", out)
        code, out = self.results("--section", "soak")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.rows()["soak/llama-3.2-1b-bf16-seed1"]["free"], 798720)
        self.assertIn("| 798720 | 390 | 480 | 600.0 | 600.0 | 600.0 | 600.0 | 600.0 |",
                      (self.dir / "out" / "fake.md").read_text())

    def environment(self):
        return next(iter(report.Store(self.dir / "out" / "fake.json").environments.values()))

    def test_what_this_machine_lacks_is_said(self):
        with mock.patch.object(machine, "find_cuda", lambda name: None if name == "compute-sanitizer"
                               else str(self.tools_dir / name)):
            code, out = self.results("--only", "sanitizer/llama-gqa-fp32-memcheck")
        self.assertEqual(code, 1)
        self.assertIsNone(self.rows()["sanitizer/llama-gqa-fp32-memcheck"]["passed"])
        self.assertIn("not run: there is no compute-sanitizer here", out)


class References(unittest.TestCase):
    def test_one_model_is_kept(self):
        r, made = accuracy.References(), []
        for model, what in (("a", "fp32"), ("a", "bf16"), ("a", "fp32"), ("b", "fp32"), ("a", "fp32")):
            r.of(model, what, lambda: made.append((model, what)))
        self.assertEqual(made, [("a", "fp32"), ("a", "bf16"), ("b", "fp32"), ("a", "fp32")])


if __name__ == "__main__":
    unittest.main()
