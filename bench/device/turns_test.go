package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host/hosttest"
	"amkc/search/turns"
)

func taken(t *testing.T, args ...string) (code int, lines []turns.Turn) {
	t.Helper()
	hosttest.NeedDriver(t)
	var out, stderr bytes.Buffer
	code = run(append([]string{"turns"}, args...), nil, &out, &stderr)
	require.Empty(t, stderr.String())
	for d := json.NewDecoder(&out); d.More(); {
		var line turns.Turn
		require.NoError(t, d.Decode(&line))
		lines = append(lines, line)
	}
	return code, lines
}

func TestBuildsTakeTurns(t *testing.T) {
	a, b := hosttest.Build(t, "", nil), hosttest.Build(t, "", nil)
	code, lines := taken(t, "--positions", "0,100", "--rounds", "2", "--launches", "3", a, b, b+":1")
	require.Zero(t, code)
	var order []turns.Turn
	for round, builds := range [][]string{{a, b, b + ":1"}, {b, b + ":1", a}} {
		for _, position := range []int{0, 100} {
			for _, build := range builds {
				order = append(order, turns.Turn{Build: build, Position: position, Round: round, Opening: round})
			}
		}
	}
	for i, line := range lines {
		steps := 16
		if line.Build == b+":1" {
			steps = 1
		}
		require.NotNil(t, line.Report)
		require.Equal(t, []int{line.Position, steps, 3},
			[]int{line.Report.Position, line.Report.StepsPerLaunch, line.Report.Launches})
		require.Positive(t, line.Report.Latency.Median)
		lines[i].Report = nil
	}
	require.Equal(t, order, lines)
}

func TestTurnsReadAPromptEach(t *testing.T) {
	a, b := hosttest.Build(t, "slow_us=200", nil), hosttest.Build(t, "", nil)
	code, lines := taken(t, "--rounds", "1", "--openings", "1", "--launches", "1", "--warm-up", "1", "--prompt", "100",
		a, b)
	require.Zero(t, code)
	require.Len(t, lines, 2)
	for _, line := range lines {
		require.Equal(t, 100, line.Report.Prompt.Tokens)
	}
	slow, fast := lines[0].Report.Prompt, lines[1].Report.Prompt
	require.Greater(t, slow.FirstToken.P10, 20000.0) // µs
	require.Greater(t, slow.FirstToken.P10, fast.FirstToken.Median)
	require.Positive(t, slow.Clocks.Samples)
	require.Positive(t, slow.Clocks.SM.Min)
}

func TestATurnThatCannotBeTakenSaysWhy(t *testing.T) {
	code, lines := taken(t, "--positions", "120,500", "--rounds", "1", "--launches", "1", hosttest.Build(t, "", nil),
		t.TempDir())
	require.Equal(t, 1, code)
	require.Len(t, lines, 4)
	require.NotNil(t, lines[0].Report)
	require.Contains(t, lines[1].Error, "not a build of amkc")
	require.Contains(t, lines[2].Error, "500")
}

func TestABuildThatIsWrongIsNotMeasured(t *testing.T) {
	code, lines := taken(t, "--rounds", "1", "--launches", "1", hosttest.Build(t, "off=900", nil))
	require.Equal(t, 1, code)
	require.Contains(t, lines[0].Error, "the kernel and the plain kernels differ: position 0")
	require.Nil(t, lines[0].Report)
}

func TestTurnsOfNothingAreBadUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"d:0"}, {"d:x"}, {"--positions", "a", "d"}, {"--rounds", "0", "d"},
		{"--openings", "0", "d"},
		{"--none", "d"}} {
		code, _, stderr := device(t, "turns", args...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "DIR[:STEPS]")
	}
}
