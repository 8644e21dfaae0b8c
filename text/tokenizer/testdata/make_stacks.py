#!/usr/bin/env python3
"""Writes stacks.json: what Hugging Face's tokenizers library makes of texts with what model families put around a model.
It runs in the same environment as make_corpus.py, which says how to make one, and after it.

    NAME             a family as published; NAME-resaved as transformers writes it again; and steps that no family needs yet
        base         the tokenizer here whose model it has
        parts        of tokenizer.json, in the place of those of the base
        model        members of the model, in the place of those of the base
        texts        a digest over the texts of corpus.json: ids with the template, what they decode to without special
                     tokens and with them
        mixed        the same of 500 random texts each, as in expected.json
        random       a digest over what random ids decode to, drawn as stacks_test.go does
"""

import hashlib
import json
import pathlib
import tempfile

from draw import Draw
from make_corpus import (HERE, LLAMA3, PREPEND, QWEN2, REPLACE, REPLACE_BACK, STRIP, added, copy, corpus, metaspace, random_texts, sequence, template)
from tokenizers import Tokenizer
from transformers import AutoTokenizer

CASES = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s"
ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = r"[^\r\n\p{L}\p{N}]?" + CASES % (ENDINGS, ENDINGS) + r"|\p{N}{1,3}" + REST
TEKKEN = r"[^\r\n\p{L}\p{N}]?" + CASES % ("", "") + r"|\p{N}" + REST
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
EXAONE4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^" "\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[" "\r\n" r"]*|\s*[" "\r\n" r"]+"
             r"|\s+(?!\S)|\s+")
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿ\u0386\u0388-\u038a\u038c\u038e-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffcℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def pre(*steps):
    return sequence("pretokenizers", *steps) if len(steps) > 1 else steps[0]


BYTES = byte_level(use_regex=False)
MARKS = {"normalizer": None, "pre_tokenizer": None, "decoder": sequence("decoders", REPLACE_BACK, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP)}


def specials(base, *names, **flags):
    """Added tokens that are not in the vocabulary of the base."""
    n = len(base["model"]["vocab"])
    return [added(n + i, name, special=True, **flags) for i, name in enumerate(names)]


def published(base):
    """{family: (base, parts, model, how transformers takes it: config.json, tokenizer_config.json)}"""
    q, m = base["qwen2"], base["llama2"]
    end = specials(q, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    n = len(q["model"]["vocab"])

    def b(pre_tokenizer, normalizer=None, tokens=end, post=None, model=None, config=None, **tokenizer_config):
        parts = dict(normalizer=normalizer, pre_tokenizer=pre_tokenizer, decoder=byte_level(True), post_processor=post, added_tokens=tokens)
        return "qwen2", parts, model or {}, config, tokenizer_config

    def s(config=None, model=None, tokenizer_config=None, **parts):
        return "llama2", {**MARKS, **parts}, model or {}, config, tokenizer_config or {}

    nfc = {"type": "NFC"}
    yield "gpt2", b(byte_level(), config="gpt2", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>", unk_token="<|endoftext|>")
    yield "opt", b(byte_level(), tokens=specials(q, "<pad>", "</s>"), post=template([("</s>", n + 1)]), config="opt", tokenizer_class="GPT2Tokenizer", add_bos_token=True,
                   bos_token="</s>", eos_token="</s>", unk_token="</s>", pad_token="<pad>")
    yield "phi2", b(byte_level(), post=byte_level(), config="phi", tokenizer_class="CodeGenTokenizer", bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                    unk_token="<|endoftext|>")
    yield "gpt-neox", b(byte_level(), nfc, config="gpt_neox", tokenizer_class="GPTNeoXTokenizer", bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                        unk_token="<|endoftext|>")
    yield "starcoder2", b(pre(digits(True), byte_level()), config="starcoder2", tokenizer_class="GPT2Tokenizer", bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                          unk_token="<|endoftext|>")
    yield "granite3", b(pre(digits(True), byte_level()), config="granite", tokenizer_class="GPT2Tokenizer", bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                        unk_token="<|endoftext|>")
    bos = specials(q, "<PAD>", "<UNK>", "<BOS_TOKEN>", "<EOS_TOKEN>", "<|END_OF_TURN_TOKEN|>")
    yield "command-r", b(pre(digits(True), byte_level()), nfc, bos, template([("<BOS_TOKEN>", n + 2)]), config="cohere", tokenizer_class="CohereTokenizer",
                         bos_token="<BOS_TOKEN>", eos_token="<|END_OF_TURN_TOKEN|>", unk_token="<UNK>", pad_token="<PAD>", add_bos_token=True)
    yield "falcon", b(pre({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(), digits(False), split("[0-9][0-9][0-9]")), config="falcon",
                      tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>")
    deep = specials(q, "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>") + [added(n + 2, "<｜User｜>", normalized=True)]
    yield "deepseek-llm", b(pre(split("[\r\n]"), split(DEEPSEEK_LETTERS), split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split("\\s+$"), split("[一-龥ࠀ-一가-퟿]+"),
                                digits(True), BYTES), sequence("normalizers"), deep, template([(deep[0]["content"], n)]), config="llama",
                            tokenizer_class="LlamaTokenizer", bos_token="<｜begin▁of▁sentence｜>", eos_token="<｜end▁of▁sentence｜>", add_bos_token=True)
    yield "deepseek-v3", b(pre(split("\\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), BYTES), sequence("normalizers"), deep, byte_level(True), config="deepseek_v3",
                           tokenizer_class="LlamaTokenizer", bos_token="<｜begin▁of▁sentence｜>", eos_token="<｜end▁of▁sentence｜>")
    yield "gpt-oss", b(pre(split(O200K), BYTES), model={"ignore_merges": True}, config="gpt_oss", tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>")
    yield "phi4-mini", b(pre(split(O200K, "Removed", True), BYTES), config="phi3", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>",
                         unk_token="<|endoftext|>")
    yield "mistral-nemo", b(pre(split(TEKKEN), BYTES), tokens=specials(q, "<unk>", "<s>", "</s>"), post=template([("<s>", n + 1)]), model={"ignore_merges": True},
                            config="mistral", tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    yield "apertus", b(pre(split(TEKKEN), BYTES), tokens=specials(q, "<unk>", "<s>", "</s>"), post=template([("<s>", n + 1)]), config="apertus",
                       tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    yield "phi4", b(pre(split(LLAMA3), BYTES), config="phi3", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>",
                    unk_token="<|endoftext|>")
    yield "olmo2", b(pre(split(LLAMA3, "Removed", True), BYTES), config="olmo2", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>",
                     unk_token="<|endoftext|>")
    yield "cl100k", b(pre(split(CL100K), BYTES))
    yield "glm4", b(pre(split(LLAMA3), byte_level(use_regex=False)), tokens=specials(q, "<|endoftext|>", "[gMASK]", "<sop>"),
                    post=sequence("processors", byte_level(), template([("[gMASK]", n + 1), ("<sop>", n + 2)])), config="glm4", tokenizer_class="PreTrainedTokenizerFast",
                    eos_token="<|endoftext|>")
    yield "smollm3", b(pre(split(LLAMA3), BYTES), post=byte_level(True), model={"ignore_merges": True}, config="smollm3", tokenizer_class="PreTrainedTokenizerFast",
                       eos_token="<|im_end|>")
    yield "stablelm2", b(pre(split(QWEN2), BYTES), nfc, config="stablelm", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>",
                         unk_token="<|endoftext|>")
    yield "qwen3.5", b(pre(split(QWEN35), BYTES), nfc, config="qwen3_5_text", tokenizer_class="Qwen2Tokenizer", eos_token="<|im_end|>", pad_token="<|endoftext|>")
    yield "exaone4", b(pre(split(EXAONE4), BYTES), {"type": "NFKC"}, config="exaone4", tokenizer_class="GPT2Tokenizer", eos_token="<|endoftext|>", bos_token="<|endoftext|>",
                       unk_token="<|endoftext|>")
    yield "seed-oss", b(pre(split(QWEN2), BYTES), config="seed_oss", tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>")

    no_strip = sequence("decoders", REPLACE_BACK, {"type": "ByteFallback"}, {"type": "Fuse"})
    names = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", add_bos_token=True)
    gemma = dict(tokenizer_class="GemmaTokenizer", **names)
    vocab = m["model"]["vocab"]
    runs = m["added_tokens"] + [added(vocab[c], c) for c in ("\n", "\n\n")] + [added(len(vocab) + i, c) for i, c in enumerate(["\n \n", "▁▁▁▁▁▁▁", "<start_of_turn>"])]
    yield "gemma1", s(normalizer=REPLACE, decoder=no_strip, added_tokens=runs, config="gemma", tokenizer_config=gemma)
    yield "gemma2", s(normalizer=REPLACE, pre_tokenizer=split(" ", "MergedWithPrevious", kind="String"), decoder=no_strip, added_tokens=runs, config="gemma3_text",
                      tokenizer_config=gemma)
    ends = [added(len(m["model"]["vocab"]) + i, c, special=True, rstrip=True) for i, c in enumerate(["<|system|>", "<|user|>", "<|end|>"])]
    yield "phi3", s(normalizer=sequence("normalizers", PREPEND, REPLACE), added_tokens=m["added_tokens"] + ends, config="phi3",
                    tokenizer_config=dict(tokenizer_class="LlamaTokenizer", **names))
    llama = s(normalizer=sequence("normalizers", PREPEND, REPLACE), config="llama", tokenizer_config=dict(tokenizer_class="LlamaTokenizer", **names))
    yield "llama2", llama
    yield "minicpm", s(normalizer=sequence("normalizers", PREPEND, REPLACE), config="minicpm3", tokenizer_config=dict(tokenizer_class="LlamaTokenizer", **names))
    yield "internlm3", s(normalizer=sequence("normalizers", PREPEND, REPLACE), decoder=no_strip)
    yield "nemotron", s(pre_tokenizer=metaspace("always", True), decoder=metaspace("always", True))


def steps(base):
    """Every step by itself."""
    for behavior in ("Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            name = behavior + ("-inverted" if invert else "")
            yield "split-" + name, ("llama2", dict(MARKS, pre_tokenizer=split("[\\s\\d]", behavior, invert)), {})
        yield "split-text-" + behavior, ("llama2", dict(MARKS, pre_tokenizer=split("a", behavior, kind="String")), {})
        yield "split-empty-" + behavior, ("llama2", dict(MARKS, pre_tokenizer=split("b*", behavior)), {})
        yield "punctuation-" + behavior, ("qwen2", dict(normalizer=None, pre_tokenizer=pre({"type": "Punctuation", "behavior": behavior}, byte_level(True))), {})
    yield "whitespace", ("llama2", dict(MARKS, pre_tokenizer={"type": "Whitespace"}), {})
    yield "whitespace-split", ("llama2", dict(MARKS, pre_tokenizer=pre({"type": "WhitespaceSplit"}, metaspace("first", True))), {})
    for scheme in ("first", "always", "never"):
        for cut in (False, True):
            yield "metaspace-%s-%s" % (scheme, cut), ("llama2", dict(MARKS, pre_tokenizer=pre(digits(False), metaspace(scheme, cut)), decoder=metaspace(scheme, cut)), {})
    for kind in ("NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield kind.lower(), ("qwen2", dict(normalizer={"type": kind}), {})
    yield "strip", ("llama2", dict(MARKS, normalizer=sequence("normalizers", {"type": "Strip", "strip_left": True, "strip_right": True}, PREPEND, REPLACE)), {})
    regex = {"type": "Replace", "pattern": {"Regex": " {2,}|[\\n\\t]"}, "content": "▁"}
    words = {"type": "Replace", "pattern": {"String": "the"}, "content": "THEY"}
    yield "replace", ("llama2", dict(MARKS, normalizer=sequence("normalizers", regex, words, REPLACE), decoder=sequence("decoders", words, REPLACE_BACK, {"type": "ByteFallback"})), {})
    yield "bytes-and-cuts", ("qwen2", dict(normalizer=None, pre_tokenizer=pre(byte_level(), split("[Ġ½]", "MergedWithNext"), digits(True), {"type": "Punctuation", "behavior": "Isolated"})), {})


def resaved(j, model_type, config):
    """j as transformers writes it after reading it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "tokenizer.json").write_text(json.dumps(j))
        (path / "tokenizer_config.json").write_text(json.dumps(config))
        (path / "config.json").write_text(json.dumps({"model_type": model_type}))
        AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
        return json.loads((path / "tokenizer.json").read_text())


def differing(j, base):
    """What j has in the place of its base."""
    parts = {k: v for k, v in j.items() if k not in ("model", "version", "truncation", "padding") and v != base.get(k)}
    parts = {k: v for k, v in parts.items()}
    model = {k: v for k, v in j["model"].items() if v != base["model"].get(k)}
    assert "vocab" not in model and "merges" not in model
    return parts, model


def digest(strings):
    h = hashlib.sha256()
    for text in strings:
        h.update(text.encode() + b"\0")
    return h.hexdigest()[:16]


def main():
    base = {name: json.loads((HERE / name / "tokenizer.json").read_text()) for name in ("qwen2", "llama2")}
    for j in base.values():  # a pair is written one way only
        j["model"]["merges"] = [m.split(" ") if isinstance(m, str) else m for m in j["model"]["merges"]]
    base["qwen2"]["model"].update(continuing_subword_prefix=None, end_of_word_suffix=None)
    texts, mix = corpus(), list(random_texts(2, 10_000))
    stacks = {}
    todo = [(name, *stack) for name, stack in published(base)] + [(name, *stack, None, {}) for name, stack in steps(base)]
    for name, of, parts, model, model_type, config in todo:
        j = copy(base[of], **parts)
        j["model"].update(model)
        stacks[name] = of, j
        if model_type:
            stacks[name + "-resaved"] = of, resaved(j, model_type, config)
    golden = {}
    for name, (of, j) in stacks.items():
        t = Tokenizer.from_str(json.dumps(j))

        def seen(some):
            for text in some:
                ids = t.encode(text).ids
                yield from ("".join("%d " % i for i in ids), t.decode(ids), t.decode(ids, skip_special_tokens=False))

        draw, size = Draw(5), t.get_vocab_size()
        ids = [[draw.below(size + 3) if i % 2 else draw.below(270) for _ in range(1 + draw.below(12))] for i in range(500)]
        parts, model = differing(j, base[of])
        golden[name] = {"base": of, "parts": parts, "model": model, "texts": digest(seen(texts)), "mixed": [digest(seen(mix[i:i + 500])) for i in range(0, len(mix), 500)],
                        "random": digest(text for some in ids for text in (t.decode(some), t.decode(some, skip_special_tokens=False)))}
    rows = ",\n".join(json.dumps(name) + ":" + json.dumps(stack, ensure_ascii=False, separators=(",", ":")) for name, stack in golden.items())
    (HERE / "stacks.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")


main()
