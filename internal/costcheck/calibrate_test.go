package costcheck

import (
	"errors"
	"flag"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
)

var calibrate = flag.Bool("calibrate", false, "look for the calibration that fits section bench best, and print it")

// A trial is a row of section bench of the GPU that the constants are for, with its program.
type trial struct {
	row     row
	program *ir.Program
}

func trials(t testing.TB) []trial {
	var out []trial
	for _, r := range measured(t) {
		if r.Section == calibrating && r.target.Name == cost.CalibratedOn {
			out = append(out, trial{r, compileRow(t, r, byDefault)})
		}
	}
	return out
}

// kernels are what ratios are of.
var kernels = []string{"latency", "ceiling", "drain"}

// ratios are predicted over measured, in the order of kernels.
func (x trial) ratios(fit cost.Calibration) ([]float64, error) {
	m, err := cost.NewWith(x.program, fit)
	if err != nil {
		return nil, err
	}
	p, err := m.At(x.row.Position + x.row.Steps/2)
	if err != nil {
		return nil, err
	}
	return x.row.ratios(kernelTimes{p.Latency, p.Ceiling, p.Drain}), nil
}

// ratios are what is predicted over what was measured, of the times of a row that are followed.
func (r *row) ratios(predicted kernelTimes) (out []float64) {
	for _, f := range followed[r.Section] {
		if median, is := r.times[f.path]; is && !f.barrier {
			out = append(out, predicted.of(f.what)/float64(median))
		}
	}
	return out
}

// measured is the time of a kernel, or 0.
func (r *row) measured(what string) micros {
	for _, f := range followed[r.Section] {
		if f.what == what && !f.barrier {
			return r.times[f.path]
		}
	}
	return 0
}

// misfit is the root mean square of the logarithms of predicted over measured.
func misfit(t testing.TB, on []trial, fit cost.Calibration) float64 {
	all, errs := make([][]float64, len(on)), make([]error, len(on))
	var wait sync.WaitGroup
	for i, x := range on {
		wait.Go(func() { all[i], errs[i] = x.ratios(fit) })
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	sum := 0.0
	for _, ratio := range slices.Concat(all...) {
		sum += math.Pow(math.Log(ratio), 2)
	}
	return math.Sqrt(sum / float64(len(kernels)*len(on)))
}

// search goes down from a calibration in steps of one constant at a time, ever smaller ones, by the factor `last` in
// the end.
func search(t testing.TB, on []trial, fit cost.Calibration, first, last float64) (cost.Calibration, float64) {
	best := misfit(t, on, fit)
	fields := reflect.ValueOf(&fit).Elem()
	for step := first; step > last; step = math.Sqrt(step) {
		for better := true; better; {
			better = false
			for i := range fields.NumField() {
				for _, factor := range []float64{step, 1 / step} {
					old := fields.Field(i).Float()
					fields.Field(i).SetFloat(old * factor)
					if now := misfit(t, on, fit); now < best*0.9995 {
						best, better = now, true
					} else {
						fields.Field(i).SetFloat(old)
					}
				}
			}
		}
	}
	return fit, best
}

// TestCalibration: together, the constants are worth having. With -calibrate it looks for better ones and prints them.
func TestCalibration(t *testing.T) {
	on, fit := trials(t), cost.Calibrated()
	if *calibrate {
		found, rms := search(t, on, fit, 1.3, 1.02)
		t.Logf("root mean square of the errors %.2f %%: %+v", 100*rms, found)
	}
	t.Logf("root mean square of the errors of section bench %.2f %%", 100*misfit(t, on, fit))
	require.Less(t, misfit(t, on, fit), 0.03,
		"root mean square of the errors; look for a better calibration with -calibrate")
}

// memoryBound is the bytes per token from which on memory alone decides how long a ceiling takes.
const memoryBound = 1e9

// TestReads: what is known of the memory of a GPU besides its data sheet is the part of the bandwidth at which the
// ring reads. It follows from the ceilings of large models, which wait for nothing else; with -calibrate, the test
// prints the part that fits those best.
func TestReads(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	byTarget := map[string][]row{}
	for _, r := range measured(t) {
		_, other := beyond[r.name()+" ceiling"] // other things than memory decide it
		if r.measured("ceiling") > 0 && r.Bytes >= memoryBound && r.build() == r.Model && !other {
			byTarget[r.target.Name] = append(byTarget[r.target.Name], r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byTarget)) {
		rows := byTarget[name]
		now := ceilingsOff(t, rows, 1)
		if *calibrate {
			best, least := 1.0, now
			for _, step := range []float64{0.05, 0.01, 0.002} {
				middle := best
				for n := -4.0; n <= 4; n++ {
					if x := ceilingsOff(t, rows, middle+n*step); x < least {
						best, least = middle+n*step, x
					}
				}
			}
			t.Logf("%s: the ceilings fit best (%.2f %%, now %.2f %%) with read %.3f times what chips in "+
				"cost/constants.go says", name, 100*least, 100*now, best)
		}
		require.Less(t, now, 0.05, "%s: ceilings; look for the part of the bandwidth with -calibrate", name)
	}
}

// Predictions below what memory takes are refused (package search/evaluate), and so no measured step of more than L2
// holds may be. Ceilings are what the rate was fitted to, and may be below it by as much as predictions may.
func TestNothingIsFasterThanMemory(t *testing.T) {
	found := 0
	for _, r := range measured(t) {
		if !cost.Held(r.target.Name) || r.Bytes <= float64(r.target.L2Bytes) {
			continue
		}
		rate := cost.ReadGBs(r.target) * max(1, fasterMemory[r.target.Name+" "+r.Environment])
		least := micros(r.Bytes / rate / 1e3)
		for what, part := range map[string]micros{"latency": 1, "ceiling": 0.995} {
			us, name := r.measured(what), r.name()+" "+what
			if us == 0 {
				continue
			}
			if why, listed := fasterThanMemory[name]; listed {
				assert.Less(t, us, part*least, "%s is not faster: take it off the list (%s)", name, why)
				continue
			}
			found++
			assert.GreaterOrEqual(t, us, part*least, name)
		}
	}
	require.Greater(t, found, 30, "steps")
}

// fasterThanMemory are times below that, and why.
var fasterThanMemory = map[string]string{
	"h100 roofline/llama-2048h-4l-fp32-seed1-0 ceiling":      "by 0.7 %: L2 keeps a part of 984 MB from step to step",
	"h100 roofline/llama-2048h-4l-bf16-seed1-int8-0 ceiling": "by 5.9 %: L2 keeps a part of 248 MB, and has 50",
	"h100 compare/llama-2048h-4l-bf16-seed1-int8-0 ceiling":  "the same",
}

// fasterMemory are the environments of rows on a chip whose memory is faster than that of the chip which the rate is
// of, and how many times.
var fasterMemory = map[string]float64{"h100 E": 1.033}

// ceilingsOff is the root mean square of the logarithms of predicted over measured ceilings, with memory that is n
// times as fast.
func ceilingsOff(t testing.TB, rows []row, times float64) float64 {
	sum := 0.0
	for _, r := range rows {
		p := compileRow(t, r, byDefault)
		if times != 1 {
			faster, target := *p, *p.Target
			target.HBMGBs *= times
			faster.Target, p = &target, &faster
		}
		out := predict(t, r.name(), p, r.Position+r.Steps/2)
		sum += math.Pow(math.Log(out.Ceiling/float64(r.measured("ceiling"))), 2)
	}
	return math.Sqrt(sum / float64(len(rows)))
}

// TestHeldOut calibrates on all models but one, from constants that are all half as large again, and predicts the one
// that it has not seen: what the constants say of one model holds for another. Calibrating takes minutes, for which
// AMKC_LONG asks.
func TestHeldOut(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("AMKC_LONG is not set")
	}
	all := trials(t)
	for _, model := range []string{"pycoder-5m", "smollm2-135m", "llama-3.2-1b", "llama-3.1-8b"} {
		var seen, unseen []trial
		for _, x := range all {
			if x.row.Model == model {
				unseen = append(unseen, x)
			} else {
				seen = append(seen, x)
			}
		}
		require.NotEmpty(t, unseen, model)
		start := cost.Calibrated()
		fields := reflect.ValueOf(&start).Elem()
		for i := range fields.NumField() {
			fields.Field(i).SetFloat(1.5 * fields.Field(i).Float())
		}
		fit, _ := search(t, seen, start, 1.5, 1.05)
		for _, x := range unseen {
			ratios, err := x.ratios(fit)
			require.NoError(t, err)
			for i, ratio := range ratios {
				require.InDelta(t, 1, ratio, tolerance, "%s, %s, with %+v", x.row.ID, kernels[i], fit)
				t.Logf("%s %s: %+.1f %% without its model", x.row.ID, kernels[i], 100*(ratio-1))
			}
		}
	}
}
