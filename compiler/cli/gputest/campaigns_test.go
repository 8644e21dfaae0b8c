package gputest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search"
)

// bench/campaigns.py on the fake GPU: two pieces, the second of which goes on from what the first has packed, in
// another directory.
func TestCampaigns(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("takes minutes: AMKC_LONG=1")
	}
	// The one behind python3, which may be a script that needs a PATH.
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	fakeTools(t, 1024, "")
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "amkc"),
		[]byte(fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asCommand, self)), 0o755))
	script, err := filepath.Abs("../../../bench/campaigns.py")
	require.NoError(t, err)
	piece := func(work string, more ...string) string {
		cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(python)), append([]string{script, "--tools",
			tools, "--only", "pycoder-5m", "--gpus", "0", "--target", "h200", "--budget", "200", "--jobs", "2",
			"--work", work, "--out", work}, more...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Log(string(out))
		return string(out)
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
	sound, err := search.Verify(filepath.Join(second, "pycoder-5m"), key)
	require.NoError(t, err)
	require.Zero(t, sound.BestUnproved)
	report, err := os.ReadFile(filepath.Join(second, "pycoder-5m", search.ReportName))
	require.NoError(t, err)
	require.Contains(t, string(report), "</html>")
}
