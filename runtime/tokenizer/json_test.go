package tokenizer

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// readNumbers reads an object of integers with the reader.
func readNumbers(text string) (map[string]int, bool) {
	out := map[string]int{}
	r := &reader{text: text}
	ok := r.object(func(key []byte) bool {
		name := string(key)
		n, ok := r.number()
		out[name] = n
		return ok
	})
	return out, ok && r.space() == 0 && r.pos == len(text)
}

func TestReader(t *testing.T) {
	for text, want := range map[string]map[string]int{
		`{}`:                     {},
		" {\r\n\t} ":             {},
		`{"a":1 , "b" : -20}`:    {"a": 1, "b": -20},
		`{"\"\\\/\b\f\n\r\t":0}`: {"\"\\/\b\f\n\r\t": 0},
		`{"\u0041\u00e9\u6570\ud83D\uDE00":123456789012345678}`: {"Aé数😀": 123456789012345678},
		`{"x\ny":1,"数":2,"x\ny":3}`:                             {"x\ny": 3, "数": 2},
	} {
		got, ok := readNumbers(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":01}`, `{"a":1.5}`,
		`{"a":--1}`, `{"a":-}`, `{"a":1234567890123456789}`, "{\"a\nb\":1}", "{\"\\n\n\":1}", `{"\x":1}`, `{"\u12":1}`,
		`{"\u12g4":1}`, `{"\ud800":1}`, `{"\ud800\u0041":1}`, `{"\`, `{"\u`, `{"a`, `{"\n`, `[]`, `{"a":"1"}`} {
		_, ok := readNumbers(text)
		require.False(t, ok, text)
	}
}

func TestMembers(t *testing.T) {
	got, err := members(`{"a":{"b":[1,"]}\""]} , "c": [ ] ,"d":12 ,"e":"x,\\" ,"f":null}`, "x")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": `{"b":[1,"]}\""]}`, "c": `[ ]`, "d": "12", "e": `"x,\\"`, "f": "null"}, got)
	for _, text := range []string{`{"a":1} x`, `{"a":[}`, `{"a":"`, `{"a":`, `{"a":}`, `[]`} {
		_, err := members(text, "x")
		require.ErrorContains(t, err, "tokenizer.json: x: ", text)
	}
}

// FuzzReader: what the reader takes, encoding/json takes for the same.
func FuzzReader(f *testing.F) {
	f.Add(`{"a":1, "\u00e9\n😀" : -2}`)
	f.Add(`{"\ud83d\ude00":0,"":12345}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer watch.Execution()()
		got, ok := readNumbers(text)
		if !ok || !utf8.ValidString(text) {
			return
		}
		var want map[string]int
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.Equal(t, want, got)
	})
}
