package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a model writes is obeyed by no terminal, and changed by no pipe.
func TestModelTextOnATerminal(t *testing.T) {
	for shown, want := range map[bool]string{false: "a\x1b[2Jb\r\nc\td", true: `a\u001b[2Jb\r` + "\nc\td"} {
		var b strings.Builder
		w := &writer{out: &b, shown: shown}
		require.NoError(t, w.put("a\x1b[2Jb\r\nc\td"))
		require.Equal(t, want, b.String())
	}
}
