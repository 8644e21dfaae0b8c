package gputest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/runtime/host"
	"amkc/search"
)

// A search in rounds on a GPU: configurations are built by several processes and measured by one, in pieces that go on
// from what is there. The fake kernels all take the same time. AMKC_LONG makes more trials.
func TestSearchInPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	fakeTools(t, smallSeq, "")
	t.Setenv(asCommand, "1")
	dir, key := filepath.Join(t.TempDir(), "campaign"), filepath.Join(t.TempDir(), "verdict.key")
	piece := func(trials int) (result struct {
		Stop      string
		Soundness search.Soundness
	}) {
		code, stdout, stderr := amkc("search", pycoder, "-o", dir, "--device", "cuda", "--position", "8", "--held-out",
			"9", "--max-seq", strconv.Itoa(smallSeq), "--jobs", "3", "--trials", strconv.Itoa(trials), "--key", key,
			"--json")
		require.Equal(t, 0, code, stderr)
		require.NoError(t, json.Unmarshal([]byte(stdout), &result))
		return result
	}
	few, more := 2, 4
	if os.Getenv("AMKC_LONG") != "" {
		few, more = 6, 14
	}
	require.Equal(t, fmt.Sprintf("%d trials are made", few), piece(few).Stop)
	second := piece(more)
	require.Equal(t, more, second.Soundness.Trials)
	require.Positive(t, second.Soundness.Classes[search.Pass])
	s, _, _, err := search.Load(dir)
	require.NoError(t, err)
	measured := 0
	for _, trial := range s.Trials() {
		if v := trial.Verdict; v.Class == search.Pass {
			measured++
			require.Positive(t, v.GPUSeconds)
			require.Contains(t, v.Machine, "Fake")
		}
	}
	require.Positive(t, measured)
	code, stdout, stderr := amkc("search", "campaign", "verify", dir, "--key", key)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "lines, signatures and decisions hold")
	// Each build has its weights by a link: one file, or one for each layout.
	weights, err := os.ReadDir(filepath.Join(os.Getenv(compiler.CacheVariable), "weights"))
	require.NoError(t, err)
	builds, err := filepath.Glob(filepath.Join(os.Getenv(compiler.CacheVariable), "*", "amkc.manifest.json"))
	require.NoError(t, err)
	require.Greater(t, len(builds), 1)
	require.LessOrEqual(t, len(weights), len(builds))
	one := map[string]bool{}
	for _, build := range builds {
		info, err := os.Stat(filepath.Join(filepath.Dir(build), host.WeightsFile))
		require.NoError(t, err)
		for _, w := range weights {
			shared, err := w.Info()
			require.NoError(t, err)
			one[build] = one[build] || os.SameFile(info, shared)
		}
		require.True(t, one[build], build)
	}
}
