package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
	"amkc/text/draft"
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
	dir := hosttest.Build(t, "", func(f *host.Facts) { hosttest.AddPasses(f, shape.Pass{Rows: 8}) })
	args := []string{"--ids", "5,6,7,8,5,6,7,8,5,6", "--max-tokens", "40"}
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
	got, _ = decoded(t, dir, append(args, "--draft", "ngram", "--logprobs", "0")...) // drawn on the host
	require.Equal(t, want.IDs, got.IDs)
	require.Positive(t, got.Drafts.Passes)
}

// A prompt that begins with a saved one is continued from there, to the same ids.
func TestRunPrefix(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "cache=16384", nil) // the first block has what the fake kernel knows of four positions
	saved := filepath.Join(t.TempDir(), "saved")
	_, _ = decoded(t, dir, "--ids", "5,6,7,8", "--max-tokens", "3", "--save-prefix", saved)
	require.FileExists(t, saved)
	for prompt, says := range map[string]string{
		"5,6,7,8,9": "", // goes on
		"5,6,7,8":   "of the 4 tokens of the prefix the prompt begins with 3",
		"5,6,1":     "of the 4 tokens of the prefix the prompt begins with 2",
		"9":         "of the 4 tokens of the prefix the prompt begins with 0",
	} {
		want, _ := decoded(t, dir, "--ids", prompt, "--max-tokens", "20")
		got, _ := decoded(t, dir, "--ids", prompt, "--max-tokens", "20", "--prefix", saved)
		require.Equal(t, want.IDs, got.IDs, prompt)
		drawn, _ := decoded(t, dir, "--ids", prompt, "--max-tokens", "20", "--temperature", "1", "--seed", "3")
		again, _ := decoded(t, dir, "--ids", prompt, "--max-tokens", "20", "--temperature", "1", "--seed", "3",
			"--prefix", saved)
		require.Equal(t, drawn.IDs, again.IDs, prompt)
		_, _, stderr := run(t, dir, "", "run", "--ids", prompt, "--max-tokens", "1", "--prefix", saved)
		if says == "" {
			require.NotContains(t, stderr, "prefix")
		}
		require.Contains(t, stderr, says)
	}
	require.NoError(t, os.WriteFile(saved, []byte("no prefix"), 0o600))
	code, _, stderr := run(t, dir, "", "run", "--ids", "5", "--prefix", saved)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no prefix that this program has saved")
	code, _, stderr = run(t, dir, "", "run", "--ids", "5", "--save-prefix", filepath.Join(dir, "config.json"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--save-prefix: ")
}

// Prompts of a file give a line each, in their order and as single runs have them, with passes of several sequences,
// with drafts of these, and without.
func TestRunPrompts(t *testing.T) {
	hosttest.NeedDriver(t)
	const lines = "{\"ids\": [5, 6, 7], \"max_tokens\": 20}\n{\"ids\": [8]}\n{\"ids\": [5, 6, 9], \"max_tokens\": 1}\n"
	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	type line struct {
		Line      int    `json:"line"`
		PromptIDs []int  `json:"prompt_ids"`
		IDs       []int  `json:"ids"`
		Finish    string `json:"finish_reason"`
	}
	var want []line
	for _, sequences := range []int{0, 2, 4} {
		dir := hosttest.Build(t, "", func(f *host.Facts) {
			if sequences > 0 {
				hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: sequences})
			}
			if sequences == 4 {
				hosttest.AddPasses(f, shape.Pass{Rows: 2, Sequences: sequences})
			}
		})
		args := []string{"run", "--ignore-eos", "--max-tokens", "30"}
		if sequences == 4 {
			args = append(args, "--draft", "ngram")
		} else {
			code, _, stderr := run(t, dir, "", append(args, "--prompts", file, "--draft", "ngram")...)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, "it has no passes of several rows of several sequences to verify drafts by; "+
				"compile with --sequences 4 --sequence-rows 2")
		}
		code, out, stderr := run(t, dir, "", append(args, "--prompts", file)...)
		require.Zero(t, code, stderr)
		code, piped, _ := run(t, dir, lines, append(args, "--prompts", "-")...)
		require.Zero(t, code)
		require.Equal(t, out, piped)
		var got []line
		for text := range strings.Lines(out) {
			var l line
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			got = append(got, l)
		}
		require.Len(t, got, 3)
		for i, most := range []string{"20", "30", "1"} {
			ids := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(got[i].PromptIDs)), ","), "[]")
			alone, _ := decoded(t, dir, "--ids", ids, "--max-tokens", most)
			require.Equal(t, alone.IDs, got[i].IDs)
			require.Equal(t, line{i + 1, got[i].PromptIDs, alone.IDs, "length"}, got[i])
		}
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
		for _, c := range []struct {
			stdin, says string
			args        []string
			code        int
		}{
			{"{\"ids\": [5]}\n{}\n", "line 2: it has both of \"prompt\" and \"ids\", or neither", nil, 1},
			{"{\"prompt\": \"a\"}\n", "the model came without a tokenizer", nil, 1},
			{"{\"ids\": [5], \"max_tokens\": 200}\n", "line 1: 1 tokens and 200 after them do not fit the 128", nil, 1},
			{"", "run: give one of --prompt TEXT", []string{"--ids", "4"}, 2},
			{"", "are for one prompt, and --prompts has several", []string{"--save-prefix", "x"}, 2},
		} {
			code, _, stderr := run(t, dir, c.stdin, append([]string{"run", "--prompts", "-"}, c.args...)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
		}
	}
}
