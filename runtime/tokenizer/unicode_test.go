package tokenizer

import (
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What the library takes for a letter and so on, of all characters; testdata/make_unicode.py writes it.
func TestClassesEqualLibrary(t *testing.T) {
	var golden struct{ Classes map[string]string }
	readJSON(t, "testdata/unicode.json", &golden)
	classes := map[string]func(rune) bool{"letter": isLetter, "number": isNumber, "space": isSpace, "word": isWord,
		"numeric": isNumeric}
	require.Len(t, golden.Classes, len(classes))
	for name, in := range classes {
		d := newDigest()
		for r := range rune(unicode.MaxRune + 1) {
			if in(r) {
				d.add(string(r))
			}
		}
		require.Equal(t, golden.Classes[name], d.String(), name)
	}
}
