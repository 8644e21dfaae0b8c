package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
	"amkc/search"
)

func TestImpossiblePredictions(t *testing.T) {
	h200 := ir.FindTarget("h200")
	for name, p := range map[string]cost.Prediction{
		"AMK6103": {Latency: 9, Ceiling: 10, BytesPerToken: 1},
		"memory":  {Latency: 11, Ceiling: 10, BytesPerToken: 1e9},
	} {
		err := floor(&p, h200)
		require.ErrorContains(t, err, "AMK6103", name)
		var f *fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, search.Rejected, f.class)
	}
	require.NoError(t, floor(&cost.Prediction{Latency: 10, Ceiling: 10, BytesPerToken: 1e3}, h200))
	require.NoError(t, floor(&cost.Prediction{Latency: 613.6, Ceiling: 613.8, BytesPerToken: 1e3}, h200),
		"a step that does nothing but stream")
	require.NoError(t, floor(&cost.Prediction{Latency: 3, Ceiling: 2, BytesPerToken: 40 << 20}, h200),
		"what fits the L2 is not limited by memory")
}

// Memory does not reach the data sheet: if it was measured, that is the limit of a prediction.
func TestPredictionsAreHeldToMeasuredMemory(t *testing.T) {
	for name, least := range map[string]float64{ // µs that 10 GB take
		"h200": 1e7 / (0.979 * 4800), "h100": 1e7 / (0.937 * 3350), // as fast as rings have read
		"a100": 1e7 / 1555, "l4": 1e7 / 300, // the data sheet's: nothing of these was measured
	} {
		predicted := func(us float64) error {
			return floor(&cost.Prediction{Latency: us, Ceiling: 1, BytesPerToken: 1e10}, ir.FindTarget(name))
		}
		require.NoError(t, predicted(least), name)
		require.NoError(t, predicted(least*0.996), "%s: within what roundings make", name)
		require.ErrorContains(t, predicted(least*0.994), "AMK6103", name)
	}
}
