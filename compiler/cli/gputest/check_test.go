package gputest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// build compiles pycoder into a directory with the fake kernels.
func build(t *testing.T, maxSeq int, settings string) string {
	t.Helper()
	fakeTools(t, maxSeq, settings)
	dir := filepath.Join(t.TempDir(), "build")
	code, _, stderr := amkc(pycoder, "-o", dir, "--max-seq", strconv.Itoa(maxSeq))
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stderr, "no go here")
	return dir
}

func TestCheck(t *testing.T) {
	dir := build(t, smallSeq, "")
	code, stdout, stderr := amkc("check", dir)
	require.Equal(t, 0, code, stderr)
	require.Empty(t, stderr)
	require.Equal(t, `positions 0 to 31: logit error 0.00e+00 RMS, 0.00e+00 max; two runs bit-identical
positions 56 to 63: logit error 0.00e+00 RMS, 0.00e+00 max; two runs bit-identical
reference kernels: passed (allowed: 6e-02 RMS, 1e-01 max, relative to the reference logits)
`, stdout)

	trace := filepath.Join(t.TempDir(), "trace.json")
	code, _, stderr = amkc("check", dir, "--trace", trace)
	require.Equal(t, 0, code, stderr)
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	var recorded struct {
		Format string
		Steps  []struct{ Position int }
	}
	require.NoError(t, json.Unmarshal(text, &recorded))
	require.Equal(t, "amkc.trace/1", recorded.Format)
	require.Len(t, recorded.Steps, 4)
	require.Equal(t, smallSeq-1, recorded.Steps[3].Position)
	code, _, stderr = amkc("check", dir, "--trace", filepath.Join(trace, "none"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5902")

	dir = build(t, smallSeq, "off=900")
	code, stdout, stderr = amkc("check", dir)
	require.Equal(t, 1, code)
	require.Empty(t, stderr, "the output is the finding")
	require.Contains(t, stdout, "position 0: the logits differ by ")
	require.Contains(t, stdout, "reference kernels: FAILED")

	code, _, stderr = amkc("check", dir, "--gpu", "7")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5905")
}

// The fake kernels agree with each other and not with the program, which only the reference VM can see.
func TestCheckBisect(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := build(t, smallSeq, "")
	code, stdout, stderr := amkc("check", dir, "--bisect")
	require.Equal(t, 1, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "reference kernels: passed")
	require.Regexp(t, `\nposition 0: stage embed is the first that is wrong: element \d+, row \d+, is \S+ instead `+
		`of \S+; `, stdout)
	require.Contains(t, stdout, "\nreference VM: FAILED, 32 stages of 1 positions compared")

	code, stdout, stderr = amkc("check", dir, "--bisect", "--json")
	require.Equal(t, 1, code, stderr)
	var got struct {
		Schema string
		OK     bool
		Passed bool
		Spans  []host.CheckSpan
		Bisect struct {
			Passed bool
			First  struct {
				Stage    string
				Position int
				Element  int
				Place    string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "amkc.check/1", got.Schema)
	require.False(t, got.OK)
	require.True(t, got.Passed, "by the reference kernels")
	require.Len(t, got.Spans, 2)
	require.False(t, got.Bisect.Passed)
	require.Equal(t, "embed", got.Bisect.First.Stage)
	require.Regexp(t, `^row \d+$`, got.Bisect.First.Place)

	require.NoError(t, os.Remove(filepath.Join(dir, host.ReferenceFile)))
	code, _, stderr = amkc("check", dir, "--bisect")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "AMK5908")
}
