package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/engine"
	"amkc/app/serve"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/runtime/shape"
)

// servable is a fake build with a tokenizer, for one sequence or for several.
func servable(t *testing.T, settings string, sequences int) string {
	hosttest.NeedDriver(t)
	tokenizer, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(t, err)
	dir := hosttest.Build(t, settings, func(f *host.Facts) {
		if sequences > 1 {
			hosttest.AddPasses(f, shape.Pass{Rows: 1, Sequences: sequences})
		}
		if sequences == 4 {
			hosttest.AddPasses(f, shape.Pass{Rows: 2, Sequences: 4})
		}
	})
	hosttest.Write(t, dir, host.TokenizerFile, tokenizer)
	return dir
}

func TestManyClients(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		sequences int
		more      []string
	}{{1, nil}, {4, nil}, {4, []string{"--draft", "ngram"}}} {
		code, out, stderr := device(t, servable(t, "", c.sequences), append([]string{"clients", "--requests", "64",
			"--clients", "8", "--prompt", "16", "--tokens", "13"}, c.more...)...)
		require.Zero(t, code, "%s%s", out, stderr)
		var r clientsResult
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, c.sequences, r.Sequences)
		require.Equal(t, 64, r.Answered+r.Cancelled+r.Bad)
		require.Positive(t, r.After.Heap)
		require.Empty(t, r.Findings)
		require.True(t, r.Passed)
	}
}

func TestManyClientsOfAKernelThatIsWrong(t *testing.T) {
	code, out, stderr := device(t, servable(t, "flaky=1", 1), "clients", "--requests", "60", "--clients", "4",
		"--prompt", "16", "--tokens", "13")
	require.Equal(t, 1, code, stderr)
	require.Contains(t, out, "answers are not those of the request alone")
	code, _, stderr = device(t, servable(t, "", 1), "clients", "--prompt", "100")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "requests need 1024 and 160")
	code, _, stderr = device(t, servable(t, "", 1), "clients", "--draft", "ngram")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "verifies no drafts of several sequences")
	code, _, stderr = device(t, servable(t, "", 1), "clients", "--tokens", "6")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "usage: device DIR clients")
}

// A region that was not given back is missed.
func TestAllFree(t *testing.T) {
	s, err := host.Open(t.Context(), servable(t, "", 3), host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e := engine.New(s, host.BatchOptions{})
	require.NoError(t, allFree(e))
	_, _, err = e.Admit([]int{1}, serve.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, allFree(e), "takes 2 sequences when all have gone, and 3 before")
}
