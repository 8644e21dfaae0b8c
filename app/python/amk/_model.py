"""A build that has been opened."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import threading
from ctypes import c_char_p, c_double, c_float, c_int32, c_size_t, c_void_p
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Sequence, Union, overload

from amk._errors import InputError
from amk._library import Facts, Options, SPECIAL, WATCHER, array, load, whole
from amk._prompt import prompt_of
from amk._text import Completion, Text

INT_MAX = 2**31 - 1

Path = Union[str, "os.PathLike[str]"]
Message = Mapping[str, Any]  # of a conversation: role, content, and what else the chat template knows
IDs = Iterable[Any]  # token ids, among which embeddings may stand: buffers or lists of numbers
Prompt = Union[str, Sequence[Message], IDs]
# Ids that may come next: of a step each, None for all, or a function of the ids so far.
Allowed = Union[Callable[["list[int]"], Optional[Iterable[int]]], Sequence[Optional[Iterable[int]]]]


class Model:
    """A build on a GPU.

    directory is what amkc wrote. library is the libamk.so to open it with: by default what AMK_LIBRARY says, else that
    of the build. Opening loads the weights, which takes seconds. A model may be used from several threads, whose calls
    run one at a time; it is a context manager, and close frees the GPU.

    >>> with amk.Model("build") as small:
    ...     small.vocab, small.max_seq, small.hidden
    (4096, 1024, 256)
    """

    def __init__(self, directory: Path, *, gpu: int = 0, library: Optional[Path] = None) -> None:
        directory = self._directory = os.fspath(directory)
        library = library or os.environ.get("AMK_LIBRARY") or os.path.join(directory, "library", "libamk.so")
        self._handle, self._library = c_void_p(), load(library)
        self._watcher, self._raised = WATCHER(), threading.local()  # what C calls, and what it raised
        self._library.call("amk_open", os.fsencode(directory), whole("gpu", gpu, 0, 1023), ctypes.byref(self._handle))
        facts = Facts()
        self._call("amk_describe", ctypes.byref(facts))
        self.vocab, self.max_seq = facts.vocab, facts.max_seq
        hidden = c_size_t()
        self._call("amk_hidden_size", ctypes.byref(hidden))
        self.hidden = hidden.value

    def __repr__(self) -> str:
        if not self._handle:
            return f"<amk.Model {self._directory!r}, closed>"
        return f"<amk.Model {self._directory!r}: {self.vocab} tokens, {self.max_seq} positions>"

    def _call(self, name, *arguments):
        self._ask(name, self._open(), *arguments)

    def _ask(self, name, *arguments):
        """Calls a function of C, and raises what a function that watches has raised."""
        self._raised.error = None
        try:
            self._library.call(name, *arguments)
        except InputError:
            if self._raised.error is None:
                raise
            raise self._raised.error from None
        finally:
            self._raised.error = None

    def _open(self):
        if not self._handle:
            raise InputError("the model is closed")
        return self._handle

    def close(self) -> None:
        """Frees the GPU. Closing twice is harmless."""
        if self._handle:
            self._library.plain("amk_close", self._handle)
            self._handle = c_void_p()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The token ids of a text; with special, those of a prompt, which may have a begin token in front.

        >>> model.encode("def f(x):")
        [327, 285, 751, 1078]
        """
        if not isinstance(text, str):
            raise InputError(f"a text is of type {type(text).__name__}; want str, as bytes.decode() makes it")
        data = text.encode("utf-8", "surrogatepass")
        return self._library.ids("amk_encode", self._open(), data, len(data), SPECIAL if special else 0)

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """The text of token ids; with special, that of special tokens too. Bytes that are not UTF-8 become U+FFFD.

        >>> model.decode(model.encode("größer"))
        'größer'
        """
        text, size = c_void_p(), c_size_t()
        given, count = array(ids)
        self._call("amk_decode", given, count, SPECIAL if special else 0, ctypes.byref(text), ctypes.byref(size))
        out = ctypes.string_at(text, size.value).decode("utf-8")
        self._library.plain("amk_free", text)
        return out

    def chat(self, messages: Sequence[Message], **fields: Any) -> list[int]:
        """The prompt, as ids, that the model's chat template makes of messages, each a dict with role and content.

        fields are what goes with them: tools, documents, add_generation_prompt, continue_final_message, and
        chat_template_kwargs.

        >>> model.chat([{"role": "user", "content": "Hello"}])
        [0, 41, 401, 312, 200]
        """
        data = json.dumps({"messages": messages, **fields}).encode()
        return self._library.ids("amk_chat", self._open(), data, len(data))

    def _prompt(self, prompt):
        if isinstance(prompt, (str, bytes, bytearray)):  # encode refuses bytes, which would be ids otherwise
            return self.encode(prompt, special=True)
        prompt = list(prompt)
        return self.chat(prompt) if prompt and isinstance(prompt[0], dict) else prompt

    def logits(self, ids: IDs, rows: Optional[int] = None) -> memoryview:
        """The logits after each of the last rows of ids, by default of all: a float32 buffer of shape (rows, vocab).

        ids may have embeddings among them, as for generate. numpy.asarray takes the buffer as it is. Ids that were
        decoded before are not decoded again: rows=1 after a text that was asked for already costs one token.

        >>> logits = model.logits(model.encode("def f("), rows=1)
        >>> logits.shape == (1, model.vocab)
        True
        >>> best = max(range(model.vocab), key=lambda id: logits[0, id])
        >>> model.decode([best])
        'z'
        """
        return self._outputs(ids, rows, self.vocab, lambda out, room: (out, room, None, 0))

    def hidden_states(self, ids: IDs, rows: Optional[int] = None) -> memoryview:
        """The last hidden state of each of the last rows of ids, by default of all: float32 of shape (rows, hidden).

        It is what the logits are made of: the vector behind the last norm of the model. Otherwise as logits.

        >>> states = model.hidden_states(model.encode("def f("), rows=1)
        >>> states.shape == (1, model.hidden)
        True
        """
        return self._outputs(ids, rows, self.hidden, lambda out, room: (None, 0, out, room))

    def _outputs(self, ids, rows, size, places):
        given = prompt_of(ids, self.hidden)
        rows = given.count if rows is None else rows
        if not 1 <= rows <= given.count:
            raise InputError(f"outputs of the last {rows} of {given.count} positions were asked for; want 1 to "
                             f"{given.count}")
        room = rows * size
        out = (c_float * room)()
        self._call("amk_outputs", ctypes.byref(given), rows, *places(out, room))
        return memoryview(out).cast("B").cast("f", (rows, size))

    @overload
    def generate(self, prompt: Prompt, *, max_tokens: Optional[int] = None, stop: Union[str, Iterable[str]] = (),
                 sample: bool = False, seed: Optional[int] = None, temperature: Optional[float] = None,
                 top_k: Optional[int] = None, top_p: Optional[float] = None, min_p: Optional[float] = None,
                 repetition_penalty: Optional[float] = None, presence_penalty: Optional[float] = None,
                 frequency_penalty: Optional[float] = None, logit_bias: Optional[Mapping[int, float]] = None,
                 logprobs: bool = False, ignore_eos: bool = False, allowed: Optional[Allowed] = None,
                 schema: Union[None, bool, str, Mapping[str, Any]] = None,
                 stream: Literal[False] = False) -> Completion: ...

    @overload
    def generate(self, prompt: Prompt, *, max_tokens: Optional[int] = None, stop: Union[str, Iterable[str]] = (),
                 sample: bool = False, seed: Optional[int] = None, temperature: Optional[float] = None,
                 top_k: Optional[int] = None, top_p: Optional[float] = None, min_p: Optional[float] = None,
                 repetition_penalty: Optional[float] = None, presence_penalty: Optional[float] = None,
                 frequency_penalty: Optional[float] = None, logit_bias: Optional[Mapping[int, float]] = None,
                 logprobs: bool = False, ignore_eos: bool = False, allowed: Optional[Allowed] = None,
                 schema: Union[None, bool, str, Mapping[str, Any]] = None,
                 stream: Literal[True]) -> Text: ...

    def generate(self, prompt: Prompt, *, max_tokens: Optional[int] = None, stop: Union[str, Iterable[str]] = (),
                 sample: bool = False, seed: Optional[int] = None, temperature: Optional[float] = None,
                 top_k: Optional[int] = None, top_p: Optional[float] = None, min_p: Optional[float] = None,
                 repetition_penalty: Optional[float] = None, presence_penalty: Optional[float] = None,
                 frequency_penalty: Optional[float] = None, logit_bias: Optional[Mapping[int, float]] = None,
                 logprobs: bool = False, ignore_eos: bool = False, allowed: Optional[Allowed] = None,
                 schema: Union[None, bool, str, Mapping[str, Any]] = None,
                 stream: bool = False) -> Union[Completion, Text]:
        """Continues a prompt: a text, a list of token ids, or a list of messages for the chat template.

        In the place of tokens, a list of ids may have embeddings, of speech or of images: float32 of shape (hidden,) or
        (rows, hidden), as a numpy array or a list of numbers. They enter the model as they are: in the place of rows of
        its embedding table, already times what it multiplies those with.

        >>> frames = [[0.01 * i] * model.hidden for i in range(3)]
        >>> said = model.generate([*model.encode("# "), frames, *model.encode("def")], max_tokens=3)
        >>> len(said.ids)
        3

        It returns a Completion, or with stream a Text, which gives each Token as it comes. The most probable token is
        chosen each time, unless sample asks to draw as generation_config.json of the model says, or temperature is
        above 0; docs/sampling.md of amkc says what each number does. The same seed gives the same text.

        >>> model.generate("def add(a, b):", max_tokens=20, stop="\\n\\n").finish
        'stop'
        >>> drawn = model.generate("import ", max_tokens=5, temperature=0.8, seed=7)
        >>> drawn == model.generate("import ", max_tokens=5, temperature=0.8, seed=7)
        True

        allowed says which tokens may come: a function of the ids that came so far, which returns ids or None for all
        of them, or a list with ids or None for each step, behind whose end all may come.

        schema is a JSON schema, as a dict or in JSON, that the text follows; {} is any value, and "" any object.

        >>> model.generate("x = ", schema={"enum": ["red", "green"]}).text in ('"red"', '"green"', ' "red"', ' "green"')
        True

        >>> yes, no = model.encode("yes"), model.encode("no")
        >>> answer = model.generate("x = ", max_tokens=1, allowed=[yes[:1] + no[:1]])
        >>> answer.ids[0] in (yes[0], no[0])
        True
        """
        options = Options()
        self._library.call("amk_default_options", ctypes.byref(options), ctypes.sizeof(options))
        if sample:
            self._call("amk_sampling", ctypes.byref(options))
        if top_k is not None:
            options.top_k = whole("top_k", top_k, 0, INT_MAX)
        for name, value in dict(temperature=temperature, top_p=top_p, min_p=min_p,
                                repetition_penalty=repetition_penalty, presence_penalty=presence_penalty,
                                frequency_penalty=frequency_penalty).items():
            if value is not None:
                setattr(options, name, value)
        if max_tokens is not None:
            options.max_tokens = whole("max_tokens", max_tokens, 1, INT_MAX)
        options.ignore_eos, options.logprobs = bool(ignore_eos), bool(logprobs)
        drawn = options.temperature != 0
        if drawn:
            seed = secrets.randbits(32) if seed is None else seed
            options.seed = whole("seed", seed, 0, 2**64 - 1)
        stops = [stop] if isinstance(stop, str) else list(stop)
        if any("\0" in s for s in stops):
            raise InputError("a stop string has a NUL character, which C takes for its end; want none")
        bias = dict(logit_bias or {})
        keep = ((c_char_p * len(stops))(*(s.encode() for s in stops)), array(list(bias))[0],
                (c_double * len(bias))(*bias.values()))
        options.stops, options.num_stops = ctypes.cast(keep[0], type(options.stops)), len(stops)
        options.bias_ids, options.biases = (ctypes.cast(keep[1], type(options.bias_ids)),
                                            ctypes.cast(keep[2], type(options.biases)))
        options.num_biases = len(bias)
        if schema is not None:
            form = schema if isinstance(schema, str) else json.dumps(schema)
            if "\0" in form:
                raise InputError("a schema has a NUL character, which C takes for its end; want none")
            options.schema = form.encode()
        text = Text(self, self._prompt(prompt), options, keep, seed=seed if drawn else None, allowed=allowed,
                    logprobs=logprobs)
        return text if stream else text.whole()

    def watch(self, told: Optional[Callable[[int, int], Any]]) -> None:
        """Has a function told how far a long prompt is: told(done, total), in tokens, until another is set.

        Prompts that take more than a launch or two are reported, on a GPU before the first launch and after each. The
        function must not call the model. If it returns False, the call that decodes raises InputError; if it raises,
        so does the call. What has been decoded is not decoded again. None ends it.

        >>> told = []
        >>> model.watch(lambda done, total: told.append(f"{done} of {total}"))
        >>> logits = model.logits([5] * 600, rows=1)
        >>> told[0], told[-1]
        ('0 of 599', '599 of 599')
        >>> model.watch(None)
        """
        def call(_, done, total):
            try:
                return told(done, total) is not False
            except BaseException as e:  # ctypes would print it and go on
                self._raised.error = e
                return False

        watcher = WATCHER() if told is None else WATCHER(call)
        self._call("amk_watch", watcher, None)
        self._watcher = watcher  # which C calls from now on

    def save_prefix(self, prompt: Prompt, path: Path) -> None:
        """Writes a prompt, and what decoding it leaves in the cache, to a file, for load_prefix of the same build."""
        ids, count = array(self._prompt(prompt))
        self._call("amk_save_prefix", ids, count, os.fsencode(path))

    def load_prefix(self, path: Path) -> list[int]:
        """Reads what save_prefix wrote and returns its ids. Texts that begin with them go on from there."""
        return self._library.ids("amk_load_prefix", self._open(), os.fsencode(path))
