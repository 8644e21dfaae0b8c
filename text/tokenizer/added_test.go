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

// What the post-processor puts in front of a text is there once, whether the text begins with it or not.
func TestEncodePrompt(t *testing.T) {
	template := func(single string) string {
		return `{"type":"TemplateProcessing","single":[` + single + `],"special_tokens":{"[s]":{"ids":[7]},"[c]":{"ids":[8]}}}`
	}
	const s, c, text = `{"SpecialToken":{"id":"[s]"}}`, `{"SpecialToken":{"id":"[c]"}}`, `{"Sequence":{"id":"A"}}`
	for _, of := range []struct {
		single, prompt string
		want           []int
		begun          string
	}{
		{s + "," + text, "a", []int{7, 5}, ""},
		{s + "," + text, "[s]a", []int{7, 5}, "[s]"},
		{s + "," + text, "[s][s]a", []int{7, 7, 5}, "[s]"}, // one of the two is the text's own business
		{s + "," + text, "[s]", []int{7}, "[s]"},
		{s + "," + text, "", []int{7}, ""},
		{s + "," + text, "a[s]", []int{7, 5, 7}, ""},
		{s + "," + c + "," + text, "[s]a", []int{7, 8, 7, 5}, ""},
		{s + "," + c + "," + text, "[s][c]a", []int{7, 8, 5}, "[s][c]"},
		{s + "," + text + "," + c, "[s]a", []int{7, 5, 8}, "[s]"},
		{text, "[s]a", []int{7, 5}, ""},
	} {
		tok := mustLoad(t, small(map[string]string{"post_processor": template(of.single),
			"added_tokens": `[{"id":7,"content":"[s]","special":true},{"id":8,"content":"[c]","special":true}]`}))
		ids, begun, err := tok.EncodePrompt(of.prompt)
		require.NoError(t, err)
		require.Equal(t, of.want, ids, "%q", of.prompt)
		require.Equal(t, of.begun, begun)
	}
	_, _, err := mustLoad(t, small(nil)).EncodePrompt("\xff")
	require.ErrorContains(t, err, "not valid UTF-8 at byte 0")
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
