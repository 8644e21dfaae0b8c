"""A prompt that is continued token by token."""

from __future__ import annotations

import ctypes
from ctypes import c_void_p
from typing import List, NamedTuple, Optional

from amk._errors import InputError
from amk._library import FINISH, Token as CToken, array
from amk._prompt import prompt_of


class Token(NamedTuple):
    """A token of a text."""

    id: int
    text: str  # what it completes: whole characters, perhaps none
    finish: Optional[str]  # "stop" or "length" of the last one, else None
    logprob: Optional[float]  # None without logprobs=True


class Completion(NamedTuple):
    """What a model wrote."""

    text: str
    ids: List[int]  # of the text; a token that ended it is the last one
    finish: str  # "stop": the model ended it, or a stop string was found; "length": max_tokens, or no position is left
    seed: Optional[int]  # that the text was drawn with; None where nothing was drawn
    logprobs: Optional[List[float]]  # of each id; None without logprobs=True


class Text:
    """The tokens of a text as they come: an iterator. It is for one thread at a time.

    seed is the one that tokens are drawn with, or None; ids are those that came so far; finish says why the text has
    ended, or is None.
    """

    def __init__(self, model, prompt, options, keep, *, seed, allowed, logprobs):
        self._model, self._handle, self._token = model, c_void_p(), CToken()
        self._allowed, self._logprobs = allowed, logprobs
        self.seed: Optional[int] = seed
        self.ids: List[int] = []
        self.finish: Optional[str] = None
        given = prompt_of(prompt, model.hidden)
        model._call("amk_begin_prompt", ctypes.byref(given), ctypes.byref(options), ctypes.byref(self._handle))
        del keep  # what the options lead to has been copied

    def __repr__(self) -> str:
        return f"<amk.Text: {len(self.ids)} tokens, finish {self.finish!r}>"

    def __iter__(self) -> Text:
        return self

    def __next__(self) -> Token:
        if self.finish is not None or not self._handle:
            raise StopIteration
        among, count = self._among()
        token = self._token
        self._model._ask("amk_next", self._handle, among, count, ctypes.byref(token))
        text = ctypes.string_at(token.text, token.bytes).decode("utf-8")
        self.ids.append(token.id)
        self.finish = FINISH[token.finish]
        if self.finish is not None:
            self.close()
        return Token(token.id, text, self.finish, token.logprob if self._logprobs else None)

    def _among(self):
        """The ids that may come next, for C."""
        allowed = self._allowed
        if callable(allowed):
            allowed = allowed(list(self.ids))
        elif allowed is not None:
            allowed = allowed[len(self.ids)] if len(self.ids) < len(allowed) else None
        if allowed is None:
            return None, 0
        ids = list(allowed)
        if not ids:
            raise InputError(f"no token is allowed behind {len(self.ids)}; want ids, or None for all of them")
        return array(ids)

    def close(self) -> None:
        """Ends the text, at any time."""
        if self._handle:
            self._model._library.plain("amk_end", self._handle)
            self._handle = c_void_p()

    def __enter__(self) -> Text:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()

    def whole(self) -> Completion:
        """The rest of the text as a Completion."""
        tokens = list(self)
        return Completion("".join(t.text for t in tokens), self.ids, self.finish or "", self.seed,
                          [t.logprob or 0.0 for t in tokens] if self._logprobs else None)
