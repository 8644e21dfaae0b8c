"""What goes wrong. Messages say what is wrong and what would be accepted."""


class Error(Exception):
    """Whatever the library refuses or cannot do."""


class InputError(Error, ValueError):
    """An argument, a file or the build is at fault: the same call fails again."""


class MachineError(Error, RuntimeError):
    """The driver, the GPU, its memory or the file system is at fault, or the library has a bug."""


for _error in (Error, InputError, MachineError):
    _error.__module__ = "amk"  # where it is known by
