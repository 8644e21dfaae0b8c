"""Tests of how bench/campaigns.py shares GPUs out, resumes, packs and stops, with an amkc that only looks like one."""

import contextlib
import dataclasses
import io
import json
import os
import sys
import tarfile
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import alone
import campaigns
import machine
import packing
import running

# amkc whose searches add a trial; behaviour is added by files beside it.
AMKC = """\
    #!{python} -IS
    import json, os, pathlib, sys, time
    here, args = pathlib.Path(__file__).parent, sys.argv[1:]
    def after(flag): return args[args.index(flag) + 1]
    source = (here / "source").read_text() if (here / "source").exists() else "of now"
    verb = args[0] if args[0] != "campaign" else " ".join(args[:2])
    with open(here / "calls", "a") as f: f.write(json.dumps([os.environ.get("CUDA_VISIBLE_DEVICES")] + args) + "\\n")
    out = pathlib.Path(after("-o") if verb == "search" else args[2] if verb.startswith("campaign") else ".")
    if verb == "search":
        while (here / "meets").exists() and len((here / "calls").read_text().splitlines()) < 3: time.sleep(0.05)
        if (here / "slow").exists(): time.sleep(60)
        if (here / "broken").exists(): print(json.dumps({{"errors": [{{"message": "no GPU"}}]}})); sys.exit(2)
        out.mkdir(exist_ok=True)
        key = pathlib.Path(after("--key"))
        if not key.exists(): key.write_text(str(key))
        (out / "campaign.json").write_text(json.dumps({{"source": source}}))
        with open(out / "trials.jsonl", "a") as f: f.write('{{"verdict": {{"gpu_seconds": 7}}}}\\n')
        stop = (here / "stop").read_text() if (here / "stop").exists() else "the time is up"
        print(json.dumps({{"stop": stop, "estimate": 0.5, "confirmed": None, "held_out": None,
                           "soundness": {{"trials": 1, "classes": {{"PASS": 1}}}}}}))
    elif verb == "campaign learn":
        pathlib.Path(args[2]).write_text("".join(json.dumps({{"model": os.path.basename(a), "target": "h200" if
            "taught-by" in a else "h100"}}) + "\\n" for a in args[3:args.index("--key")]))
        print("{{}}")
    elif verb == "campaign status":
        print(json.dumps({{"best": {{"tiling.ring.pace": 600, "page_allocation": "none"}}}}))
    elif verb == "eval" and "--config" not in args: print(json.dumps({{"verdict": {{"source": source}}}}))
    elif verb == "eval":
        config = json.loads(pathlib.Path(after("--config")).read_text())
        print(json.dumps({{"verdict": {{"class": "PASS", "settings": {{"tiling.ring.pace": 600,
            "page_allocation": "none"}}, "config": config, "ratio": {{"mean": 0.99}}}}}}))
"""


class Campaigns(unittest.TestCase):
    def setUp(self):
        self.tools = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.work = Path(self.enterContext(tempfile.TemporaryDirectory()))
        amkc = self.tools / "amkc"
        amkc.write_text(textwrap.dedent(AMKC).format(python=sys.executable), encoding="utf-8")
        amkc.chmod(0o755)
        self.enterContext(contextlib.chdir(os.getcwd()))
        self.root = running.ROOT
        self.enterContext(mock.patch.object(running, "ROOT", self.tools / "checkout"))

    def run_it(self, *args, budget="30", work=None):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = campaigns.main(["--tools", str(self.tools), "--device", "cost", "--target", "h100", "--budget",
                                   budget, "--work", str(work or self.work), "--out", str(work or self.work), *args])
        return code, out.getvalue()

    def calls(self, verb):
        lines = (self.tools / "calls").read_text(encoding="utf-8").splitlines()
        return [c for c in map(json.loads, lines) if c[1] == verb]

    def end_at_once(self):
        (self.tools / "stop").write_text("3 hops have led to nothing", encoding="utf-8")

    def test_each_gpu_has_a_campaign_and_ended_ones_are_left(self):
        self.end_at_once()
        code, said = self.run_it("--gpus", "2,5", budget="70")
        self.assertEqual(code, 0, said)
        searches = self.calls("search")
        self.assertEqual(len(searches), len(campaigns.CAMPAIGNS), "each once: it has ended then")
        self.assertEqual({c[0] for c in searches}, {"2", "5"})
        code, said = self.run_it("--gpus", "2,5", budget="70")
        self.assertEqual(len(self.calls("search")), len(campaigns.CAMPAIGNS), "and no more in another run")

    def test_one_with_nothing_to_confirm_goes_on_in_the_time_for_that(self):
        code, said = self.run_it("--only", "smollm2-135m", budget="62")
        self.assertEqual(code, 0, said)
        first, second = (float(c[c.index("--minutes") + 1]) * 60 for c in self.calls("search")[:2])
        self.assertAlmostEqual(first, 62 - 10 - running.CLOSING["cost"], delta=2)
        self.assertAlmostEqual(second, 62 - 10 - campaigns.CLOSING_NULL["cost"], delta=4)

    def test_one_with_gpu_seconds_has_all_of_the_time(self):
        self.end_at_once()
        self.run_it("--only", "smollm2-135m-cold-seed1", "--share", "7", budget="62")
        search, = self.calls("search")
        minutes = float(search[search.index("--minutes") + 1])
        self.assertAlmostEqual(minutes * 60, 62 - 10 - campaigns.CLOSING_SEEDED, delta=2)

    def test_one_begins_where_it_says(self):
        self.end_at_once()
        self.run_it("--only", "qwen2.5-1.5b-from-16-splits", "--only", "qwen2.5-1.5b-far", budget="70")
        begun = {c[c.index("--tag") + 1]: c[c.index("--config") + 1] if "--config" in c else None
                 for c in self.calls("search")}
        self.assertIsNone(begun["qwen2.5-1.5b-far"])
        config = json.loads(Path(begun["qwen2.5-1.5b-from-16-splits"]).read_text(encoding="utf-8"))
        self.assertEqual(config, {"tiling": {"attention": {"max_splits": 16}}})

    def test_the_best_of_a_cold_one_is_measured_against_the_defaults(self):
        self.end_at_once()
        self.run_it("--only", "qwen3-0.6b-cold", "--only", "smollm2-135m", budget="70")
        self.assertEqual(len(self.calls("eval")), 1)
        against = json.loads((self.work / "qwen3-0.6b-cold" / "against.json").read_text(encoding="utf-8"))
        self.assertEqual(against["verdict"]["config"], {"tiling": {"ring": {"pace": 600}}, "page_allocation": "none"})
        self.assertNotIn("--baseline", self.calls("eval")[0])

    def test_warm_ones_are_taught_by_other_models(self):
        self.end_at_once()
        self.run_it("--only", "qwen3-0.6b-cold", budget="70")
        (self.tools / "stop").write_text(campaigns.SPENT, encoding="utf-8")
        code, said = self.run_it("--only", "smollm2-135m-*-seed?", budget="70")
        self.assertEqual(code, 0, said)
        searches = self.calls("search")[1:]
        self.assertEqual(len(searches), 18, "each once: it has ended when its seconds are spent")
        self.assertEqual(len(self.calls("eval")), 1, "seeds are not measured against the defaults")
        for c in searches:
            seed = c[c.index("--seed") + 1]
            self.assertTrue(c[c.index("-o") + 1].endswith(f"-seed{seed}"))
            self.assertEqual(c[c.index("--gpu-seconds") + 1], str(campaigns.SEEDED_SECONDS))
            warm = "-warm-" in c[c.index("-o") + 1]
            self.assertEqual(("--corpus" in c, "prior" in c, "cost" in c[:c.index("--device")]),
                             (warm, warm, not warm))
            if warm:
                corpus = Path(c[c.index("--corpus") + 1])
                self.assertEqual(corpus.read_text(encoding="utf-8"),
                                 '{"model": "qwen3-0.6b-cold", "target": "h100"}\n', "those that there are")

    def test_warm_ones_are_taught_by_another_gpu(self):
        self.end_at_once()
        self.run_it("--only", "qwen3-0.6b-cold", "--only", "llama-3.2-1b-cold", "--only", "smollm2-135m", "--gpus",
                    "0,1,2", budget="70")
        file = self.work / packing.PACKED
        seeds = ("--only", "smollm2-135m-*-seed1", "--gpus", "0,1", "--taught-by", str(file))
        new = Path(self.enterContext(tempfile.TemporaryDirectory()))
        code, said = self.run_it(*seeds, budget="70", work=new)
        self.assertEqual(code, 0, said)
        warm = new / "smollm2-135m-warm-seed1"
        taught = ["llama-3.2-1b-cold, h200", "qwen3-0.6b-cold, h200"]
        self.assertEqual(json.loads((warm / "taught.json").read_text("utf-8")), taught, "and not by smollm2-135m")
        self.assertFalse((new / "smollm2-135m-cold-seed1" / "taught.json").exists())
        self.assertEqual((new / "verdict.key").read_text("utf-8"), str(self.work / "verdict.key"), "it is taken over")
        with tarfile.open(new / packing.PACKED) as tar:
            names = tar.getnames()
        self.assertEqual([n for n in names if "taught-by" in n and not n.endswith(".corpus")], [], "no teacher")
        self.assertIn("smollm2-135m-warm-seed1/taught.json", names)

        # Elsewhere the next seeds go on with the corpus that was packed: each prior has learnt from the same.
        code, said = self.run_it("--only", "smollm2-135m-warm-seed2", "--resume", str(new / packing.PACKED),
                                 "--taught-by", str(file), budget="70", work=self.tools / "third")
        self.assertEqual(code, 0, said)
        self.assertEqual(len([c for c in self.calls("campaign") if c[2] == "learn"]), 1)
        self.assertEqual(json.loads((self.tools / "third/smollm2-135m-warm-seed2/taught.json").read_text("utf-8")),
                         taught)

        # Teachers of this work directory teach besides.
        self.run_it("--only", "qwen3-0.6b-far", "--resume", str(file), budget="70", work=self.tools / "fourth")
        self.run_it(*seeds, budget="70", work=self.tools / "fourth")
        self.assertEqual(json.loads((self.tools / "fourth/smollm2-135m-warm-seed1/taught.json").read_text("utf-8")),
                         ["llama-3.2-1b-cold, h100", taught[0], "qwen3-0.6b-cold, h100", taught[1],
                          "qwen3-0.6b-far, h100"])

    def test_another_gpu_teaches_by_what_it_has_taught_by_there(self):
        self.end_at_once()
        self.run_it("--only", "qwen3-0.6b-cold", budget="70")
        self.run_it("--only", "smollm2-135m-warm-seed1", budget="70")
        self.run_it("--only", "llama-3.2-1b-cold", budget="70")  # which has taught nobody there
        new = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.run_it("--only", "smollm2-135m-warm-seed2", "--taught-by", str(self.work / packing.PACKED), budget="70",
                    work=new)
        learnt = [c for c in self.calls("campaign") if c[2] == "learn"][-1]
        self.assertEqual([Path(p).suffix for p in learnt[4:learnt.index("--key")]], [".corpus"])

    def test_what_has_taught_nothing_yet_is_gathered_anew(self):
        self.end_at_once()

        def taught(seed):
            return json.loads((self.work / f"smollm2-135m-warm-seed{seed}" / "taught.json").read_text("utf-8"))

        self.run_it("--only", "qwen3-0.6b-cold", budget="70")
        (self.tools / "broken").touch()
        self.run_it("--only", "smollm2-135m-warm-seed1", budget="70")
        (self.tools / "broken").unlink()
        self.assertEqual(taught(1), ["qwen3-0.6b-cold, h100"])
        self.run_it("--only", "llama-3.2-1b-cold", budget="70")
        self.run_it("--only", "smollm2-135m-warm-seed1", budget="70")
        both = ["llama-3.2-1b-cold, h100", "qwen3-0.6b-cold, h100"]
        self.assertEqual(taught(1), both)
        # It has begun: the others are taught by the same, whatever there is besides.
        self.run_it("--only", "qwen3-0.6b-far", budget="70")
        self.run_it("--only", "smollm2-135m-warm-seed2", budget="70")
        self.assertEqual(taught(2), both)

    def test_teachers_with_another_key_are_refused(self):
        self.end_at_once()
        self.run_it("--only", "qwen3-0.6b-cold", budget="70")
        new = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (new / "verdict.key").write_text("another", encoding="utf-8")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code, _ = self.run_it("--only", "smollm2-135m-warm-seed1", "--taught-by", str(self.work / packing.PACKED),
                                  work=new)
        self.assertEqual(code, 2)
        self.assertIn("another key", said.getvalue())
        self.assertEqual((new / "verdict.key").read_text("utf-8"), "another")

    def packed(self, *names):
        """A pack of such files, and a link."""
        path = self.tools / "foreign.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = len(b"foreign")
                tar.addfile(info, io.BytesIO(b"foreign"))
            info = tarfile.TarInfo("a/report.html")
            info.type, info.linkname = tarfile.SYMTYPE, "../tools/amkc"
            tar.addfile(info)
        return path

    def test_a_pack_writes_nothing_but_campaigns(self):
        wanted = ["a/campaign.json", "a/ended", "a/experiments/1.verdict.json", "a/experiments/12.txt",
                  "a/made/x.json", "a/taught.json", "a/trials.jsonl", "verdict.key", "x.corpus"]
        unwanted = ["tools/amkc", "cache/x.so", "a/run.sh", "a/made/x.so", "a/made/b/x.json", "b/trials.jsonl", "x.py",
                    "b/made/campaign.json", "a/../tools/amkc", "../campaign.json", "a/experiments/x.verdict.json",
                    "a/experiments/1.sh"]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            packing.resume(self.packed(*wanted, *unwanted), self.work)
        self.assertEqual(sorted(str(f.relative_to(self.work)) for f in self.work.rglob("*") if not f.is_dir()), wanted)
        for name in (*unwanted, "a/report.html"):
            self.assertIn(name, said.getvalue())

    def test_teachers_without_a_key_are_refused(self):
        for file, says in ((self.packed("a/campaign.json"), "has no verdict.key"), (self.tools / "amkc", "file"),
                           (self.tools / "none.tar.gz", "No such file")):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                code, _ = self.run_it("--only", "smollm2-135m-warm-seed1", "--taught-by", str(file))
            self.assertEqual(code, 2)
            self.assertIn(says, said.getvalue())
            self.assertFalse((self.work / "verdict.key").exists())

    def test_the_one_for_a_night_goes_on(self):
        self.run_it("--only", "*-overnight", "--slice", "40", budget="62")
        call = self.calls("search")[0]
        self.assertIn("--overnight", call)
        self.assertEqual(call[call.index("--position") + 1], "128,2048")
        self.assertNotIn("--cold", call)

    def test_what_is_packed_goes_on_elsewhere(self):
        self.run_it("--only", "smollm2-135m", "--slice", "40", budget="62")
        done = len(packing.trials(self.work / "smollm2-135m"))
        self.assertGreater(done, 0)
        with tempfile.TemporaryDirectory() as other, tarfile.open(self.work / packing.PACKED) as tar:
            self.assertIn("verdict.key", tar.getnames())
            self.assertIn("smollm2-135m/trials.jsonl", tar.getnames())
            self.end_at_once()
            code, said = self.run_it("--only", "smollm2-135m", "--resume", str(self.work / packing.PACKED),
                                     budget="70", work=other)
            self.assertEqual(code, 0, said)
            self.assertEqual(len(packing.trials(Path(other) / "smollm2-135m")), done + 1)
            # What has gone further stays.
            packing.resume(self.work / packing.PACKED, Path(other))
            self.assertEqual(len(packing.trials(Path(other) / "smollm2-135m")), done + 1)

    def test_one_of_another_amkc_is_set_aside_and_begun_anew(self):
        for source, there in (("one", []), ("one", []), ("two", ["-earlier"]), ("three", ["-earlier", "-earlier2"])):
            (self.tools / "source").write_text(source, encoding="utf-8")
            code, said = self.run_it("--only", "smollm2-135m", "--slice", "40", budget="62")
            self.assertEqual(code, 0, said)
            self.assertEqual(sorted(d.name for d in self.work.glob("smollm2-135m?*")),
                             [f"smollm2-135m{name}" for name in there])
            of = json.loads((self.work / "smollm2-135m" / "campaign.json").read_text(encoding="utf-8"))
            self.assertEqual(of["source"], source)
        self.assertEqual(json.loads((self.work / "smollm2-135m-earlier/campaign.json").read_text())["source"], "one")
        with tarfile.open(self.work / packing.PACKED) as tar:
            self.assertIn("smollm2-135m-earlier/trials.jsonl", tar.getnames())

    def test_what_is_published_goes_on_with_the_key(self):
        self.run_it("--only", "smollm2-135m", "--slice", "40", budget="62")
        done = len(packing.trials(self.work / "smollm2-135m"))
        published = self.tools / "published.tar.gz"
        packing.record(self.work, published)
        other, key = self.tools / "other", self.work / packing.KEY
        self.end_at_once()
        code, said = self.run_it("--only", "smollm2-135m", "--resume", str(published), "--key", str(key), budget="70",
                                 work=other)
        self.assertEqual(code, 0, said)
        self.assertEqual(len(packing.trials(other / "smollm2-135m")), done + 1)
        self.assertEqual((other / packing.KEY).read_text("utf-8"), key.read_text("utf-8"))
        for wrong, says in ((published, "is another key than"), (self.tools / "none", "No such file")):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                code, _ = self.run_it("--only", "smollm2-135m", "--key", str(wrong), work=other)
            self.assertEqual(code, 2)
            self.assertIn(says, said.getvalue())

    def test_a_campaign_that_is_to_have_more_seconds_goes_on(self):
        (self.tools / "stop").write_text(campaigns.SPENT, encoding="utf-8")
        of = [c for c in campaigns.CAMPAIGNS if c.name.endswith("-cold-seed1")]
        for seconds, calls in ((60, 1), (60, 1), (120, 2), (120, 2)):
            more = tuple(dataclasses.replace(c, gpu_seconds=seconds) for c in of)
            with mock.patch.object(campaigns, "CAMPAIGNS", more):
                self.run_it(budget="70")
            self.assertEqual(len(self.calls("search")), calls)

    def test_the_shortest_is_next(self):
        for name, n in (("qwen3-0.6b-cold", 3), ("llama-3.2-1b-cold", 1), ("qwen3-0.6b-far", 2)):
            (self.work / name).mkdir()
            (self.work / name / "trials.jsonl").write_text('{"verdict": {"gpu_seconds": 7}}\n' * n + '{"ver', "utf-8")
        args = campaigns.parse(["--only", "*-cold", "--only", "qwen3-0.6b-far", "--target", "h100", "--gpus", "0"])
        args.work = self.work
        shop = campaigns.Shop(args, self.tools / "amkc")
        self.assertEqual([shop.next().name for _ in range(3)], ["llama-3.2-1b-cold", "qwen3-0.6b-far",
                                                                "qwen3-0.6b-cold"])
        self.assertIsNone(shop.next(), "all are being worked on")

    def test_campaigns_that_share_a_gpu_take_it_in_turns(self):
        args = campaigns.parse(["--target", "h100", "--gpus", "0,1", "--share", "3", "--work", str(self.work)])
        shop = campaigns.Shop(args, self.tools / "amkc")
        self.assertEqual(shop.judge(0), shop.judge(0))
        self.assertNotEqual(shop.judge(0), shop.judge(1))
        self.assertIn("--turn", shop.judge(0))
        self.assertGreater(shop.closing(), campaigns.CLOSING["cuda"], "they wait for each other in the end")
        self.assertLessEqual(args.jobs, max(2, os.cpu_count() // 6))
        # Three at a time, each once: all of them are under way before the first one ends.
        (self.tools / "meets").write_text("3", encoding="utf-8")
        self.end_at_once()
        code, said = self.run_it("--gpus", "4", "--share", "3", "--only", "smollm2-135m", "--only", "pycoder-5m",
                                 "--only", "qwen3-0.6b-far", budget="70")
        self.assertEqual(code, 0, said)
        self.assertEqual([c[0] for c in self.calls("search")], ["4"] * 3)

    def test_what_fails_is_said_and_left(self):
        (self.tools / "broken").touch()
        code, said = self.run_it("--only", "smollm2-135m", "--only", "pycoder-5m", budget="70")
        self.assertEqual(code, 1)
        self.assertIn("smollm2-135m: amkc search failed", said)
        self.assertIn("no GPU", said)
        self.assertEqual(len(self.calls("search")), 2)

    def test_a_run_ends_in_time_whatever_amkc_does(self):
        (self.tools / "slow").touch()
        self.enterContext(mock.patch.dict(campaigns.CLOSING, cost=0))
        self.enterContext(mock.patch.object(campaigns, "LEAST", 0))
        code, said = self.run_it("--only", "smollm2-135m", budget="12")
        self.assertEqual(code, 0, said)
        self.assertIn("it took too long", said)

    def test_random_ones_differ_in_who_proposes_alone(self):
        by_name = {c.name: c for c in campaigns.CAMPAIGNS}
        random = [c for c in campaigns.CAMPAIGNS if c.name.endswith("-random")]
        self.assertEqual(len(random), 2)
        for c in random:
            guided = by_name[c.name.removesuffix("-random")]
            self.assertEqual(c.flags, ("--cold", "--proposer", "random"))
            self.assertEqual(dataclasses.replace(c, name=guided.name, flags=("--cold", *campaigns.GUIDED)), guided)

    def test_another_run_is_kept_from_its_directory_and_another_checkout_from_its_models(self):
        for held, says in ((alone.sole_use(self.work), "is in use by another invocation"),
                           (alone.leading(running.ROOT, "/elsewhere"), "leads to /elsewhere, and an invocation")):
            with held, contextlib.redirect_stderr(io.StringIO()) as err:
                code, _ = self.run_it("--only", "smollm2-135m")
            self.assertEqual(code, 2)
            self.assertIn(says, err.getvalue())
        self.assertFalse((self.tools / "calls").exists(), "nothing was run")
        self.run_it("--only", "smollm2-135m", "--slice", "40", budget="62")
        self.assertEqual(os.readlink(running.ROOT), str(machine.REPO))
        self.assertEqual(Path(self.calls("search")[0][2]), running.ROOT / "testdata/configs/smollm2-135m")

    def test_models_are_where_campaigns_that_were_kept_say(self):
        with tarfile.open(machine.REPO / "docs/results/campaigns/h200.tar.gz") as tar:
            begun = next(m for m in tar if m.name.endswith("/campaign.json"))
            command = json.load(tar.extractfile(begun))["command"]
        self.assertTrue(Path(command[0]).is_relative_to(self.root), "they go on from there alone")

    def test_no_such_campaign(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            campaigns.parse(["--only", "nothing", "--target", "h100"])


if __name__ == "__main__":
    unittest.main()
