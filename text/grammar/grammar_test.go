package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// pieces is a vocabulary of all single bytes, some that a model has of JSON, parts of characters, and random runs.
func pieces(t testing.TB, rng *rand.Rand) *Vocabulary {
	t.Helper()
	var texts [][]byte
	for b := range 256 {
		texts = append(texts, []byte{byte(b)})
	}
	for _, s := range []string{`{"`, `"}`, `":`, `": `, `",`, `", "`, `":"`, `":{"`, `{"a":1}`,
		`},`, `}}`, `]]`, `[[`, `[]`,
		`{}`, `"]`, `["`, `true`, `false`, `null`, `rue`, `\u`, `\ud8`, `\"`, `\\`, `name`, `"name"`, `"b"`, "\n  ",
		"\n    ", "  ", "ö", "€", "\xe2\x82", "\x82\xac", "\xf0\x9f", "\x98\x80", "😀", `é"`, `a":`, `,"b`, `12`, `0.`,
		`e+`, `-`, `00`, ` [`, ` {`} {
		texts = append(texts, []byte(s))
	}
	const letters = `{}[]",:\u0123abn tr.e-` + "\n€"
	for range 400 {
		n := 2 + rng.IntN(5)
		s := make([]byte, n)
		for i := range s {
			s[i] = letters[rng.IntN(len(letters))]
		}
		texts = append(texts, s)
	}
	texts = append(texts, nil, nil) // special tokens
	v, err := NewVocabulary(len(texts), func(id int) []byte { return texts[id] })
	require.NoError(t, err)
	return v
}

// sample writes a text of a grammar with random tokens, and reports whether it came to an end. After some tokens it
// hurries: what closes something is taken first.
func sample(t testing.TB, g *Grammar, rng *rand.Rand) (string, bool) {
	t.Helper()
	s := g.Begin()
	var text []byte
	for n := range 600 {
		if s.MayEnd() && (!s.MayGoOn() || n > 40 || rng.IntN(3) == 0) {
			return string(text), true
		}
		mask := s.Mask()
		var all []int
		for id := range g.v.size {
			if mask.Allows(id) {
				all = append(all, id)
			}
		}
		require.NotEmpty(t, all, "nothing follows %q", text)
		id := all[rng.IntN(len(all))]
		if n > 40 {
			for _, b := range []byte(`"}]:0`) {
				if mask.Allows(int(b)) {
					id = int(b)
					break
				}
			}
		}
		err := s.Take(id)
		if errors.As(err, new(*OpenError)) {
			return string(text), false
		}
		require.NoError(t, err, "%q after %q", g.v.texts[id], text)
		text = append(text, g.v.texts[id]...)
	}
	return string(text), false
}

// accepts reports whether a text is one of a grammar, byte by byte.
func accepts(g *Grammar, text string) bool {
	s := g.Begin()
	for _, b := range []byte(text) {
		if !s.Mask().Allows(int(b)) || s.Take(int(b)) != nil {
			return false
		}
	}
	return s.MayEnd()
}

func TestObjects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	g := Object(pieces(t, rng))
	ended := 0
	for range 400 {
		text, end := sample(t, g, rng)
		if !end {
			continue
		}
		ended++
		require.True(t, utf8.ValidString(text), "%q", text)
		var into map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &into), "%q", text)
	}
	require.Greater(t, ended, 350)
}

// anything is a random value.
func anything(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(8); {
	case n == 0 && depth > 0:
		all := []any{}
		for range rng.IntN(4) {
			all = append(all, anything(rng, depth-1))
		}
		return all
	case n <= 2 && depth > 0:
		all := map[string]any{}
		for range rng.IntN(4) {
			all[word(rng)] = anything(rng, depth-1)
		}
		return all
	case n == 3:
		return rng.IntN(2) == 0
	case n == 4:
		return rng.IntN(2_000_000) - 1_000_000
	case n == 5:
		return float64(rng.IntN(1000)) / 8
	case n == 6:
		return nil
	}
	return word(rng)
}

func word(rng *rand.Rand) string {
	letters := []rune("ab\"\\/\n\t\x01 zö€😀\u2028<>&'\u007f\u0416")
	s := make([]rune, rng.IntN(6))
	for i := range s {
		s[i] = letters[rng.IntN(len(letters))]
	}
	return string(s)
}

// Whatever libraries write is an object, compact, indented or with spaces.
func TestObjectsThatAreWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	g := Object(pieces(t, rng))
	for range 300 {
		v := map[string]any{"a": anything(rng, 4), word(rng): anything(rng, 3)}
		short, err := json.Marshal(v)
		require.NoError(t, err)
		require.True(t, accepts(g, string(short)), "%s", short)
		long, err := json.MarshalIndent(v, "", "  ")
		require.NoError(t, err)
		require.True(t, accepts(g, string(long)), "%s", long)
	}
	for _, text := range []string{`{}`, `{"a": 1, "b": [1, 2]}`, ` {"a":-0.5e-10}`, "{\n}", `{"\ud83d\ude00":null}`} {
		require.True(t, accepts(g, text), text)
	}
	for _, text := range []string{``, `[]`, `1`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":01}`, `{"a":1.}`,
		`{"a":.5}`,
		`{"a":+1}`, `{"a":tru}`, `{a:1}`, `{'a':1}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", "{\"\xff\":1}",
		"{\"\xed\xa0\x80\":1}", "{\"\xc0\x80\":1}", `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":1} `, `{"a":1}{}`,
		`{"a":1e400}`, `{"a":nan}`, `{"a":1234567890123456}`} {
		require.False(t, accepts(g, text), text)
	}
}

// What a mask says is what taking a token says, at every point of random texts.
func TestMasksAreWhatCanBeTaken(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	v := pieces(t, rng)
	grammars := []*Grammar{Object(v)}
	for range 12 {
		text, err := json.Marshal(schemaOf(rng, 3))
		require.NoError(t, err)
		if g, err := Schema(v, text); err == nil {
			grammars = append(grammars, g)
		}
	}
	for _, g := range grammars {
		s := g.Begin()
		for range 25 {
			mask := s.Mask()
			var all []int
			for id := range v.size {
				other := State{g: g, m: newMachine(g.p), masks: map[spot]Mask{}, spots: slices.Clone(s.spots)}
				can := other.Take(id) == nil
				require.Equal(t, can, mask.Allows(id), "%q", v.texts[id])
				if can {
					all = append(all, id)
				}
			}
			if len(all) == 0 {
				break
			}
			require.NoError(t, s.Take(all[rng.IntN(len(all))]))
		}
	}
}

// Tokens that could leave a text where nothing follows are found when the vocabulary is made.
func TestVocabulariesThatCannotSpell(t *testing.T) {
	ascii := func(id int) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return nil
	}
	_, err := NewVocabulary(300, ascii)
	require.NoError(t, err)
	_, err = NewVocabulary(128, ascii)
	require.NoError(t, err)
	_, err = NewVocabulary(100, ascii)
	require.ErrorIs(t, err, ErrVocabulary)
	_, err = NewVocabulary(300, func(id int) []byte {
		switch {
		case id < 128:
			return ascii(id)
		case id == 128:
			return []byte("\xc3") // and nothing that ends it
		}
		return nil
	})
	require.ErrorIs(t, err, ErrVocabulary)
}

func TestTokensThatDoNotFollow(t *testing.T) {
	g := Object(pieces(t, rand.New(rand.NewPCG(13, 14))))
	s := g.Begin()
	for _, id := range []int{-1, g.v.size, g.v.size - 1, 'x'} {
		require.Error(t, s.Take(id))
	}
	require.NoError(t, s.Take('{'), "a token that was refused changes nothing")
	require.False(t, s.MayEnd())
	require.NoError(t, s.Take('}'))
	require.True(t, s.MayEnd())
	require.False(t, s.MayGoOn())
}
