#!/usr/bin/env python3
"""Writes the tokenizers and the expected results that the tests of text/tokenizer compare with.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 transformers==5.23.0
    venv/bin/python text/tokenizer/testdata/make_corpus.py

It trains a small tokenizer per supported family on the corpus below, and runs Hugging Face's tokenizers library over the
corpus, over random texts and over random ids. The families whose name ends in resaved are as transformers writes them
again. Beside this file it writes

    corpus.json               texts, and fragments and ranges of characters [start, end) that random texts are made of
    NAME/tokenizer.json       a tokenizer
    NAME/expected.json        what the library makes of it:
        vocab_size, special   number of tokens, ids of the special ones
        texts                 per text of the corpus [ids with the template, where those without it start and end in them,
                              decoded without special tokens, decoded with them or null if that is the same]
        random                [ids, decoded without special tokens, decoded with them or null]
        mixed                 a digest for every 500 random texts, over ids, what they decode to without special tokens and
                              with them; corpus_test.go draws the same texts
"""

import collections
import hashlib
import json
import os
import pathlib
import random
import tempfile

os.environ["TRANSFORMERS_OFFLINE"] = "1"

import tokenizers
from draw import Draw
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")

PROSE = """
The old lighthouse keeper counted the ships every evening, and every morning he counted them again. It wasn't that he
didn't trust the sea; he'd simply learned that numbers don't lie, and that the harbour's ledger, once begun, shouldn't be
left unfinished. They're gone now, the ships and the keeper, but the ledger is still there, we've seen it ourselves.
In 1987 there were 12,345 entries; by 2024 the count had reached 1,000,000. I'll bet you've never read one. I'm sure.
Der Leuchtturmwärter zählte jeden Abend die Schiffe, und am nächsten Morgen zählte er sie größtenteils noch einmal.
Le gardien du phare comptait les bateaux chaque soir ; l'été, à l'aube, il les recomptait déjà sans s'être reposé.
El viejo guardián contaba los barcos cada noche. ¿Por qué? ¡Porque sí! El mañana llegará según lo previsto.
Старый смотритель маяка каждый вечер считал корабли, а утром пересчитывал их снова и записывал числа в журнал.
年老的灯塔看守人每天晚上数船，第二天早上再数一遍。他说数字不会说谎。
年老いた灯台守は毎晩船を数え、毎朝もう一度数えました。数字は嘘をつかないと彼は言った。
늙은 등대지기는 매일 저녁 배를 세고 아침마다 다시 세었다.
كان حارس المنارة العجوز يعد السفن كل مساء ويعدها مرة أخرى كل صباح.
बूढ़ा प्रकाशस्तंभ रक्षक हर शाम जहाज़ गिनता था।
def count(ships, *, start=0):
    \"\"\"Return how many ships there are.\"\"\"
    total = start
    for ship in ships:
        if ship is not None and ship.name != "":
            total += 1
    return total

func count(ships []Ship) (n int, err error) {
\tfor _, s := range ships {
\t\tif s.Name == "" { continue }
\t\tn++
\t}
\treturn n, nil
}
"""

CORPUS = [
    "", " ", "  ", "   ", "\t", "\n", "\r\n", "\r", " \n ", "\n\n\n", " \t \n\t ", "\u00a0", "\u2003\u2003", "\u3000", "\u0085", "\u200b",
    "\v\f", "a ", " a", "  a", "   a  b   c    ", "a\tb", "a\t\tb", "a \tb", "\ta", "a\n", "a\n\n", "a\nb", "a\n\nb", "a \n b", "a  \n\n  b",
    "a\r\nb\r\n", "a\r\n\r\n  b", "\r\n\r\n", " \r\n", "x\u00a0y", "x \u00a0 y", "x\u2028y\u2029z", "trailing   ", "trailing \n", "!\n", "!\n\n a", "?!\r\n\r\nx",
    " !\n", "( \n)", ";\n\n\n;", "Hello", "Hello, world!", "hello world", "HELLO WORLD", "The quick brown fox jumps over the lazy dog.",
    "I'm", "you're", "they've", "he'll", "she'd", "it's", "don't", "I'M", "YOU'RE", "THEY'VE", "HE'LL", "SHE'D", "IT'S", "DON'T", "'s", "'S", "'re", "'rE", "'Ve",
    "'", "''", "'''", "'a", "'sa", "'st", "'l", "'ll", "'lL", "'lla", "'r", "'v", "'\u017f", "x'\u017fy", "rock 'n' roll", "'tis the season", "O'Reilly's", "we'd've", "y'all'd've",
    " 's", " 'll", "a 's b", "l'été", "d'accord", "’s it’s ‘quoted’ “double”", "1's", "!'s", "\n's", "'d\n'm",
    "0", "1", "12", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000", "-42", "+1 (555) 123-4567", "1e10", "0xDEADBEEF", "v1.2.3", "2024-01-31T23:59:59Z",
    "a1b2c3", "1a", "a1", " 1", "  12", "   1234", "100%", "$5.00", "№5", "½ cup", "x²+y²", "Ⅳ", "①②③", "٣", "٠١٢٣٤٥٦٧٨٩", "السعر ١٢٣٤ ريال", "१२३४", "１２３４", "𝟏𝟐𝟑", "〇一二三", "௧௨",
    "Grüße aus Köln", "naïve café", "e\u0301", "cafe\u0301 cre\u0300me", "a\u0308\u0323", "\u0301", " \u0301x", "ñandú", "Ångström", "ﬁne ﬂow", "ǅ ǆ", "İstanbul ı", "ẞß", "straße",
    "Привет, мир!", "Съешь же ещё этих мягких французских булок", "Ελληνικά", "שלום עולם", "مرحبا بالعالم", "مَرْحَبًا", "नमस्ते दुनिया", "สวัสดีชาวโลก", "ကမ္ဘာ", "გამარჯობა",
    "你好，世界！", "年老的灯塔看守人每天晚上数船。", "こんにちは世界", "カタカナ ﾊﾝｶｸ", "東京タワー2024年", "안녕하세요 세계", "한국어", "中文English混合123", "𠮷野家", "龘龘龘", "Ω龘Ω龘龘 Ω",
    "😀", "😀😀😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "1️⃣", "❤️", "a😀b", " 😀", "😀\n", "☕ break", "🧑🏿‍🚀 to 🌕", "⛄️\u20e3",
    "...", "…", "!!!", "?!", "---", "—–‐", "***bold***", "<b>html</b>", "&amp;", "@user #tag", "a@b.co", "https://example.com/path?q=1&r=2#frag", "C:\\Users\\me", "~/.bashrc", "a/b\\c",
    "foo_bar", "__init__", "snake_case_name", "camelCaseName", "SCREAMING_CASE", "kebab-case", "a.b.c", "x=y", "x == y", "x!=y", "i++", "a->b", "::std::vec", "=>", "<|", "|>", "<||>", "<|x|>",
    "def f(x):\n    return x + 1\n", "for i in range(10):\n\tprint(i)\n", "if (a && b) {\r\n\tc();\r\n}\r\n", "    \"\"\"doc\"\"\"\n\n    x = [1, 2, 3]\n", "\t\tif s.Name == \"\" { continue }\n",
    "#include <stdio.h>\nint main(void) { return 0; }", "SELECT * FROM t WHERE a = 'b';", "{\"k\": [1, 2.5e-3, null]}", "λx. x", "∀x∈ℝ: x²≥0", "∑∏∫", "a→b", "╔══╗", "█▓▒░", "\u25cf bullet",
    "<s>", "</s>", "<unk>", "<s>hello</s>", " <s> hello </s> ", "<0x41>", "<0xE2><0x82><0xAC>", "<0x", "<|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>",
    "<|begin_of_text|>Hi<|eot_id|>", "<|im_start|>user\nhello<|im_end|>\n", "<|endoftext", "endoftext|>", "<<|endoftext|>>", "\n<|endoftext|>\n",
    "[strip] a", "a [strip] b", "a   [strip]   b", "[strip][strip]", "  [strip]", "[strip]  ", "a[left]b", "a  [left]  b", "a  [right]  b", "[right] [left]", "[left] [right]", "  [left]",
    "word", "a word b", "sword", "words", "word_", "-word-", "wordword", "word word", "été word", "éword", "word\u0301", "\u200dword", "the_norm token", "the norm token", "a the norm b", "x the normy",
    "▁", "▁a", "a▁b", "▁▁", " ▁ a", "▁ ", "a ▁", "Ġ", "Ġa Ċ", "ĠĠ\u00ad", "\u0120\u010a\u00ff\u0143",
    "a\u0000b", "\u0000", "\u0001\u0002\u0003", "\u001b[31mred\u001b[0m", "\u007f", "\u0080\u009f", "\ufeffbom", "\ufffd", "\ufffe\uffff", "\ue000", "\U0010ffff", "\U000e0041", "\\ud800", "\\udc00\\ud83d", "\ud7ff\ue000",
    "\u202ertl\u202c", "soft\u00adhyphen", "zero\u200bwidth", "word\u2060joiner", "\u180e", "\u1680x", "\u205f",
    "aaaaaaaaaaaaaaaa", "a" * 300, "ab" * 200, " " * 100, "\n" * 50, "1" * 100, "!" * 100, "😀" * 40, "Donaudampfschifffahrtsgesellschaftskapitän" * 5,
    "antidisestablishmentarianism", "pneumonoultramicroscopicsilicovolcanoconiosis", "supercalifragilisticexpialidocious", "AAAAbbbbCCCC", "xXxXxXx", "éèêë" * 10, "数" * 60,
    # One character of every range that Unicode 15.1 and 16.0 added to the letters and the numbers.
    "x\u1c89y \ua7cby \ua7day", "x\U000105c0y \U00010d4ay \U00010d6fy \U00010ec2y \U00011380y", "\U0001138b\U0001138e\U00011390 \U000113b7\U000113d1\U000113d3",
    "x\U00011bc0 \U00013460 \U00016100 \U00016d40 \U00018cff", "\U0001e5d0\U0001e5f0 \U0002ebf0!", "x\U00010d40\U000116d0 \U00011bf0\U00016130 \U00016d70\U0001ccf0\U0001e5f1!",
    PROSE,
]

TRICKY = ["a", "b", "S", "t", "é", "ſ", "1", "2", "٣", "½", " ", " ", "  ", "\n", "\r", "\t", "\u00a0", "\u3000", "'", "'s", "'LL", "!", "_", "-", ".", "\u0301", "数", "😀", "\u200d", "▁",
          "<s>", "</s>", "<|endoftext|>", "word", "[strip]", "[left]", "[right]", "the norm", "<0x0A>"]

# Texts that the tokenizers are not trained on: what normalization changes, and what sits around it.
HOSTILE = [
    "re\u0301sume\u0301 d\u2019e\u0301te\u0301", "a\u0323\u0302 a\u0302\u0323 \u1ead", "q\u0307\u0323 q\u0323\u0307", "s\u0323\u0307 \u1e69 \u1e9b\u0323", "\u212b \u2126 \u212a \u00c5", "\u0344\u0343\u0340",
    "\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00 \u1112\u1161\u11ab", "\uac00\u11a8\u11a8", "\u1100\u1100\u1161\u1161", "\u11a8\u1161\u1100", "\u3131\u314f", "\u304b\u3099\u304d\u3099 \uff76\uff9e", "\u30cf\u309a \u30d1",
    "\uf900\uf901 \U0002f800\U0002fa1d", "\u0915\u093c \u0958", "\u09c7\u09be \u09cb", "\u0bc6\u0bbe", "\u0627\u0653 \u0622", "\u05e9\u05c1\u05bc \ufb2c", "\u0e01\u0e33\u0e48\u0e49", "\u0f71\u0f72\u0f80\u0f73", "\u1025\u102e",
    "\U0001d15e \U0001d158\U0001d165", "\U00011099\U000110ba", "a\u0301\u0897\u0323 a\u1df6\u0301", "\U0001e94a\U0001e944", "\U000105d2\u0307", "e" + "\u0301" * 40, "e" + "\u0323\u0301" * 40 + "!", "\u0301" * 35,
    "\u2764\ufe0f\u200d\U0001f525", "\U0001f469\U0001f3fd\u200d\U0001f4bb", "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0e", "#\ufe0f\u20e3 *\u20e3", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u200d\u200d", "\ufe0e\ufe0f", "\u845b\U000e0100",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\ncafe\u0301?<|im_end|>\n<|im_start|>assistant\n", "<|im_start|><think>\n\n</think>\n\n\u0301<|im_end|>",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", "<|im_start|>\u0301<|im_end|>", "e<|im_start|>\u0301", "<|im_start\u0301|>", "<think></think", "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>", "<|vision_start|><|image_pad|>",
    "cafe\u0301s caf\u00e9 re\u0301dcafe\u0301", "CAFE\u0301 caf\u00e9\u0301", "[INST] Hello, world! [/INST] Hi.</s>[INST]again[/INST]", "<s>[INST]", "[INST] [INST]", " [INST]x", "[control_8][control_768]", "[control_9", "[TOOL_CALLS] [{}]</s>",
    "[AVAILABLE_TOOLS] []\n[/AVAILABLE_TOOLS]", "\u2581[INST]\u2581", "a\u2581\u2581 b", "\t \t\r\n \r\n\t", "\r\r\n\n\r", "x \u3000\u00a0 y", "\u2028 \u2029\u0085 \u000b", "\u0000e\u0301\u0000", "\u0085\u0301", "1\u0301 2\u20dd 3\u0660", "'\u0301s 's\u0301",
    "\u037e\u0387\u1fef", "\u2000\u2001", "\u2329\u232a \u3008", "\u0149 \u01c4 \ufb01", "\u1e0a\u0323", "\u03b1\u0345\u0301", "\u0438\u0306 \u0439", "\u0130 i\u0307 \u0131", "\u1100\u0301\u1161", "e \u0301",
]

# Random texts are fragments and single characters of these ranges.
FRAGMENTS = TRICKY + [
    "e\u0301", "\u0323\u0302", "\u0327", "\u1112\u1161\u11ab", "\u1161", "\u11a8", "\uac00", "\u304b\u3099", "\u212b", "\u09c7\u09be", "\u0897", "\u1df6", "\ufe0f", "\U0001f468\u200d\U0001f467", "\U0001f3fd", "\r\n", "\n\n", "\u0085", "\u2003",
    "\u0000", "\u001b", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "[INST]", "[/INST]", "[control_8]", "caf\u00e9", "cafe\u0301", " the", "The", "def ", "(x)", "==", "12", "\u041f\u0440\u0438", "\u0645\u064e\u0631", "\u0928\u093f",
]
RANGES = [
    (0x20, 0x7F), (0x80, 0x250), (0x300, 0x370), (0x370, 0x590), (0x590, 0x900), (0x900, 0xE00), (0xE00, 0x1100), (0x1100, 0x1200), (0x1780, 0x1B00), (0x1DC0, 0x2000), (0x2000, 0x2C00), (0x3000, 0x3200), (0x4E00, 0x5000),
    (0xA000, 0xABFF), (0xAC00, 0xD7A4), (0xE000, 0xE010), (0xF900, 0xFB50), (0xFB50, 0x10000), (0x10000, 0x12000), (0x16000, 0x17000), (0x1D100, 0x1D800), (0x1E000, 0x1EF00), (0x1F000, 0x1FB00), (0x2F800, 0x2FA20), (0xE0000, 0xE01F0),
]


def random_texts(seed, n):
    draw = Draw(seed)
    for _ in range(n):
        text = ""
        for _ in range(1 + draw.below(24)):
            if draw.below(6) == 0:
                start, end = draw.choice(RANGES)
                text += chr(start + draw.below(end - start))
            else:
                text += draw.choice(FRAGMENTS)
        yield text


def corpus():
    rng = random.Random(20240131)
    mixed = ["".join(rng.choice(TRICKY) for _ in range(rng.randint(1, 24))) for _ in range(80)]
    return list(dict.fromkeys(CORPUS + mixed + HOSTILE))


def byte_level(pre, size, specials, normalizer=None):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        PROSE.splitlines(keepends=True) + CORPUS,
        trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return json.loads(t.to_str())


def sentence_piece(size, byte_tokens, alphabet):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=byte_tokens))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"]
    hexes = ["<0x%02X>" % b for b in range(256)] if byte_tokens else []
    lines = PROSE.splitlines(keepends=True) + CORPUS
    counts = collections.Counter("".join(lines))
    kept = set(sorted(counts, key=lambda c: (-counts[c], c))[:alphabet])  # limit_alphabet breaks ties at random
    t.train_from_iterator(
        ["".join(c for c in line if c in kept) for line in lines],
        trainers.BpeTrainer(vocab_size=size, special_tokens=specials + hexes, show_progress=False))
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if a["content"] in specials]
    j["pre_tokenizer"] = None
    j["decoder"] = sequence("decoders", REPLACE_BACK, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP)
    j["post_processor"] = template([("<s>", 1)])
    return j


def added(identifier, content, **flags):
    token = dict(id=identifier, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    token.update(flags)
    return token


def template(before, after=()):
    """before and after are (content, id) pairs."""
    def special(tokens):
        return [{"SpecialToken": {"id": content, "type_id": 0}} for content, _ in tokens]

    a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    return {"type": "TemplateProcessing", "single": [*special(before), a, *special(after)], "pair": [*special(before), a, b],
            "special_tokens": {content: {"id": content, "ids": [identifier], "tokens": [content]} for content, identifier in [*before, *after]}}


def sequence(key, *members):
    return {"type": "Sequence", key: list(members)}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
REPLACE_BACK = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
PREPEND = {"type": "Prepend", "prepend": "▁"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def copy(j, **changes):
    j = json.loads(json.dumps(j))
    j.update(changes)
    return j


def with_added(j):
    """j with one added token for each flag, and one found in normalized text."""
    vocab = j["model"]["vocab"]
    more = [
        added(0, "[strip]", lstrip=True, rstrip=True, special=True), added(0, "[left]", lstrip=True), added(0, "[right]", rstrip=True),
        added(0, "word", single_word=True), added(0, "the norm", normalized=True), added(0, "<|im_start|>", special=True),
        added(0, "<|im_end|>", special=True), added(0, "<|"),
    ]
    there = {token["content"] for token in j["added_tokens"]}
    more = [token for token in more if token["content"] not in there]
    next_id = len(vocab) + len(there - vocab.keys())
    for token in more:
        token["id"] = vocab.get(token["content"], next_id)
        next_id += token["id"] == next_id
    return copy(j, added_tokens=j["added_tokens"] + more)


# Qwen2.5's added tokens that are special and that are not; the last four came with Qwen3.
QWEN_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]
QWEN_TEXT = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]


def with_controls(j):
    """j with the control tokens of Mistral-7B-Instruct-v0.3, which the vocabulary has from id 3 on."""
    names = ["[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]
    names += ["[control_%d]" % i for i in range(8, 769)]
    j = copy(j, added_tokens=j["added_tokens"] + [added(3 + i, c, special=True) for i, c in enumerate(names)])
    vocab = {c: i if i < 3 else i + len(names) for c, i in j["model"]["vocab"].items()}
    vocab.update((c, 3 + i) for i, c in enumerate(names))
    j["model"]["vocab"] = dict(sorted(vocab.items(), key=lambda item: item[1]))
    return j


def resaved(j, **config):
    """j as transformers writes it after reading it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "tokenizer.json").write_text(json.dumps(j))
        (path / "tokenizer_config.json").write_text(json.dumps(config))
        AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
        return json.loads((path / "tokenizer.json").read_text())


def legacy_merges(j):
    j = copy(j)
    j["model"]["merges"] = [" ".join(pair) for pair in j["model"]["merges"]]
    return j


def families():
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    llama3 = byte_level(pre_tokenizers.Sequence([split, to_bytes]), 1100, [])
    n = len(llama3["model"]["vocab"])
    llama3["added_tokens"] = [added(n + i, c, special=True) for i, c in enumerate(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])]
    llama3["model"]["ignore_merges"] = True
    del llama3["model"]["merges"][::7]  # so that some tokens are reached as whole words only
    llama3["post_processor"] = sequence("processors", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
                                        template([("<|begin_of_text|>", n)]))
    yield "llama3", llama3

    gpt2 = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), 1100, ["<|endoftext|>"])
    yield "gpt2", legacy_merges(gpt2)
    prefixed = copy(gpt2)
    prefixed["pre_tokenizer"]["add_prefix_space"] = True
    yield "gpt2-prefix-added", with_added(prefixed)

    yield "smollm2", byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), 1100,
                                ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    yield "digits-runs", byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=True)]), 600,
                                    ["<|endoftext|>"])
    qwen2 = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), to_bytes]), 1000, [], normalizers.NFC())
    n = len(qwen2["model"]["vocab"])
    qwen2["added_tokens"] = [added(n + i, c, special=c not in QWEN_TEXT) for i, c in enumerate(QWEN_SPECIAL + QWEN_TEXT[:-4])]
    qwen2["post_processor"] = qwen2["decoder"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    yield "qwen2", qwen2
    qwen3 = copy(qwen2, added_tokens=[added(n + i, c, special=c not in QWEN_TEXT) for i, c in enumerate(QWEN_SPECIAL + QWEN_TEXT)])
    yield "qwen3", qwen3
    yield "qwen3-resaved", resaved(qwen3, tokenizer_class="Qwen2Tokenizer", add_bos_token=False, add_prefix_space=False, bos_token=None, eos_token="<|im_end|>",
                                   pad_token="<|endoftext|>", unk_token=None, additional_special_tokens=QWEN_SPECIAL[1:])
    # Tokens that are found in normalized text: one that normalization changes, and one that it makes.
    m = n + len(qwen2["added_tokens"])
    yield "qwen2-added", with_added(copy(qwen2, added_tokens=qwen2["added_tokens"] + [
        added(m, "cafe\u0301", normalized=True), added(m + 1, "r\u00e9d", normalized=True, special=True), added(m + 2, "\u0301", normalized=False)]))

    llama2 = sentence_piece(1300, True, 120)
    prepend = copy(llama2, normalizer=sequence("normalizers", PREPEND, REPLACE))
    yield "llama2", legacy_merges(prepend)
    yield "llama2-added", with_added(prepend)
    yield "metaspace-first", copy(llama2, pre_tokenizer=metaspace("first", False))
    yield "metaspace-always", with_added(copy(llama2, pre_tokenizer=metaspace("always", True), decoder=metaspace("always", True)))
    yield "yi", copy(llama2, normalizer=REPLACE, post_processor=None, decoder=sequence("decoders", REPLACE_BACK, {"type": "ByteFallback"}, {"type": "Fuse"}))

    mistral = dict(tokenizer_class="LlamaTokenizer", add_bos_token=True, add_eos_token=False, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    yield "mistral1-resaved", resaved(prepend, legacy=True, **mistral)
    mistral3 = with_controls(copy(llama2, pre_tokenizer=metaspace("first", False)))
    yield "mistral3", mistral3
    yield "mistral3-resaved", resaved(mistral3, legacy=False, **mistral)

    unknown = sentence_piece(700, False, 80)
    yield "unk-fused", copy(unknown, pre_tokenizer=metaspace("never", True), decoder=metaspace("never", True),
                            post_processor=template([("<s>", 1), ("<unk>", 0)], [("</s>", 2)]))
    digits = {"type": "Digits", "individual_digits": True}
    yield "digits-metaspace", copy(unknown, pre_tokenizer=sequence("pretokenizers", digits, metaspace("first", False)))
    apart = copy(unknown, normalizer=sequence("normalizers", PREPEND, REPLACE), decoder=None)
    apart["model"]["fuse_unk"] = False
    yield "unk-apart", apart
    holes = copy(unknown, normalizer=sequence("normalizers", PREPEND, REPLACE))
    holes["model"]["byte_fallback"] = True
    n = len(holes["model"]["vocab"])
    for i, b in enumerate("龘".encode()):  # other characters stay unknown
        holes["model"]["vocab"]["<0x%02X>" % b] = n + i
    yield "unk-and-bytes", holes


def random_ids(seed, size):
    """Half of the sequences favour low ids, where the single bytes are."""
    rng = random.Random(seed)
    for i in range(60):
        yield [rng.randrange(270 if i % 2 else size + 3) for _ in range(rng.randint(0, 12))]


def write(path, value, **options):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), **options) + "\n", encoding="utf-8")


def main():
    texts = corpus()
    mix = list(random_texts(2, 10_000))
    write(HERE / "corpus.json", {"tokenizers": tokenizers.__version__, "texts": texts, "fragments": FRAGMENTS, "ranges": RANGES})
    for seed, (name, j) in enumerate(families()):
        t = Tokenizer.from_str(json.dumps(j))
        size = t.get_vocab_size()

        def decoded(ids):
            clean, raw = t.decode(ids), t.decode(ids, skip_special_tokens=False)
            return [clean, None if raw == clean else raw]

        def encoded(text):
            ids, plain = t.encode(text).ids, t.encode(text, add_special_tokens=False).ids
            front = next(i for i in range(len(ids) + 1) if ids[i:i + len(plain)] == plain)
            return [ids, front, front + len(plain)]

        on_texts = [[*encoded(s), *decoded(t.encode(s).ids)] for s in texts]
        def mixed():
            for start in range(0, len(mix), 500):
                h = hashlib.sha256()
                for text in mix[start:start + 500]:
                    ids = t.encode(text).ids
                    for part in ("".join("%d " % i for i in ids), t.decode(ids), t.decode(ids, skip_special_tokens=False)):
                        h.update(part.encode() + b"\0")
                yield h.hexdigest()[:16]

        on_random = [[ids, *decoded(ids)] for ids in random_ids(seed, size)]
        special = sorted(i for i, a in t.get_added_tokens_decoder().items() if a.special)
        write(HERE / name / "tokenizer.json", j)
        write(HERE / name / "expected.json", {"vocab_size": size, "special": special, "texts": on_texts, "random": on_random, "mixed": list(mixed())})


if __name__ == "__main__":
    main()
