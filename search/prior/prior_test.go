package prior

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// made are rows of models whose error follows from features as a test says.
func made(r *rand.Rand, models, each int, y func(model int, x map[string]float64) float64) []Row {
	var rows []Row
	for m := range models {
		for range each {
			x := map[string]float64{}
			for k := range 12 {
				if r.IntN(3) == 0 {
					x[fmt.Sprintf("f%d", k)] = float64(r.IntN(5) - 2)
				}
			}
			rows = append(rows, Row{Model: fmt.Sprint("m", m), X: x, Y: y(m, x)})
		}
	}
	return rows
}

func TestTimesThatCanBeLearnt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := made(r, 4, 30, func(_ int, x map[string]float64) float64 {
		return 0.05*x["f1"] - 0.03*x["f7"] + 0.005*r.NormFloat64()
	})
	l := FitTimes(rows)
	require.True(t, l.Used)
	require.Less(t, l.Error, 0.25*l.Without)
	require.InDelta(t, 0.05, l.At(map[string]float64{"f1": 1}), 0.005)
	require.InDelta(t, -0.06, l.At(map[string]float64{"f7": 2, "unknown": 9}), 0.01)
	require.Zero(t, l.At(nil), "what is alike takes what is predicted")
	require.Equal(t, l, FitTimes(rows), "the same rows teach the same, to the bit")
}

// What holds for each model by itself and not for the next is not learnt, and neither is noise.
func TestTimesThatCannotBeLearnt(t *testing.T) {
	used := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := FitTimes(made(r, 2, 30, func(model int, x map[string]float64) float64 {
			return 0.05 * x["f1"] * float64(1-2*model)
		}))
		require.False(t, l.Used)
		require.Empty(t, l.Weights)
		require.Zero(t, l.At(map[string]float64{"f1": 1}))
		if FitTimes(made(r, 3, 20, func(int, map[string]float64) float64 { return 0.05 * r.NormFloat64() })).Used {
			used++
		}
	}
	require.LessOrEqual(t, used, 1)
	require.False(t, FitTimes(made(rand.New(rand.NewPCG(1, 1)), 1, 40,
		func(_ int, x map[string]float64) float64 { return x["f1"] })).Used, "one model says nothing of others")
	require.False(t, FitTimes(nil).Used)
}

func TestRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rows := made(r, 3, 60, func(_ int, x map[string]float64) float64 {
		if x["f2"] > 0 || r.IntN(20) == 0 {
			return 1
		}
		return 0
	})
	l := FitRefusals(rows)
	require.True(t, l.Used)
	require.Less(t, l.Error, 0.8*l.Without)
	require.Greater(t, l.Refused(map[string]float64{"f2": 2}), 0.8)
	require.Less(t, l.Refused(map[string]float64{"f2": -2}), 0.1)
	require.False(t, FitRefusals(made(r, 3, 40, func(int, map[string]float64) float64 {
		return float64(r.IntN(2))
	})).Used, "nothing to be learnt")
	for i := range rows {
		rows[i].Y = 1
	}
	l = FitRefusals(rows)
	require.False(t, math.IsNaN(l.Error) || math.IsInf(l.Error, 0), "all refused")
}

func TestSolve(t *testing.T) {
	x := solve([][]float64{{4, 0, 0}, {2, 5, 0}, {1, 3, 6}}, []float64{4 + 4 + 3, 2 + 10 + 9, 1 + 6 + 18})
	require.InDeltaSlice(t, []float64{1, 2, 3}, x, 1e-12)
	require.Empty(t, solve(nil, nil))
}
