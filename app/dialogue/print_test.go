package dialogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/text/chat"
	"amkc/text/reply"
)

// What a model writes is obeyed by no terminal, and changed by no pipe; what is said of it is escaped anywhere.
func TestModelTextOnATerminal(t *testing.T) {
	const hostile = "a\x1b[2Jb\r\nc\td\u202e"
	for shown, want := range map[bool]string{false: hostile, true: `a\u001b[2Jb\r` + "\nc\td" + `\u202e`} {
		var b, errs strings.Builder
		d := &Dialogue{Config: Config{Out: &b, Err: &errs, Interactive: true}, shown: shown}
		require.NoError(t, d.print(hostile))
		require.Equal(t, want, b.String())
		require.NoError(t, d.fault("%s", hostile))
		d.note(hostile)
		require.Equal(t, strings.Repeat(`a\u001b[2Jb\r\nc\td\u202e`+"\n", 2), errs.String())
	}
}

// A terminal shows a thought faintly and without its marks, and a pipe gets what was written.
func TestThoughtsOnATerminal(t *testing.T) {
	parts := []string{"<thi", "nk>a\x1b", "</think>\n", "b", "\n"}
	for shown, want := range map[bool]string{false: strings.Join(parts, ""),
		true: "\x1b[2ma\\u001b\x1b[22m\n\nb\n"} {
		var b strings.Builder
		format := reply.Of(chat.New(map[string]string{"default": "{{ '</think>' }}"}, nil))
		d := &Dialogue{Config: Config{Out: &b}, shown: shown}
		a := &answer{d: d, reader: format.Reader("", nil)}
		for _, part := range parts {
			require.NoError(t, a.put(part))
		}
		require.NoError(t, a.add(a.reader.End()))
		require.Equal(t, want, b.String())
		require.Equal(t, "a\x1b", a.thought)
		require.Equal(t, "b\n", a.said)
	}
}
