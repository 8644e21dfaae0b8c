package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// wholeBuild is a build with kernels for prompts, for passes of eight rows, for passes of four sequences, and for two
// rows of each of these.
func wholeBuild(t *testing.T, settings, prompt string) string {
	t.Helper()
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "layers=1 "+settings, func(f *host.Facts) {
		f.Prompt = 64
		f.Model.Layers, f.Model.KVHeads, f.Model.CacheBlock = 1, 1, 16*64 // rows lie side by side, as those of the fake
		hosttest.AddPasses(f, shape.Pass{Rows: 8}, shape.Pass{Rows: 1, Sequences: 4}, shape.Pass{Rows: 2, Sequences: 4})
	})
	hosttest.Write(t, dir, host.PromptFile, fmt.Appendf(nil, "FAKE prompt=64 %s \x00", prompt))
	return dir
}

func compared(t *testing.T, dir string, args ...string) (code int, r passesResult) {
	t.Helper()
	code, out, stderr := device(t, dir, append([]string{"passes"}, args...)...)
	require.Empty(t, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	return code, r
}

// All kinds of cases are drawn, and nothing differs. A seed says what is compared.
func TestPassesOfAllKindsAreCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := wholeBuild(t, "", "")
	code, r := compared(t, dir, "--cases", "600", "--seed", "1")
	require.Zero(t, code, r.Difference)
	require.Equal(t, 600, r.Cases)
	require.Zero(t, r.Differing)
	require.Equal(t, []string{"drafts", "mixed", "prompts", "rows of 1", "rows of 2", "rows of 3", "rows of 5",
		"rows of 8", "sequences"}, slices.Sorted(maps.Keys(r.Kinds)))
	total := 0
	for kind, n := range r.Kinds {
		require.Greater(t, n, 5, kind)
		total += n
	}
	require.Equal(t, r.Cases, total)
	require.Greater(t, r.Compared, 3000)
	for what, n := range map[string]int{"from prefixes": r.FromPrefix, "with drafts": r.Drafts,
		"alongside others": r.Alongside} {
		require.Greater(t, n, 20, what)
	}
	_, again := compared(t, dir, "--cases", "600", "--seed", "1")
	for _, x := range []*passesResult{&r, &again} { // times decide when drafts are asked for, and what is alongside
		x.Seconds, x.Drafts, x.Compared, x.Alongside = 0, 0, 0, 0
	}
	require.Equal(t, r, again)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left, "files of prefixes")
}

// A kernel that gives other bits, or other rows of the cache, in one kind of passes is found by the cases of that kind.
func TestPassesThatDifferAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct{ settings, prompt, kinds, difference string }{
		{"pass_off=1", "", "rows", "rows"},
		{"pass_off=1", "", "", ""},
		{"batch_off=1", "", "sequences", "one of"},
		{"batch_writes=1", "", "sequences", "sequence"},
		{"", "prompt_off=1", "prompts", "in a part of"},
		{"", "prompt_lost=20", "prompts", "in a part of"},
		{"pass_picks=1", "", "drafts", "with drafts"},
		{"mixed_picks=1", "", "mixed", "with drafts of"},
		{"mixed_off=1", "", "mixed", "with drafts of"},
	} {
		t.Run(c.settings+c.prompt+" "+c.kinds, func(t *testing.T) {
			args := []string{"--cases", "60"}
			if c.kinds != "" {
				args = append(args, "--kinds", c.kinds)
			}
			code, r := compared(t, wholeBuild(t, c.settings, c.prompt), args...)
			require.Equal(t, 1, code)
			require.False(t, r.Passed)
			require.Positive(t, r.Differing)
			require.Contains(t, r.Difference, c.difference)
		})
	}
}

// The kinds are those that the build has passes for.
func TestKindsOfCases(t *testing.T) {
	hosttest.NeedDriver(t)
	plain := hosttest.Build(t, "layers=1", func(f *host.Facts) {
		f.Model.Layers, f.Model.KVHeads, f.Model.CacheBlock = 1, 1, 16*64
	})
	code, r := compared(t, plain, "--cases", "5")
	require.Zero(t, code)
	require.Equal(t, map[string]int{"prompts": 5}, r.Kinds)
	code, _, stderr := device(t, plain, "passes", "--kinds", "prompts,sequences")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the build has no passes for sequences; it has those for prompts")
	for _, args := range []string{"--kinds rows,", "--kinds none", "--cases 0", "--positions -1", "--seconds NaN",
		"x"} {
		code, _, stderr := device(t, plain, append([]string{"passes"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, stderr, "usage: device DIR passes", args)
	}
}

// Prompts, rows and steps of sequences, with drafts or without, are aborted in their middle, and what follows is what
// it would have been; a launch that has left something then is found.
func TestPassesThatAreCancelled(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := wholeBuild(t, "slow_us=100 eager=1", "")
	code, r := compared(t, dir, "--kinds", "aborts", "--cases", "150", "--positions", "60")
	require.Zero(t, code, r.Difference)
	for _, what := range []string{"prompts", "rows", "sequences", "mixed"} {
		require.Positive(t, r.Cancelled[what], what)
		require.Positive(t, r.Kinds["aborts of "+what], what)
	}
	code, r = compared(t, wholeBuild(t, "slow_us=100 eager=1 dirty=1", ""), "--kinds", "aborts", "--cases", "60",
		"--positions", "60")
	require.Equal(t, 1, code)
	require.Positive(t, r.Differing)
}
