package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	Mixed     []string      `json:"mixed"`
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

type corpus struct {
	Texts     []string
	Fragments []string
	Ranges    [][2]int
}

func readCorpus(t testing.TB) (c corpus) {
	readJSON(t, "testdata/corpus.json", &c)
	require.Greater(t, len(c.Texts), 300)
	return c
}

// mixedText draws a text as make_corpus.py does: fragments, and characters of the ranges.
func (c *corpus) mixedText(d *draw) string {
	var text strings.Builder
	for range 1 + d.below(24) {
		if d.below(6) == 0 {
			r := c.Ranges[d.below(len(c.Ranges))]
			text.WriteRune(rune(r[0] + d.below(r[1]-r[0])))
		} else {
			text.WriteString(c.Fragments[d.below(len(c.Fragments))])
		}
	}
	return text.String()
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
	require.Len(t, files, 21)
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
	corpus := readCorpus(t)
	for _, name := range families(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok := loadFile(t, filepath.Join("testdata", name, "tokenizer.json"))
			var want expected
			readJSON(t, filepath.Join("testdata", name, "expected.json"), &want)
			require.Len(t, want.Texts, len(corpus.Texts))
			require.Equal(t, want.VocabSize, tok.VocabSize())
			special := []int{}
			for id := range want.VocabSize {
				if tok.IsSpecial(id) {
					special = append(special, id)
				}
			}
			require.Equal(t, want.Special, special)

			for i, text := range corpus.Texts {
				w := want.Texts[i]
				require.Equal(t, w.ids, encode(t, tok, text, true), "%q", text)
				require.Equal(t, w.ids[w.from:w.to], encode(t, tok, text, false), "%q", text)
				requireDecodes(t, tok, decodedIDs{w.ids, w.decoded, w.raw})
			}
			for _, w := range want.Random {
				requireDecodes(t, tok, w)
			}
			requireMixed(t, tok, corpus, want.Mixed)
		})
	}
}

// requireMixed encodes and decodes random texts. A digest is of 500 of them; where one differs, the library has to be
// asked for each (make_corpus.py draws the same texts). AMKC_LONG takes all of them, and else it is a fifth.
func requireMixed(t *testing.T, tok *Tokenizer, c corpus, digests []string) {
	t.Helper()
	require.Len(t, digests, 20)
	if os.Getenv("AMKC_LONG") == "" {
		digests = digests[:4]
	}
	d := draw(2)
	var list []byte
	for i, want := range digests {
		got := newDigest()
		for range 500 {
			ids := encode(t, tok, c.mixedText(&d), true)
			list = list[:0]
			for _, id := range ids {
				list = strconv.AppendInt(list, int64(id), 10)
				list = append(list, ' ')
			}
			got.add(string(list))
			got.add(tok.Decode(ids, true))
			got.add(tok.Decode(ids, false))
		}
		require.Equal(t, want, got.String(), "random texts %d to %d", 500*i, 500*i+499)
	}
}

// encode returns a list even where there are no ids.
func encode(t *testing.T, tok *Tokenizer, text string, addSpecial bool) []int {
	t.Helper()
	ids, err := tok.Encode(text, addSpecial)
	require.NoError(t, err)
	if ids == nil {
		return []int{}
	}
	return ids
}

func requireDecodes(t *testing.T, tok *Tokenizer, w decodedIDs) {
	t.Helper()
	require.Equal(t, w.decoded, tok.Decode(w.ids, true), "%v", w.ids)
	require.Equal(t, w.raw, tok.Decode(w.ids, false), "%v", w.ids)
	require.Equal(t, w.decoded, stream(t, tok, w.ids, true), "%v", w.ids)
	require.Equal(t, w.raw, stream(t, tok, w.ids, false), "%v", w.ids)
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
