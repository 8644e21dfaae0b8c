"""Tests of the list of phrases: each is found where it is wrong, and correct English is not refused."""

import unittest

import check_phrases

REFUSED = (
    "SMs hand over a row", "handed over", "it hands its own over", "a pass of so many tokens", "chooses by itself",
    "they run by themselves", "kept beside the ring", "the token behind the prompt", "norms stand behind the sums",
    "weights lie in memory", "vectors lie on the page", "a launch that was given up", "gives the lock up",
    "Whoever reads it", "in the way of OpenAI's API", "for want of a fence", "a look-up of two ids",
    "each row of a pass", "a name that is none of those", "what is no number", "in the place of a token",
    "the task at hand", "which is no index", "runs of which there are three", "by way of a link", "waits for ever",
    "a copy is under way", "drafts that come to nothing", "it hands on the token", "the handover of a vector",
    "logits that are none", "packed anew", "it carries the op out", "rows are dealt out to splits",
    "logits are held to those of the kernel",
)
ACCEPTED = (
    "he handed the over-long list back", "so many that the ring is full", "so many tasks here that it takes seconds",
    "besides the ring", "it leaves nothing behind", "the library behind nvidia-smi", "an SM gave up waiting",
    "it lies inside the buffer", "none of these", "something in the way of the step", "what is no longer there",
    "rows of a pass", "with the facts at hand", "which lies between two words", "gave it up", "looks up a name",
    "counters that there are none of, and", "the operator append-beside-pos",
    "that is no longer so", "there is no index", "on its way", "hands on",
    "where there is none", "words that carry an epoch", "the slot is held", "held to the end",
)


class Phrases(unittest.TestCase):
    def faults(self, text, path="docs/x.md"):
        return [(line, phrase) for line, phrase, _ in check_phrases.found(path, text)]

    def test_each_is_refused(self):
        used = set()
        for text in REFUSED:
            hits = [k for k, (pattern, _) in enumerate(check_phrases.LIST) if pattern.search(text)]
            self.assertEqual(len(hits), 1, text)
            self.assertEqual(len(self.faults(f"A line.\n{text}\n")), 1, text)
            used.update(hits)
        self.assertEqual(used, set(range(len(check_phrases.LIST))), "each phrase has an example")

    def test_correct_english_is_not(self):
        for text in ACCEPTED:
            self.assertEqual(self.faults(text), [], text)

    def test_where_it_looks_in_go(self):
        source = ("package p\n\n// beside is a name. It lies\n// beside x,\n// at hand\nvar beside = 1 // beside\n"
                  'const text = "a row " +\n\t"by " +\n\t"itself"\nvar raw = `\nhanded\nover`\n'
                  'type t struct {\n\tb int `json:"beside" help:"beside"`\n}\n')
        self.assertEqual(self.faults(source, "p/x.go"),
                         [(4, "beside"), (6, "beside"), (8, "by\vitself".replace("\v", " ")), (11, "handed over"),
                          (14, "beside")])

    def test_where_it_looks_in_documents_and_headers(self):
        text = "# A\n\n```\nbeside\n```\n`beside` [a](x.md#by-itself), by\nitself\n\n[b]: x.md#look-up \"t\"\n"
        self.assertEqual(self.faults(text), [(6, "by itself")])
        self.assertEqual(self.faults("// by itself\nint beside; // beside\n", "runtime/cuda/amk/x.cuh"),
                         [(1, "by itself"), (2, "beside")])

    def test_what_is_exempt(self):
        for path, scanned in (("docs/ir.md", True), ("ir/ir.go", True), ("docs/results/README.md", False),
                              ("docs/results/campaigns.md", False), ("ir/testdata/x.md", False), ("bench/x.py", False),
                              ("runtime/cuda/amk/ring.cuh", True), ("templates/stages.h.tmpl", True)):
            self.assertEqual(check_phrases.scanned(path), scanned, path)


if __name__ == "__main__":
    unittest.main()
