package gguf

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"amkc/ir/diag"
)

// This file turns the fields of a tokenizer into tokenizer.json and tokenizer_config.json.

// Types of tokens, as files number them.
const (
	normal      = 1
	unknown     = 2
	control     = 3
	userDefined = 4
	unused      = 5
	ofByte      = 6
)

const (
	tokenizerKey = "tokenizer.ggml."

	maxToken  = 1024 // bytes, as in package tokenizer for added tokens
	maxTokens = 1 << 20
	maxMerges = 1 << 22
	maxPairs  = 16 // that a token is made of, on average by bytes; SentencePiece's tokens have 16 characters at most
)

// A splitter cuts text before BPE, as tokenizers of a name do.
type splitter struct {
	digits       bool   // each digit is a word of its own
	pattern      string // words; "": GPT-2's, which ByteLevel has
	ignoreMerges bool   // a word that is a token is that token
	bos          bool   // texts begin with the first token unless the file says otherwise
	nfc          bool
}

// Patterns of words. They differ in how many digits a word has, and in what ends one.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	spaces       = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	words        = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+`
	signs        = `| ?[^\s\p{L}\p{N}]+[\r\n]*`
	threeDigits  = words + `|\p{N}{1,3}` + signs + spaces
	oneDigit     = words + `|\p{N}` + signs + spaces
	seedWords    = words + `|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+` + spaces

	upper, lower = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	casedSigns   = `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + spaces
	before       = `[^\r\n\p{L}\p{N}]?`
	casedWords   = before + upper + `*` + lower + `+|` + before + upper + `+` + lower + `*|\p{N}` + casedSigns
	casedShort   = before + upper + `*` + lower + `+` + contractions + `?|` + before + upper + `+` + lower + `*` +
		contractions + `?|\p{N}{1,3}` + casedSigns
)

// splitters are those that are read, by tokenizer.ggml.pre.
var splitters = func() map[string]splitter {
	out := map[string]splitter{}
	add := func(s splitter, names ...string) {
		for _, name := range names {
			out[name] = s
		}
	}
	add(splitter{pattern: threeDigits, ignoreMerges: true, bos: true}, "llama-bpe", "llama3", "llama-v3", "falcon3",
		"pixtral", "lfm2")
	add(splitter{pattern: threeDigits, ignoreMerges: true}, "glm4")
	add(splitter{pattern: threeDigits}, "dbrx", "smaug-bpe")
	add(splitter{pattern: oneDigit, nfc: true}, "qwen2", "deepseek-r1-qwen")
	add(splitter{pattern: oneDigit}, "stablelm2")
	add(splitter{}, "gpt-2", "phi-2", "olmo")
	add(splitter{digits: true}, "smollm", "starcoder", "refact")
	add(splitter{digits: true, nfc: true}, "command-r")
	add(splitter{pattern: casedWords, ignoreMerges: true, bos: true}, "tekken")
	add(splitter{pattern: casedShort}, "gpt-4o")
	add(splitter{pattern: seedWords}, "seed-coder")
	return out
}()

// A vocabulary is what both kinds of tokenizers have.
type vocabulary struct {
	h      *Header
	tokens []string
	types  []int8
	bad    *diag.Diagnostic
}

func (v *vocabulary) fail(key, format string, args ...any) {
	if v.bad == nil {
		v.bad = diag.Errorf(codeTokenizer, v.h.Name+": "+key, format, args...)
	}
}

// get is a field of the tokenizer.
func (v *vocabulary) get(name string) Value { return v.h.Fields[tokenizerKey+name] }

// Tokenizer is tokenizer.json. Errors: AMK1058.
func (h *Header) Tokenizer() ([]byte, *diag.Diagnostic) {
	v := &vocabulary{h: h}
	model, _ := v.get("model").(string)
	switch model {
	case "gpt2", "llama":
	case "":
		v.fail(tokenizerKey+"model", "is %s; accepted: \"gpt2\" (BPE over bytes), \"llama\" (SentencePiece)",
			spell(v.get("model")))
		return nil, v.bad
	default:
		what := map[string]string{"bert": "WordPiece", "t5": "Unigram", "rwkv": "a tokenizer of RWKV"}[model]
		if what == "" {
			what = "not known"
		}
		v.fail(tokenizerKey+"model", "is %q: %s, which is not read; accepted: \"gpt2\" (BPE over bytes), \"llama\" "+
			"(SentencePiece)", model, what)
		return nil, v.bad
	}
	v.read()
	if v.bad != nil {
		return nil, v.bad
	}
	out := map[string]any{"version": "1.0", "added_tokens": v.added(), "truncation": nil, "padding": nil}
	if model == "gpt2" {
		v.bytePairs(out)
	} else {
		v.sentencePiece(out)
	}
	if v.bad != nil {
		return nil, v.bad
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // of strings and numbers
	}
	return text, nil
}

// read reads tokens and their types, and refuses what would tokenize otherwise than either kind does.
func (v *vocabulary) read() {
	list, _ := v.get("tokens").(*Array)
	if list == nil || list.kind != kindString || list.Len() == 0 || list.Len() > maxTokens {
		v.fail(tokenizerKey+"tokens", "is %s; want an array of 1 to %d strings", spell(v.get("tokens")), maxTokens)
		return
	}
	v.tokens, v.types = list.Strings, make([]int8, list.Len())
	seen := make(map[string]bool, list.Len())
	kinds, _ := v.get("token_type").(*Array)
	if given := v.get("token_type"); given != nil && (kinds == nil || kinds.kind == kindString ||
		kinds.Len() != len(v.tokens)) {
		v.fail(tokenizerKey+"token_type", "is %s; want a number for each of %d tokens", spell(given), len(v.tokens))
		return
	}
	for i, token := range v.tokens {
		v.types[i] = normal
		if kinds != nil {
			n, ok := kinds.At(i).(int64)
			if !ok || n < normal || n > ofByte {
				v.fail(tokenizerKey+"token_type", "element %d is %s; want 1 to 6", i, spell(kinds.At(i)))
				return
			}
			v.types[i] = int8(n)
		}
		if v.types[i] == unused {
			continue
		}
		switch {
		case !utf8.ValidString(token) || len(token) > maxToken:
			v.fail(tokenizerKey+"tokens", "element %d is %s; want UTF-8 of at most %d bytes", i, spell(token), maxToken)
			return
		case seen[token]:
			v.fail(tokenizerKey+"tokens", "has %s twice", spell(token))
			return
		}
		seen[token] = true
	}
	for _, name := range []string{"remove_extra_whitespaces", "treat_whitespace_as_suffix"} {
		if v.get(name) == true {
			v.fail(tokenizerKey+name, "is true, which is not read; accepted: false")
		}
	}
	if a, ok := v.get("precompiled_charsmap").(*Array); ok && a.Len() > 0 {
		v.fail(tokenizerKey+"precompiled_charsmap", "rewrites characters, which is not read; accepted: none")
	}
}

// An addedToken is an entry of added_tokens.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// added are the tokens that are found in a text before it is split. Those of a Phi-3 take the white space after them,
// which no field says.
func (v *vocabulary) added() []addedToken {
	out := []addedToken{}
	name, _ := v.h.Fields["general.name"].(string)
	name = strings.ToLower(name)
	ofPhi3 := v.get("model") == "llama" && (strings.Contains(name, "phi-3") || strings.Contains(name, "phi3"))
	for i, token := range v.tokens {
		kind := v.types[i]
		if token == "" || kind != control && kind != userDefined && kind != unknown {
			continue
		}
		strips := ofPhi3 && !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, token)
		out = append(out, addedToken{ID: i, Content: token, RStrip: strips, Special: kind != userDefined})
	}
	return out
}

// vocab are the ids of tokens. Unused ones are places without a token.
func (v *vocabulary) vocab() map[string]int {
	out := make(map[string]int, len(v.tokens))
	for i, token := range v.tokens {
		if v.types[i] != unused {
			out[token] = i
		}
	}
	return out
}

// pair splits the two tokens of a merge.
func pair(merge string) ([2]string, bool) {
	i := strings.IndexByte(merge[min(1, len(merge)):], ' ')
	if i < 0 || i+2 >= len(merge) {
		return [2]string{}, false
	}
	return [2]string{merge[:i+1], merge[i+2:]}, true
}

func (v *vocabulary) bytePairs(out map[string]any) {
	pre, _ := v.get("pre").(string)
	split, known := splitters[pre]
	if !known {
		v.fail(tokenizerKey+"pre", "is %s, which is not known: how text is split follows from it; accepted: %s",
			spell(v.get("pre")), strings.Join(slices.Sorted(maps.Keys(splitters)), ", "))
		return
	}
	list, _ := v.get("merges").(*Array)
	if list == nil || list.kind != kindString || list.Len() > maxMerges {
		v.fail(tokenizerKey+"merges", "is %s; want an array of at most %d strings", spell(v.get("merges")), maxMerges)
		return
	}
	merges := make([][2]string, list.Len())
	for i, merge := range list.Strings {
		two, ok := pair(merge)
		if !ok || !utf8.ValidString(merge) {
			v.fail(tokenizerKey+"merges", "element %d is %s; want two tokens with a space between", i, spell(merge))
			return
		}
		merges[i] = two
	}
	byteLevel := map[string]any{"type": "ByteLevel", "add_prefix_space": v.get("add_space_prefix") == true,
		"trim_offsets": true, "use_regex": split.pattern == ""}
	steps := []any{}
	switch {
	case split.digits:
		steps = append(steps, map[string]any{"type": "Digits", "individual_digits": true})
	case split.pattern != "":
		steps = append(steps, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": split.pattern},
			"behavior": "Isolated", "invert": false})
	}
	out["pre_tokenizer"] = map[string]any{"type": "Sequence", "pretokenizers": append(steps, byteLevel)}
	out["normalizer"] = nil
	if split.nfc {
		out["normalizer"] = map[string]any{"type": "NFC"}
	}
	out["decoder"] = map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
		"use_regex": true}
	out["model"] = map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "",
		"end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": split.ignoreMerges,
		"vocab": v.vocab(), "merges": merges}
	out["post_processor"] = v.around(split.bos)
}

// sentencePiece is BPE whose merges follow from the scores of tokens: of all pairs in a text the one that makes the
// token of the highest score is merged first.
func (v *vocabulary) sentencePiece(out map[string]any) {
	list, _ := v.get("scores").(*Array)
	if list == nil || list.kind != kindF32 || list.Len() != len(v.tokens) {
		v.fail(tokenizerKey+"scores", "is %s; want a float32 for each of %d tokens", spell(v.get("scores")),
			len(v.tokens))
		return
	}
	merges := v.merges(list)
	var unk any
	if i := slices.Index(v.types, unknown); i >= 0 {
		unk = v.tokens[i]
	}
	prefix := true
	if given, ok := v.get("add_space_prefix").(bool); ok {
		prefix = given
	}
	replace := map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"}
	normalizers := []any{replace}
	decoders := []any{map[string]any{"type": "Replace", "pattern": map[string]any{"String": "▁"}, "content": " "},
		map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"}}
	if prefix {
		normalizers = []any{map[string]any{"type": "Prepend", "prepend": "▁"}, replace}
		decoders = append(decoders, map[string]any{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	out["normalizer"] = map[string]any{"type": "Sequence", "normalizers": normalizers}
	out["pre_tokenizer"] = nil
	out["decoder"] = map[string]any{"type": "Sequence", "decoders": decoders}
	out["model"] = map[string]any{"type": "BPE", "dropout": nil, "unk_token": unk, "continuing_subword_prefix": nil,
		"end_of_word_suffix": nil, "fuse_unk": true, "byte_fallback": slices.Contains(v.types, ofByte),
		"ignore_merges": false, "vocab": v.vocab(), "merges": merges}
	out["post_processor"] = v.around(true)
}

// merges are all pairs of tokens that make a token, those of the highest scores first, and of one score in the order of
// ids.
func (v *vocabulary) merges(scores *Array) [][2]string {
	ids := make(map[string]int, len(v.tokens))
	size, pairs := 0, 0 // in bytes
	for i, token := range v.tokens {
		if v.types[i] == normal || v.types[i] == userDefined {
			ids[token], size = i, size+len(token)
		}
	}
	type merge struct {
		of          float32
		id          int
		left, right int
	}
	var all []merge
	for i, token := range v.tokens {
		score := scores.At(i).(float32)
		if math.IsNaN(float64(score)) {
			v.fail(tokenizerKey+"scores", "element %d is not a number", i)
			return nil
		}
		if v.types[i] != normal && v.types[i] != userDefined {
			continue
		}
		for at := range token {
			left, ok := ids[token[:at]]
			if !ok {
				continue
			}
			if right, ok := ids[token[at:]]; ok {
				all, pairs = append(all, merge{score, i, left, right}), pairs+len(token)
			}
		}
		if pairs > maxPairs*size {
			v.fail(tokenizerKey+"tokens", "are each made of more than %d pairs of others, on average", maxPairs)
			return nil
		}
	}
	slices.SortStableFunc(all, func(a, b merge) int {
		switch {
		case a.of != b.of && a.of > b.of:
			return -1
		case a.of != b.of:
			return 1
		case a.id != b.id:
			return a.id - b.id
		case a.left != b.left:
			return a.left - b.left
		}
		return a.right - b.right
	})
	out := make([][2]string, len(all))
	for i, m := range all {
		out[i] = [2]string{v.tokens[m.left], v.tokens[m.right]}
	}
	return out
}

// around is what is put before and after a text.
func (v *vocabulary) around(begins bool) any {
	special, single := map[string]any{}, []any{}
	add := func(flag, key string, absent bool) {
		if given, ok := v.get(flag).(bool); ok {
			absent = given
		}
		if !absent {
			return
		}
		id, ok := v.h.token(key)
		if !ok || id >= len(v.tokens) || v.types[id] == unused {
			v.fail(tokenizerKey+key, "is %s; want the id of a token, which texts begin or end with", spell(v.get(key)))
			return
		}
		single = append(single, map[string]any{"SpecialToken": map[string]any{"id": v.tokens[id], "type_id": 0}})
		special[v.tokens[id]] = map[string]any{"id": v.tokens[id], "ids": []int{id}, "tokens": []string{v.tokens[id]}}
	}
	add("add_bos_token", "bos_token_id", begins)
	single = append(single, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}})
	add("add_eos_token", "eos_token_id", false)
	return map[string]any{"type": "TemplateProcessing", "single": single, "special_tokens": special,
		"pair": append(slices.Clone(single), map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}})}
}

// TokenizerConfig is tokenizer_config.json: the chat template, and the texts of special tokens.
func (h *Header) TokenizerConfig() []byte {
	out := map[string]any{"clean_up_tokenization_spaces": false}
	tokens, _ := h.Fields[tokenizerKey+"tokens"].(*Array)
	for key, name := range map[string]string{"bos_token_id": "bos_token", "eos_token_id": "eos_token",
		"unknown_token_id": "unk_token", "padding_token_id": "pad_token"} {
		if id, ok := h.token(key); ok && tokens != nil && id < len(tokens.Strings) {
			out[name] = strings.ToValidUTF8(tokens.Strings[id], "\ufffd")
		}
	}
	const template = "tokenizer.chat_template"
	named := []any{}
	for _, key := range slices.Sorted(maps.Keys(h.Fields)) {
		name, isNamed := strings.CutPrefix(key, template+".")
		if text, ok := h.Fields[key].(string); ok && isNamed {
			named = append(named, map[string]any{"name": name, "template": text})
		}
	}
	if text, ok := h.Fields[template].(string); ok {
		out["chat_template"] = text
		if len(named) > 0 {
			out["chat_template"] = append(named, map[string]any{"name": "default", "template": text})
		}
	}
	return document(out)
}
