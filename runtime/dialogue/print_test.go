package dialogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
