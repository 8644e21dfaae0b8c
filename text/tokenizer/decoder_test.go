package tokenizer

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// small returns a tokenizer.json with the given parts, as JSON text, over a small SentencePiece-like vocabulary.
func small(parts map[string]string) []byte {
	all := map[string]string{
		"added_tokens":  `[]`,
		"normalizer":    `null`,
		"pre_tokenizer": `null`,
		"decoder":       llamaDecoder,
		"model":         `{"type":"BPE","byte_fallback":true,"vocab":{"<0xF0>":0,"<0x9F>":1,"<0x98>":2,"<0x80>":3,"▁":4,"a":5,"▁a":6},"merges":["▁ a"]}`,
	}
	for k, v := range parts {
		all[k] = v
	}
	raw := make(map[string]json.RawMessage, len(all))
	for k, v := range all {
		raw[k] = json.RawMessage(v)
	}
	data, err := json.Marshal(raw)
	if err != nil {
		panic(err)
	}
	return data
}

const llamaDecoder = `{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
	{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`

func mustLoad(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := Load(data)
	require.NoError(t, err)
	return tok
}

// steps lists what each Push and the final Flush return.
func steps(tok *Tokenizer, ids ...int) []string {
	d := tok.NewDecoder(false)
	var out []string
	for _, id := range ids {
		out = append(out, d.Push(id))
	}
	return append(out, d.Flush())
}

func TestByteFallbackHoldsBackRuns(t *testing.T) {
	tok := mustLoad(t, small(nil))
	require.Equal(t, []string{"", "", "", "", "😀a", ""}, steps(tok, 0, 1, 2, 3, 5))
	require.Equal(t, []string{"", "", "", "", "😀"}, steps(tok, 0, 1, 2, 3))
	require.Equal(t, []string{"", "", "\uFFFD\uFFFD a", ""}, steps(tok, 0, 1, 6), "an invalid run is one U+FFFD a byte")
	require.Equal(t, []string{"", " ", "a", ""}, steps(tok, 4, 4, 5),
		"one leading space is stripped from the whole text")
	require.Equal(t, []string{"", "a", ""}, steps(tok, 999, 5), "an unknown id is nothing")
}

func TestFlushStartsANewText(t *testing.T) {
	d := mustLoad(t, small(nil)).NewDecoder(false)
	require.Equal(t, "a", d.Push(6)+d.Flush())
	require.Equal(t, "a", d.Push(6)+d.Flush())
	require.Equal(t, "", d.Push(0))
	require.Equal(t, "\uFFFD", d.Flush())
	require.Equal(t, "", d.Flush())
}

// A copy of a decoder goes on where it was, in the middle of a character, and neither knows of the other.
func TestClone(t *testing.T) {
	for _, decoder := range []string{llamaDecoder, `null`, `{"type":"ByteLevel"}`,
		`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}`} {
		tok := mustLoad(t, small(map[string]string{"decoder": decoder}))
		ids := []int{6, 0, 1, 2, 3, 4, 5, 6}
		for at := range ids {
			d, want := tok.NewDecoder(false), steps(tok, ids...)
			for _, id := range ids[:at] {
				d.Push(id)
			}
			copies := []*Decoder{d.Clone(), d.Clone()}
			copies[0].Push(5)
			copies[0].Flush()
			for _, d := range []*Decoder{copies[1], d} {
				for i, id := range ids[at:] {
					require.Equal(t, want[at+i], d.Push(id))
				}
				require.Equal(t, want[len(ids)], d.Flush())
			}
		}
	}
}

func TestByteLevelHoldsBackPartialCharacters(t *testing.T) {
	vocab := `{"ð":0,"Ł":1,"ĺ":2,"Ģ":3,"a":4,"not in the alphabet":5}`
	tok := mustLoad(t, small(map[string]string{
		"decoder": `{"type":"ByteLevel"}`,
		"model":   `{"type":"BPE","vocab":` + vocab + `,"merges":[]}`,
	}))
	require.Equal(t, []string{"", "", "", "😀", ""}, steps(tok, 0, 1, 2, 3))
	require.Equal(t, []string{"", "", "\uFFFDa", ""}, steps(tok, 0, 1, 4))
	require.Equal(t, []string{"", "\uFFFDnot in the alphabet", "\uFFFD", ""}, steps(tok, 0, 5, 3))
	require.Equal(t, []string{"", "", "\uFFFD"}, steps(tok, 0, 1))
}

// The expectations are Rust's String::from_utf8_lossy.
func TestAppendLossy(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"aé数😀":                 "aé数😀",
		"\xEF\xBF\xBD":         "\uFFFD",
		"\x80a":                "\uFFFDa",
		"\xE2\x82A":            "\uFFFDA",
		"\xE2\x82\xE2\x82\xAC": "\uFFFD€",
		"\xF0\x9F\x98":         "\uFFFD",
		"\xF0\x9F\xF0\x9F":     "\uFFFD\uFFFD",
		"\xE0\x80\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xED\xA0\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xF4\x90\x80\x80":     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xC0\xAF\xFF":         "\uFFFD\uFFFD\uFFFD",
	} {
		out, rest := appendLossy(nil, []byte(in), true)
		require.Equal(t, want, string(out), "%x", in)
		require.Empty(t, rest)
	}
}

// A special token that normalization changes prints in its normalized form, and is not skipped.
func TestNormalizedSpecialToken(t *testing.T) {
	tok := mustLoad(t, small(map[string]string{
		"added_tokens": `[{"id":7,"content":"<s>","normalized":true,"special":true}]`,
		"normalizer":   `{"type":"Prepend","prepend":"▁"}`,
	}))
	ids, err := tok.Encode("<s>a", true)
	require.NoError(t, err)
	require.Equal(t, []int{7, 5}, ids)
	require.Equal(t, "<s>a", tok.Decode(ids, true))
	require.Equal(t, "<s>a", tok.Decode(ids, false))
	require.True(t, tok.IsSpecial(7))
	require.False(t, tok.IsSpecial(5))
	require.Equal(t, 8, tok.VocabSize())
}

func TestEncodeRefusesBadUTF8(t *testing.T) {
	for _, normalizer := range []string{`null`, `{"type":"NFC"}`} {
		tok := mustLoad(t, small(map[string]string{"normalizer": normalizer}))
		_, err := tok.Encode("ab\xffc", false)
		require.ErrorContains(t, err, "not valid UTF-8 at byte 2")
	}
}

// One word of 200,000 characters: minutes for a quadratic merge loop, a fraction of a second for this one.
func TestLongWord(t *testing.T) {
	tok := loadFile(t, "testdata/llama2/tokenizer.json")
	text := strings.Repeat("abba数", 40_000)
	var ids []int
	var err error
	took := watch.Thread(func() { ids, err = tok.Encode(text, false) })
	require.NoError(t, err)
	require.Less(t, took, 20*time.Second)
	require.Equal(t, text, tok.Decode(ids, false))
}

// The bytes of the tokens of a text, joined, are the text that they decode to, but for the spaces in front.
func TestBytesJoinToTheText(t *testing.T) {
	corpus := readCorpus(t)
	for _, name := range families(t) {
		t.Run(name, func(t *testing.T) {
			tok := loadFile(t, filepath.Join("testdata", name, "tokenizer.json"))
			whole := 0
			for _, text := range corpus.Texts {
				ids := encode(t, tok, text, false)
				var joined strings.Builder
				for _, id := range ids {
					joined.Write(tok.Bytes(id))
				}
				if !utf8.ValidString(joined.String()) {
					continue // decoding has U+FFFD there
				}
				whole++
				require.Equal(t, strings.TrimLeft(tok.Decode(ids, false), " "), strings.TrimLeft(joined.String(), " "),
					"%q", text)
			}
			require.Greater(t, whole, len(corpus.Texts)*9/10)
		})
	}
}

func TestBytesOfNothing(t *testing.T) {
	tok := mustLoad(t, small(nil))
	require.Nil(t, tok.Bytes(-1))
	require.Nil(t, tok.Bytes(999))
	require.Equal(t, []byte{0xF0}, tok.Bytes(0))
	require.Equal(t, []byte(" a"), tok.Bytes(6))
}
