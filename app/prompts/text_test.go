package prompts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text ends before a stop string: where that begins in one token and ends in another, where only what was held back
// completes it, and nowhere else.
func TestText(t *testing.T) {
	tok := load(t)
	prompt, err := tok.Encode("def add(a, b):", true)
	require.NoError(t, err)
	const says = "\n    return a + b\n# é is one character"
	ids, err := tok.Encode(says, false)
	require.NoError(t, err)
	for stop, want := range map[string]string{"urn a": "\n    ret", " + b\n#": "\n    return a",
		"character": says[:len(says)-9], "characters": says, "e is": says, "a + c": says} {
		text, shown, found := NewText(tok, prompt, []string{stop}), "", false
		require.Equal(t, "def add(a, b):", text.Prompt)
		for _, id := range ids {
			var part string
			part, found = text.Push(id)
			if shown += part; found {
				break
			}
		}
		if !found {
			var rest string
			rest, found = text.End()
			shown += rest
		}
		require.Equal(t, want, shown, stop)
		require.Equal(t, want, text.Written)
		require.Equal(t, want != says, found)
	}
	// Bytes that are not a character are shown where the text ends, which may complete a stop string.
	text := NewText(tok, nil, []string{"\ufffd"})
	part, found := text.Push(ids[len(ids)-1])
	require.False(t, found)
	broken, err := tok.Encode("é", false)
	require.NoError(t, err)
	_, found = text.Push(broken[0])
	require.False(t, found)
	require.Greater(t, len(broken), 1, "a token for each byte")
	rest, found := text.End()
	require.True(t, found)
	require.Empty(t, rest)
	require.Equal(t, part, text.Written)
}
