package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// A verdict has the worst of what the checks of all openings have found, and a failure whenever it came.
func TestWorstOfAllOpenings(t *testing.T) {
	span := func(rms, largest float64) *host.CheckReport {
		return &host.CheckReport{Passed: rms < 1, Spans: []host.CheckSpan{{First: 0, Last: 63, RMS: rms, Max: largest,
			Deterministic: true}}}
	}
	m := &measurement{}
	for _, rms := range []float64{0.01, 0.03, 0.02} {
		m.check(span(rms, 0.1-rms))
	}
	require.InDelta(t, 0.03, m.correctness.Spans[0].RMS, 0)
	require.InDelta(t, 0.09, m.correctness.Spans[0].Max, 1e-12)
	require.True(t, m.correctness.Passed)
	m.check(span(2, 3))
	m.check(span(0.01, 0.01))
	require.False(t, m.correctness.Passed)
	require.InDelta(t, 2, m.correctness.Spans[0].RMS, 0)
}
