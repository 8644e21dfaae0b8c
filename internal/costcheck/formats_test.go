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

// A formatTrial is a row that constants of formats were chosen on, with its program.
type formatTrial struct {
	row     row
	program *ir.Program
}

// formatTrials are the rows of sections roofline and compare of the H200, at positions 0 and 128, of formats other than
// elements of 16 bits.
func formatTrials(t testing.TB) (out []formatTrial) {
	for _, r := range measured(t) {
		if r.chosenOn() {
			out = append(out, formatTrial{r, compileRow(t, r, byDefault)})
		}
	}
	return out
}

func (r *row) chosenOn() bool {
	return r.target.Name == cost.CalibratedOn && (r.Section == "roofline" || r.Section == "compare") &&
		r.build() != r.Model && r.Position <= 128
}

// formatMisfit is the root mean square of the logarithms of predicted over measured.
func formatMisfit(t testing.TB, on []formatTrial, fit cost.FormatCalibration) float64 {
	all, errs := make([][]float64, len(on)), make([]error, len(on))
	var wait sync.WaitGroup
	for i, x := range on {
		wait.Go(func() { all[i], errs[i] = x.ratios(fit) })
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	sum, ratios := 0.0, slices.Concat(all...)
	for _, ratio := range ratios {
		sum += math.Pow(math.Log(ratio), 2)
	}
	return math.Sqrt(sum / float64(len(ratios)))
}

func (x formatTrial) ratios(fit cost.FormatCalibration) ([]float64, error) {
	m, err := cost.NewFormatsWith(x.program, fit)
	if err != nil {
		return nil, err
	}
	p, err := m.At(x.row.Position + x.row.Steps/2)
	if err != nil {
		return nil, err
	}
	return x.row.ratios(kernelTimes{p.Latency, p.Ceiling, p.Drain}), nil
}

// searchFormats goes down from a calibration in steps of one constant at a time, by each of the factors in turn.
func searchFormats(t testing.TB, on []formatTrial, fit cost.FormatCalibration, steps ...float64) (
	cost.FormatCalibration, float64) {
	best := formatMisfit(t, on, fit)
	fields := reflect.ValueOf(&fit).Elem()
	for _, step := range steps {
		for better := true; better; {
			better = false
			for i := range fields.NumField() {
				for _, factor := range []float64{step, 1 / step} {
					old := fields.Field(i).Float()
					fields.Field(i).SetFloat(old * factor)
					if now := formatMisfit(t, on, fit); now < best*0.998 {
						best, better = now, true
						break
					}
					fields.Field(i).SetFloat(old)
				}
			}
		}
	}
	return fit, best
}

// TestFormatCalibration: together, the constants of formats are worth having. With -calibrate it looks for better ones
// and prints them.
func TestFormatCalibration(t *testing.T) {
	if testing.Short() && !*calibrate {
		t.Skip("make test-all runs it")
	}
	on, fit := formatTrials(t), cost.FormatsCalibrated()
	if *calibrate {
		found, rms := searchFormats(t, on, fit, 1.2, 1.1, 1.05)
		t.Logf("root mean square of the errors %.2f %%: %+v", 100*rms, found)
	}
	rms := formatMisfit(t, on, fit)
	t.Logf("root mean square of the errors %.2f %%", 100*rms)
	require.Less(t, rms, 0.045, "look for a better calibration with -calibrate")
}

// TestFewFormatConstants: those that were chosen to fit formats are few against what they fit, and against numbers of
// formats that none was chosen on.
func TestFewFormatConstants(t *testing.T) {
	constants := reflect.TypeFor[cost.FormatCalibration]().NumField()
	fitted, held := 0, 0
	for _, r := range measured(t) {
		switch n := len(r.ratios(kernelTimes{})); {
		case r.chosenOn():
			fitted += n
		case r.build() != r.Model && r.Sequences <= 1:
			held += n
		}
	}
	require.LessOrEqual(t, constants, 6, "a model with more free constants fits anything")
	require.GreaterOrEqual(t, fitted, 4*constants)
	require.GreaterOrEqual(t, held, 2*fitted, "numbers that no constant was chosen on")
}

// TestFormatsHeldOut calibrates without the rows of one model, from constants that are half as large again, and
// predicts the latencies that it has not seen. SmolLM2-135M is not left out: what a stage takes in fp32 follows from it
// alone, and without it it is predicted 16 % too long. Calibrating takes minutes, for which AMKC_LONG asks.
func TestFormatsHeldOut(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("AMKC_LONG is not set")
	}
	all := formatTrials(t)
	for _, model := range []string{"llama-2048h-4l", "llama-3.2-1b", "llama-3.1-8b"} {
		var seen, unseen []formatTrial
		for _, x := range all {
			if x.row.Model == model {
				unseen = append(unseen, x)
			} else {
				seen = append(seen, x)
			}
		}
		require.NotEmpty(t, unseen, model)
		start := cost.FormatsCalibrated()
		fields := reflect.ValueOf(&start).Elem()
		for i := range fields.NumField() {
			fields.Field(i).SetFloat(1.5 * fields.Field(i).Float())
		}
		fit, _ := searchFormats(t, seen, start, 1.5, 1.2, 1.1)
		for _, x := range unseen {
			ratios, err := x.ratios(fit)
			require.NoError(t, err)
			t.Logf("%s: %+.1f %% without its model", x.row.ID, 100*(ratios[0]-1))
			require.InDelta(t, 1, ratios[0], tolerance, "%s, with %+v", x.row.ID, fit)
		}
	}
}

// A pair are two latencies of one model on one GPU and at one position, of builds that differ in nothing but what
// their matrices are stored as.
type pair struct{ a, b comparison }

// pairs are those of each section.
func pairs(t testing.TB) (out []pair) {
	all := slices.DeleteFunc(slices.Clone(compare(t)), func(c comparison) bool { return c.what != "latency" })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.target == b.target && a.section == b.section && a.made == b.made && a.position == b.position &&
				a.build != b.build {
				out = append(out, pair{a, b})
			}
		}
	}
	return out
}

func (p pair) name() string { return p.a.name() + ", " + p.b.build }

// disordered are pairs whose order is predicted wrongly, and why.
var disordered = map[string]string{}

// leastDifference is the part by which two formats have to differ for their order to be judged: medians of two builds
// of the same kernel differ by as much.
const leastDifference = 0.01

// TestFormatsInOrder: of two formats of a model it is predicted rightly which is slower. int4 of Llama-3.2-1B is slower
// than int8 on an H200.
func TestFormatsInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	all, surprising := pairs(t), 0
	require.Greater(t, len(all), 20)
	seen := map[string]bool{}
	for _, p := range all {
		seen[p.name()] = true
		measured, predicted := math.Log(p.a.measured/p.b.measured), math.Log(p.a.predicted/p.b.predicted)
		if math.Abs(measured) < math.Log1p(leastDifference) {
			continue
		}
		if slower := map[bool]comparison{true: p.a, false: p.b}[measured > 0]; slower.build ==
			"llama-3.2-1b int4:g128:sym" && p.a.build == "llama-3.2-1b int8" {
			surprising++
		}
		if why, listed := disordered[p.name()]; listed {
			require.Negative(t, measured*predicted, "%s is in order: take it off the list (%s)", p.name(), why)
			continue
		}
		require.Positive(t, measured*predicted, "%s: measured %.1f and %.1f, predicted %.1f and %.1f", p.name(),
			p.a.measured, p.b.measured, p.a.predicted, p.b.predicted)
	}
	require.GreaterOrEqual(t, surprising, 3, "int4 of Llama-3.2-1B is slower than int8 on an H200")
	for name := range disordered {
		require.True(t, seen[name], "%s is listed and was not measured", name)
	}
}

// TestErrorOfFormats holds the error that amkc formats gives what it chooses by to what it is over all published pairs.
func TestErrorOfFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	squares, all := 0.0, pairs(t)
	for _, p := range all {
		squares += math.Pow(math.Log(p.a.predicted/p.b.predicted*p.b.measured/p.a.measured), 2)
	}
	rms := math.Sqrt(squares / float64(len(all)))
	t.Logf("%d pairs, root mean square of the error of a ratio %.2f %%", len(all), 100*rms)
	require.InDelta(t, cost.FormatError, rms, 0.005)
}
