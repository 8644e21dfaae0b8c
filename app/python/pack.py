"""Packs package amk as a wheel, for pip (PEP 517), with the standard library alone: no other tool has to be fetched."""

import base64
import contextlib
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def field(name):
    """A string of pyproject.toml, which Pythons before 3.11 have no reader for."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return re.search(rf'^{name} = "(.*)"$', f.read(), re.M)[1]


def version():
    """The version of the package, which the package itself states."""
    with open(os.path.join(HERE, "amk", "__init__.py"), encoding="utf-8") as f:
        return re.search(r'^__version__ = "(.*)"$', f.read(), re.M)[1]


def contents():
    """The files of the wheel, by name, without their list."""
    info = f"amk-{version()}.dist-info/"
    files = {
        info + "METADATA": f"Metadata-Version: 2.4\nName: amk\nVersion: {version()}\n"
        f"Summary: {field('description')}\nLicense-Expression: {field('license')}\nLicense-File: LICENSE\n"
        f"Requires-Python: {field('requires-python')}\n".encode(),
        info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: amkc\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with open(os.path.join(HERE, "LICENSE"), "rb") as f:
        files[info + "licenses/LICENSE"] = f.read()
    for name in sorted(os.listdir(os.path.join(HERE, "amk"))):
        if name.endswith(".py") or name == "py.typed":
            with open(os.path.join(HERE, "amk", name), "rb") as f:
                files["amk/" + name] = f.read()
    return info, files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into a directory and returns its name."""
    info, files = contents()
    lines = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines += f"{name},sha256={digest},{len(data)}\n"
    files[info + "RECORD"] = (lines + info + "RECORD,,\n").encode()
    wheel = f"amk-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, FIRST)
            entry.external_attr = 0o644 << 16
            out.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


def forget():
    """Removes what Python has cached of this file: a build holds no bytecode, which runs in place of its source."""
    cached = getattr(__spec__, "cached", None)
    if cached and os.path.dirname(os.path.abspath(cached)) == os.path.join(HERE, "__pycache__"):
        with contextlib.suppress(OSError):
            os.remove(cached)
            os.rmdir(os.path.dirname(cached))


forget()
