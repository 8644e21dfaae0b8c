"""Tests of bench/compare.py with a PyTorch and an amkc that only look the part: no GPU, numpy alone."""

import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compare
import comparing
import machine
import test_workshop
from peer import Peer, PeerFailed
from workshop import Budget, OutOfTime, Workshop

VOCAB = 512  # of the amkc of test_workshop

# torch_peer.py with logits that depend on the ids alone. What it is to get wrong is said by files beside it.
PEER = """\
    #!{python} -IS
    import array, json, pathlib, sys, time
    here = pathlib.Path(__file__).parent
""" + test_workshop.SAVE + """\
    compiled = attention = None
    for line in sys.stdin:
        r = json.loads(line)
        answer = {{"ok": True}}
        if r["do"] == "reference":
            save(r["fp32"], r["ids"], 0); save(r["own"], r["ids"], 1e-3)
        elif r["do"] == "open":
            compiled, attention = r["compile"], r["attention"]
            if compiled and (here / "slow compiler").exists(): time.sleep(60)
            if attention == "sdpa" and not compiled and (here / "dies").exists():
                sys.exit("RuntimeError: an error of the device")
            answer |= {{"seconds": 1.0, "weights": 1_000_000, "weight_bytes": 1_010_000}}
        elif r["do"] == "products":
            us_of = {{"mm": 170.0, "mv": 160.0, "together-mm": 150.0, "together-mv": 155.0}}
            if (here / "wrong product").exists() and r["form"] == "mv":
                answer = {{"ok": False, "error": "Wrong: product 5 of 15"}}
            else: answer |= {{"worst": 0.002, "products": 15, "weight_bytes": 1_000_000}}
        elif r["do"] == "forced":
            save(r["out"], r["ids"], 9e-3 if compiled and (here / "compiled wrong").exists() else 1e-3)
        else:
            if (here / "fails").exists() and not compiled and r["launches"] == 100:
                answer = {{"ok": False, "error": "out of memory"}}
            else:
                us = {{"sdpa": 250.0, "eager": 240.0}}.get(r["name"]) or us_of[r["name"]]
                us = 180.0 if compiled else us * (1 if r["captured"] else 10)
                answer |= {{"us": {{"median": us, "p10": us - 1, "p90": us + 1}}, "repeats": not compiled}}
        print(json.dumps(answer), flush=True)
"""
DEVICE = """\
    #!{python} -IS
    import json
    us = {{"median": 100.0, "p10": 99.0, "p90": 101.0}}
    print(json.dumps({{"check": {{"passed": True}}, "position": 128, "steps_per_launch": 16, "launches": 100,
                      "latency_us": us, "ceiling_us": us | {{"median": 90.0}}, "bytes_per_token": 1e6, "gbs": 1,
                      "ceiling_gbs": 2, "share_of_ceiling": 0.9}}))
"""


class Compare(test_workshop.Fake):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(comparing, "config", lambda model: {
            "vocab_size": VOCAB, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
            "num_key_value_heads": 2}))
        self.script("device", DEVICE)
        (self.tools_dir / "torch_peer.py").write_text(
            "\n".join(line[4:] for line in PEER.format(python=sys.executable, vocab=VOCAB).splitlines()))
        self.enterContext(mock.patch.object(comparing, "__file__", str(self.tools_dir / "comparing.py")))

    def compare(self, *args, row="llama-3.2-1b-bf16-seed1"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = compare.main(["--tools", str(self.tools_dir), "--work", str(self.dir / "work"), "--out",
                                 str(self.dir / "out"), "--name", "fake",
                                 "--target", "h200", "--model", "llama-3.2-1b", "--rounds", "2", *args])
        return code, out.getvalue(), self.rows()[f"compare/{row}-128"]

    def test_all_take_turns_and_the_faster_attention_counts(self):
        code, out, row = self.compare()
        self.assertEqual((code, row["passed"]), (0, True), out)
        turns = [line.split(",")[1].split(":")[0].strip() for line in out.splitlines() if ": round" in line]
        self.assertEqual(turns, ["amkc", "ops", "eager", "compile"] * 2)
        self.assertIn("eager: 240.0 µs, 2.40 times amkc's, 37.5 % of the ceiling", out)
        e = row["engines"]
        self.assertEqual((e["eager"]["attention"], e["compile"]["attention"]), ("eager", "eager"))
        self.assertEqual(e["eager"]["trial_us"], {"sdpa": 250.0, "eager": 240.0})
        self.assertEqual((e["ops"]["times_amkc"], e["ops"]["rms_error"]), (24.0, e["eager"]["rms_error"]))
        self.assertEqual((e["amkc"]["share_of_ceiling"], e["eager"]["times_amkc"], e["compile"]["times_amkc"]),
                         (0.9, 2.4, 1.8))
        self.assertAlmostEqual(e["eager"]["rms_error"], 1e-3, places=5)
        self.assertEqual(e["amkc"]["max_error"], 0)
        self.assertEqual((e["eager"]["repeats"], e["compile"]["repeats"]), (True, False))
        self.assertEqual(row["command"], "python3 bench/compare.py --target h200 --model llama-3.2-1b --position 128 "
                         "--rounds 2 --compile-seconds 300")
        self.assertIn("| llama-3.2-1b-bf16-seed1-128 |  | 128 | 100.0 | 90.0% | 2400.0 | 24.00 | 240.0 | 2.40 | "
                      "180.0 | 1.80 |  |  | 0.00e+00 | 9.99e-04 | 9.99e-04 | 2 |",
                      (self.dir / "out" / "fake.md").read_text())

    def test_quantised_matrices_are_compared_with_the_compiled_step_and_with_bf16(self):
        code, out, row = self.compare("--weights", "int4:g128:sym", row="llama-3.2-1b-bf16-seed1-int4-g128-sym")
        self.assertEqual((code, row["passed"], row["weights"]), (0, True, "int4:g128:sym"), out)
        turns = [line.split(",")[1].split(":")[0].strip() for line in out.splitlines() if ": round" in line]
        self.assertEqual(turns, ["amkc", "eager", "compile"] * 2)
        self.assertIn("--weights int4:g128:sym ", row["command"])
        peers = [s for s in row["steps"] if "torch_peer.py" in s and "--weights int4:g128 " in s]
        self.assertEqual([s.split("  # ")[1] for s in peers], ["compile", "reference"])
        others = [s for s in row["steps"] if "torch_peer.py" in s and s not in peers]
        self.assertEqual([s.split("  # ")[1] for s in others], ["eager-sdpa", "reference"])
        self.assertEqual((row["engines"]["eager"]["form"], row["engines"]["eager"]["times_amkc"]),
                         ("not quantised", 2.5))
        self.assertTrue(any("--weights int4:g128:sym" in s for s in row["steps"] if "amkc" in s))
        ours, theirs = row["engines"]["amkc"], row["engines"]["compile"]
        self.assertNotIn("rms_error", ours, "it computes with other values than transformers")
        self.assertAlmostEqual(theirs["rms_error"], 1e-3, places=5)
        form = comparing.FORMATS["int4:g128:sym"]
        self.assertEqual((ours["form"], theirs["form"]), (form.amkc, form.compile))
        cache = 2 * 2 * 2 * 2 * 16 * 135.5
        self.assertEqual((ours["bytes_per_token"], theirs["bytes_per_token"]), (1e6, 1_010_000 + cache))
        self.assertEqual((ours["weight_bytes"], theirs["weight_bytes"]), (1e6 - cache, 1_010_000))
        self.assertAlmostEqual(theirs["bits_per_weight"], 8.08)
        self.assertAlmostEqual(theirs["gbs"], (1_010_000 + cache) / 180 / 1e3)
        self.assertEqual(theirs["times_amkc"], 1.8)
        self.assertIn("| int4:g128:sym | 128 | 100.0 | 90.0% |  |  | 250.0 | 2.50 | "
                      "180.0 | 1.80 |  |  |  | 9.99e-04 | 9.99e-04 | 2 |",
                      (self.dir / "out" / "fake.md").read_text())

    def test_quantised_logits_that_are_too_far_off_fail(self):
        self.switch("compiled wrong")
        code, _, row = self.compare("--weights", "int8", row="llama-3.2-1b-bf16-seed1-int8")
        self.assertEqual((code, row["passed"]), (1, False))
        self.assertIn("compile: RMS error", row["findings"][0])

    def test_a_compiler_that_takes_too_long_is_reported(self):
        self.switch("slow compiler")
        code, out, row = self.compare("--compile-seconds", "0.5")
        self.assertEqual((code, row["passed"]), (1, None))
        self.assertEqual(row["not_run"], "compile: no answer to 'open' within 0.5 s")
        self.assertEqual(row["engines"]["eager"]["times_amkc"], 2.4)
        self.assertNotIn("us", row["engines"]["compile"])

    def test_leaving_out_is_reported(self):
        _, _, row = self.compare("--no-compile")
        self.assertEqual((row["passed"], row["not_run"]), (None, "compile: left out"))
        self.assertIn("--no-compile", row["command"])

    def test_a_dead_peer_costs_its_own_numbers(self):
        self.switch("dies")
        code, out, row = self.compare()
        self.assertEqual(code, 0, out)
        self.assertEqual(row["engines"]["eager"]["attention"], "eager")
        self.assertIn("an error of the device", row["engines"]["eager"]["failed"]["sdpa"])

    def test_a_failed_round_costs_its_own_numbers(self):
        self.switch("fails")
        code, out, row = self.compare()
        self.assertEqual((code, row["passed"], row["not_run"]), (1, None, "eager: round 0: out of memory"))
        self.assertNotIn("not_run", row["engines"]["ops"])
        self.assertEqual(row["engines"]["compile"]["times_amkc"], 1.8)

    def test_logits_that_are_too_far_off_fail(self):
        self.switch("compiled wrong")
        code, _, row = self.compare()
        self.assertEqual((code, row["passed"]), (1, False))
        self.assertIn("compile: RMS error", row["findings"][0])
        self.assertEqual(self.rows()[row["id"]]["engines"]["eager"]["times_amkc"], 2.4)

    def products(self):
        case = comparing.task("llama-3.2-1b", 128, comparing.Options(), what=comparing.Products).case
        shop = Workshop(machine.Tools(self.tools_dir), self.dir / "work", "h200", 1, Budget())
        self.addCleanup(shop.close)
        with contextlib.redirect_stdout(io.StringIO()):
            return comparing.Products(shop, case, 128, comparing.Options(rounds=2)).row()

    def test_products_alone_take_turns_with_the_kernel_in_their_fastest_form(self):
        row = self.products()
        self.assertEqual((row["passed"], list(row["engines"])), (True, ["amkc", "products"]), row)
        e = row["engines"]["products"]
        self.assertEqual((e["form"], e["us"]["median"], e["times_amkc"], e["products"], e["worst"]),
                         ("together-mm", 150.0, 1.5, 15, 0.002))
        self.assertEqual(set(e["trial_us"]), set(comparing.PRODUCTS))
        self.assertEqual(e["bytes_per_token"], 1_000_000, "it reads no cache")
        self.assertEqual(e["share_of_ceiling"], 0.6)

    def test_a_wrong_product_has_no_time(self):
        self.switch("wrong product")
        row = self.products()
        self.assertEqual((row["passed"], row["not_run"]), (None, "products: Wrong: product 5 of 15"))
        self.assertNotIn("us", row["engines"]["products"])

    def test_options_that_cannot_be_are_bad_usage(self):
        for args in (["--position", "-1"], ["--position", "33009"], ["--rounds", "0"], ["--weights", "int2"]):
            with self.assertRaises(SystemExit) as e, contextlib.redirect_stderr(io.StringIO()):
                compare.main(args)
            self.assertEqual(e.exception.code, 2)


class Plan(unittest.TestCase):
    def test_quantised_models_follow_the_others(self):
        ids = [t.id for t in comparing.compare()]
        self.assertEqual(ids[len(comparing.MODELS):][:2], ["compare/llama-3.1-8b-bf16-seed1-int8-128",
                                                           "compare/llama-3.1-8b-bf16-seed1-int4-g128-sym-128"])
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([i for i in ids if i.endswith("-products")], [
            f"compare/{m}-bf16-seed1-{p}-products" for m, p in (*((m, 128) for m in comparing.MODELS),
                                                                comparing.SMALL)])

    def test_every_precision_has_a_row_at_every_position(self):
        ids = {t.id for t in comparing.compare()}
        for model in comparing.QUANTISED:
            for position in (comparing.POSITION, *comparing.FURTHER):
                for weights in ("", *comparing.FORMATS):
                    self.assertIn(comparing.task(model, position, comparing.Options(), weights).id, ids)

    def test_a_cache_is_counted_as_bench_counts_it(self):
        # What bench said of Llama-3.1-8B in bf16 at 128, less its weights.
        c = comparing.config(machine.REPO / "testdata/configs/llama-3.1-8b")
        weights = 2 * (8_030_261_248 - 128_256 * 4096)
        self.assertEqual(comparing.cache_bytes(c, 128), 15_027_609_600 - weights)


class Peers(test_workshop.Fake):
    def peer(self, text, seconds=None):
        self.script("peer", "    #!{python} -IS\n    import sys, time\n    " + text + "\n")
        p = Peer([str(self.tools_dir / "peer")], self.dir / "log", Budget(seconds))
        self.addCleanup(p.close, now=True)
        return p

    def test_answers_may_come_in_parts(self):
        p = self.peer("for _ in sys.stdin: print('{{\"ok\":', end='', flush=True); time.sleep(0.2); print('true}}', "
                      "flush=True)")
        for _ in range(2):
            self.assertEqual(p.ask({"do": "x"}, 20), {"ok": True})
        p.close()
        with self.assertRaises(PeerFailed):
            p.ask({"do": "x"}, 20)

    def test_silence_ends_it(self):
        p = self.peer("time.sleep(60)")
        with self.assertRaisesRegex(PeerFailed, "no answer to 'x'"):
            p.ask({"do": "x"}, 0.2)
        self.assertIsNotNone(p.child.returncode)
        with self.assertRaises(OutOfTime):
            self.peer("time.sleep(60)", 0.2).ask({"do": "x"}, 100)

    def test_its_end_says_why(self):
        with self.assertRaisesRegex(PeerFailed, r"ended with 1: MyError: no more"):
            self.peer("sys.exit('MyError: no more')").ask({"do": "x"}, 20)


if __name__ == "__main__":
    unittest.main()
