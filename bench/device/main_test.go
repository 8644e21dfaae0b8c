package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func device(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(append([]string{dir}, args...), nil, &out, &err)
	return code, out.String(), err.String()
}

func soaked(t *testing.T, settings string, args ...string) (code int, r soakResult) {
	t.Helper()
	hosttest.NeedDriver(t)
	code, out, stderr := device(t, hosttest.Build(t, settings, nil), append([]string{"soak"}, args...)...)
	require.Empty(t, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return code, r
}

func TestSoakDecodesTheWholeContextAgainAndAgain(t *testing.T) {
	code, r := soaked(t, "", "--tokens", "300")
	require.Zero(t, code)
	require.Equal(t, soakResult{Positions: 128, Passes: 3, Free: 384, Forced: 384, Passed: true,
		LogitsBytes: 4 * 384 * 4096}, r)
	code, r = soaked(t, "", "--tokens", "1", "--positions", "5")
	require.Zero(t, code)
	require.Equal(t, 2, r.Passes, "one pass alone shows nothing")
	require.Equal(t, 10, r.Forced)
}

func TestSoakFindsPassesThatDiffer(t *testing.T) {
	code, r := soaked(t, "flaky=1", "--tokens", "20", "--positions", "10")
	require.Equal(t, 1, code)
	require.False(t, r.Passed)
	require.Equal(t, "pass 1, position 0: the logits are not those of pass 0", r.Difference)
}

func TestSoakDecodesForSomeTime(t *testing.T) {
	code, r := soaked(t, "slow_us=200", "--tokens", "1", "--positions", "10", "--seconds", "0.1")
	require.Zero(t, code)
	require.Greater(t, r.Passes, 2, "two passes take a few milliseconds")
	require.Equal(t, 10*r.Passes, r.Free)
	require.Equal(t, 20, r.Forced)
	require.GreaterOrEqual(t, r.Seconds, 0.1)
	require.LessOrEqual(t, r.Latency.Median, r.Latency.Longest)
	require.Positive(t, r.Latency.FirstTenth)
}

func TestSoakRefusesTimesThatAreNone(t *testing.T) {
	for _, seconds := range []string{"-1", "NaN", "1e9"} {
		code, _, stderr := device(t, hosttest.Build(t, "", nil), "soak", "--seconds", seconds)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "usage:")
	}
}

func TestLatencyOfPasses(t *testing.T) {
	var c passClock
	for i := range 40 { // a pass a minute of 10 tokens, the last tenth of which takes longer
		took := 100 * time.Microsecond
		if i >= 36 {
			took = 200 * time.Microsecond
		}
		c.add(time.Duration(i)*time.Minute, took, 10)
	}
	r := c.latency()
	require.Equal(t, []float64{10, 20, 10, 20, 10, 20},
		[]float64{r.First, r.Last, r.Median, r.Longest, r.FirstTenth, r.LastTenth})
	require.InDelta(t, 8.1, r.PerHour, 0.1)
	c = passClock{}
	for i := range 3 {
		c.add(time.Duration(i)*time.Hour, time.Duration(10+2*i)*time.Microsecond, 1)
	}
	require.Equal(t, &passLatency{First: 10, Last: 14, Median: 12, Longest: 14, FirstTenth: 10, LastTenth: 14,
		PerHour: 2}, c.latency())
}

func TestSoakReportsAStall(t *testing.T) {
	hosttest.NeedDriver(t)
	code, out, stderr := device(t, hosttest.Build(t, "stall_at=5", nil), "soak")
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "SM 1 waited in vain")
}

func TestTheOtherVerbsAreTheLaunchers(t *testing.T) {
	code, out, _ := device(t, hosttest.Build(t, "", nil), "info")
	require.Zero(t, code)
	require.Contains(t, out, "fake (LlamaForCausalLM, BF16)")
	code, _, stderr := device(t, t.TempDir(), "info")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "not a build of amkc")
	code, _, stderr = device(t, t.TempDir())
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "usage:")
}
