package costcheck

import (
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
)

// A passTrial is a pass of section pass_times of the H100, with its program.
type passTrial struct {
	build            string
	program          *ir.Program
	position         int
	latency, ceiling float64
}

// passTrials are those at some positions.
func passTrials(t testing.TB, positions ...int) []passTrial {
	var out []passTrial
	rows := everyPassRow(t)
	for i := range rows {
		r := &rows[i]
		if r.target.Name != "h100" || !slices.Contains(positions, r.Position) {
			continue
		}
		for _, p := range r.Passes {
			of := timedPass{model: r.Model, formats: r.Weights}
			l := buildOf(t, r.row, byDefault)
			out = append(out, passTrial{of.build(), programOf(l, p.Rows), r.Position + r.Steps/2, float64(p.Latency),
				float64(p.Ceiling)})
		}
	}
	return out
}

// ratios are predicted over measured: the latency and the ceiling.
func (x passTrial) ratios(fit cost.PassCalibration) ([]float64, error) {
	m, err := cost.NewPassWith(x.program, nil, fit)
	if err != nil {
		return nil, err
	}
	p, err := m.At(x.position)
	if err != nil {
		return nil, err
	}
	return []float64{p.Latency / x.latency, p.Ceiling / x.ceiling}, nil
}

// passMisfit is the root mean square of the logarithms of predicted over measured, with half of the weight for
// ceilings, which nobody runs.
func passMisfit(t testing.TB, on []passTrial, fit cost.PassCalibration) float64 {
	all, errs := make([][]float64, len(on)), make([]error, len(on))
	var wait sync.WaitGroup
	for i, x := range on {
		wait.Go(func() { all[i], errs[i] = x.ratios(fit) })
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	sum := 0.0
	for _, r := range all {
		sum += math.Pow(math.Log(r[0]), 2) + math.Pow(math.Log(r[1]), 2)/2
	}
	return math.Sqrt(sum / 1.5 / float64(len(on)))
}

// passConstants are those of a calibration, to be changed.
func passConstants(fit *cost.PassCalibration) []reflect.Value {
	fields := reflect.ValueOf(fit).Elem()
	var out []reflect.Value
	for i := range fields.NumField() {
		out = append(out, fields.Field(i))
	}
	return out
}

// searchPasses goes down from a calibration in steps of one constant at a time, by each of the factors in turn.
func searchPasses(t testing.TB, on []passTrial, fit cost.PassCalibration, steps ...float64) cost.PassCalibration {
	best := passMisfit(t, on, fit)
	for _, step := range steps {
		for better := true; better; {
			better = false
			for _, constant := range passConstants(&fit) {
				for _, factor := range []float64{step, 1 / step} {
					old := constant.Float()
					constant.SetFloat(old * factor)
					if now := passMisfit(t, on, fit); now < best*0.998 {
						best, better = now, true
						break
					}
					constant.SetFloat(old)
				}
			}
		}
	}
	return fit
}

// TestPassCalibration: together, the constants of passes are worth having. With -calibrate it looks for better ones
// and prints them, which takes minutes.
func TestPassCalibration(t *testing.T) {
	if !everything() && !*calibrate {
		t.Skip("predicts all published passes: AMKC_LONG=1")
	}
	on, fit := passTrials(t, 128, 2048, 8192), cost.PassCalibrated()
	if *calibrate {
		found := searchPasses(t, on, fit, 1.2, 1.08)
		t.Logf("root mean square of the errors %.2f %%: %+v", 100*passMisfit(t, on, found), found)
	}
	require.Less(t, passMisfit(t, on, fit), 0.05,
		"root mean square of the errors; look for a better calibration with -calibrate")
}

// heldOut is how far the latency of a pass may be from what was measured where no constant was chosen on its build: a
// little more than elsewhere, because without int4 it is int8 alone that says what integers take, and its stream hides
// some of it.
const heldOut = 0.12

// TestPassesHeldOut calibrates on the passes of all builds but one, from constants that are all half as large again,
// and predicts the latencies of the build that it has not seen. Calibrating takes minutes, for which AMKC_LONG asks.
func TestPassesHeldOut(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("AMKC_LONG is not set")
	}
	all := passTrials(t, 128, 8192)
	for _, build := range []string{"llama-3.1-8b", "llama-3.1-8b int8", "llama-3.1-8b int4", "llama-3.2-1b"} {
		var seen, unseen []passTrial
		for _, x := range all {
			if x.build == build {
				unseen = append(unseen, x)
			} else if x.position < 8192 {
				seen = append(seen, x)
			}
		}
		require.NotEmpty(t, unseen, build)
		require.NotEmpty(t, seen)
		start := cost.PassCalibrated()
		for _, constant := range passConstants(&start) {
			constant.SetFloat(1.5 * constant.Float())
		}
		fit := searchPasses(t, seen, start, 1.5, 1.15)
		for _, x := range unseen {
			ratios, err := x.ratios(fit)
			require.NoError(t, err)
			t.Logf("%s at %d, %d rows: latency %+.1f %%, ceiling %+.1f %% without its build", build, x.position,
				x.program.Pass.NumRows(), 100*(ratios[0]-1), 100*(ratios[1]-1))
			require.InDelta(t, 1, ratios[0], heldOut, "%s at %d, with %+v", build, x.position, fit)
		}
	}
}
