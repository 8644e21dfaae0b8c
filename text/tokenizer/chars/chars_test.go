package chars

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What the library takes for a letter and so on, of all characters; testdata/make_unicode.py of the tokenizer writes it.
func TestSetsEqualLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	data, err := os.ReadFile("../testdata/unicode.json")
	require.NoError(t, err)
	var golden struct{ Classes map[string]string }
	require.NoError(t, json.Unmarshal(data, &golden))
	sets := map[string]Set{"letter": Letter(), "number": Number(), "space": Space, "word": PlainWord(),
		"numeric": Numeric(), "punctuation": Punctuation(), "regex word": Word()}
	for name := range categoryLetters {
		sets[name] = category(name)
	}
	delete(sets, "Cs") // no text has surrogates
	require.Len(t, golden.Classes, len(sets))
	for name, set := range sets {
		table := set.Table()
		h := sha256.New()
		for r := range rune(unicode.MaxRune + 1) {
			in := table.Has(r)
			if in != set.Has(r) {
				require.Fail(t, "the table differs from its set", "%s %U", name, r)
			}
			if in && (r < 0xD800 || r >= 0xE000) {
				h.Write(append([]byte(string(r)), 0))
			}
		}
		require.Equal(t, golden.Classes[name], hex.EncodeToString(h.Sum(nil)[:8]), name)
	}
}

// Every code point has one category.
func TestCategoriesAreComplete(t *testing.T) {
	var all Set
	count := rune(0)
	for _, name := range []string{"L", "M", "N", "P", "S", "Z", "C"} {
		all = Union(all, category(name))
		for _, r := range category(name) {
			count += r.Hi - r.Lo + 1
		}
	}
	require.Equal(t, Set{{0, unicode.MaxRune}}, all)
	require.EqualValues(t, unicode.MaxRune+1, count)
	_, ok := Category("")
	require.False(t, ok)
	_, ok = Category("Latin")
	require.False(t, ok)
}

func TestAlgebra(t *testing.T) {
	ab, bc := Between('a', 'b'), Of('c', 'b')
	require.Equal(t, Set{{'a', 'c'}}, Union(ab, bc))
	require.Equal(t, Set{{'b', 'b'}}, ab.And(bc))
	require.Equal(t, Set{{0, 'a' - 1}, {'c', unicode.MaxRune}}, ab.Not())
	require.Nil(t, Set{{0, unicode.MaxRune}}.Not())
	require.Equal(t, ab, ab.Not().Not())
}
