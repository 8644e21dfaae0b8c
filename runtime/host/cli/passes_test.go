package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/draft"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// runOutput is what run prints as JSON.
type runOutput struct {
	IDs    []int
	Drafts *draft.Stats
}

func decoded(t *testing.T, dir string, args ...string) (r runOutput, stderr string) {
	t.Helper()
	code, out, stderr := run(t, dir, "", append([]string{"run", "--json", "--ignore-eos"}, args...)...)
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r, stderr
}

// With --draft the same ids come out, and a build without passes says what it lacks.
func TestRunDraft(t *testing.T) {
	hosttest.NeedDriver(t)
	plain := hosttest.Build(t, "", nil)
	dir := hosttest.Build(t, "", func(f *host.Facts) { f.Passes = []host.Pass{{Rows: 8, Stages: f.Stages}} })
	args := []string{"--prompt-ids", "5,6,7,8,5,6,7,8,5,6", "--max-tokens", "40"}
	want, _ := decoded(t, plain, args...)
	got, _ := decoded(t, dir, append(args, "--draft", "ngram")...)
	require.Equal(t, want.IDs, got.IDs)
	require.Nil(t, want.Drafts)
	code, _, stderr := run(t, plain, "", append([]string{"run", "--draft", "ngram"}, args...)...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "it has no passes of several rows to verify drafts by; compile with --rows 8")
	code, _, stderr = run(t, dir, "", append([]string{"run", "--draft", "words"}, args...)...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "run: --draft")

	args = append(args, "--temperature", "1", "--seed", "4")
	want, _ = decoded(t, plain, args...)
	got, _ = decoded(t, dir, append(args, "--draft", "ngram")...)
	require.Equal(t, want.IDs, got.IDs)
	require.Positive(t, got.Drafts.Passes)
}

// A prompt that begins with a saved one is continued from there, to the same ids.
func TestRunPrefix(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "cache=16384", nil) // the first block has what the fake kernel knows of four positions
	saved := filepath.Join(t.TempDir(), "saved")
	_, _ = decoded(t, dir, "--prompt-ids", "5,6,7,8", "--max-tokens", "3", "--save-prefix", saved)
	require.FileExists(t, saved)
	for prompt, says := range map[string]string{
		"5,6,7,8,9": "", // goes on
		"5,6,7,8":   "of the 4 tokens of the prefix the prompt begins with 3",
		"5,6,1":     "of the 4 tokens of the prefix the prompt begins with 2",
		"9":         "of the 4 tokens of the prefix the prompt begins with 0",
	} {
		want, _ := decoded(t, dir, "--prompt-ids", prompt, "--max-tokens", "20")
		got, _ := decoded(t, dir, "--prompt-ids", prompt, "--max-tokens", "20", "--prefix", saved)
		require.Equal(t, want.IDs, got.IDs, prompt)
		drawn, _ := decoded(t, dir, "--prompt-ids", prompt, "--max-tokens", "20", "--temperature", "1", "--seed", "3")
		again, _ := decoded(t, dir, "--prompt-ids", prompt, "--max-tokens", "20", "--temperature", "1", "--seed", "3",
			"--prefix", saved)
		require.Equal(t, drawn.IDs, again.IDs, prompt)
		_, _, stderr := run(t, dir, "", "run", "--prompt-ids", prompt, "--max-tokens", "1", "--prefix", saved)
		if says == "" {
			require.NotContains(t, stderr, "prefix")
		}
		require.Contains(t, stderr, says)
	}
	require.NoError(t, os.WriteFile(saved, []byte("no prefix"), 0o600))
	code, _, stderr := run(t, dir, "", "run", "--prompt-ids", "5", "--prefix", saved)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no prefix that this program has saved")
	code, _, stderr = run(t, dir, "", "run", "--prompt-ids", "5", "--save-prefix", filepath.Join(dir, "config.json"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--save-prefix: ")
}
