package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/refvm"
	"amkc/runtime/host"
)

// moved are weights that differ in their last bits, which changes sums as another order of their terms does.
type moved struct {
	refvm.Weights
	random *rand.Rand
}

func (w moved) Floats(b *ir.Buffer, i int) ([]float32, error) {
	values, err := w.Weights.Floats(b, i)
	values = slices.Clone(values)
	for k, x := range values {
		values[k] = float32(float64(x) * (1 + 0x1p-22*(2*w.random.Float64()-1)))
	}
	return values, err
}

// differenceOfMoved is how far logits are apart, as `check` measures it, if weights are moved.
func differenceOfMoved(t *testing.T, model string, dtype ir.DType, cache *ir.DType) (worst host.Tolerance) {
	t.Helper()
	var logits [2][][]float32
	for run := range logits {
		l, err := RunPasses(Options{Model: "../testdata/models/" + model, Target: ir.FindTarget("h200"), DType: &dtype,
			Cache: cache, MaxSeq: 32})
		require.NoError(t, err)
		defer l.Close()
		var w refvm.Weights = l.Weights
		if run == 1 {
			w = moved{w, rand.New(rand.NewPCG(1, 7))}
		}
		s, err := refvm.NewSession(l.Program, w, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		for _, id := range host.CheckIDs(0, 32, l.Program.Model.Vocab) {
			row, _, err := s.Step(id)
			require.NoError(t, err)
			logits[run] = append(logits[run], slices.Clone(row))
		}
	}
	for i, want := range logits[0] {
		sum, scale, most, largest := 0.0, 0.0, 0.0, 1.0
		for k, x := range want {
			e := math.Abs(float64(x) - float64(logits[1][i][k]))
			sum, scale = sum+e*e, scale+float64(x)*float64(x)
			most, largest = max(most, e), max(largest, math.Abs(float64(x)))
		}
		worst.RMS, worst.Max = max(worst.RMS, math.Sqrt(sum/scale)), max(worst.Max, most/largest)
	}
	return worst
}

// Logits of weights that differ in their last bits are as near to each other as `check` demands of kernels that sum in
// another order, with a cache of integers too, whose rounding makes more of the difference than F32 may have without.
func TestTolerancesAreOfRounding(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	integers := ir.I8
	for _, c := range []struct {
		dtype ir.DType
		cache *ir.DType
	}{{ir.F32, nil}, {ir.F32, &integers}, {ir.F16, &integers}} {
		m := host.Model{DType: map[ir.DType]string{ir.F32: "F32", ir.F16: "F16"}[c.dtype]}
		if c.cache != nil {
			m.Cache = "I8"
		}
		got, allowed := differenceOfMoved(t, "pycoder-5m", c.dtype, c.cache), host.TolerancesOfStages(&m, true).Other
		what := fmt.Sprintf("%s: %.1e, of %.1e", m.Types(), got, allowed)
		t.Log(what)
		require.Less(t, got.RMS, allowed.RMS/2, what)
		require.Less(t, got.Max, allowed.Max/2, what)
		require.Positive(t, got.RMS, what)
		if c.dtype == ir.F32 && c.cache != nil {
			without := host.TolerancesOfStages(&host.Model{DType: "F32"}, true).Other
			require.Greater(t, got.RMS, without.RMS/2, "nothing was rounded to another integer")
		}
	}
}
