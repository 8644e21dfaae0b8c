package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search"
)

// fakeNVCC puts an nvcc that says what ptxas would on a PATH with a g++ and nothing else, and returns the file that it
// notes its calls in.
func fakeNVCC(t *testing.T, script string) (log string) {
	t.Helper()
	bin := t.TempDir()
	log = filepath.Join(bin, "calls")
	for name, text := range map[string]string{"nvcc": strings.ReplaceAll(script, "LOG", log), "g++": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	t.Setenv("PATH", bin)
	return log
}

const saysRegisters = `echo "$*" >> LOG
echo "ptxas info : Compiling entry function 'amk_decode' for 'sm_90a'" >&2
echo "16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads" >&2
echo "ptxas info : Used 168 registers, used 1 barriers" >&2`

// A final prediction says what ptxas gives the kernel, where nvcc is here. It is not asked before the last rung, for
// builds that it would take too long for, or where somebody does not want it; and what it does not say in time is left
// out of a verdict that is PASS all the same.
func TestRegistersOfPredictions(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	before := nvccHere
	t.Cleanup(func() { nvccHere = before })
	nvccHere = func() bool { return true }
	key := filepath.Join(t.TempDir(), "key")
	written := filepath.Join(t.TempDir(), "written.json")
	require.NoError(t, os.WriteFile(written, []byte(`{"tiling": {"loop": {"roll": 0}}}`), 0o644))
	model := "../../testdata/models/zoo/llama-gqa"
	found := []search.Registers{{Kernel: "amk_decode", Registers: 168, SpillStores: 8, SpillLoads: 12}}
	for _, c := range []struct {
		nvcc  string
		flags []string
		calls int
		want  []search.Registers
	}{
		{saysRegisters, nil, 1, found},
		{saysRegisters, []string{"--rung", "screen"}, 0, nil},
		{saysRegisters, []string{"--registers=false"}, 0, nil},
		{saysRegisters, []string{"--config", written}, 1, found},
		{saysRegisters, []string{"--config", written, "--timeout", "20"}, 0, nil},
		{saysRegisters, []string{"--config", written, "--timeout", "20", "--registers"}, 1, found},
		{"echo >> LOG; exec /bin/sleep 100", []string{"--timeout", "4"}, 1, nil},
	} {
		log := fakeNVCC(t, c.nvcc)
		code, stdout, stderr := amkc(append([]string{"search", "eval", model, "--key", key, "--json"}, c.flags...)...)
		require.Zero(t, code, "%v: %s%s", c.flags, stdout, stderr)
		var printed struct{ Verdict search.Verdict }
		require.NoError(t, json.Unmarshal([]byte(stdout), &printed))
		class := search.Pass
		if printed.Verdict.Rung != search.Final { // nothing is computed before the last rung
			class = search.Unchecked
		}
		require.Equal(t, class, printed.Verdict.Class)
		require.Equal(t, c.want, printed.Verdict.Registers, "%v", c.flags)
		said, _ := os.ReadFile(log) // none without a call
		require.Equal(t, c.calls, strings.Count(string(said), "\n"), "%v", c.flags)
	}

	// Sources that nvcc does not accept are a fault of the candidate.
	fakeNVCC(t, "exit 1")
	code, stdout, _ := amkc("search", "eval", model, "--key", key, "--json")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, `"class":"CRASH","reason":{"code":"AMK5110"`)

	// The processes of a search do as it was told.
	log := fakeNVCC(t, saysRegisters)
	dir := filepath.Join(t.TempDir(), "campaign")
	code, stdout, stderr := amkc("search", model, "-o", dir, "--trials", "1", "--key", key, "--registers")
	require.Zero(t, code, stdout, stderr)
	trials, err := os.ReadFile(filepath.Join(dir, "trials.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(trials), `"registers":[{"kernel":"amk_decode","registers":168,`)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(said), "-DAMK_LEAN=1 -Xptxas -v ")
}
