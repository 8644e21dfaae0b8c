#!/usr/bin/env python3
"""Writes unicode.json and ../chars/categories.go: what Hugging Face's tokenizers library takes for letters and the like, and what its normalizer
NFC makes of all characters and of many sequences. It runs in the same environment as make_corpus.py, which says how to
make one.

    tokenizers    version of the library
    classes       {name: digest} of all members: \\p{L} and each general category, \\s and \\w in a Split, \\w of single_word,
                  the digits of Digits, the punctuation of Punctuation
    marks         one combining mark per class that the library knows, highest class first
    blocks        {"XX": digest}, XX the number of a block of 4096 code points in hex. Per code point C: C; C between
                  marks, where it stays if it is a starter; and if it did not stay, "x" C marks, which sorts it to the
                  place that its class has
    firsts        characters that are the first half of a composition in any version of Unicode
    pairs         {second half: digest}, over all firsts: the first, then this one
    hangul        digest. Per syllable: its jamo, and for LVT also the syllable LV and then T
    pool, random  1000 sequences of 1 to 12 characters from the pool per digest, drawn as random_test.go does
    sequences     [text, normalized]
    steps         {name: [digest per plane]} of other normalizers, over what they make of each code point C and of C
                  between marks; after those, a digest over what they make of the first 5000 random sequences

A digest is the first 8 bytes of SHA-256 in hex, over the texts with a zero byte after each.
"""

import hashlib
import itertools
import json
import pathlib
import unicodedata

import tokenizers
from draw import Draw
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

nfc = tokenizers.normalizers.NFC().normalize_str

# The compositions of Unicode 15 to 17, which Python need not know.
LATER = ["\U000105d2\u0307", "\U000105da\u0307", "\U00011382\U000113c9", "\U00011384\U000113bb",
         "\U0001138b\U000113c2", "\U00011390\U000113c9", "\U000113c2\U000113c2", "\U000113c2\U000113b8",
         "\U000113c2\U000113c9", "\U0001611e\U0001611e", "\U0001611e\U00016129", "\U0001611e\U0001611f",
         "\U00016129\U0001611f", "\U0001611e\U00016120", "\U00016121\U0001611f", "\U00016122\U0001611f",
         "\U00016121\U00016120", "\U00016d67\U00016d67", "\U00016d63\U00016d67", "\U00016d69\U00016d67"]

SEQUENCES = [
    "cafe\u0301", "e\u0323\u0302", "e\u0302\u0323", "\u1ec7", "a\u0308\u0304", "a\u0304\u0308", "\u0344", "\u0340\u0341", "\u212b\u2126\u212a",
    "\u0958", "\u09c7\u09be", "\u0b47\u0b56", "\u0dd9\u0dcf\u0dca", "\u1025\u102e", "\u304b\u3099", "\u30cf\u309a", "\u1100\u1161\u11a8", "\uac00\u11a8",
    "\uac01\u11a8", "\u1100\u1161\u0301\u11a8", "\u1112\u1175", "\uf900\ufa6d", "\U0002f800", "\U0001d15e\U0001d165", "\ufb1d\ufb4e", "\u05d0\u05b7\u05bc\u0591",
    "\u0627\u064f\u0651\u0653", "\u0f71\u0f72\u0f80", "\u0f73\u0f75\u0f81", "a\u034f\u0301", "a\u0301\u034f\u0323", "a\u0327\u0301\u0327", "\u0301", "\u0301a", "\u0308\u0301",
    "a\u0897\u0301", "a\u0301\u0897\u0323", "a\u0323\u1df6\u0301", "\U0001e94a\U0001e944", "a\U0001e94a\u0334", "a\U00016ff0\u0301", "x\u0301\u0317" * 20,
    "a" + "\u0301" * 29, "a" + "\u0301" * 30, "a" + "\u0301" * 31, "a" + "\u0323\u0301" * 40, "a" + "\u0301\u0323" * 200, "\u0301" * 64, "\u1100" + "\u1161" * 40,
    "\u0b92" + "\u0bd7" * 35, "e" + "\u0334" * 33 + "\u0301", "\u1ea5" * 33, "\uff9e" * 40, "\u0f71" * 40 + "\u0f72", "a" * 31 + "\u0301" * 31 + "b" * 31,
]


def digest(texts):
    h = hashlib.sha256()
    for text in texts:
        h.update(text.encode() + b"\0")
    return h.hexdigest()[:16]


def characters(start, stop):
    return (chr(c) for c in range(start, stop) if not 0xD800 <= c < 0xE000)


def classes():
    """The members of each class. A text of all characters is cut, with one that is in no class between them."""
    everything = "".join("\x01" + c for c in characters(0, 0x110000))

    def cut(by):
        return [p for p, _ in by.pre_tokenize_str(everything) if len(p) == 1 and p != "\x01"]

    def found(pattern):
        return [p for p, _ in pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str("".join(characters(0, 0x110000)))]

    words = Tokenizer(models.BPE())
    words.add_tokens([AddedToken("word", single_word=True)])
    patterns = {"letter": r"\p{L}", "number": r"\p{N}", "space": r"\s", "regex word": r"\w"}
    members = {name: found(pattern) for name, pattern in patterns.items()}
    members.update((name, found(r"\p{%s}" % name)) for name in CATEGORIES)
    members["numeric"] = cut(pre_tokenizers.Digits(individual_digits=True))
    members["punctuation"] = cut(pre_tokenizers.Punctuation("isolated"))
    members["word"] = [c for c in characters(0, 0x110000) if not words.encode("word" + c).ids]
    return members


# The letter of each category in ../chars/categories.go.
CATEGORIES = dict(Lu="A", Ll="a", Lt="t", Lm="m", Lo="o", Mn="n", Mc="c", Me="e", Nd="d", Nl="l", No="N", Pc="_", Pd="-", Ps="(", Pe=")", Pi="<", Pf=">", Po="!",
                  Sm="+", Sc="$", Sk="^", So="s", Zs="Z", Zl="L", Zp="P", Cc="C", Cf="f", Co="p", Cn=".")


def categories(members):
    """The Go source with the category of every code point, from the members of each."""
    letters = ["S"] * 0x110000  # surrogates are in no text
    for name, letter in CATEGORIES.items():
        for c in members[name]:
            letters[ord(c)] = letter
    runs = "".join(k + (str(n) if n > 1 else "") for k, n in ((k, len(list(run))) for k, run in itertools.groupby(letters)))
    return """package chars

// Code generated by text/tokenizer/testdata/make_unicode.py; DO NOT EDIT.

// categories lists the general category of all code points of Unicode 16 from U+0000 on: for each run of code points of
// one category its letter in categoryLetters, and the length of the run where that is more than one.
const categories = "" +
""" + " +\n".join('\t"%s"' % runs[i:i + 114] for i in range(0, len(runs), 114)) + "\n"


def known_marks():
    """One mark per class, of those that the library moves."""
    marks = {}
    for c in characters(0, 0x20000):
        k = unicodedata.combining(c)
        probe = "x" + c + "\u0334" if k > 1 else "x\u0345" + c
        if k and nfc(probe) != probe:
            marks.setdefault(k, c)
    return "".join(marks[k] for k in sorted(marks, reverse=True))


def compositions():
    """Pairs that compose in some version of Unicode."""
    pairs = list(LATER)
    for c in characters(0, 0x30000):
        parts = unicodedata.decomposition(c).split()
        if len(parts) == 2 and "<" not in parts[0]:
            pairs.append("".join(chr(int(p, 16)) for p in parts))
    return pairs


def probes(c, marks):
    yield nfc(c)
    between = "x\u0345" + c + "\u0334"
    yield nfc(between)
    if nfc(between) != between:
        yield nfc("x" + c + marks)


def steps(pool):
    for step in ("NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        to = getattr(tokenizers.normalizers, step)().normalize_str
        planes = [digest(to(text) for c in characters(p << 16, (p + 1) << 16) for text in (c, "x\u0345" + c + "\u0334")) for p in range(17)]
        draw = Draw(1)
        yield step, planes + [digest(to("".join(draw.choice(pool) for _ in range(1 + draw.below(12)))) for _ in range(5000))]


def jamo():
    for syllable in range(0xAC00, 0xD7A4):
        lv, t = divmod(syllable - 0xAC00, 28)
        yield chr(0x1100 + lv // 21) + chr(0x1161 + lv % 21) + (chr(0x11A7 + t) if t else "")
        if t:
            yield chr(syllable - t) + chr(0x11A7 + t)


def main():
    members = classes()
    (pathlib.Path(__file__).parent.parent / "chars" / "categories.go").write_text(categories(members))
    marks, pairs = known_marks(), compositions()
    firsts, seconds = ("".join(sorted(set(p[i] for p in pairs))) for i in (0, 1))
    pool = "".join(sorted(set(firsts + seconds + marks))) + "ax \u00e9\u1ec7\u0897\u08d3\u1df6\u1dfa\u1ab5\uac00\u1100\u1161\u11a8\u304b\u6570\u0344\u0f73\u0f81"
    draw = Draw(1)
    golden = {
        "tokenizers": tokenizers.__version__,
        "classes": {name: digest(members[name]) for name in members},
        "marks": marks,
        "blocks": {"%02X" % b: digest(text for c in characters(b << 12, (b + 1) << 12) for text in probes(c, marks))
                   for b in range(0x110)},
        "firsts": firsts,
        "pairs": {s: digest(nfc(f + s) for f in firsts) for s in seconds},
        "hangul": digest(nfc(text) for text in jamo()),
        "pool": pool,
        "random": [digest(nfc("".join(draw.choice(pool) for _ in range(1 + draw.below(12)))) for _ in range(1000)) for _ in range(20)],
        "sequences": [[s, nfc(s)] for s in SEQUENCES],
        "steps": dict(steps(pool)),
    }
    path = pathlib.Path(__file__).parent / "unicode.json"
    path.write_text(json.dumps(golden, ensure_ascii=True, indent=0, separators=(",", ":")) + "\n")


main()
