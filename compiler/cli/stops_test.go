package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A text ends after the token that the tokenizer alone names as its end, and goes on with --ignore-eos.
func TestRunEndsAtTheTokenizersEnd(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(models+"pycoder-5m")))
	decode := func(flags ...string) (out struct {
		IDs     []int
		Stopped string
	}) {
		code, stdout, stderr := amkc(append([]string{"run", dir, "--device", "ref", "--ids", "0,5,9",
			"--max-tokens", "6", "--json"}, flags...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(stdout), &out))
		return out
	}
	all := decode()
	require.Equal(t, "length", all.Stopped)
	last := all.IDs[3]
	var tokenizer struct {
		Model struct{ Vocab map[string]int }
	}
	text, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &tokenizer))
	for token, id := range tokenizer.Model.Vocab {
		if id == last {
			text, err = json.Marshal(map[string]string{"eos_token": token})
			require.NoError(t, err)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), text, 0o644))
	ended := decode()
	require.Equal(t, "eos", ended.Stopped)
	require.Equal(t, all.IDs[:slices.Index(all.IDs, last)+1], ended.IDs)
	require.Equal(t, all, decode("--ignore-eos"))
}
