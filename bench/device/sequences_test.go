package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
)

// arrived runs sequences, and returns what the last line says.
func arrived(t *testing.T, settings string, args ...string) (code int, lines []sequencesResult) {
	t.Helper()
	code, out, stderr := device(t, wholeBuild(t, settings, ""), append([]string{"sequences"}, args...)...)
	require.Empty(t, stderr)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var r sequencesResult
		require.NoError(t, d.Decode(&r))
		lines = append(lines, r)
	}
	require.NotEmpty(t, lines)
	return code, lines
}

func TestSequencesThatComeAndGo(t *testing.T) {
	code, lines := arrived(t, "", "--minutes", "0.01", "--positions", "40", "--texts", "12", "--seed", "5")
	r := lines[len(lines)-1]
	require.Zero(t, code, r)
	require.True(t, r.Passed)
	require.Equal(t, 4, r.Sequences)
	for what, n := range map[string]int{"finished": r.Finished, "tokens": r.Tokens, "cached": r.Cached,
		"alongside others": r.Alongside, "goroutines": r.Goroutines} {
		require.Positive(t, n, what)
	}
	require.Positive(t, r.Sampled, "the seed is one of which some are")
	require.Zero(t, r.Differing)
}

// Steps are aborted in the middle of a pass, and every text goes on as if they had not been.
func TestStepsThatAreCancelled(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	code, lines := arrived(t, "slow_us=100", "--minutes", "0.02", "--positions", "30", "--texts", "4", "--aborts", "2")
	r := lines[len(lines)-1]
	require.Zero(t, code, r)
	require.Positive(t, r.Aborts)
	require.Positive(t, r.AfterAbort)
}

func TestSequencesThatDifferAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, settings := range []string{"batch_off=1", "batch_writes=1"} {
		code, lines := arrived(t, settings, "--minutes", "0.01", "--positions", "40", "--texts", "12", "--seed", "5")
		r := lines[len(lines)-1]
		require.Equal(t, 1, code, settings)
		require.False(t, r.Passed)
		require.Positive(t, r.Differing)
		require.Contains(t, r.Difference, "is not what it is alone")
	}
}

func TestGrowthOfAProcess(t *testing.T) {
	first := footprint{goroutines: 5, heap: 100, resident: 1000}
	require.Empty(t, first.growth(&first))
	require.Empty(t, (&footprint{4, 150, 1200}).growth(&first))
	require.Equal(t, "there are 6 goroutines, and were 5", (&footprint{6, 100, 1000}).growth(&first))
	require.Equal(t, "the heap has grown from 100 to 200 MB", (&footprint{5, 200, 1000}).growth(&first))
	require.Equal(t, "the resident memory has grown from 1000 to 1400 MB", (&footprint{5, 1, 1400}).growth(&first))
	now := takeFootprint()
	require.Positive(t, now.goroutines)
	require.Positive(t, now.heap)
	require.Positive(t, now.resident)
}

func TestSequencesRefuses(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "", nil)
	code, _, stderr := device(t, dir, "sequences")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no passes of several sequences")
	for _, args := range []string{"--minutes 0", "--minutes NaN", "--minutes 9999", "--positions 1", "--texts 0",
		"--aborts -1", "x"} {
		code, _, stderr := device(t, dir, append([]string{"sequences"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, stderr, "usage: device DIR sequences", args)
	}
}
