package gputest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search"
)

// onFakeGPU returns what runs a script of bench, with this program as amkc, and gives what it prints.
func onFakeGPU(t *testing.T) (run func(script string, args ...string) string) {
	t.Helper()
	// The real python3, which may be a script that needs a PATH.
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	fakeTools(t, 1024, "")
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "amkc"),
		[]byte(fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asCommand, self)), 0o755))
	bench, err := filepath.Abs("../../../bench")
	require.NoError(t, err)
	return func(script string, args ...string) string {
		args = append([]string{filepath.Join(bench, script), "--tools", tools, "--gpus", "0", "--target", "h200",
			"--jobs", "2"}, args...)
		cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(python)), args...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Log(string(out))
		return string(out)
	}
}

// bench/campaigns.py on the fake GPU: two pieces, the second of which goes on from what the first has packed, in
// another directory.
func TestCampaigns(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("takes minutes: AMKC_LONG=1")
	}
	run := onFakeGPU(t)
	piece := func(work string, more ...string) string {
		return run("campaigns.py", append([]string{"--only", "pycoder-5m", "--budget", "200", "--work", work, "--out",
			work}, more...)...)
	}
	first, second := t.TempDir(), t.TempDir()
	require.Contains(t, piece(first), "pycoder-5m: GPU 0")
	before, _, _, err := search.Load(filepath.Join(first, "pycoder-5m"))
	require.NoError(t, err)
	require.Greater(t, len(before.Trials()), 3)
	piece(second, "--resume", filepath.Join(first, "campaigns.tar.gz"))
	after, _, _, err := search.Load(filepath.Join(second, "pycoder-5m"))
	require.NoError(t, err)
	require.Greater(t, len(after.Trials()), len(before.Trials()))
	key, err := search.LoadKey(filepath.Join(second, "verdict.key"))
	require.NoError(t, err)
	sound, err := search.Verify(filepath.Join(second, "pycoder-5m"), key.Public())
	require.NoError(t, err)
	require.Zero(t, sound.BestUnproved)
	report, err := os.ReadFile(filepath.Join(second, "pycoder-5m", search.ReportName))
	require.NoError(t, err)
	require.Contains(t, string(report), "</html>")
}

// bench/candidates.py on the fake GPU judges a candidate in full, and goes on from what it has written.
func TestCandidates(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	run, work := onFakeGPU(t), t.TempDir()
	args := []string{"--only", "pycoder-5m/splits-32", "--settled", "--budget", "100", "--work", work, "--out", work,
		"--docs", work}
	require.Contains(t, run("candidates.py", args...), "1 of 1")
	text, err := os.ReadFile(filepath.Join(work, "candidates.json"))
	require.NoError(t, err)
	var made struct {
		Rows map[string]struct {
			Class, Device string
			At            []search.At
			Correctness   *search.Correctness
		}
	}
	require.NoError(t, json.Unmarshal(text, &made))
	row := made.Rows["h200/pycoder-5m/splits-32/2"]
	require.Equal(t, "PASS", row.Class, string(text))
	require.Equal(t, "cuda", row.Device)
	require.Len(t, row.At, 2)
	require.True(t, row.Correctness.Passed)
	again := run("candidates.py", append(args, "--resume", filepath.Join(work, "candidates.json"))...)
	require.Contains(t, again, "1 of 1")
	require.NotContains(t, again, "h200/pycoder-5m/splits-32:", "it has its verdict")
}
