package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/prompts"
)

// --stop ends a text of the reference VM before the string, and those of the prompts of a file, as the server does.
func TestRunStop(t *testing.T) {
	model := models + "pycoder-5m"
	decode := func(flags ...string) (out completion) {
		code, stdout, stderr := amkc(append([]string{"run", model, "--device", "ref", "--max-tokens", "16", "--prompt",
			"def add(a, b):", "--json"}, flags...)...)
		require.Zero(t, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(stdout), &out))
		return out
	}
	whole := decode()
	require.Equal(t, "length", whole.Stopped)
	stop := (*whole.Text)[8:12]
	want := (*whole.Text)[:strings.Index(*whole.Text, stop)]
	for _, flags := range [][]string{nil, {"--logprobs", "0"}} { // which a session and the host choose by
		cut := decode(append(flags, "--stop", stop)...)
		require.Equal(t, "stop", cut.Stopped)
		require.Equal(t, want, *cut.Text)
		require.Equal(t, whole.IDs[:len(cut.IDs)], cut.IDs)
	}
	code, out, stderr := amkc("run", model, "--device", "ref", "--prompt", "def add(a, b):", "--stop", stop, "-q")
	require.Zero(t, code, stderr)
	require.Equal(t, strings.TrimSuffix(want, "\n")+"\n", out)

	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"prompt\": \"def add(a, b):\"}\n"), 0o600))
	code, out, stderr = amkc("run", model, "--device", "ref", "--prompts", file, "--max-tokens", "16", "--stop",
		stop, "-q")
	require.Zero(t, code, stderr)
	var line prompts.Result
	require.NoError(t, json.Unmarshal([]byte(out), &line))
	require.Equal(t, want, *line.Text)
	require.Equal(t, "stop", line.Finish)

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(model)))
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	code, _, stderr = amkc("run", dir, "--device", "ref", "--prompt-ids", "0", "--stop", stop)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--stop needs a tokenizer")
}
