#!/usr/bin/env python3
"""Writes ../regex/testdata/splits.json: how Hugging Face's tokenizers library, and so Oniguruma, cuts texts with
patterns. It runs in the same environment as make_corpus.py, which says how to make one.

    patterns    {pattern: [per text: the ends of the pieces, in characters]}
    texts       what is cut

Half of the patterns are those of model families and others of people, half are drawn at random.
"""

import json
import pathlib

from draw import Draw
from tokenizers import Regex, pre_tokenizers

PATTERNS = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+", r"[0-9][0-9][0-9]",
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"[^\S\n]+|\n", r"(?<=a)b|a(?=b)", r"(?<!a)b|a(?!b)", r"^a|b$", r"\Aa|b\z|\s\Z", r"a+?b|a*?1", r"a{2,}|b{1,2}?", r"a??b", r"x*",
    r"\h+", r"\w+|\d", r"\W\D", r"[\p{L}&&[^a]]+", r"[a[b1]]+", r"[^a&&b]+", r"\P{L}+|\p{^N}", r"\u00e9|\x{e9}|\x61", r".", r".+$",
    r"(?i:k|[s-t])+", r"(?i)re", r"(?:a|ab)(?:1|b1)", r"(?:a+b?)+1|b", r"a++b|a+", r"a?+ab", r"(a|b)*1", r"[-a]|[b-]|[a\-1]", r"(?<=\s)\S|a(?!\s)",
    r"[\w]+", r"[\W1]", r"[^\w\s]", r"(?<=\w)\W|(?![\w])\w", r"a*a++b|a", r"(?:a|b)*a++(?!1)",
]
TEXTS = [
    "", "a", "ab1", "I'm SURE it's 12345 o'clock, they'LL DON'T!\r\n\r\n  x  ", "Ünïcödé ÀÉ’s ñ ǅ ʰʰ 你好,世界 123\n\n", "camelCase HTTPServer/path//\n/x ABCdef",
    "\u0915\u094d\u0937\u093f \u0e20\u0e32\u0e29\u0e32 e\u0301a\u0308 \u0301x", "a b\n\na  \n b\t\t1 1", "\u00a0x\u3000y\u2028z\u0085w \u200b", "aab abab aaab1 aaaa1111bb",
    "\U0001f600\u2764\ufe0f\u00bd\u00b2\u2167 \u0661\u0662\u0663\u0664 \uff11\uff12", "ſKſ re RE Re \u212a", "x = {\"a\": [1, 22, 333, 4444]};\n\tif (b) return a_b-c;  ", "a-b--[]&&^\\", "\nb\na\n",
    "こんにちはカタカナ漢字한국어ä￿", "  a   b    1",
]


def pieces(pattern, text):
    return [end for _, (_, end) in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


def drawn(draw, depth=0):
    """A pattern without what may be empty inside a repeat."""
    atoms = ["a", "b", "1", " ", "\\s", "\\S", "[ab]", "[^a]", "\\p{L}", "\\p{N}", "[^\\s1]", ".", "é", "\\n"]

    def atom():
        if depth < 2 and draw.below(4) == 0:
            return "(?:" + drawn(draw, depth + 1) + ")"
        return draw.choice(atoms)

    def sequence():
        out = ""
        for i in range(1 + draw.below(3)):
            kind = draw.below(12)
            if kind == 0:
                out += draw.choice(["(?!a)", "(?=\\s)", "(?<=b)", "(?<!\\S)", "^", "$", "(?![b1])"])
            out += atom() + (draw.choice(["?", "+", "*", "{1,2}", "+?", "*?", "??"]) if kind > 7 and i else "")
            if kind > 10 and not out.endswith(")"):
                out += draw.choice(["a", "b++", " ?+"])
        return out
    return "|".join(sequence() for _ in range(1 + draw.below(3)))


def main():
    draw = Draw(3)
    golden = {}
    patterns = PATTERNS + [drawn(draw) for _ in range(300)]
    texts = TEXTS + ["".join(draw.choice("aaabb11  \né") for _ in range(draw.below(14))) for _ in range(30)]
    for p in patterns:
        try:
            golden[p] = [pieces(p, text) for text in texts]
        except BaseException as e:  # Oniguruma gives up after ten million steps, and the library panics
            print("left out:", p, e)
    path = pathlib.Path(__file__).parent.parent / "regex" / "testdata" / "splits.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"texts": texts, "patterns": golden}, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


main()
