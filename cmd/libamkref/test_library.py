"""Tests of amk.h and of the Python package, through libamkref.so: the same functions, on the reference VM.

`make library` runs them, with the library in AMK_LIBRARY; nothing of it is ever skipped. With libamk.so there, and a
build of pycoder-5m in AMK_MODEL, the examples of docstrings and those of Package run on a GPU.
"""

import array
import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAPI = os.path.join(ROOT, "app", "library", "capi")
PACKAGE = os.path.join(ROOT, "app", "python")
CHECKPOINT = os.path.join(ROOT, "testdata", "models", "pycoder-5m")
MODEL = os.path.abspath(os.environ.get("AMK_MODEL", CHECKPOINT))
LIBRARY = os.path.abspath(os.environ["AMK_LIBRARY"])
os.environ["AMK_LIBRARY"] = LIBRARY  # the examples change the working directory
PROMPT = "def fibonacci(n):"
sys.path[:0] = [PACKAGE, os.path.join(ROOT, "bench")]

import amk  # noqa: E402
import spoken  # noqa: E402
from amk import _library  # noqa: E402


def compile_c(source, out, *flags, compiler="gcc"):
    """Compiles a program against amk.h, warnings as errors, and links it with the library."""
    language = ["-x", "c++", "-std=c++17"] if compiler == "g++" else ["-std=c99"]
    subprocess.run([compiler, *language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, "-I", CAPI, "-o", out,
                    source, "-x", "none", LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)], check=True)


def embedding_table():
    """The embedding table of CHECKPOINT, a row of float32 for each token, from bfloat16."""
    with open(os.path.join(CHECKPOINT, "model.safetensors"), "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        about = json.loads(f.read(size))["model.embed_tokens.weight"]
        f.seek(8 + size + about["data_offsets"][0])
        bits = array.array("H", f.read(about["data_offsets"][1] - about["data_offsets"][0]))
    (rows, columns), floats = about["shape"], array.array("f")
    floats.frombytes(array.array("I", [b << 16 for b in bits]).tobytes())
    return [floats[row * columns:(row + 1) * columns] for row in range(rows)]


class Examples(unittest.TestCase):
    """The examples that documentation has."""

    def test_docstrings(self):
        written = 0
        for name in os.listdir(os.path.join(PACKAGE, "amk")):
            if name.endswith(".py"):
                with open(os.path.join(PACKAGE, "amk", name), encoding="utf-8") as f:
                    written += sum(line.lstrip().startswith(">>> ") for line in f)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as work, amk.Model(MODEL) as model:
            os.symlink(MODEL, os.path.join(work, "build"))
            os.chdir(work)
            try:
                tried = 0
                for name in ("amk", *(f"amk.{m.name}" for m in pkgutil.iter_modules(amk.__path__))):
                    module = importlib.import_module(name)
                    shown = amk.Model("build")
                    result = doctest.testmod(module, globs={"amk": amk, "model": shown})
                    shown.close()
                    self.assertEqual(result.failed, 0)
                    tried += result.attempted
                self.assertEqual(tried, written, "examples that doctest does not find")
                self.assertGreater(tried, 20)
            finally:
                os.chdir(before)

    def test_manual(self):
        """The examples of docs/library.md, of a model with a chat template, and of few tokens."""
        with open(os.path.join(ROOT, "docs", "library.md"), encoding="utf-8") as f:
            examples = re.findall(r"(?ms)^```python\n(.*?)^```$", f.read())
        self.assertEqual(len(examples), 2)
        opened = []

        class Short(amk.Model):
            def __init__(self, *args):
                super().__init__(*args)
                opened.append(self)

            def generate(self, prompt, **options):
                return super().generate(prompt, **{**options, "max_tokens": 6})

        before, out = os.getcwd(), io.StringIO()
        names = {"frames": [[0.25] * 256] * 3, "head": len, "numpy": types.SimpleNamespace(asarray=memoryview)}
        with tempfile.TemporaryDirectory() as work:
            spoken.make(CHECKPOINT, os.path.join(work, "build"))
            os.chdir(work)
            try:
                with mock.patch.object(amk, "Model", Short), contextlib.redirect_stdout(out):
                    for example in examples:
                        exec(compile(example, "docs/library.md", "exec"), names)  # noqa: S102
            finally:
                os.chdir(before)
                for model in opened:
                    model.close()
        self.assertGreater(len(out.getvalue()), 20)
        self.assertEqual(names["action"], 1)

    def test_example_in_c(self):
        with amk.Model(MODEL) as model:
            want = model.generate(PROMPT, max_tokens=32).text
        source = os.path.join(ROOT, "app", "library", "example", "example.c")
        with tempfile.TemporaryDirectory() as work:
            for compiler in ("gcc", "g++"):
                program = os.path.join(work, compiler)
                compile_c(source, program, compiler=compiler)
                out = subprocess.run([program, MODEL, PROMPT], capture_output=True, text=True, check=True)
                self.assertEqual(out.stdout, want + "\n")
            wrong = subprocess.run([program, work, PROMPT], capture_output=True, text=True, check=False)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("config.json", wrong.stderr)

    def test_misuse_in_c(self):
        with tempfile.TemporaryDirectory() as work:
            program = os.path.join(work, "misuse")
            compile_c(os.path.join(ROOT, "cmd", "libamkref", "testdata", "misuse.c"), program, "-Wno-nonnull")
            out = subprocess.run([program, MODEL], capture_output=True, text=True, check=False)
            self.assertEqual((out.returncode, out.stderr), (0, ""), out.stdout)


class Package(unittest.TestCase):
    """The Python package, beyond its examples."""

    @classmethod
    def setUpClass(cls):
        cls.model = amk.Model(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_install(self):
        with tempfile.TemporaryDirectory() as work:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
            subprocess.run([*pip, "--root-user-action=ignore", "--target", work, PACKAGE], check=True)
            code = ("import amk, sys; assert amk.__file__.startswith(sys.argv[2]);"
                    f"print(amk.Model(sys.argv[1]).generate({PROMPT!r}, max_tokens=3).ids)")
            out = subprocess.run([sys.executable, "-c", code, MODEL, work], env={**os.environ, "PYTHONPATH": work},
                                 cwd=work, capture_output=True, text=True, check=True)
            info = os.path.join(work, f"amk-{amk.__version__}.dist-info")
            with open(os.path.join(info, "licenses", "LICENSE")) as f, open(os.path.join(ROOT, "LICENSE")) as own:
                self.assertEqual(f.read(), own.read())
            with open(os.path.join(info, "METADATA")) as f:
                self.assertIn("\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n", f.read())
        self.assertEqual(out.stdout, f"{self.model.generate(PROMPT, max_tokens=3).ids}\n")
        own = ("LICENSE", "amk", "pack.py", "pyproject.toml", "__pycache__")
        left = [name for name in os.listdir(PACKAGE) if name not in own]
        self.assertEqual(left, [])

    def test_same_text_as_amkc(self):
        ids = ",".join(map(str, self.model.encode(PROMPT, special=True)))
        for flags, options in (
                ([], {}),
                (["--temperature", "0.7", "--seed", "11", "--top-k", "40"], dict(temperature=0.7, seed=11, top_k=40)),
                (["--repetition-penalty", "1.3"], dict(repetition_penalty=1.3)),
                (["--sample", "--seed", "3"], dict(sample=True, seed=3))):
            out = subprocess.run([os.path.join(ROOT, "amkc"), "run", MODEL, "--ids", ids, "--max-tokens", "12",
                                  "--device", "ref", "--json", *flags], capture_output=True, text=True, check=True)
            said = [int(i) for i in re.search(r'"ids": *\[([^\]]*)\]', out.stdout)[1].split(",")]
            self.assertEqual(self.model.generate(PROMPT, max_tokens=12, **options).ids, said, flags)

    def test_prompts(self):
        ids = self.model.encode(PROMPT, special=True)
        whole = self.model.generate(PROMPT, max_tokens=5)
        self.assertEqual(self.model.generate(ids, max_tokens=5), whole)
        self.assertEqual(self.model.generate(tuple(ids), max_tokens=5), whole)
        for wrong in ([], [self.model.vocab], [-1], [2**40], [1.5], ["x"]):
            with self.assertRaises(amk.InputError, msg=wrong):
                self.model.generate(wrong)

    def test_texts_beside_each_other(self):
        prompts = [PROMPT, "def fib", "import os", "class A:"]
        want = [self.model.generate(p, max_tokens=6).ids for p in prompts]
        texts = [self.model.generate(p, max_tokens=6, stream=True) for p in prompts]
        for _ in range(6):
            for text in texts:
                next(text)
        self.assertEqual([t.ids for t in texts], want)
        self.assertEqual([t.finish for t in texts], ["length"] * 4)

    def test_threads(self):
        prompts = [PROMPT, "def fib", "import os", "class A:"]
        want = [self.model.generate(p, max_tokens=5) for p in prompts]
        got = [None] * len(prompts)

        def ask(i):
            got[i] = self.model.generate(prompts[i], max_tokens=5)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(prompts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, want)

    def test_allowed(self):
        asked = []

        def only_even(ids):
            asked.append(ids)
            return range(0, self.model.vocab, 2)

        drawn = self.model.generate(PROMPT, max_tokens=6, temperature=1.5, seed=5, allowed=only_even)
        self.assertTrue(all(i % 2 == 0 for i in drawn.ids))
        self.assertEqual(asked, [drawn.ids[:n] for n in range(6)])
        free = self.model.generate(PROMPT, max_tokens=4).ids
        forced = self.model.generate(PROMPT, max_tokens=4, allowed=[[7], None, [9]]).ids
        self.assertEqual((forced[0], forced[2]), (7, 9))
        self.assertEqual(self.model.generate(PROMPT, max_tokens=4, allowed=lambda ids: None).ids, free)

    def test_a_refused_step_can_be_tried_again(self):
        lists = [[], [self.model.vocab], [7]]
        text = self.model.generate(PROMPT, max_tokens=2, stream=True,
                                   allowed=lambda ids: lists.pop(0) if lists else None)
        for _ in range(2):
            with self.assertRaises(amk.InputError):
                next(text)
        self.assertEqual(next(text).id, 7)
        self.assertEqual(next(text).finish, "length")

    def test_logits(self):
        ids = self.model.encode(PROMPT, special=True)
        every = self.model.logits(ids)
        self.assertEqual(every.shape, (len(ids), self.model.vocab))
        last = self.model.logits(ids, rows=1)
        self.assertEqual(last.tolist()[0], every.tolist()[-1])
        best = max(range(self.model.vocab), key=lambda i: last[0, i])
        self.assertEqual(best, self.model.generate(ids, max_tokens=1).ids[0])
        for rows in (0, -1, len(ids) + 1):
            with self.assertRaises(amk.InputError):
                self.model.logits(ids, rows=rows)

    def test_embeddings(self):
        ids = self.model.encode(PROMPT, special=True)
        table = embedding_table()
        want_logits, want_states = self.model.logits(ids).tolist(), self.model.hidden_states(ids).tolist()
        rows = [table[i].tolist() for i in ids]
        for prompt in ([table[i] for i in ids], rows, [rows], [memoryview(array.array("d", r)) for r in rows],
                       [ids[0], rows[1:3], *ids[3:5], *rows[5:]]):
            self.assertEqual(self.model.logits(prompt).tolist(), want_logits)
            self.assertEqual(self.model.hidden_states(prompt).tolist(), want_states)
            self.assertEqual(self.model.hidden_states(prompt, rows=1).tolist(), want_states[-1:])
        for options in (dict(), dict(temperature=0.9, seed=4), dict(stop="\n"), dict(allowed=lambda _: range(500))):
            want = self.model.generate(ids, max_tokens=8, **options)
            self.assertEqual(self.model.generate([ids[0], *rows[1:]], max_tokens=8, **options), want)
        other = [[2 * x for x in rows[0]], *rows[1:]]
        self.assertNotEqual(self.model.logits(other, rows=1).tolist(), want_logits[-1:])
        self.assertEqual(self.model.logits(rows, rows=1).tolist(), want_logits[-1:])

    def test_the_logits_are_made_of_hidden_states(self):
        ids = self.model.encode(PROMPT, special=True)
        logits, states = self.model.logits(ids), self.model.hidden_states(ids).tolist()
        table = embedding_table()  # which is the head too
        for row in range(len(ids)):
            for token in range(0, self.model.vocab, 256):
                want = sum(x * y for x, y in zip(states[row], table[token]))
                self.assertAlmostEqual(logits[row, token], want, delta=1e-3)

    def test_wrong_embeddings(self):
        hidden = self.model.hidden
        for wrong in ([[0.0] * (hidden - 1)], [[[0.0] * hidden, [0.0]]], [["x"] * hidden], [None], [-1], [[]],
                      [[float("nan")] * hidden], [array.array("i", [0] * hidden)], [b"x" * hidden], [1.5], [],
                      [array.array("f", [0] * (hidden + 1))]):
            with self.assertRaises(amk.InputError, msg=repr(wrong)[:60]):
                self.model.generate(wrong, max_tokens=1)
        for rows in (0, 3):
            with self.assertRaises(amk.InputError):
                self.model.hidden_states([5, [0.0] * hidden], rows=rows)
        with self.assertRaises(amk.InputError):
            self.model.save_prefix([5, [0.0] * hidden], "prefix")

    def test_watched_prompts(self):
        told, ids = [], [5 + i % 7 for i in range(700)]  # more than a pass reads, on a GPU too

        def stops(done, total):
            told.append((done, total))
            return done == 0

        self.addCleanup(self.model.watch, None)
        self.model.watch(stops)
        with self.assertRaisesRegex(amk.InputError, r"stopped after \d+ of 699 tokens"):
            self.model.logits(ids, rows=1)
        self.assertEqual(told[0], (0, 699))
        self.assertEqual(len(told), 2)
        kept = told[1][0]
        told.clear()

        def raises(done, total):
            told.append((done, total))
            raise KeyError("told")

        self.model.watch(raises)
        if 699 - kept > 513:
            with self.assertRaisesRegex(KeyError, "told"):
                self.model.logits(ids, rows=1)
            self.assertEqual(told, [(0, 699 - kept)], "what was decoded is not decoded again")

        def raises_late(done, total):
            if done == total:
                raise KeyError("late")

        self.model.watch(raises_late)
        with self.assertRaisesRegex(KeyError, "late"):
            self.model.logits(ids[1:], rows=1)
        with self.assertRaises(amk.InputError):
            self.model.logits([], rows=1)
        self.model.watch(None)
        said = self.model.generate(ids, max_tokens=3).ids
        self.model.watch(lambda done, total: None)
        self.assertEqual(self.model.generate(ids[::-1], max_tokens=1).ids,
                         self.model.generate(ids[::-1], max_tokens=1).ids)
        self.assertEqual(self.model.generate(ids, max_tokens=3).ids, said)

    def test_logprobs(self):
        with_them = self.model.generate(PROMPT, max_tokens=3, logprobs=True)
        self.assertEqual(with_them.ids, self.model.generate(PROMPT, max_tokens=3).ids)
        self.assertTrue(all(x < 0 for x in with_them.logprobs))
        self.assertIsNone(self.model.generate(PROMPT, max_tokens=3).logprobs)

    def test_stops(self):
        free = self.model.generate(PROMPT, max_tokens=24).text
        for stop in ("numpy", ["zzz", "\n"], "fib"):
            words = [stop] if isinstance(stop, str) else stop
            said = self.model.generate(PROMPT, max_tokens=24, stop=stop)
            self.assertEqual(said.text, free[:min(free.find(w) for w in words if w in free)])
            self.assertEqual(said.finish, "stop")
        for wrong in ("", "a\0b"):
            with self.assertRaises(amk.InputError):
                self.model.generate(PROMPT, stop=[wrong])

    def test_schemas(self):
        person = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
                  "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
                  "required": ["name", "age", "tags"], "additionalProperties": False}
        whole = 0
        for seed in range(12):
            said = self.model.generate("person = ", schema=person, max_tokens=120, temperature=1, seed=seed)
            if said.finish == "length":
                self.assertEqual(len(said.ids), 120)
                continue
            whole += 1
            value = json.loads(said.text)
            self.assertEqual(list(value), ["name", "age", "tags"])
            self.assertIsInstance(value["age"], int)
            self.assertLessEqual(set(value["tags"]), {"a", "b"})
        self.assertGreater(whole, 6)
        any_object = self.model.generate("x = ", schema="", max_tokens=60, temperature=1, seed=1,
                                         logit_bias={self.model.encode("}")[0]: 5})
        self.assertIsInstance(json.loads(any_object.text), dict)
        self.assertEqual(json.loads(self.model.generate("x = ", schema={"const": [1, "ö"]}).text), [1, "ö"])
        held = self.model.generate("x = ", schema={"type": "string", "pattern": "^a+$", "maxLength": 3}).text
        self.assertRegex(json.loads(held), r"\Aa{1,3}\Z")
        for wrong, why in (({"not": {}}, "not"), ("{", "read"), ("\0", "NUL"), ({"$ref": "#"}, "itself")):
            with self.assertRaisesRegex(amk.InputError, why):
                self.model.generate("x", schema=wrong)
        with self.assertRaisesRegex(amk.InputError, "ignore_eos"):
            self.model.generate("x", schema="", ignore_eos=True)

    def test_refusals(self):
        for wrong in (dict(temperature=-1), dict(top_p=2), dict(top_k=-1), dict(top_k=2**40), dict(max_tokens=0),
                      dict(max_tokens=10**6), dict(seed=-1, temperature=1), dict(logit_bias={self.model.vocab: 1}),
                      dict(logit_bias={1: float("nan")}), dict(repetition_penalty=0)):
            with self.assertRaises(amk.InputError, msg=wrong) as raised:
                self.model.generate(PROMPT, **wrong)
            self.assertRegex(str(raised.exception), "want|asked for", wrong)
        with self.assertRaisesRegex(amk.InputError, "want 1 to|there are 2000 ids"):
            self.model.generate([5] * 2000)
        with self.assertRaisesRegex(amk.InputError, "make"):
            amk.Model(MODEL, library="/nowhere/libamk.so")
        with self.assertRaisesRegex(amk.InputError, "not a library of amkc"):
            amk.Model(MODEL, library=os.path.abspath(__file__))

    def test_bytes_are_not_ids(self):
        for call in (self.model.encode, self.model.generate, lambda text: self.model.save_prefix(text, "prefix")):
            for text in (b"def f", bytearray(b"def f")):
                with self.assertRaisesRegex(amk.InputError, r"of type byte.*want str"):
                    call(text)

    def test_the_child_of_a_fork_gets_an_error(self):
        text = self.model.generate(PROMPT, max_tokens=3, stream=True)
        next(text)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for call in (lambda: self.model.encode("x"), lambda: next(text), lambda: amk.Model(MODEL),
                         lambda: self.model.generate(PROMPT)):
                try:
                    call()
                    said.append("no error")
                except amk.MachineError as e:
                    said.append(str(e))
            text.close()
            self.model.close()
            os.write(write, "\n".join(said).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            ready, _, _ = select.select([f], [], [], 30)
            if not ready:
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self.assertRegex(f.read(), r"\A(this process is the child of a fork.*\n?){4}\Z")
        self.assertEqual(len(list(text)), 2)  # the parent goes on

    def test_the_package_says_what_it_is(self):
        model = amk.Model(MODEL)
        self.assertEqual(repr(model), f"<amk.Model {MODEL!r}: {model.vocab} tokens, {model.max_seq} positions>")
        with model.generate(PROMPT, max_tokens=3, stream=True) as text:
            next(text)
            self.assertEqual(repr(text), "<amk.Text: 1 tokens, finish None>")
        model.close()
        self.assertEqual(repr(model), f"<amk.Model {MODEL!r}, closed>")
        self.assertRegex(amk.__version__, r"^\d+\.\d+(\.\d+)?$")

    def test_annotations(self):
        for kind in (amk.Model, amk.Text):
            for name, function in vars(kind).items():
                if not isinstance(function, types.FunctionType) or name.startswith("_") and name != "__init__":
                    continue
                if kind is amk.Text and name == "__init__":  # Model.generate makes them
                    continue
                hints = typing.get_type_hints(function, vars(importlib.import_module(kind.__init__.__module__)))
                arguments = [a for a in inspect.signature(function).parameters if a not in ("self", "_")]
                self.assertEqual(sorted(hints), sorted([*arguments, "return"]), f"{kind.__name__}.{name}")

    def test_bias(self):
        self.assertEqual(self.model.generate(PROMPT, max_tokens=2, logit_bias={7: 1000}).ids, [7, 7])
        first = self.model.generate(PROMPT, max_tokens=1).ids[0]
        self.assertNotEqual(self.model.generate(PROMPT, max_tokens=1, logit_bias={first: float("-inf")}).ids, [first])

    def test_closed(self):
        model = amk.Model(MODEL)
        text = model.generate(PROMPT, max_tokens=3, stream=True)
        next(text)
        model.close()
        model.close()
        with self.assertRaisesRegex(amk.InputError, "closed"):
            next(text)
        with self.assertRaisesRegex(amk.InputError, "closed"):
            model.encode("x")
        text.close()
        self.assertEqual(list(text), [])

    def test_interrupt(self):
        # What starts the tests in the background may have it ignored.
        code = ("import amk, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
                "model = amk.Model(sys.argv[1]); print('ready', flush=True);"
                "[print(end=t.text) for t in model.generate('x', ignore_eos=True, stream=True)]")
        with subprocess.Popen([sys.executable, "-c", code, MODEL], env={**os.environ, "PYTHONPATH": PACKAGE},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        self.assertIn("KeyboardInterrupt", said)


if __name__ == "__main__":
    unittest.main()
