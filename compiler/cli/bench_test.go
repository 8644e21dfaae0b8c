package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/search/turns"
)

// benchOn runs bench with turns that a test takes, by entrant, position and round.
func benchOn(t *testing.T, turn func(entrant string, pos, round int) (float64, error), args ...string) (code int,
	stdout, stderr string) {
	t.Helper()
	f := &benchFlags{take: func(_ context.Context, entrants []turns.Entrant, o turns.Options,
		emit func(turns.Turn) error) (bool, error) {
		for _, pos := range o.Positions {
			for round := range o.Rounds {
				for _, e := range entrants {
					t := turns.Turn{Build: e.Name, Position: pos, Round: round}
					us, err := turn(e.Name, pos, round)
					if t.Cause = err; err == nil {
						t.Report = &host.BenchReport{Latency: host.Quantiles{Median: us}, ReadGBs: 4300,
							Ceiling: host.Quantiles{Median: us / 2},
							Machine: host.Machine{GPU: "NVIDIA Fake", Driver: "1", CUDA: "13.0"}}
					}
					if err := emit(t); err != nil {
						return false, err
					}
				}
			}
		}
		return true, nil
	}}
	var out, errs bytes.Buffer
	c := &call{verb: f.verb(), stdout: &out, stderr: &errs}
	c.defineFlags()
	err := c.parse(args)
	if err == nil {
		err = f.run(c)
	}
	code = c.finish(err)
	return code, out.String(), errs.String()
}

func TestBench(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for _, out := range []string{a, b} {
		code, _, stderr := amkc("../../testdata/models/zoo/llama-gqa", "-o", out, "--no-build", "--target", "h200")
		require.Zero(t, code, stderr)
	}
	steady := func(entrant string, pos, round int) (float64, error) {
		return float64(100 + pos + round), nil
	}
	code, stdout, stderr := benchOn(t, steady, a, b, a, "--position", "0,50", "--rounds", "4")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, fmt.Sprintf("%s at position 50: 151.5 µs per token (turns 150.0 to 153.0), ceiling "+
		"75.8 µs; NVIDIA Fake, driver 1, CUDA 13.0\n", b))

	code, stdout, stderr = benchOn(t, steady, a, a, "--json", "--rounds", "3", "--progress", "json")
	require.Zero(t, code, stderr)
	var got struct{ Builds []benchedBuild }
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Builds, 2, "a build and its twin")
	require.Equal(t, 3, got.Builds[1].At[0].Turns)
	require.Contains(t, stderr, `{"progress":{"activity":"measuring","done":6,"total":6,"unit":"turns"}}`)

	code, stdout, _ = benchOn(t, func(entrant string, _, _ int) (float64, error) {
		if entrant == "1" {
			return 0, fmt.Errorf("%w: at position 3", turns.ErrDiffers)
		}
		return 100, nil
	}, a, b)
	require.Equal(t, 1, code)
	require.Contains(t, stdout, b+": the kernel and the plain kernels differ: at position 3\n")
	require.Contains(t, stdout, a+" at position 0: 100.0 µs")

	code, _, stderr = benchOn(t, func(string, int, int) (float64, error) { return 0, errors.New("no GPU") }, a)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "no GPU")
	for want, args := range map[string][]string{
		"names one twice":        {a, "--position", "1,1"},
		"for which it is":        {a, "--position", "4k"},
		"leave some without":     {a, "--rounds", "2"},
		"this is not a build":    {"../../testdata"},
		"an argument is missing": {},
	} {
		code, _, stderr = benchOn(t, steady, args...)
		require.Contains(t, stderr, want)
		require.NotZero(t, code)
	}
}
