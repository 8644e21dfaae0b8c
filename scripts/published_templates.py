#!/usr/bin/env python3
"""Takes the chat templates of llama.cpp out of a source distribution that has them, and renders them with transformers.

    python3 scripts/published_templates.py SDIST FOLDER

FOLDER is for AMKC_CHAT_TEMPLATES, with which `go test ./text/chat -run Published` compares byte for byte; `make
chat-templates` does all of it. Templates are others' texts, and stay out of the repository. Needs transformers and
jinja2, which text/chat/testdata/render.py renders with.
"""

import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
PLACE = ("models", "templates")  # within llama.cpp
LEAST = 69  # templates; fewer are another distribution


def extract(sdist, folder):
    """Writes the templates into a folder, and returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    names = set()
    with tarfile.open(sdist) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if member.isfile() and path.suffix == ".jinja" and path.parts[-3:-1] == PLACE:
                (folder / path.name).write_bytes(archive.extractfile(member).read())
                names.add(path.name)
    return len(names)


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    sdist, folder = map(Path, argv)
    found = extract(sdist, folder)
    if found < LEAST:
        print(f"{sdist} has {found} templates in {'/'.join(PLACE)}; {LEAST} are needed", file=sys.stderr)
        return 1
    return subprocess.run([sys.executable, str(ROOT / "text/chat/testdata/render.py"), str(folder)],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
