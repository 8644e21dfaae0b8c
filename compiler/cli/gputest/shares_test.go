package gputest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/runtime/host"
	"amkc/search"
)

// requireProfiled holds a campaign to the profile of its start, which the fake kernels make: of five stages that take
// the same time one is embed's, two are qkv's and two are attention's, each with two sevenths of waiting for exchanges
// and four of computing. What the others have a say in is too little.
func requireProfiled(t *testing.T, s *search.State) {
	t.Helper()
	start := s.Trials()[0].Verdict
	require.Equal(t, search.SharesOfProfile, start.SharesOf)
	want := map[string]float64{"qkv": 0.4, "attention": 0.4, "o": 0, "gate_up": 0, "down": 0, "lm_head": 0,
		"ring": 4. / 7, "placement": 4. / 7, "exchange": 2. / 7, "layers": 2. / 7}
	require.Len(t, start.Shares, len(want))
	for region, share := range want {
		require.InDelta(t, share, start.Shares[region], 1e-6, region)
	}
	for _, r := range s.Regions() {
		share, known := want[r.Name]
		require.True(t, known, r.Name)
		require.True(t, r.Measured, r.Name)
		if share == 0 {
			require.Equal(t, "less of a step than the least gain that counts", r.State, r.Name)
			require.Zero(t, r.Trials, r.Name)
		}
	}
	for _, trial := range s.Trials()[1:] {
		if v := trial.Verdict; v.Timing != nil {
			require.Empty(t, v.SharesOf, "trial %d is built without that kernel", trial.N)
		}
	}
}

// A start that was built ahead, where there is no GPU, is what is then measured and profiled. Where that fails, its
// shares are predicted.
func TestStartIsBuiltWithAProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for settings, want := range map[string]string{"": search.SharesOfProfile, "lean=1": ""} { // no build has the kernel
		fakeTools(t, smallSeq, settings)
		args := []string{"eval", pycoder, "--device", "cuda", "--target", "h200", "--max-seq", strconv.Itoa(smallSeq),
			"--position", "8", "--key", filepath.Join(t.TempDir(), "key"), "--json"}
		code, stdout, stderr := amkc(append(args, "--build-only")...)
		require.Equal(t, 0, code, stderr)
		require.Contains(t, stdout, `"built":true`)
		require.NoError(t, os.Remove(filepath.Join(os.Getenv("PATH"), "nvcc"))) // nothing else is built
		code, stdout, stderr = amkc(args...)
		require.Equal(t, 0, code, stderr)
		var got struct{ Verdict search.Verdict }
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Equal(t, want, got.Verdict.SharesOf, settings)
		require.NotEmpty(t, got.Verdict.Shares)
		require.Positive(t, got.Verdict.Shares["ring"])
		builds, err := filepath.Glob(filepath.Join(os.Getenv(compiler.CacheVariable), "*", host.MeasureFile))
		require.NoError(t, err)
		require.Len(t, builds, 1)
		kernels, err := os.ReadFile(builds[0])
		require.NoError(t, err)
		require.Equal(t, want == "", strings.Contains(string(kernels), "lean=1"))
	}
}
