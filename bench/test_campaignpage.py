"""Tests of what bench/campaignpage.py makes of trials, with trials that are made up."""

import contextlib
import dataclasses
import io
import json
import shutil
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import campaignpage
import drawings
import kept
import packing
import regret
import searches

START = "s"
KEY = "8320a51977d8c38ca8a4927c670df5821e449761945e15e9efb26a1509d230ea"


def trial(role, of, against, ratio=None, best=False, seconds=10, klass="PASS"):
    v = {"id": of, "baseline_id": against, "class": klass, "gpu_seconds": seconds, "positions": [176], "machine": "GPU",
         "rung": "final", "settings": {"tiling.ring.pace": of}, "baseline": {"tiling.ring.pace": against}}
    if klass != "PASS":
        v["reason"] = {"code": "AMK6011"}
    if ratio:
        v["at"] = [{"position": 176, "candidate_us": {"median": 100 * ratio}, "baseline_us": {"median": 100.0},
                    "ratio": {"mean": ratio}, "predicted": {"candidate_us": 1 / 3, "baseline_us": 1.0,
                                                            "traits": {"latency": -2 / 3}}}]
        v["ratio"] = {"mean": ratio, "low": ratio - 0.01, "high": ratio + 0.01}
    v["decision"] = "keep" if ratio and ratio < 0.98 else "revert"
    return {"n": 0, "role": role, "best": best, "settings": {"tiling.ring.pace": of}, "verdict": v, "seconds": seconds,
            "started": "2026-01-01T00:00:00.5Z"}


class Page(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def packed(self, campaigns, ended={}, target="h100", key="369f8dd7"):
        shutil.rmtree(self.dir / "in", ignore_errors=True)
        path = self.dir / "campaigns.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, (device, trials, against, *taught) in campaigns.items():
                d = self.dir / "in" / name
                d.mkdir(parents=True)
                (d / "campaign.json").write_text(json.dumps(
                    {"model": "m", "target": target, "device": device, "positions": [128], "held_out": [176],
                     "cold": True, "seed": 1, "proposers": ["local"], "amkc": "v", "start": {},
                     "key": key}), "utf-8")
                (d / "trials.jsonl").write_text("".join(json.dumps(t) + "\n" for t in trials) + '{"half', "utf-8")
                (d / "report.html").write_text("<html>", "utf-8")
                if against:
                    (d / "against.json").write_text(json.dumps({"verdict": {"settings": {}} | (
                        {"class": "REJECTED", "reason": {"code": against}} if isinstance(against, str) else
                        {"class": "PASS", "ratio": {"mean": against, "low": against, "high": against}})}), "utf-8")
                if taught:
                    (d / "taught.json").write_text(json.dumps(taught), "utf-8")
                if name in ended:
                    (d / "ended").write_text(ended[name] + "\n", "utf-8")
                tar.add(d, arcname=name)
        return path

    def test_trials_are_folded_and_shown(self):
        guided = [trial("start", START, START, 1.0), trial("candidate", "a", START, 0.8, best=True),
                  trial("candidate", "x", "a", klass="CRASH"), trial("candidate", "b", "a", 0.5, best=True, seconds=50),
                  {"role": "candidate", "best": False, "settings": {}, "refused": {}, "seconds": 1,
                   "started": "2026-01-01T00:00:01Z"},
                  trial("confirm", "b", START, 0.41, seconds=500)]
        random = [trial("start", START, START, 1.0), trial("candidate", "a", START, 0.8, best=True, seconds=60),
                  trial("confirm", "other", START, 0.7)]
        null = [trial("start", START, START, 1.0)]
        lucky = [trial("start", START, START, 1.0), trial("candidate", "a", START, 0.9, best=True),
                 trial("confirm", "a", START, 1.02)]
        path = self.packed({"guided": ("cuda", guided, 0.99), "random": ("cuda", random, "AMK6109"),
                            "null": ("cuda", null, None), "lucky": ("cuda", lucky, "AMK3101"),
                             "thought": ("cost", guided, None)})
        (self.dir / "docs" / "results").mkdir(parents=True)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            campaignpage.main(["--take", str(path), "--docs", str(self.dir / "docs")])
        self.assertIn("thought has predictions", said.getvalue())
        rows = json.loads((self.dir / "docs/results/campaigns.json").read_text("utf-8"))["campaigns"]
        self.assertEqual(set(rows), {"guided-h100", "random-h100", "null-h100", "lucky-h100"})
        g = rows["guided-h100"]
        self.assertEqual((g["gpu_seconds"], g["estimate"], g["curve"]), (80, 0.4, [[10, 1.0], [20, 0.8], [80, 0.4]]))
        self.assertEqual(g["classes"], {"PASS": 4, "CRASH": 1, "no proposal": 1})
        self.assertEqual(g["best"], {"tiling.ring.pace": "b"})
        self.assertIsNone(rows["random-h100"]["confirmed"], "another was confirmed")
        text = (self.dir / "docs/campaigns.md").read_text("utf-8")
        self.assertIn("| 0.4000 | 0.4100 (0.4000 to 0.4200) | 0.9900 (0.9900 to 0.9900) |", text)
        self.assertIn("| random-h100 | m, h100 | 128 | cold | 3 | 1 | 70 | 0.8000 | not confirmed yet | the "
                      "same step |", text)
        self.assertIn("nothing better than the start", text)
        self.assertIn("| 0.9000 | **not confirmed**: 1.0200 (1.0100 to 1.0300) | REJECTED |", text)
        # After 60 s guided knew 0.8, and random nothing; the best of both is 0.4.
        self.assertIn("| guided-h100 | 100.0 % |  |", text)
        self.assertIn("| random-h100 | 150.0 % |  |", text)
        self.assertTrue((self.dir / "docs/results/campaigns/guided-h100.html").exists())
        self.assertTrue(all(len(line) <= 120 for line in text.splitlines() if not line.startswith("|")))

    def test_public_keys_are_published(self):
        docs, start = self.dir / "docs", [trial("start", START, START, 1.0)]
        (docs / "results").mkdir(parents=True)

        def take(**campaign):
            campaignpage.main(["--docs", str(docs), "--take", str(self.packed(
                {name: ("cuda", start, None) for name in campaign}, key=list(campaign.values())[0]))])
            return json.loads((docs / "results/campaigns.json").read_text("utf-8"))["campaigns"]

        rows = take(secret="369f8dd7")
        self.assertNotIn("key", rows["secret-h100"], "the name of a secret key is not a public key")
        self.assertFalse((docs / "results/campaigns/keys").exists())
        self.assertEqual(campaignpage.verifiable(rows).partition(":")[0],
                         "All of them were signed with a secret key before verdicts had a public one")
        rows = take(public=KEY)
        self.assertEqual(rows["public-h100"]["key"], KEY)
        # As amkc reads it: search/key_test.go has the same file.
        self.assertEqual((docs / "results/campaigns/keys" / f"{KEY[:16]}.pub").read_text("ascii"),
                         "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAgyClGXfYw4yopJJ8Zw31gh5El2GUXhXp77JqFQnSMOo=\n"
                         "-----END PUBLIC KEY-----\n")
        text = campaignpage.verifiable(rows)
        self.assertIn(f"verifies public-h100 with the public key [{KEY[:16]}.pub]"
                      f"(results/campaigns/keys/{KEY[:16]}.pub)", text)
        self.assertIn("secret-h100 were signed with a secret key", text)
        self.assertNotIn("secret key", campaignpage.verifiable({"public-h100": rows["public-h100"]}))

    def test_nothing_is_written_by_a_name_that_is_a_path(self):
        docs = self.dir / "docs"
        start = [trial("start", START, START, 1.0)]
        (docs / "results").mkdir(parents=True)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            campaignpage.main(["--docs", str(docs), "--take", str(self.packed(
                {"one": ("cuda", start, None)}, target="../../\x1b"))])
        self.assertIn("'one-../../\\x1b' is left out", said.getvalue())
        self.assertEqual(json.loads((docs / "results/campaigns.json").read_text("utf-8"))["campaigns"], {})
        self.assertEqual({f.name for f in docs.rglob("*") if f.is_file()},
                         {"campaigns.json", "campaigns.md", kept.MEASURED})

    def test_what_was_measured_is_kept(self):
        (self.dir / "docs" / "results").mkdir(parents=True)
        file = self.dir / "docs/results/campaigns" / kept.MEASURED

        def take(*args, **campaigns):
            campaignpage.main(["--take", str(self.packed({k: ("cuda", v, None) for k, v in campaigns.items()})),
                               "--docs", str(self.dir / "docs"), *args])
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

        start = trial("start", START, START, 1.0)
        self.assertEqual(len(take(one=[start], two=[start])), 2)
        lines = take(one=[start, trial("candidate", "a", START, klass="CRASH"), trial("candidate", "b", START, 2 / 3)])
        self.assertEqual([(line["campaign"], line["class"]) for line in lines],
                         [("two-h100", "PASS"), ("one-h100", "PASS"), ("one-h100", "CRASH"), ("one-h100", "PASS")])
        self.assertEqual((lines[2]["code"], lines[2].get("at")), ("AMK6011", None))
        self.assertEqual(lines[3]["at"], [{"position": 176, "us": 66.6667, "baseline_us": 100.0, "ratio": 0.666667,
                                           "predicted_us": 0.333333, "predicted_baseline_us": 1.0,
                                           "traits": {"latency": -0.666667}}])
        self.assertEqual(lines[3]["settings"], {"tiling.ring.pace": "b"})

        # One that came less far does not replace it, unless that is asked for.
        def trials():
            return json.loads((self.dir / "docs/results/campaigns.json").read_text("utf-8"))["campaigns"]["one-h100"][
                "trials"]

        report = self.dir / "docs/results/campaigns/one-h100.html"
        report.write_text("<html>of three", "utf-8")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(take(one=[start]), lines)
        self.assertIn("one-h100 is kept as it is, with 3 trials", said.getvalue())
        self.assertEqual((trials(), report.read_text("utf-8")), (3, "<html>of three"))
        self.assertEqual(len(take("--again", one=[start])), 2)
        self.assertEqual((trials(), report.read_text("utf-8")), (1, "<html>"))

        # One that was begun anew does, and beside it is the one that was set aside.
        take(one=[start, start, start])
        anew = start | {"started": "2026-02-01T00:00:00Z"}
        self.assertEqual(len(take(**{"one": [anew], "one-earlier": [start, start, start]})), 5)
        self.assertEqual(trials(), 1)
        # A pack from before that does not bring the earlier one back.
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(len(take(one=[start, start, start])), 5)
        self.assertIn("one-h100 is known as that of an earlier amkc", said.getvalue())
        self.assertEqual(trials(), 1)

    def test_pauses_between_runs_do_not_count(self):
        def at(minute, seconds):
            return {"started": f"2026-01-01T00:{minute:02}:00Z", "seconds": seconds}

        # Two at a time, a pause of some minutes, and one that begins before the other has ended.
        trials = [at(0, 60), at(0, 90), at(2, 30), at(20, 60), at(20, 30), at(21, 60)]
        self.assertEqual(campaignpage.minutes(trials), (2.5 + 2, 2))
        self.assertEqual(campaignpage.minutes([]), (0, 0))

    def test_cold_and_warm_starts_by_their_seeds(self):
        def seeded(*ratios):
            began = trial("start", START, START, 1.0)
            return {f"toy-{start}-seed{i}": ("cuda", [began, trial("candidate", "a", START, ratio, best=True,
                                                                          seconds=30)], None)
                    for start, of in zip(("cold", "warm"), ratios) for i, ratio in enumerate(of)}

        (self.dir / "docs" / "results").mkdir(parents=True)
        campaignpage.main(["--take", str(self.packed(seeded((0.6, 0.8, 0.7), (0.5, 0.5, 0.55)),
                                                     {"toy-warm-seed0": "3 hops have led to nothing",
                                                      "toy-warm-seed1": "the GPU seconds are spent: 40",
                                                      "toy-warm-seed2": "3 hops have led to nothing"})),
                           "--docs", str(self.dir / "docs")])
        text = (self.dir / "docs/campaigns.md").read_text("utf-8")
        self.assertIn("### toy, h100", text)
        # The first 30 s, and those after 40: the least that any came to is 0.5. Two have found all they can.
        self.assertIn("| cold | 3 | 100.0 % (100.0 to 100.0), 3 seeds |  |  |  |\n", text)
        self.assertIn("| 5.0 % (2.5 to 7.5), 2 seeds |\n", text)
        self.assertNotIn("| toy-cold-seed0", text, "they have a table of their own")
        self.assertEqual({p.name for p in (self.dir / "docs/results/campaigns").iterdir()},
                         {kept.MEASURED, "h100.tar.gz"}, "and no report")

    def test_trials_are_kept_without_the_key(self):
        start, more = trial("start", START, START, 1.0), trial("candidate", "a", START, 0.9)
        (self.dir / "docs" / "results").mkdir(parents=True)
        published = self.dir / "docs/results/campaigns/h100.tar.gz"

        def take(**trials):
            path = self.packed({name: ("cuda", of, None) for name, of in trials.items()})
            with tarfile.open(path.with_suffix(".key"), "w:gz") as tar:
                (self.dir / "in" / packing.KEY).write_text("secret", "utf-8")
                for file in (self.dir / "in").iterdir():
                    tar.add(file, arcname=file.name)
            campaignpage.main(["--docs", str(self.dir / "docs"), "--take", str(path.with_suffix(".key"))])
            again = self.dir / "again"
            shutil.rmtree(again, ignore_errors=True)
            packing.resume(published, again)
            return {d.name: len(packing.trials(d)) for d in again.iterdir()}

        self.assertEqual(take(one=[start], two=[start]), {"one": 1, "two": 1}, "and no key")
        self.assertEqual(take(two=[start, more], three=[start]), {"one": 1, "two": 2, "three": 1})
        bytes_then = published.read_bytes()
        self.assertEqual(take(two=[start, more]), {"one": 1, "two": 2, "three": 1})
        self.assertEqual(published.read_bytes(), bytes_then)

    def test_warm_starts_are_told_apart_by_what_has_taught_them(self):
        trials = [trial("start", START, START, 1.0), trial("candidate", "a", START, 0.5, best=True)]
        (self.dir / "docs" / "results").mkdir(parents=True)
        campaignpage.main(["--docs", str(self.dir / "docs"), "--take", str(self.packed({
            "toy-cold-seed1": ("cuda", trials, None),
            "toy-warm-seed1": ("cuda", trials, None, "a, h200", "b, h200"),
            "toy-warm-seed2": ("cuda", trials, None, "a, h100")}))])
        text = (self.dir / "docs/campaigns.md").read_text("utf-8")
        for start in ("cold", "warm, taught by a, h200; b, h200", "warm, taught by a, h100"):
            self.assertIn(f"| {start} | 1 |", text)


class Regret(unittest.TestCase):
    ROWS = [{"name": name, "model": "m", "target": "h100", "positions": [128], "cold": True, "gpu_seconds": seconds,
             "estimate": curve[-1][1], "curve": curve}
            for name, seconds, curve in (("guided", 80, [[10, 1.0], [20, 0.8], [60, 0.4]]),
                                         ("random", 70, [[10, 1.0]]))]

    def test_curves_go_as_far_as_campaigns_came(self):
        self.assertEqual(regret.curves([*self.ROWS, self.ROWS[0] | {"positions": [0]}]), [
            {"label": "m, h100, at 128, from the least clever values", "campaigns": [
                {"name": "guided", "seconds": [0, 10, 20, 60, 80], "regret": [150.0, 150.0, 100.0, 0.0, 0.0]},
                {"name": "random", "seconds": [0, 10, 70], "regret": [150.0, 150.0, 150.0]}]}])
        self.assertEqual(regret.curves(self.ROWS[:1]), [], "one by itself is compared with nothing")

    def test_a_drawing_of_other_rows_is_not_shown(self):
        rows = {r["name"]: r | {"trials": 1, "confirmed": None, "null": False, "classes": {}, "best": {},
                                "machines": ["GPU"]} for r in self.ROWS}
        path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "regret.svg"
        drawing = dataclasses.replace(campaignpage.drawings.REGRET, shows="Curves")
        self.enterContext(mock.patch.object(campaignpage.drawings, "REGRET", drawing))
        self.enterContext(mock.patch.object(type(drawing), "path", path))
        shown = []
        for digest in (None, "another", drawings.digest(regret.curves(self.ROWS))):
            if digest:
                path.write_text(f"<!-- data: {digest} -->\n<svg/>\n", "utf-8")
            shown.append("![Curves](img/regret.svg)" in campaignpage.page(rows, {}, {}))
        self.assertEqual(shown, [False, False, True])


class Committed(unittest.TestCase):
    def test_the_page_is_that_of_its_rows(self):
        docs = campaignpage.REPO / "docs"
        self.assertEqual(campaignpage.page(*campaignpage.committed(docs)), (docs / "campaigns.md").read_text("utf-8"),
                         "python3 bench/campaignpage.py")

    def test_trials_are_published_with_their_public_keys_and_without_private_ones(self):
        out = campaignpage.REPO / "docs/results/campaigns"
        rows, _, _ = campaignpage.committed(campaignpage.REPO / "docs")
        seen = 0
        for path in sorted(out.glob("*.tar.gz")):
            with tarfile.open(path) as tar:
                self.assertNotIn(packing.KEY, [Path(m.name).name for m in tar])
                for m in tar:
                    if m.name.endswith("/campaign.json"):
                        name = f"{m.name.split('/')[0]}-{path.name.removesuffix('.tar.gz')}"
                        key = kept.key_of(json.load(tar.extractfile(m)))
                        self.assertEqual(rows[name].get("key"), key, name)
                        self.assertTrue(key is None or (out / kept.key_file(key)).exists(), name)
                        seen += 1
        self.assertGreater(seen, 10)

    def test_nothing_unsafe_is_kept_or_launched(self):
        _, searches, _ = campaignpage.committed(campaignpage.REPO / "docs")
        for name in campaignpage.PUBLISHED_E3:
            self.assertEqual(searches[name]["kept_unproved"], 0)
            self.assertGreaterEqual(searches[name]["candidates"], 30, name)
        self.assertEqual((searches["faults"]["all"]["launched"], searches["faults"]["all"]["kept"]), (0, 0))


class Searches(unittest.TestCase):
    def test_candidates_are_counted_once(self):
        def of(role, id, klass, us=None, best=False):
            at = [{"candidate_us": {"median": us}, "baseline_us": {"median": 100}}]
            return {"n": 0, "role": role, "best": best, "settings": {"k": id},
                    "verdict": {"id": id, "class": klass} | ({"at": at} if us else {})}

        row = searches.judged([of("start", "s", "PASS", 100), of("candidate", "a", "PASS", 90),
                               of("candidate", "a", "PASS", 90, best=True), of("candidate", "b", "REJECTED"),
                               of("hop", "c", "PASS", 120), of("confirm", "a", "PASS", 90)], {"best_unproved": 0})
        self.assertEqual((row["candidates"], row["valid"], row["rejected"], row["kept"]), (3, 2, 1, 1))
        self.assertAlmostEqual(row["gain"], 100 / 90)

    def test_faults_are_added_up_and_no_model_twice(self):
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        files = []
        for i, model in enumerate(("a", "b", "b")):
            count = {"operator": "drop", "made": 3, "rejected": 2, "failed": 1, "harmless": 0, "launched": 0, "kept": i}
            files.append(directory / f"{i}.json")
            files[-1].write_text(json.dumps({"models": [model], "seeds": 1, "operators": [count]}), "utf-8")
        row = searches.faults(files[:2])
        self.assertEqual((row["models"], row["all"]["made"], row["all"]["kept"]), (["a", "b"], 6, 1))
        with self.assertRaises(SystemExit):
            searches.faults(files)
        text = "\n".join(campaignpage.without_gpu({"faults": row}))
        self.assertIn("| drop | 6 | 4 | 2 | 0 | 0 | 1 |", text)
        self.assertIn("Kept of the rejected and of those", text)


if __name__ == "__main__":
    unittest.main()
