package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
)

const pycoder = "../testdata/models/pycoder-5m"

// textDir writes a directory with pycoder's tokenizer and a tokenizer_config.json with a chat template, and the given
// files in their place; a file without contents is left out.
func textDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	tokenizer, err := os.ReadFile(filepath.Join(pycoder, "tokenizer.json"))
	require.NoError(t, err)
	all := map[string]string{"tokenizer.json": string(tokenizer),
		"tokenizer_config.json": `{"chat_template": "{{ messages }}"}`}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	return dir
}

func TestTextIsCheckedWhenCompiling(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
	tokenizer, err := os.ReadFile(filepath.Join(pycoder, "tokenizer.json"))
	require.NoError(t, err)
	edited := func(old, new string) string {
		require.Contains(t, string(tokenizer), old)
		return strings.Replace(string(tokenizer), old, new, 1)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		says  []string // one a warning
	}{
		{"all there", nil, nil},
		{"template in a file of its own", map[string]string{"tokenizer_config.json": "{}",
			"chat_template.jinja": "{{ messages }}"}, nil},
		{"no tokenizer", map[string]string{"tokenizer.json": ""},
			[]string{"there is no tokenizer.json, which text needs; the build will decode token ids"}},
		{"sentencepiece alone", map[string]string{"tokenizer.json": "", "tokenizer.model": "x"},
			[]string{"tokenizer.model is a SentencePiece model, which is not read; save it"}},
		{"pre-tokenizer", map[string]string{"tokenizer.json": edited(`"pre_tokenizer": {`,
			`"pre_tokenizer": {"type": "BertPreTokenizer"}, "x": {`)},
			[]string{`pre_tokenizer: type "BertPreTokenizer" is not supported`}},
		{"normalizer", map[string]string{"tokenizer.json": edited(`"normalizer": null`,
			`"normalizer": {"type": "BertNormalizer"}`)},
			[]string{`normalizer: type "BertNormalizer" is not supported`}},
		{"model", map[string]string{"tokenizer.json": `{"model": {"type": "Unigram"}}`},
			[]string{`model.type: "Unigram" is not supported`}},
		{"pointer", map[string]string{"tokenizer.json": pointer}, []string{"git lfs pull"}},
		{"not JSON", map[string]string{"tokenizer.json": "{"}, []string{"tokenizer.json: "}},
		{"eos is text", map[string]string{"config.json": `{"eos_token_id": "</s>"}`},
			[]string{`it is "</s>"; want an id, a list of ids, or null; or use --ignore-eos`}},
		{"eos in 64 bits", map[string]string{"generation_config.json": `{"eos_token_id": 4294967298}`},
			[]string{"it is 4294967298; want an id"}},
		{"eos of another model", map[string]string{"generation_config.json": `{"eos_token_id": [2, 128001]}`},
			[]string{"eos_token_id 128001 is not in the model's vocabulary of 4096 tokens, so no text ends with it"}},
		{"eos of the tokenizer", map[string]string{"tokenizer_config.json": `{"chat_template": "{{ messages }}", ` +
			`"eos_token": "<|im_end|>"}`},
			[]string{`eos_token is "<|im_end|>", which is not one of the tokenizer's tokens`}},
		{"eos of the tokenizer beyond the model", map[string]string{"tokenizer_config.json": `{"chat_template": ` +
			`"{{ messages }}", "eos_token": "<end>"}`, "tokenizer.json": edited(`"added_tokens": [`,
			`"added_tokens": [{"id": 4096, "content": "<end>", "special": true},`)},
			[]string{"one of them is refused", "eos_token_id 4096 is not in the model's vocabulary"}},
		{"beams", map[string]string{"generation_config.json": `{"num_beams": 4}`},
			[]string{"num_beams is 4, which is not supported; --sample will be refused"}},
		{"a token too many", map[string]string{"tokenizer.json": edited(`"added_tokens": [`,
			`"added_tokens": [{"id": 4096, "content": "<pad>", "special": true},`)},
			[]string{"tokens at ids from 4096 on, and the model's vocabulary ends there (vocab_size); a prompt with " +
				"one of them is refused"}},
		{"no tokenizer_config.json", map[string]string{"tokenizer_config.json": ""},
			[]string{"there is no tokenizer_config.json"}},
		{"no chat template", map[string]string{"tokenizer_config.json": "{}"},
			[]string{"has no chat_template, and there is no chat_template.jinja"}},
		{"chat template is null", map[string]string{"tokenizer_config.json": `{"chat_template": null}`},
			[]string{"has no chat_template"}},
		{"damaged tokenizer_config.json", map[string]string{"tokenizer_config.json": "{"},
			[]string{"tokenizer_config.json: warning: it cannot be read: line 1, column 2: "}},
		{"nothing", map[string]string{"tokenizer.json": "", "tokenizer_config.json": ""},
			[]string{"no tokenizer.json", "no tokenizer_config.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := textDir(t, c.files)
			warnings := checkText(&Options{Model: dir}, 4096)
			require.Len(t, warnings, len(c.says), "%v", warnings)
			for i, says := range c.says {
				require.Equal(t, diag.Warning, warnings[i].Severity)
				require.Contains(t, warnings[i].Error(), says)
			}
			// The launcher says the same, because it loads the tokenizer with the same code.
			_, err := LoadTokenizer(dir)
			require.Equal(t, err != nil, strings.Contains(warnings.Error(), "AMK1201"))
		})
	}
	seed := uint64(1)
	require.Empty(t, checkText(&Options{Model: t.TempDir(), RandomSeed: &seed}, 4096), "a config alone has no text")
}

func TestStrictWritesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "build")
	o := BuildOptions{NoBuild: true, OutDir: out,
		Options: Options{Model: "../testdata/models/zoo/llama-gqa", Name: "m", Target: ir.FindTarget("l4")}}
	o.Strict = true
	_, err := Compile(t.Context(), o)
	require.ErrorContains(t, err, "AMK1201")
	require.NoDirExists(t, out)
	o.Strict = false
	b, err := Compile(t.Context(), o)
	require.NoError(t, err)
	require.NotEmpty(t, b.Warnings)
}
