"""Compiled language models in Python: the builds of amkc.

>>> import amk
>>> model = amk.Model("build")
>>> model.generate("from typing import", max_tokens=5).text
' Any, Optional, Union'

A text comes token by token if it is asked for so:

>>> for token in model.generate("from typing import", max_tokens=4, stream=True):
...     print(repr(token.text))
' Any'
','
' Optional'
','

docs/library.md of amkc is the manual. The package needs Linux, the standard library of Python, and the library that a
build has in library/libamk.so; no compiler, and no CUDA toolkit.
"""

from amk._errors import Error, InputError, MachineError
from amk._model import Model
from amk._text import Completion, Text, Token

__version__ = "0.3.0"
__all__ = ["Completion", "Error", "InputError", "MachineError", "Model", "Text", "Token"]
