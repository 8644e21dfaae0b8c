"""amk.h beside what the Python package says of it. `make library` runs it."""

import ctypes
import os
import re
import subprocess
import tempfile
import unittest

from test_library import CAPI, compile_c, _library


def header():
    """amk.h without comments."""
    with open(os.path.join(CAPI, "amk.h"), encoding="utf-8") as f:
        return re.sub(r"(?s)/\*.*?\*/", "", f.read())


class Header(unittest.TestCase):
    """What the Python package says of amk.h is so."""

    def test_layouts(self):
        structs = {"amk_facts": _library.Facts, "amk_options": _library.Options, "amk_token": _library.Token,
                   "amk_prompt": _library.Prompt}
        lines = []
        for name, struct in structs.items():
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            for field, _ in struct._fields_:
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
        with tempfile.TemporaryDirectory() as work:
            source = os.path.join(work, "layout.c")
            with open(source, "w", encoding="utf-8") as f:
                f.write('#include "amk.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines))
                f.write("\nreturn 0; }\n")
            compile_c(source, os.path.join(work, "layout"))
            said = subprocess.run([os.path.join(work, "layout")], capture_output=True, text=True, check=True).stdout
        want = ""
        for name, struct in structs.items():
            want += f"{name} {ctypes.sizeof(struct)}\n"
            want += "".join(f"{name}.{field} {getattr(struct, field).offset}\n" for field, _ in struct._fields_)
        self.assertEqual(said, want)

    def test_functions(self):
        declared = {}
        for name, arguments in re.findall(r"(?m)^(?:int|void) (amk_\w+)\(([^)]*)\);", header()):
            declared[name] = 0 if arguments == "void" else len(arguments.split(","))
        self.assertEqual(declared.pop("amk_api_version"), 0)
        known = {name: len(a) + 1 for name, a in _library.CALLS.items()}
        known.update({name: len(a) for name, a in _library.PLAIN.items()})
        self.assertEqual(known, declared)

    def test_constants(self):
        text = header()
        self.assertIn(f"#define AMK_API_VERSION {_library.API_VERSION}\n", text)
        self.assertIn(f"#define AMK_SPECIAL {_library.SPECIAL} ", text)
        self.assertIn(f"#define AMK_EMBEDDING ({_library.EMBEDDING}) ", text)
        self.assertIn(f"AMK_INPUT = {_library.INPUT},", text)
        words = {None: "AMK_MORE", "stop": "AMK_STOP", "length": "AMK_LENGTH"}
        for number, reason in _library.FINISH.items():
            self.assertIn(f"{words[reason]} = {number},", text)


if __name__ == "__main__":
    unittest.main()
