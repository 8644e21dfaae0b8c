"""Tests of rolling_restart.py."""

import json
import unittest

import rolling_restart


class Texts(unittest.TestCase):
    def test_the_same_whole_and_in_a_stream(self):
        whole = json.dumps({"choices": [{"index": 1, "text": "b", "finish_reason": "stop"},
                                        {"index": 0, "message": {"content": "ac"}, "finish_reason": "length"}]})
        parts = [(0, "a", None), (1, "b", None), (0, "c", None), (1, "", "stop"), (0, "", "length")]
        stream = ": ping\n\n" + "".join("data: " + json.dumps({"choices": [
            {"index": i, "delta": {"content": said}, "finish_reason": end}]}) + "\n\n" for i, said, end in parts)
        texts = [(0, "ac", "length"), (1, "b", "stop")]
        self.assertEqual(rolling_restart.text_of(whole, False), texts)
        self.assertEqual(rolling_restart.text_of(stream + "data: [DONE]\n\n", True), texts)

    def test_a_stream_that_is_cut_is_a_failure(self):
        with self.assertRaisesRegex(ValueError, "the stream is cut"):
            rolling_restart.text_of('data: {"choices": []}\n\n', True)

    def test_questions_differ(self):
        asked = list(rolling_restart.questions())
        self.assertEqual(len(set(asked)), 16)
        for _, body in asked:
            json.loads(body)


if __name__ == "__main__":
    unittest.main()
