package costcheck

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/evaluate"
	"amkc/search/prior"
)

// TestPriorOnPublishedRatios asks whether a prior that is learnt from the published ratios of one model predicts those
// of the other better than the cost model alone. What it finds is in docs/search.md, whatever it is.
func TestPriorOnPublishedRatios(t *testing.T) {
	if !everything() {
		t.Skip("predicts all published ratios: AMKC_LONG=1")
	}
	var rows []prior.Row
	for _, text := range results(t) {
		for _, r := range rowsOf(t, text, ablations) {
			config, followed := variants[r.Variant]
			if !followed {
				continue
			}
			is, was := predictRow(t, r, config), predictRow(t, r, byDefault)
			rows = append(rows, prior.Row{Model: r.Model, Y: math.Log(r.Ratio * was.Latency / is.Latency),
				X: evaluate.Traits(compileRow(t, r, config), compileRow(t, r, byDefault), is, was)})
		}
	}
	require.Len(t, rows, 68)
	learnt := prior.FitTimes(rows)
	t.Logf("%d ratios of %d models: RMS of the logarithm %.4f with the prior, %.4f without; used: %v", learnt.Rows,
		learnt.Models, learnt.Error, learnt.Without, learnt.Used)
	require.InDelta(t, evaluate.PredictionError, learnt.Without, 0.005)
	require.InDelta(t, 0.0467, learnt.Error, 0.0005, "docs/search.md says so")
	require.False(t, learnt.Used)
}
