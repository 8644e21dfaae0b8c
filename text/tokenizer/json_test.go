package tokenizer

import (
	"encoding/json"
	"maps"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// vocabulary loads an object of ids as the only vocabulary of a model.
func vocabulary(text string) (map[string]int32, error) {
	m, err := loadModel(json.RawMessage(`{"type":"BPE","merges":[],"vocab":`+text+`}`), false)
	if err != nil {
		return nil, err
	}
	return m.ids, nil
}

func TestVocabulary(t *testing.T) {
	for text, want := range map[string]map[string]int32{
		`{}`:                                     {},
		" {\r\n\t} ":                             {},
		`{"a":1 , "b" : 20}`:                     {"a": 1, "b": 20},
		`{"\"\\\/\b\f\n\r\t":0}`:                 {"\"\\/\b\f\n\r\t": 0},
		`{"\u0041\u00e9\u6570\ud83D\uDE00":123}`: {"Aé数😀": 123},
		`{"x\ny":1,"数":2,"x\ny":3}`:              {"x\ny": 3, "数": 2},
	} {
		got, err := vocabulary(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":01}`, `{"a":1.5}`,
		`{"a":--1}`, `{"a":-}`, `{"a":1234567890123456789}`, "{\"a\nb\":1}", "{\"\\n\n\":1}", `{"\x":1}`, `{"\u12":1}`,
		`{"\u12g4":1}`, `{"\ud800":1}`, `{"\ud800\u0041":1}`, `{"\`, `{"\u`, `{"a`, `{"\n`, `[]`, `{"a":"1"}`, `{"a":1e1}`,
		`{"a":null}`, `{"a":-20}`} {
		_, err := vocabulary(text)
		require.ErrorContains(t, err, "tokenizer.json: model", text)
	}
}

// FuzzVocabulary: what is taken, encoding/json takes for the same.
func FuzzVocabulary(f *testing.F) {
	f.Add(`{"a":1, "\u00e9\n😀" : 2}`)
	f.Add(`{"\ud83d\ude00":0,"":12345}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer watch.Execution()()
		if !utf8.ValidString(text) || !json.Valid([]byte(text)) {
			return
		}
		got, err := vocabulary(text)
		var want map[string]int32
		if err != nil || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		require.True(t, maps.Equal(want, got), text)
	})
}
