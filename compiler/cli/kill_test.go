package cli

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that is really killed, at any moment of its work, takes nothing of the user's with it, and the next one
// succeeds. builddir's own test goes through its steps one by one; this one takes a minute, for which AMKC_LONG asks.
func TestKilledProcesses(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Log("nothing is killed: AMKC_LONG is not set")
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "amkc")
	require.NoError(t, os.Symlink(self, program)) // TestMain makes the test binary amkc under that name
	out := filepath.Join(t.TempDir(), "out")
	args := func(target string) []string {
		return []string{"../../testdata/models/zoo/llama-gqa", "-o", out, "--no-build", "--target", target, "--name",
			"demo-" + target}
	}
	began := time.Now()
	require.NoError(t, exec.Command(program, args("t4")...).Run())
	whole := time.Since(began)
	theirs := map[string]string{"notes/mine.txt": "mine", "empty/mine.txt": "mine", "other.md": "mine"}
	for name, text := range theirs {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(out, name), []byte(text), 0o644))
	}
	for i := range 40 {
		target := []string{"l4", "t4"}[i%2]
		cmd := exec.Command(program, args(target)...)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(rand.Int64N(int64(whole))))
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait()
		for name, text := range theirs {
			got, err := os.ReadFile(filepath.Join(out, name))
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
		if code, _, stderr := amkc("verify", out); code != 0 {
			require.Contains(t, stderr, "was interrupted", "a build is whole, or none")
		}
	}
	code, _, stderr := amkc(args("t4")...)
	require.Zero(t, code, stderr)
	require.NoDirExists(t, filepath.Join(out, ".amkc-partial"))
	code, _, stderr = amkc("verify", out)
	require.Zero(t, code, stderr)
	for name, text := range theirs {
		got, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}
