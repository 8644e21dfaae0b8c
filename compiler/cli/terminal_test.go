package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/internal/pty"
)

// A document is as it is in a pipe, and shown on a terminal; a result is always shown.
func TestDocumentsOnATerminal(t *testing.T) {
	hostile := "\x1b[2Jmodel\r\u202etext\n"
	var pipe strings.Builder
	c := &call{stdout: &pipe}
	require.NoError(t, c.print(hostile))
	require.Equal(t, hostile, pipe.String())
	pipe.Reset()
	require.NoError(t, c.printf("%s", hostile))
	require.Equal(t, `\u001b[2Jmodel\r\u202etext`+"\n", pipe.String())

	master, terminal := pty.Open(t)
	c = &call{stdout: terminal}
	require.NoError(t, c.print(hostile))
	require.NoError(t, c.printf("%s", hostile))
	require.NoError(t, master.SetReadDeadline(time.Now().Add(5*time.Minute)))
	want := 2 * len(`\u001b[2Jmodel\r\u202etext`+"\r\n")
	shown := make([]byte, want)
	_, err := io.ReadFull(master, shown)
	require.NoError(t, err)
	require.Empty(t, injection.Raw(strings.ReplaceAll(string(shown), "\r\n", "\n")))
}
