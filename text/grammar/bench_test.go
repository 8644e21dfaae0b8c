package grammar

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// large is a vocabulary of 2^17 tokens, of lengths as in those of Llama 3: words with and without a space in front,
// digits up to three, punctuation, runs of spaces, other scripts, and single bytes.
func large(b testing.TB) *Vocabulary {
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 1 << 17
	var texts [][]byte
	for c := range 256 {
		texts = append(texts, []byte{byte(c)})
	}
	for n := range 1000 {
		texts = append(texts, []byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
	}
	for n := range 128 - 1 {
		texts = append(texts, bytes.Repeat([]byte(" "), n+2))
	}
	const marks = `"'{}[]():;,.<>=+-*/\_ ` + "\n\t"
	for len(texts) < size {
		var t []byte
		switch rng.IntN(20) {
		case 0, 1: // punctuation, with quotes among it
			for range 1 + rng.IntN(5) {
				t = append(t, marks[rng.IntN(len(marks))])
			}
		case 2, 3, 4: // characters of two or three bytes
			for range 1 + rng.IntN(4) {
				t = append(t, string(rune(0x400+rng.IntN(0x8000)))...)
			}
		default:
			if rng.IntN(2) == 0 {
				t = append(t, ' ')
			}
			for range 2 + rng.IntN(9) {
				t = append(t, "etaoinshrdlucmfwypvbgkjqxzETAOINS"[rng.IntN(33)])
			}
		}
		texts = append(texts, t)
	}
	v, err := NewVocabulary(size, func(id int) []byte { return texts[id] })
	require.NoError(b, err)
	return v
}

func BenchmarkVocabulary(b *testing.B) {
	v := large(b)
	for b.Loop() {
		_, err := NewVocabulary(v.size, func(id int) []byte { return v.texts[id] })
		require.NoError(b, err)
	}
	b.ReportMetric(float64(len(v.nodes)), "nodes")
}

const person = `{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
	"tags": {"type": "array", "items": {"type": "string"}}, "address": {"type": "object", "properties":
	{"street": {"type": "string"}, "city": {"type": "string"}}, "required": ["street", "city"],
	"additionalProperties": false}}, "required": ["name", "age", "tags", "address"], "additionalProperties": false}`

// BenchmarkCalls makes what a request with strict tools needs before it is decoded: the masks of its text too.
func BenchmarkCalls(b *testing.B) {
	v := large(b)
	for mark, within := range map[string]string{"<tool_call>": "mark", "Action:\n```json": "words"} {
		b.Run(within, func(b *testing.B) {
			for b.Loop() {
				_, err := WithCalls(v, Calls{Mark: mark, Open: "<think>", Close: "</think>", Again: true,
					Options: []Option{{Before: `{"name": "f", "arguments": `, Schema: []byte(person), After: "}"}}})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkSchema(b *testing.B) {
	v := large(b)
	for b.Loop() {
		_, err := Schema(v, []byte(person))
		require.NoError(b, err)
	}
}

// state is a text up to some point.
func state(b testing.TB, g *Grammar, text string) *State {
	s := g.Begin()
	for _, c := range []byte(text) {
		require.NoError(b, s.Take(int(c)))
	}
	return s
}

// BenchmarkBoundedStrings has what a token costs in a string with bounds that are within the longest token's reach, the
// first time that a server comes there, over all lengths.
func BenchmarkBoundedStrings(b *testing.B) {
	v := large(b)
	for name, schema := range map[string]string{"most": `{"maxLength": 100}`, "least": `{"minLength": 100}`,
		"both": `{"minLength": 40, "maxLength": 60}`, "pattern": `{"pattern": "^[^0-9]*$", "maxLength": 100}`} {
		b.Run(name, func(b *testing.B) {
			g, err := Schema(v, []byte(schema))
			require.NoError(b, err)
			tokens := 0
			for b.Loop() {
				clear(v.common)
				clear(g.locals)
				s := state(b, g, `"`)
				for s.Mask(); s.Take('A') == nil; s.Mask() {
					if tokens++; tokens%101 == 0 {
						break
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
		})
	}
}

// BenchmarkMask has what a step costs in a string, in front of a value and of a key: the first time that a server
// comes there, the first time of a request, and from then on.
func BenchmarkMask(b *testing.B) {
	v := large(b)
	g, err := Schema(v, []byte(person))
	require.NoError(b, err)
	open, err := Schema(v, []byte(`{"properties": {"name": {"type": "string"}}}`))
	require.NoError(b, err)
	counted, err := Schema(v, []byte(`{"properties": {"a": {"maxLength": 20}, "b": {"maxLength": 100000},
		"mail": {"format": "email"}}}`))
	require.NoError(b, err)
	for _, c := range []struct {
		name, text string
		g          *Grammar
	}{
		{"short-string", `{"a":"A`, counted}, {"long-string", `{"b":"A`, counted}, {"email", `{"mail":"A`, counted},
		{"string", `{"name":"A`, g}, {"value", `{"name":`, g}, {"key", `{"`, g}, {"number", `{"name":"A","age":4`, g},
		{"any-object", `{"a":[{"b":"c`, Object(v)}, {"other-key", `{"na`, open},
	} {
		b.Run(c.name+"/server", func(b *testing.B) {
			for b.Loop() {
				clear(v.common)
				clear(c.g.locals)
				state(b, c.g, c.text).Mask()
			}
		})
		b.Run(c.name+"/request", func(b *testing.B) {
			for b.Loop() {
				s := state(b, c.g, c.text)
				s.Mask()
			}
		})
		b.Run(c.name+"/again", func(b *testing.B) {
			s := state(b, c.g, c.text)
			for b.Loop() {
				s.Mask()
			}
		})
	}
}
