package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
)

func TestEscapes(t *testing.T) {
	for s, want := range map[string]string{
		"plain, größe, 模型, 🙂👩‍💻": "plain, größe, 模型, 🙂👩‍💻",
		"\x1b[31mred":            `\u001b[31mred`,
		"a\u009bb":               `a\u009bb`,
		"a\x9bb":                 `a\x9bb`,
		"a\x7f\x00b":             `a\u007f\u0000b`,
		"a\u202eb\u2066c\u200fd": `a\u202eb\u2066c\u200fd`,
		"a\u2028b":               `a\u2028b`,
		"a\rb":                   `a\rb`,
		"\ufffd":                 "\ufffd", // the character itself is not an error
		"":                       "",
	} {
		require.Equal(t, want, Line(s), "%q", s)
		require.Equal(t, want, Text(s), "%q", s)
	}
	require.Equal(t, `a\nb\tc`, Line("a\nb\tc"))
	require.Equal(t, "a\nb\tc", Text("a\nb\tc"))
}

func TestHostileTextIsSafe(t *testing.T) {
	for _, hostile := range injection.Texts {
		for _, s := range []string{hostile, "ok " + hostile + hostile} {
			require.Empty(t, injection.Raw(strings.ReplaceAll(Text(s), "\n", " ")))
			require.Empty(t, injection.Raw(Line(s)))
			require.NotContains(t, Line(s), "\n")
			require.Empty(t, injection.Raw(Clip(s)))
			require.Less(t, len(Clip(s)), 6*maxShown)
		}
		if utf8.ValidString(hostile) {
			data, err := json.Marshal(map[string]string{hostile: hostile})
			require.NoError(t, err)
			var back map[string]string
			require.NoError(t, json.Unmarshal([]byte(Text(string(data))), &back))
			require.Equal(t, hostile, back[hostile], "JSON stays the same JSON")
		}
	}
}
