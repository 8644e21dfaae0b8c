package tokenizer

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

func TestUnsupported(t *testing.T) {
	const split = `{"type":"Split","pattern":{"Regex":"\\b"},"behavior":"Isolated","invert":false}`
	for name, c := range map[string]struct{ part, json, where, got string }{
		"normalizer": {"normalizer", `{"type":"Nmt"}`, "normalizer", `"Nmt"`},
		"nested normalizer": {"normalizer", `{"type":"Sequence","normalizers":[{"type":"Precompiled"}]}`,
			"normalizer.normalizers[0]", `"Precompiled"`},
		"replace of nothing": {"normalizer", `{"type":"Replace","pattern":{"Regex":" *"},"content":"▁"}`,
			"normalizer.pattern", `" *", which matches the empty text`},
		"replace empty": {"normalizer", `{"type":"Replace","pattern":{"String":""},"content":"c"}`,
			"normalizer.pattern", "a String of 0 bytes"},
		"replace long": {"normalizer", `{"type":"Replace","pattern":{"String":"c"},"content":"` +
			strings.Repeat("x", 17) + `"}`, "normalizer.content", "a text of 17 bytes"},
		"growth": {"normalizer", `{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"NFKC"},{"type":"NFD"}]}`,
			"normalizer.normalizers[2]", "363 times as long"},
		"long prepend": {"normalizer", `{"type":"Prepend","prepend":"` + strings.Repeat("x", 17) + `"}`,
			"normalizer", "17 bytes"},
		"pre-tokenizer": {"pre_tokenizer", `{"type":"BertPreTokenizer"}`, "pre_tokenizer", `"BertPreTokenizer"`},
		"pattern":       {"pre_tokenizer", split, "pre_tokenizer.pattern", `\b at byte 0 of "\\b"`},
		"nested pattern": {"pre_tokenizer", `{"type":"Sequence","pretokenizers":[` + split + `]}`,
			"pre_tokenizer.pretokenizers[0].pattern", `\b at byte 0`},
		"empty pattern": {"pre_tokenizer", `{"type":"Split","pattern":{"String":""},"behavior":"Isolated"}`,
			"pre_tokenizer.pattern", "a String of 0 bytes"},
		"behavior": {"pre_tokenizer", `{"type":"Split","pattern":{"String":" "},"behavior":"Merged"}`,
			"pre_tokenizer.behavior", `"Merged"`},
		"marks after bytes": {"pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Metaspace","replacement":"▁"}]}`,
			"pre_tokenizer.pretokenizers[1]", "Metaspace after ByteLevel"},
		"bytes twice": {"pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"ByteLevel"}]}`,
			"pre_tokenizer.pretokenizers[1]", "second ByteLevel"},
		"prepend scheme": {"pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"last"}`,
			"pre_tokenizer.prepend_scheme", `"last"`},
		"first after marks": {"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Metaspace","replacement":"▁"},
			{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}]}`,
			"pre_tokenizer.pretokenizers[1].prepend_scheme", `"first" after a normalizer or a Metaspace`},
		"long added token": {"added_tokens", `[{"id":7,"content":"` + strings.Repeat("x", maxAdded+1) + `"}]`,
			"added_tokens[0]", "a token of 1025 bytes"},
		"post-processor": {"post_processor", `{"type":"RobertaProcessing"}`, "post_processor",
			`"RobertaProcessing"`},
		"template without A": {"post_processor", `{"type":"TemplateProcessing","single":[],"special_tokens":{}}`,
			"post_processor.single", "0 times"},
		"template with B": {"post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]}`,
			"post_processor.single[0]", `"B"`},
		"decoder": {"decoder", `{"type":"WordPiece"}`, "decoder", `"WordPiece"`},
		"decoder after fuse": {"decoder", `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]}`,
			"decoder.decoders[1]", "after Fuse"},
		"strip stop": {"decoder", `{"type":"Strip","content":" ","start":0,"stop":1}`, "decoder", "stop 1"},
		"model":      {"model", `{"type":"Unigram","vocab":[]}`, "model.type", `"Unigram"`},
		"dropout":    {"model", `{"type":"BPE","dropout":0.1,"vocab":{},"merges":[]}`, "model.dropout", "0.1"},
		"subword prefix": {"model", `{"type":"BPE","continuing_subword_prefix":"##","vocab":{},"merges":[]}`,
			"model.continuing_subword_prefix", "##"},
		"word suffix": {"model", `{"type":"BPE","end_of_word_suffix":"</w>","vocab":{},"merges":[]}`,
			"model.end_of_word_suffix", "</w>"},
		"ids":     {"model", `{"type":"BPE","vocab":{"a":5000},"merges":[]}`, "model.vocab", "id 5000 among 1 tokens"},
		"version": {"version", `"2.0"`, "version", "2.0"},
		"deep nesting": {"decoder", strings.Repeat(`{"type":"Sequence","decoders":[`, 6) + strings.Repeat(`]}`, 6),
			"decoder.decoders[0]", "deeper"},
		"long sequence": {"decoder", `{"type":"Sequence","decoders":[` + strings.Repeat(`{"type":"Fuse"},`, 16) +
			`{"type":"Fuse"}]}`, "decoder.decoders[16]", "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(small(map[string]string{c.part: c.json}))
			var u *UnsupportedError
			require.True(t, errors.As(err, &u), "%v", err)
			require.Contains(t, u.Where, c.where)
			require.Contains(t, u.Got, c.got)
			require.NotEmpty(t, u.Accepted)
			require.Equal(t, "tokenizer.json: "+u.Where+": "+u.Got+" is not supported; accepted: "+u.Accepted,
				err.Error())
		})
	}
}

func TestMalformed(t *testing.T) {
	model := func(fields string) map[string]string {
		return map[string]string{"model": `{"type":"BPE",` + fields + `}`}
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":          {nil, "is missing"},
		"not JSON":       {[]byte("hello"), `found "h"; want a value`},
		"not UTF-8":      {[]byte("{\"version\":\"\xff\"}"), "not valid UTF-8"},
		"truncated":      {small(nil)[:200], "the text ends too early"},
		"no model":       {[]byte(`{}`), "model: is missing"},
		"no vocab":       {small(model(`"merges":[]`)), "model.vocab: is missing"},
		"no merges":      {small(model(`"vocab":{}`)), "model.merges: is missing"},
		"negative id":    {small(model(`"vocab":{"a":-1},"merges":[]`)), `"a" has id -1`},
		"half character": {small(model(`"vocab":{"\ud800":1},"merges":[]`)), "model.vocab: has a \\u escape that is half"},
		"long id":        {small(model(`"vocab":{"a":1234567890123456789},"merges":[]`)), "more than 18 digits"},
		"null merges":    {small(model(`"vocab":{"a":1},"merges":null`)), "model.merges: has"},
		"shared id":      {small(model(`"vocab":{"a":1,"b":1},"merges":[]`)), `"a" and "b" have the same id 1`},
		"unknown unk": {small(model(`"unk_token":"<unk>","vocab":{},"merges":[]`)),
			`"<unk>" is not in the vocabulary`},
		"merge of three": {small(model(`"vocab":{"a":1},"merges":["a a a"]`)), `merges[0]: "a a a" is not a pair`},
		"merge of one":   {small(model(`"vocab":{"a":1},"merges":[["a"]]`)), `merges[0]: "a" is not a pair`},
		"merge without id": {small(model(`"vocab":{"a":1},"merges":["a a"]`)),
			`merges[0]: "a", "a" or what they merge into`},
		"added without gap": {small(map[string]string{"added_tokens": `[{"id":9,"content":"x"}]`}),
			"has id 9, but its place after the vocabulary gives it 7"},
		"added in vocab": {small(map[string]string{"added_tokens": `[{"id":7,"content":"a"}]`}),
			"has id 7, but its place after the vocabulary gives it 5"},
		"added twice": {small(map[string]string{"added_tokens": `[{"id":7,"content":"x"},{"id":7,"content":"x"}]`}),
			"listed twice"},
		"added empty": {small(map[string]string{"added_tokens": `[{"id":7}]`}), "has no content"},
		"template id": {small(map[string]string{"post_processor": `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}}],
			"special_tokens":{"s":{"ids":[70]}}}`}), "id 70"},
		"template name": {small(map[string]string{"post_processor": `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}}]}`}), "not in special_tokens"},
		"no type":       {small(map[string]string{"decoder": `{}`}), `decoder: has no "type"`},
		"contradiction": {small(map[string]string{"pre_tokenizer": `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","add_prefix_space":false}`}), "contradicts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(c.data)
			var f *FormatError
			require.True(t, errors.As(err, &f), "%v", err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

const (
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// Spellings that older files use.
func TestOldSpellings(t *testing.T) {
	keepMatches := `{"type":"Split","pattern":{"Regex":"` + strings.ReplaceAll(patternLlama3, `\`, `\\`) +
		`"},"behavior":"Removed","invert":true}`
	for name, parts := range map[string]map[string]string{
		"model without type":  {"model": `{"dropout":null,"continuing_subword_prefix":"","end_of_word_suffix":"","vocab":{"a":5},"merges":["#version: 0.2"]}`},
		"removed with invert": {"pre_tokenizer": keepMatches},
		"add_prefix_space":    {"pre_tokenizer": `{"type":"Metaspace","replacement":"▁","add_prefix_space":false}`},
		"truncation":          {"truncation": `{"max_length":1,"strategy":"LongestFirst","stride":0,"direction":"Right"}`, "padding": `{"strategy":{"Fixed":8}}`},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := mustLoad(t, small(parts)).Encode("aaa", true)
			require.NoError(t, err)
			require.Equal(t, []int{5, 5, 5}, ids)
		})
	}
}

// FuzzLoad checks that no input panics or costs more memory than its size allows, and that what loads works.
func FuzzLoad(f *testing.F) {
	f.Add(small(nil))
	f.Add(small(map[string]string{
		"added_tokens":  `[{"id":7,"content":"x y","lstrip":true,"rstrip":true,"normalized":true},{"id":5,"content":"a","single_word":true,"special":true}]`,
		"normalizer":    `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"},{"type":"NFC"}]}`,
		"pre_tokenizer": `{"type":"Sequence","pretokenizers":[{"type":"Metaspace","replacement":"▁"},{"type":"Punctuation","behavior":"Contiguous"},{"type":"ByteLevel","add_prefix_space":true},{"type":"Digits","individual_digits":true}]}`,
		"post_processor": `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"s"}}],
			"special_tokens":{"s":{"ids":[4]}}}`,
		"decoder": `{"type":"Sequence","decoders":[{"type":"Metaspace","replacement":"▁"},{"type":"ByteLevel"}]}`,
	}))
	f.Add(small(map[string]string{
		"pre_tokenizer": `{"type":"Split","pattern":{"Regex":"` + strings.ReplaceAll(patternQwen2, `\`, `\\`) +
			`"},"behavior":"Isolated","invert":false}`,
		"decoder": `null`,
		"model":   `{"type":"BPE","unk_token":"u","fuse_unk":true,"ignore_merges":true,"vocab":{"u":0,"a":1,"aa":2},"merges":[["a","a"]]}`,
	}))
	for _, g := range readStacks(f) {
		parts := map[string]string{}
		for name, value := range g.Parts {
			if name != "added_tokens" && name != "post_processor" {
				parts[name] = string(value)
			}
		}
		f.Add(small(parts))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tok, err := Load(data)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+1000*len(data)))
		if err != nil {
			return
		}
		const text = "a 12's  <s>x y▁😀\r\n a"
		ids, err := tok.Encode(text, true)
		if err != nil {
			return
		}
		for _, skip := range []bool{false, true} {
			require.Equal(t, tok.Decode(ids, skip), stream(t, tok, ids, skip))
		}
	})
}
