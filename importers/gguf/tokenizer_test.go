package gguf_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/internal/watch"
	"amkc/text/tokenizer"
)

const tokenizers = "../../text/tokenizer/testdata/"

// A library is what tests read of a tokenizer.json.
type library struct {
	Added []struct {
		ID      int
		Content string
		Special bool
	} `json:"added_tokens"`
	Model struct {
		Vocab  map[string]int
		Merges []any
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

// fieldsOfTokenizer are the fields that a converter writes for a tokenizer.json. Of SentencePiece, a token has the
// place of its first merge as its score.
func fieldsOfTokenizer(t *testing.T, name, model string) fieldsOf {
	t.Helper()
	var of library
	readJSON(t, tokenizers+name+"/tokenizer.json", &of)
	size := len(of.Model.Vocab)
	for _, a := range of.Added {
		size = max(size, a.ID+1)
	}
	tokens, types, scores := make([]string, size), make([]int32, size), make([]float32, size)
	for token, id := range of.Model.Vocab {
		tokens[id], types[id] = token, 1
		if model == "llama" && len(token) == 6 && strings.HasPrefix(token, "<0x") {
			types[id] = 6
		}
		scores[id] = -1e6
	}
	for _, a := range of.Added {
		if tokens[a.ID], types[a.ID] = a.Content, 4; a.Special {
			types[a.ID] = 3
		}
		if a.Content == "<unk>" {
			types[a.ID] = 2
		}
	}
	var merges []string
	for rank, m := range of.Model.Merges {
		var pair []string
		switch m := m.(type) {
		case string:
			pair = strings.Split(m, " ")
		case []any:
			pair = []string{m[0].(string), m[1].(string)}
		}
		merges = append(merges, pair[0]+" "+pair[1])
		if id := of.Model.Vocab[pair[0]+pair[1]]; scores[id] == -1e6 {
			scores[id] = -float32(rank)
		}
	}
	fields := fieldsOf{"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.bos_token_id": uint32(of.Added[0].ID),
		"tokenizer.ggml.add_bos_token": false}
	if model == "llama" {
		fields["tokenizer.ggml.scores"] = scores
	} else {
		fields["tokenizer.ggml.merges"] = merges
	}
	return fields
}

// A tokenizer out of a file's fields makes of the hostile corpus what the tokenizers library makes with the model's
// tokenizer.json.
func TestTokenizersEqualTheLibrary(t *testing.T) {
	var corpus struct{ Texts []string }
	readJSON(t, tokenizers+"corpus.json", &corpus)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2",
		"smollm2": "smollm", "llama2": ""} {
		t.Run(name, func(t *testing.T) {
			fields := fieldsOfTokenizer(t, name, "gpt2")
			if fields["tokenizer.ggml.pre"] = pre; pre == "" {
				fields = fieldsOfTokenizer(t, name, "llama")
			}
			h, bad := read(fileOf(fields, nil))
			require.Nil(t, bad)
			text, bad := h.Tokenizer()
			require.Nil(t, bad)
			got, err := tokenizer.Load(text)
			require.NoError(t, err)
			data, err := os.ReadFile(tokenizers + name + "/tokenizer.json")
			require.NoError(t, err)
			want, err := tokenizer.Load(data)
			require.NoError(t, err)
			for _, text := range corpus.Texts {
				ids, err := want.Encode(text, false)
				require.NoError(t, err)
				have, err := got.Encode(text, false)
				require.NoError(t, err)
				require.Equal(t, ids, have, "%q", text)
				require.Equal(t, want.Decode(ids, false), got.Decode(ids, false))
			}
		})
	}
}

// repeated are tokens of one to n letters, of which each is made of two others in many ways.
func repeated(letter string, n int) fieldsOf {
	var tokens []string
	for i := range n {
		tokens = append(tokens, strings.Repeat(letter, i+1))
	}
	return fieldsOf{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": make([]float32, n),
		"tokenizer.ggml.token_type": nil}
}

// What the fields of a tokenizer say beyond its tokens, and which are refused.
func TestFieldsOfTokenizers(t *testing.T) {
	bytePairs := fieldsOf{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe",
		"tokenizer.ggml.tokens": []string{"a", "b", "ab", "<|s|>", "[PAD]"}, "tokenizer.ggml.merges": []string{"a b"},
		"tokenizer.ggml.token_type": []int32{1, 1, 1, 3, 5}, "tokenizer.ggml.bos_token_id": uint32(3)}
	pieces := fieldsOf{"tokenizer.ggml.model": "llama",
		"tokenizer.ggml.tokens": []string{"<s>", "▁", "a", "▁a", "<u>"},
		"tokenizer.ggml.scores": []float32{0, -1, -2, -3, 0}, "tokenizer.ggml.token_type": []int32{3, 1, 1, 1, 4},
		"tokenizer.ggml.bos_token_id": uint32(0)}
	const key = "tokenizer.ggml."
	for name, c := range map[string]struct {
		of      fieldsOf
		changes fieldsOf
		ids     []int // of "ab" or "a"
		says    string
	}{
		"begins with a token":  {of: bytePairs, ids: []int{3, 2}},
		"begins without one":   {of: bytePairs, changes: fieldsOf{key + "add_bos_token": false}, ids: []int{2}},
		"another way to split": {of: bytePairs, changes: fieldsOf{key + "pre": "qwen2"}, ids: []int{2}},
		"ends with one too": {of: bytePairs, changes: fieldsOf{key + "add_eos_token": true,
			key + "eos_token_id": uint32(3)},
			ids: []int{3, 2, 3}},
		"pieces":                {of: pieces, ids: []int{0, 3}},
		"pieces without prefix": {of: pieces, changes: fieldsOf{key + "add_space_prefix": false}, ids: []int{0, 2}},
		"no model": {of: bytePairs, changes: fieldsOf{key + "model": nil},
			says: "model: error: is missing; accepted: \"gpt2\""},
		"WordPiece": {of: bytePairs, changes: fieldsOf{key + "model": "bert"},
			says: "WordPiece, which is not read"},
		"an unknown splitter": {of: bytePairs, changes: fieldsOf{key + "pre": "poro-chat"},
			says: `is "poro-chat", which is not known`},
		"no splitter": {of: bytePairs, changes: fieldsOf{key + "pre": nil}, says: "pre: error: is missing"},
		"no tokens": {of: bytePairs, changes: fieldsOf{key + "tokens": nil},
			says: "tokens: error: is missing"},
		"a token twice": {of: bytePairs, changes: fieldsOf{key + "tokens": []string{"a", "b", "a", "c", "d"}},
			says: `has "a" twice`},
		"a token that is bytes": {of: bytePairs,
			changes: fieldsOf{key + "tokens": []string{"a", "b", "\xff", "c", "d"}},
			says:    "element 2 is"},
		"types of others": {of: bytePairs, changes: fieldsOf{key + "token_type": []int32{1}},
			says: "want a number for each of 5 tokens"},
		"a type of 7": {of: bytePairs, changes: fieldsOf{key + "token_type": []int32{1, 1, 1, 7, 1}},
			says: "element 3 is 7; want 1 to 6"},
		"no merges": {of: bytePairs, changes: fieldsOf{key + "merges": nil},
			says: "merges: error: is missing"},
		"a merge of one": {of: bytePairs, changes: fieldsOf{key + "merges": []string{"ab"}},
			says: "two tokens with a space between"},
		"no first token": {of: bytePairs, changes: fieldsOf{key + "bos_token_id": nil},
			says: "bos_token_id: error: is missing"},
		"a first token beyond": {of: bytePairs, changes: fieldsOf{key + "bos_token_id": uint32(5)},
			says: "is 5; want the id of a token"},
		"too few scores": {of: pieces, changes: fieldsOf{key + "scores": []float32{1}},
			says: "a float32 for each of 5 tokens"},
		"too many pairs": {of: pieces, changes: repeated("a", 40),
			says: "are each made of more than 16 pairs of others, on average"},
		"white space removed": {of: pieces, changes: fieldsOf{key + "remove_extra_whitespaces": true},
			says: "is true, which is not read"},
	} {
		t.Run(name, func(t *testing.T) {
			fields := fieldsOf{}
			for _, from := range []fieldsOf{c.of, c.changes} {
				for k, v := range from {
					fields[k] = v
				}
			}
			h, bad := read(fileOf(fields, nil))
			require.Nil(t, bad)
			text, bad := h.Tokenizer()
			if c.says != "" {
				require.NotNil(t, bad)
				require.Equal(t, "AMK1058", bad.Code)
				require.Contains(t, bad.Error(), c.says)
				return
			}
			require.Nil(t, bad)
			loaded, err := tokenizer.Load(text)
			require.NoError(t, err)
			prompt := "ab"
			if c.of["tokenizer.ggml.model"] == "llama" {
				prompt = "a"
			}
			ids, err := loaded.Encode(prompt, true)
			require.NoError(t, err)
			require.Equal(t, c.ids, ids)
		})
	}
}

// The vocabularies that cost the most a byte, of 10 MB, get a verdict within two seconds of processor time;
// on the machine that the bound was chosen on they take up to one.
func TestVocabulariesAreReadInLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, model := range []string{"gpt2", "llama"} {
		for _, length := range []int{8, 64, 1024} {
			n := 10 << 20 / (length + 16)
			tokens, scores := make([]string, n), make([]float32, n)
			for i := range tokens {
				tokens[i] = fmt.Sprintf("%0*x", length, i)[:length]
			}
			merges := slices.Repeat([]string{tokens[0] + " " + tokens[1]}, n/2)
			h, bad := read(fileOf(fieldsOf{"tokenizer.ggml.model": model, "tokenizer.ggml.pre": "gpt-2",
				"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores, "tokenizer.ggml.merges": merges,
				"tokenizer.ggml.bos_token_id": uint32(0)}, nil))
			require.Nil(t, bad)
			spent := watch.Thread(func() { h.Tokenizer() })
			require.Less(t, spent, 2*time.Second, "%s of %d bytes", model, length)
			t.Logf("%s, %d tokens of %d bytes: %v", model, n, length, spent)
		}
	}
}

// tokenizer_config.json has the templates and the texts of special tokens.
func TestTokenizerConfig(t *testing.T) {
	h, err := read(modeltest.GGUF([]modeltest.GGUFField{{Key: "tokenizer.ggml.tokens", Value: []string{"<s>", "</s>"}},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, {Key: "tokenizer.ggml.eos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.padding_token_id", Value: uint32(9)},
		{Key: "tokenizer.chat_template", Value: "{{ messages }}"},
		{Key: "tokenizer.chat_template.tool_use", Value: "{{ tools }}"}}, nil))
	require.Nil(t, err)
	require.JSONEq(t, `{"bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": false,
		"chat_template": [{"name": "tool_use", "template": "{{ tools }}"},
			{"name": "default", "template": "{{ messages }}"}]}`, string(h.TokenizerConfig()))
}
