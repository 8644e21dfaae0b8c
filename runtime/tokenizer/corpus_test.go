package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// expected is what the tokenizers library made of the corpus; testdata/make_corpus.py writes it.
type expected struct {
	VocabSize int           `json:"vocab_size"`
	Special   []int         `json:"special"`
	Texts     []encodedText `json:"texts"`
	Random    []decodedIDs  `json:"random"`
}

type encodedText struct {
	ids     []int // with the template
	from    int   // ids[from:to] is without
	to      int
	decoded string
	raw     string
}

type decodedIDs struct {
	ids     []int
	decoded string
	raw     string
}

func (e *encodedText) UnmarshalJSON(data []byte) error {
	var raw *string
	err := json.Unmarshal(data, &[]any{&e.ids, &e.from, &e.to, &e.decoded, &raw})
	e.raw = orSame(raw, e.decoded)
	return err
}

func (d *decodedIDs) UnmarshalJSON(data []byte) error {
	var raw *string
	err := json.Unmarshal(data, &[]any{&d.ids, &d.decoded, &raw})
	d.raw = orSame(raw, d.decoded)
	return err
}

func orSame(raw *string, decoded string) string {
	if raw == nil {
		return decoded
	}
	return *raw
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

func corpusTexts(t testing.TB) []string {
	var c struct{ Texts []string }
	readJSON(t, "testdata/corpus.json", &c)
	require.Greater(t, len(c.Texts), 300)
	return c.Texts
}

func loadFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	tok, err := Load(data)
	require.NoError(t, err)
	return tok
}

func families(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*/tokenizer.json")
	require.NoError(t, err)
	require.Len(t, files, 15)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Base(filepath.Dir(f))
	}
	return names
}

// stream decodes through Push and Flush and checks that no part of a character ever shows.
func stream(t *testing.T, tok *Tokenizer, ids []int, skipSpecial bool) string {
	d := tok.NewDecoder(skipSpecial)
	var out string
	for _, id := range ids {
		s := d.Push(id)
		require.True(t, utf8.ValidString(s), "%q", s)
		out += s
	}
	return out + d.Flush()
}

func TestCorpusEqualsLibrary(t *testing.T) {
	texts := corpusTexts(t)
	for _, name := range families(t) {
		t.Run(name, func(t *testing.T) {
			tok := loadFile(t, filepath.Join("testdata", name, "tokenizer.json"))
			var want expected
			readJSON(t, filepath.Join("testdata", name, "expected.json"), &want)
			require.Len(t, want.Texts, len(texts))
			require.Equal(t, want.VocabSize, tok.VocabSize())
			special := []int{}
			for id := range want.VocabSize {
				if tok.IsSpecial(id) {
					special = append(special, id)
				}
			}
			require.Equal(t, want.Special, special)

			refused := 0
			for i, text := range texts {
				w := want.Texts[i]
				ids, err := tok.Encode(text, true)
				if err != nil {
					refused++
					require.Equal(t, "qwen2", name, "%q: %v", text, err)
					require.ErrorContains(t, err, "NFC")
				} else {
					require.Equal(t, w.ids, orEmpty(ids), "%q", text)
					plain, err := tok.Encode(text, false)
					require.NoError(t, err)
					require.Equal(t, w.ids[w.from:w.to], orEmpty(plain), "%q", text)
				}
				requireDecodes(t, tok, decodedIDs{w.ids, w.decoded, w.raw})
			}
			require.Less(t, refused, len(texts)/3)
			for _, w := range want.Random {
				requireDecodes(t, tok, w)
			}
		})
	}
}

func requireDecodes(t *testing.T, tok *Tokenizer, w decodedIDs) {
	t.Helper()
	require.Equal(t, w.decoded, tok.Decode(w.ids, true), "%v", w.ids)
	require.Equal(t, w.raw, tok.Decode(w.ids, false), "%v", w.ids)
	require.Equal(t, w.decoded, stream(t, tok, w.ids, true), "%v", w.ids)
	require.Equal(t, w.raw, stream(t, tok, w.ids, false), "%v", w.ids)
}

func orEmpty(ids []int) []int {
	if ids == nil {
		return []int{}
	}
	return ids
}

// TestTrainedCheckpoint holds the tokenizer of the example checkpoint to its recorded prompts and continuations.
func TestTrainedCheckpoint(t *testing.T) {
	const dir = "../../testdata/models/pycoder-5m"
	tok := loadFile(t, filepath.Join(dir, "tokenizer.json"))
	var ref struct {
		Greedy []struct {
			Prompt    string
			PromptIDs []int `json:"prompt_ids"`
			GreedyIDs []int `json:"greedy_ids"`
			Text      string
		}
	}
	readJSON(t, filepath.Join(dir, "reference.json"), &ref)
	require.NotEmpty(t, ref.Greedy)
	for _, g := range ref.Greedy {
		ids, err := tok.Encode(g.Prompt, true)
		require.NoError(t, err)
		require.Equal(t, g.PromptIDs, ids)
		require.Equal(t, g.Prompt, tok.Decode(ids, true))
		requireDecodes(t, tok, decodedIDs{g.GreedyIDs, g.Text, g.Text})
	}
}
