"""Tests of what scripts of bench say where files are damaged or arguments make no sense (numpy, and what bench imports,
alone)."""

import contextlib
import io
import json
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answers
import campaignpage
import experiments
import report
import results
import searches
from test_results import HERE, row


def said(main, *args):
    """The exit code of a script, and what it prints on stderr, in one line."""
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(list(map(str, args)))
        except SystemExit as e:
            code = e.code
    return code, " ".join(err.getvalue().split())


class Damaged(unittest.TestCase):
    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.dir / "h200.json"

    def test_a_damaged_file_is_named_with_the_place(self):
        good = {"schema": "amkc.results/1", "environments": {"A": HERE}}
        bad = row("bench/a") | {"environment": "B"}
        for text, says in (('{"schema":\n', ":2:1: Expecting value; want JSON"), ("[]", "it has a list; want"),
                           ("\udcff", "byte 0 is no UTF-8"),
                           ('{"schema": "amkc.results/1"}', "KeyError: 'environments'; want environments by letter"),
                           (json.dumps(good | {"rows": [{}]}), "KeyError: 'id'; want"),
                           (json.dumps(good | {"rows": [bad]}), "row bench/a: want one of the environments"),
                           (json.dumps(good | {"rows": 5}), "TypeError: .*; want"),
                           ('{"schema": "amkc.results/2"}', "'amkc.results/2'; 'amkc.results/1' is needed")):
            self.path.write_bytes(text.encode("utf-8", "surrogateescape"))
            with self.assertRaisesRegex(report.Damaged, f"^{self.dir}/h200.json.*{says}"):
                report.Store(self.path)
            for main, name, *args in ((results.main, "results", "--render", "--out", self.dir),
                                      (results.main, "results", "--merge", self.path, "--out", self.dir / "other"),
                                      (experiments.main, "experiments", "--render", "--out", self.path),
                                      (experiments.main, "experiments", "--only", "soundness/rates", "--out",
                                       self.path)):
                code, words = said(main, *args)
                self.assertEqual(code, 2, words)
                self.assertTrue(words.startswith(f"{name}.py: error: {self.path}:"), words)
        code, words = said(results.main, "--out", self.dir / "x", "--merge", self.dir)
        self.assertEqual((code, words), (2, f"results.py: error: {self.dir}: Is a directory; want a file of JSON"))

    def test_so_is_what_rows_of_searches_are_kept_in(self):
        (self.dir / "results").mkdir()
        store, piece = self.dir / "results/searches.json", self.dir / "piece.json"
        store.write_text("[]", encoding="utf-8")
        code, words = said(searches.main, "--docs", self.dir, "--faults", piece)
        self.assertEqual(code, 2)
        self.assertIn(f"error: {store}: it has a list; want an object", words)
        with self.assertRaisesRegex(report.Damaged, f"^{store}: it has a list"):
            answers.Results(self.dir / "results", report.Store(self.dir / "none.json"))
        store.unlink()
        piece.write_text('{"models": []', encoding="utf-8")
        code, words = said(searches.main, "--docs", self.dir, "--faults", piece)
        self.assertEqual(code, 2)
        self.assertIn(f"error: {piece}:1:14: Expecting ',' delimiter; want JSON", words)

    def test_so_is_what_the_page_of_campaigns_is_made_of(self):
        (self.dir / "results").mkdir()
        (self.dir / "results/campaigns.json").write_text('{"schema":', encoding="utf-8")
        code, words = said(campaignpage.main, "--docs", self.dir)
        self.assertEqual(code, 2)
        self.assertIn(f"campaignpage.py: error: {self.dir}/results/campaigns.json:1:11: Expecting value", words)

    def test_and_a_pack_that_is_none(self):
        no_pack, cut = self.dir / "no.tar.gz", self.dir / "cut.tar.gz"
        no_pack.write_text("no archive", encoding="utf-8")
        with tarfile.open(cut, "w:gz") as tar:
            tar.add(__file__, "a/campaign.json")
        cut.write_bytes(cut.read_bytes()[:-200])
        for file in (no_pack, cut, self.dir / "none.tar.gz", self.dir):
            code, words = said(campaignpage.main, "--docs", self.dir / "docs", "--take", file)
            self.assertEqual(code, 2, words)
            self.assertRegex(words, f"^campaignpage.py: error: {file} cannot be unpacked: .*; want what bench/camp")


class Usage(unittest.TestCase):
    def test_bad_usage(self):
        for args, says in ((("--gpus", "0,x"), "argument --gpus: '0,x': want numbers of GPUs"),
                           (("--gpus", "0,0"), "each once"), (("--budget", "0"), "want seconds, more than 0"),
                           (("--budget", "-5"), "want seconds, more than 0"),
                           (("--merge", "a", "--name", "b", "--list"), "makes no rows, and --list, --name would"),
                           (("--merge", "a", "--section", "bench", "--only", "x"), "--section, --only would"),
                           (("--merge", "a", "--render"), "--render would")):
            code, words = said(results.main, *args)
            self.assertEqual(code, 2)
            self.assertIn(says, words)

    def test_an_empty_selection(self):
        for script, main in (("results", results.main), ("experiments", experiments.main)):
            for more in ([], ["--list"]):
                self.assertEqual(said(main, "--only", "nothing", *more),
                                 (2, f"{script}.py: error: no row is selected; --list prints all ids"))


if __name__ == "__main__":
    unittest.main()
