package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// With --stop a text is the one without it, up to the string that is complete first: of the kernel's tokens, of drawn
// ones, with drafts, and of the prompts of a file.
func TestRunStop(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "", func(f *host.Facts) { hosttest.AddPasses(f, shape.Pass{Rows: 8}) })
	for _, flags := range [][]string{nil, {"--draft", "ngram"}, {"--temperature", "1", "--seed", "3"},
		{"--temperature", "1", "--seed", "3", "--logprobs", "1"},
		{"--temperature", "1", "--seed", "3", "--logprobs", "0", "--draft", "ngram"}} {
		decode := func(more ...string) (r result, logprobs int) {
			args := append([]string{"run", "--prompt", "def add(a, b):", "--max-tokens", "40", "--ignore-eos",
				"--json"}, flags...)
			code, out, stderr := run(t, dir, "", append(args, more...)...)
			require.Zero(t, code, stderr)
			var all struct{ LogProbs []any }
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			require.NoError(t, json.Unmarshal([]byte(out), &all))
			return r, len(all.LogProbs)
		}
		whole, _ := decode()
		require.Equal(t, "length", whole.Stopped)
		text := *whole.Text
		at := len(text) / 2
		for !utf8.RuneStart(text[at]) || !utf8.RuneStart(text[at+6]) {
			at++
		}
		stop := text[at : at+6]
		cut, logprobs := decode("--stop", "no such text", "--stop", stop)
		require.Equal(t, "stop", cut.Stopped, flags)
		require.Equal(t, text[:strings.Index(text, stop)], *cut.Text, flags)
		require.Less(t, len(cut.IDs), len(whole.IDs))
		require.Equal(t, whole.IDs[:len(cut.IDs)], cut.IDs)
		require.Contains(t, []int{0, len(cut.IDs)}, logprobs)
		same, _ := decode("--stop", "no such text")
		require.Equal(t, whole, same)
		if len(flags) > 0 {
			continue
		}
		code, out, _ := run(t, dir, "", "run", "--prompt", "def add(a, b):", "--max-tokens", "40", "--ignore-eos",
			"--stop", stop)
		require.Zero(t, code)
		require.Equal(t, "def add(a, b):"+*cut.Text+"\n", out)
		file := filepath.Join(t.TempDir(), "prompts.jsonl")
		require.NoError(t, os.WriteFile(file, []byte("{\"prompt\": \"def add(a, b):\"}\n"), 0o600))
		code, out, stderr := run(t, dir, "", "run", "--prompts", file, "--max-tokens", "40", "--ignore-eos",
			"--stop", stop)
		require.Zero(t, code, stderr)
		var line struct {
			result
			Finish string `json:"finish_reason"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &line))
		require.Equal(t, "stop", line.Finish)
		require.Equal(t, cut.IDs, line.IDs)
		require.Equal(t, *cut.Text, *line.Text)
	}
}

// A stop string needs a tokenizer, is not empty, and there are not too many.
func TestRunStopRefused(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := build(t, "")
	many := []string{"run", "--prompt", "x"}
	for range 17 {
		many = append(many, "--stop", "x")
	}
	for _, args := range [][]string{many, {"run", "--prompt", "x", "--stop", ""},
		{"run", "--prompt", "x", "--stop", strings.Repeat("x", 1025)}} {
		code, _, stderr := run(t, dir, "", args...)
		require.Equal(t, 2, code)
		require.Regexp(t, "want up to 16 strings of up to 1024 bytes|want a value that is not empty", stderr)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, host.TokenizerFile)))
	code, _, stderr := run(t, dir, "", "run", "--prompt-ids", "1", "--stop", "x")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "run: --stop needs a tokenizer")
}
