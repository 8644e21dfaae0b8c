"""The functions of libamk.so, as amk.h declares them."""

import ctypes
import hashlib
import os
import threading
from array import array as numbers
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p

from amk._errors import InputError, MachineError

API_VERSION = 4  # of amk.h, that this package was written for
SPECIAL = 1  # AMK_SPECIAL
INPUT = 1  # AMK_INPUT
EMBEDDING = -1  # AMK_EMBEDDING
FINISH = {0: None, 1: "stop", 2: "length"}  # amk_finish


class Facts(ctypes.Structure):
    """amk_facts"""

    _fields_ = [("vocab", c_int32), ("max_seq", c_int32)]


class Options(ctypes.Structure):
    """amk_options"""

    _fields_ = [
        ("size", c_size_t),
        ("max_tokens", c_int32),
        ("ignore_eos", c_int32),
        ("top_k", c_int32),
        ("logprobs", c_int32),
        ("temperature", c_double),
        ("top_p", c_double),
        ("min_p", c_double),
        ("repetition_penalty", c_double),
        ("presence_penalty", c_double),
        ("frequency_penalty", c_double),
        ("seed", c_uint64),
        ("stops", POINTER(c_char_p)),
        ("num_stops", c_size_t),
        ("bias_ids", POINTER(c_int32)),
        ("biases", POINTER(c_double)),
        ("num_biases", c_size_t),
        ("schema", c_char_p),
    ]


class Token(ctypes.Structure):
    """amk_token"""

    _fields_ = [
        ("id", c_int32),
        ("finish", c_int32),
        ("text", c_void_p),
        ("bytes", c_size_t),
        ("logprob", c_double),
    ]


IDS = POINTER(c_int32)
WATCHER = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t)  # amk_watcher


class Prompt(ctypes.Structure):
    """amk_prompt"""

    _fields_ = [
        ("ids", IDS),
        ("count", c_size_t),
        ("embeddings", POINTER(c_float)),
        ("num_embeddings", c_size_t),
    ]


# Arguments of the functions that return a status, but for the last one of each, which is the message.
CALLS = {
    "amk_open": [c_char_p, c_int, POINTER(c_void_p)],
    "amk_describe": [c_void_p, POINTER(Facts)],
    "amk_encode": [c_void_p, c_char_p, c_size_t, c_int, POINTER(IDS), POINTER(c_size_t)],
    "amk_decode": [c_void_p, IDS, c_size_t, c_int, POINTER(c_void_p), POINTER(c_size_t)],
    "amk_chat": [c_void_p, c_char_p, c_size_t, POINTER(IDS), POINTER(c_size_t)],
    "amk_logits": [c_void_p, IDS, c_size_t, c_size_t, POINTER(c_float), c_size_t],
    "amk_hidden_size": [c_void_p, POINTER(c_size_t)],
    "amk_outputs": [c_void_p, POINTER(Prompt), c_size_t, POINTER(c_float), c_size_t, POINTER(c_float), c_size_t],
    "amk_default_options": [POINTER(Options), c_size_t],
    "amk_sampling": [c_void_p, POINTER(Options)],
    "amk_begin": [c_void_p, IDS, c_size_t, POINTER(Options), POINTER(c_void_p)],
    "amk_begin_prompt": [c_void_p, POINTER(Prompt), POINTER(Options), POINTER(c_void_p)],
    "amk_next": [c_void_p, IDS, c_size_t, POINTER(Token)],
    "amk_watch": [c_void_p, WATCHER, c_void_p],
    "amk_save_prefix": [c_void_p, IDS, c_size_t, c_char_p],
    "amk_load_prefix": [c_void_p, c_char_p, POINTER(IDS), POINTER(c_size_t)],
}

# Those that return nothing.
PLAIN = {
    "amk_free": [c_void_p],
    "amk_close": [c_void_p],
    "amk_end": [c_void_p],
}


class Library:
    """A libamk.so that has been loaded. Its functions raise InputError and MachineError."""

    def __init__(self, path):
        self.path = path
        try:
            self._dll = ctypes.CDLL(path)
            version = self._dll.amk_api_version()
        except (OSError, AttributeError) as e:
            raise InputError(f"{path}: it is not a library of amkc that can be loaded here: {e}") from None
        if version < API_VERSION:
            raise InputError(f"{path}: it has version {version} of amk.h, and this package needs {API_VERSION}: "
                             "install the package of the same build")
        for name, arguments in CALLS.items():
            getattr(self._dll, name).argtypes = arguments + [POINTER(c_void_p)]
        for name, arguments in PLAIN.items():
            function = getattr(self._dll, name)
            function.argtypes, function.restype = arguments, None

    def call(self, name, *arguments):
        """Calls a function of CALLS."""
        message = c_void_p()
        status = getattr(self._dll, name)(*arguments, ctypes.byref(message))
        if status != 0:
            text = ctypes.string_at(message).decode("utf-8", "replace")
            self.plain("amk_free", message)
            raise (InputError if status == INPUT else MachineError)(text)

    def plain(self, name, *arguments):
        """Calls a function of PLAIN."""
        getattr(self._dll, name)(*arguments)

    def ids(self, name, *arguments):
        """Calls a function of CALLS that allocates ids, and returns them."""
        ids, count = IDS(), c_size_t()
        self.call(name, *arguments, ctypes.byref(ids), ctypes.byref(count))
        out = ids[:count.value]
        self.plain("amk_free", ids)
        return out


_loaded: dict = {}  # libraries by digest
_lock = threading.Lock()


def load(path):
    """The library of a file. Builds of one amkc have the same one, which is loaded once."""
    try:
        with open(path, "rb") as f:
            digest = hashlib.sha256(f.read()).digest()
    except OSError as e:
        raise InputError(f"{path}: the library cannot be read: {e.strerror}; run make in the build, with go and gcc, "
                         "or name another with library= or AMK_LIBRARY") from None
    with _lock:
        if digest not in _loaded:
            _loaded[digest] = Library(os.path.abspath(path))
        return _loaded[digest]


def array(ids):
    """Ids for C, and their number. ctypes alone would cut what does not fit into 32 bits."""
    try:
        all_ids = numbers("i", ids)
    except (TypeError, OverflowError):
        raise InputError(f"{ids!r:.60}: want a list of token ids") from None
    return (c_int32 * len(all_ids)).from_buffer(all_ids), len(all_ids)


def whole(name, value, lo, hi):
    """A number for a field of C that holds those from lo to hi."""
    if not isinstance(value, int) or not lo <= value <= hi:
        raise InputError(f"{name} is {value!r:.60}; want a whole number from {lo} to {hi}")
    return value
