"""Tests of the documents: links lead somewhere, excerpts are what they are excerpts of, and the index is whole."""

import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def documents():
    """The Markdown files of the repository with their texts, but for test data."""
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    for path in out.stdout.splitlines():
        if not path.startswith("testdata/") and "/testdata/" not in path and os.path.exists(os.path.join(ROOT, path)):
            yield path, read(path)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def prose(text):
    """A document without what stands in blocks of code."""
    return re.sub(r"(?ms)^ *```.*?^ *```", "", text)


def anchors(text):
    """What # links can name: the headings of a document, as GitHub spells them."""
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


def broken_links(path, text):
    """The links of a document within the repository that lead nowhere."""
    bad = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(os.path.join(ROOT, target)):
            bad.append(link)
        elif anchor and target.endswith(".md") and anchor not in anchors(text if target == path else read(target)):
            bad.append(link)
    return bad


def gone(text):
    """The files and folders in backticks that are not in the repository. NAME stands for any name, and a name without a
    folder may be in any; what does not begin with a folder of the repository is not a path of it."""
    bad = []
    for path in re.findall(r"`([\w./*-]+)`", prose(text)):
        top, slash, _ = path.partition("/")
        pattern = re.sub(r"[A-Z]{4,}", "*", path)
        if slash and os.path.isdir(os.path.join(ROOT, top)) and not path.startswith(("build/", "dist/", ".")):
            if not glob.glob(os.path.join(ROOT, pattern)):
                bad.append(path)
        elif not slash and re.fullmatch(r"\w+\.(go|cuh|py)", path) and path != "main.go":
            if not glob.glob(os.path.join(ROOT, "**", pattern), recursive=True):
                bad.append(path)
    return bad


def excerpts(text):
    """The files that blocks of code are said to be excerpts of, with their lines."""
    for file, block in re.findall(r"<!-- excerpt of (\S+) -->\n```\w*\n(.*?)```", text, re.S):
        yield file, block.splitlines()


def missing(lines, whole):
    """The first of some lines that does not follow the ones before it in a text, or None."""
    rest = iter(whole.splitlines())
    return next((line for line in lines if line not in rest), None)


class Documents(unittest.TestCase):
    def test_links(self):
        for path, text in documents():
            self.assertEqual(broken_links(path, text), [], path)

    def test_links_that_are_broken(self):
        text = "[a](ir.md) [b](no.md) [c](#x) `[d](e)`\n# X\n[f](cli.md#no-such)"
        self.assertEqual(broken_links("docs/cli.md", text), ["no.md", "cli.md#no-such"])

    def test_named_files_are_there(self):
        for path in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/adding.md"):
            self.assertEqual(gone(read(path)), [], path)

    def test_named_files_that_are_gone(self):
        text = "`ir/op` `ir/nothing.go` `nothing.go` `importers/NAME.go` `docs.go` `a/b` `passes/NAME.rs`\n"
        self.assertEqual(gone(text), ["ir/nothing.go", "nothing.go", "passes/NAME.rs"])

    def test_architecture_names_every_folder(self):
        text = read("ARCHITECTURE.md")
        out = subprocess.run(["git", "ls-files", "*.go"], cwd=ROOT, capture_output=True, text=True, check=True)
        tops = {path.split("/")[0] for path in out.stdout.splitlines() if "/" in path} - {"testdata"}
        rows = "".join(re.findall(r"(?m)^\| ([^|]*) \|", text.partition("## Packages")[2].partition("\n## ")[0]))
        self.assertEqual([top for top in sorted(tops) if f"`{top}`" not in rows], [])

    def test_excerpts(self):
        count = 0
        for path, text in documents():
            self.assertEqual(text.count("<!-- excerpt of"), len(list(excerpts(text))), path)
            for file, lines in excerpts(text):
                count += 1
                self.assertIsNone(missing(lines, read(file)), f"{path}: is not in {file} any more")
        self.assertGreater(count, 0)

    def test_excerpts_that_are_not(self):
        self.assertIsNone(missing(["a", "c"], "a\nb\nc"))
        self.assertEqual(missing(["c", "a"], "a\nb\nc"), "a")

    def test_index(self):
        index = read("docs/README.md")
        for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
            if name.endswith(".md") and name != "README.md":
                self.assertIn(f"({name})", index)


if __name__ == "__main__":
    unittest.main()
