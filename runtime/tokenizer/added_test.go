package tokenizer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tokens of white space next to others that strip it. The ids are the library's.
func TestTokensOfWhiteSpace(t *testing.T) {
	tok := mustLoad(t, small(map[string]string{"added_tokens": `[{"id":7,"content":"\n","lstrip":true,"rstrip":true},
		{"id":8,"content":"[t]","rstrip":true},{"id":9,"content":"\t"}]`}))
	for text, want := range map[string][]int{
		"\r\n\n\na":     {7, 5},
		"a \n \n a\n":   {5, 7, 5, 7},
		"[t]\n\na":      {8, 5},
		"[t] \n a":      {8, 5},
		"[t] \t a":      {8, 9, 5},
		"[t]\t\n\ta":    {8, 9, 7, 9, 5},
		"\n\t\n":        {7, 9, 7},
		"[t]\n[t] \n":   {8, 8},
		"[t]  [t]a[t]a": {8, 8, 5, 8, 5},
	} {
		require.Equal(t, want, encode(t, tok, text, false), "%q", text)
	}
}

// To the library no piece begins a text whose first character a normalizer removed.
func TestFirstAfterNormalizer(t *testing.T) {
	for normalizer, accepted := range map[string]bool{
		`null`: true,
		`{"type":"Replace","pattern":{"String":"x"},"content":"y"}`:  true,
		`{"type":"Replace","pattern":{"String":"xy"},"content":"y"}`: false,
		`{"type":"Strip","strip_left":true,"strip_right":false}`:     false,
		`{"type":"StripAccents"}`:                                    false,
	} {
		_, err := Load(small(map[string]string{"normalizer": normalizer,
			"pre_tokenizer": `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}`}))
		if accepted {
			require.NoError(t, err, normalizer)
			continue
		}
		var u *UnsupportedError
		require.True(t, errors.As(err, &u), normalizer)
		require.Equal(t, "pre_tokenizer.prepend_scheme", u.Where)
	}
}
