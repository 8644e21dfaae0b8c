package gputest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/search"
)

// A stage on its own on a GPU: builds that have a step in parts are opened, checked for the stage too, and its launches
// are timed among those of the others. The fake stage takes the same time in each, so nothing is kept. It takes half a
// minute: AMKC_LONG=1.
func TestTuneStage(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("opens fifteen builds and checks them: AMKC_LONG=1")
	}
	fakeTools(t, smallSeq, "parts=1 launch_us=3 part_us=10")
	t.Setenv(asCommand, "1")
	dir, key := filepath.Join(t.TempDir(), "campaign"), filepath.Join(t.TempDir(), "verdict.key")
	tune := func(trials int) (code int, stdout, stderr string) {
		return amkc("tune", "qkv", pycoder, "-o", dir, "--device", "cuda", "--position", "8", "--held-out", "9",
			"--max-seq", strconv.Itoa(smallSeq), "--trials", strconv.Itoa(trials), "--key", key)
	}
	code, stdout, stderr := tune(3)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "ended: 3 trials are made\nnothing was found with which qkv is faster by itself\n")
	s, _, _, err := search.Load(dir)
	require.NoError(t, err)
	start := s.Trials()[0].Verdict
	require.Equal(t, "qkv", start.Stage)
	require.Equal(t, search.Pass, start.Class)
	require.Zero(t, start.At[0].Ceiling)
	require.InDelta(t, qkvOfFakes, start.At[0].Candidate.Median, 0.1)
	require.Positive(t, start.Correctness.Stage.Vectors)
	require.True(t, start.Correctness.Passed)
	code, stdout, stderr = amkc("campaign", "verify", dir, "--key", key)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "lines, signatures and decisions hold")
	code, stdout, stderr = amkc("campaign", "next", dir, "--json")
	require.Equal(t, 0, code, stderr)
	var next struct{ Command []string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &next))
	require.Contains(t, strings.Join(next.Command, " "), "--device=cuda --position=8 --stage=qkv --json")
}

// qkvOfFakes is what the fake stage takes in all layers together: as stage number 1, two times 10 µs in each of six.
const qkvOfFakes = 6 * 2 * 10

// What a stage publishes wrongly fails it, though the logits of these fake kernels are right.
func TestTuneStageThatDiffers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, smallSeq, "parts=1 launch_us=3 part_us=10 bad_at=3 bad_ordinal=1 bad_element=5")
	args := []string{"eval", pycoder, "--device", "cuda", "--max-seq", strconv.Itoa(smallSeq), "--position", "8",
		"--key", filepath.Join(t.TempDir(), "key"), "--rung", "screen", "--stage"}
	code, _, stderr := amkc(append(args, "qkv")...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "stage L00.qkv is the first that is wrong")
	code, stdout, stderr := amkc(append(args, "attention")...)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, ", stage attention by itself: ")
	require.Contains(t, stdout, " vectors that the stage hands over at ")
	require.Contains(t, stdout, "position 8: 180.0 µs per token (180.0 to 180.0), baseline 180.0 µs; ratio 1.0000 ")
}
