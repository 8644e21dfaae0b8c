"""What a text begins with: token ids, and embeddings in the place of tokens."""

import ctypes
from array import array as numbers
from ctypes import c_float

from amk._errors import InputError
from amk._library import EMBEDDING, Prompt, array


def prompt_of(parts, hidden):
    """The amk_prompt of ids and of embeddings with so many elements each, one by one or as rows of a matrix.

    It holds on to what it points to.
    """
    ids, rows = [], numbers("f")
    for part in parts:
        if getattr(part, "ndim", 0) == 0 and hasattr(part, "__index__"):
            if part == EMBEDDING:
                raise InputError("-1 is not a token id; want ids from 0 on, and embeddings as they are")
            ids.append(part)
            continue
        before = len(rows)
        rows.extend(_floats(part, hidden))
        ids += [EMBEDDING] * ((len(rows) - before) // hidden)
    given, count = array(ids)
    out = Prompt(ids=ctypes.cast(given, type(Prompt().ids)), count=count, num_embeddings=len(rows) // hidden)
    if rows:
        out.embeddings = ctypes.cast((c_float * len(rows)).from_buffer(rows), type(out.embeddings))
    out.keep = given, rows
    return out


def _floats(part, hidden):
    """The numbers of one embedding, or of a matrix of them."""
    try:
        view = memoryview(part)
    except TypeError:
        return _listed(part, hidden)
    if view.format not in ("f", "d") or view.ndim not in (1, 2) or view.shape[-1] != hidden:
        raise InputError(f"an embedding has format {view.format!r} and shape {view.shape}; want float32 or float64, of "
                         f"shape ({hidden},) or (rows, {hidden})")
    flat = numbers(view.format, view.tobytes())
    return flat if view.format == "f" else numbers("f", flat)


def _listed(part, hidden):
    """The same of what is not a buffer: a list of numbers, or of rows of them."""
    flat = numbers("f")
    try:
        for row in part if part and isinstance(part[0], (list, tuple, numbers)) else [part]:
            values = numbers("f", row)
            if len(values) != hidden:
                raise TypeError
            flat.extend(values)
    except (TypeError, OverflowError):
        raise InputError(f"{part!r:.60} is neither a token id nor an embedding; want {hidden} numbers, or rows of as "
                         "many") from None
    return flat
