package evaluate

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/search"
	"amkc/search/turns"
)

// A fakeGPU measures builds by what a test says that they take, and writes down what it was asked to run.
type fakeGPU struct {
	r        *rand.Rand
	us       func(entrant string, position, opening int) float64
	fail     func(entrant string) error
	check    *host.CheckReport
	launched []string
	built    []string
}

func (g *fakeGPU) build(_ context.Context, l *compiler.Scheduled, _ compiler.Kernels, _ time.Duration,
	_ progress.Func) (string, error) {
	config, err := l.Program.Config.MarshalJSON()
	g.built = append(g.built, string(config))
	return string(config), err
}

func (g *fakeGPU) take(_ context.Context, entrants []turns.Entrant, o turns.Options, emit func(turns.Turn) error) (bool,
	error) {
	all := true
	for k, end := 0, o.Openings; k < end; k++ {
		for _, pos := range o.Positions {
			for round := k * o.Rounds / o.Openings; round < (k+1)*o.Rounds/o.Openings; round++ {
				for _, e := range entrants {
					g.launched = append(g.launched, e.Dir)
					t := turns.Turn{Build: e.Name, Position: pos, Round: round, Opening: k, Check: g.check}
					if g.fail != nil {
						t.Cause = g.fail(e.Name)
					}
					if t.Cause != nil {
						t.Error, all = t.Cause.Error(), false
					} else {
						us := g.us(e.Name, pos, k) * (1 + 0.001*g.r.Float64())
						t.Report = &host.BenchReport{Position: pos,
							Latency: host.Quantiles{Median: us, P10: us * 0.99, P90: us * 1.01},
							Ceiling: host.Quantiles{Median: us / 2}, ReadGBs: 4300, BytesPerToken: 1e6,
							Machine: host.Machine{GPU: "NVIDIA Fake", Driver: "1", CUDA: "13.0"}}
					}
					if err := emit(t); err != nil {
						return false, err
					}
				}
			}
		}
		if k+1 == o.Openings && all && o.More != nil && o.More() {
			end += o.Openings
		}
	}
	return all, nil
}

func newFakeGPU() *fakeGPU {
	return &fakeGPU{r: rand.New(rand.NewPCG(1, 1)), us: func(string, int, int) float64 { return 100 },
		check: &host.CheckReport{Passed: true, Spans: []host.CheckSpan{{First: 0, Last: 31, Deterministic: true}}}}
}

func (g *fakeGPU) judges(t *testing.T, r Request) *search.Verdict {
	t.Helper()
	r.Device, r.Build, r.Measure = search.DeviceCUDA, g.build, g.take
	return judgedAs(t, r)
}

func TestMeasured(t *testing.T) {
	pace := knobs.Settings{"tiling.ring.pace": "500"}
	g := newFakeGPU()
	g.us = func(e string, pos, _ int) float64 {
		if e == candidate {
			return 90
		}
		return 100
	}
	v := g.judges(t, requestFor(t, pace, nil))
	require.Equal(t, search.Keep, v.Decision, v.Why)
	require.InDelta(t, 0.9, v.Ratio.Mean, 0.002)
	require.Less(t, v.Ratio.High, 0.91)
	require.InDelta(t, 90, v.At[0].Candidate.Median, 0.2)
	require.InDelta(t, 100, v.At[1].Baseline.Median, 0.2)
	require.Equal(t, "NVIDIA Fake, driver 1, CUDA 13.0", v.Machine)
	require.Positive(t, v.At[1].Predicted.Candidate, "what corrects predictions")
	require.True(t, *v.Correctness.Spans[0].Deterministic)
	require.Len(t, g.built, 2)
	require.Contains(t, g.built[0], `"pace":700`, "the incumbent is built first")
	require.Contains(t, g.built[1], `"pace":500`)
	twins := 0
	for _, dir := range g.launched {
		if dir == g.built[0] {
			twins++
		}
	}
	require.Equal(t, 2*len(g.launched)/3, twins, "two of three turns are the incumbent's")
}

// A gain does not count where the incumbent's twin differs as much, and where a position loses.
func TestMeasuredAndReverted(t *testing.T) {
	for name, us := range map[string]func(e string, pos, opening int) float64{
		"alike": func(e string, _, _ int) float64 { return 100 },
		"twins differ": func(e string, _, opening int) float64 {
			switch {
			case e == candidate:
				return 98
			case e == twin && opening%2 == 1:
				return 103.5
			}
			return 100
		},
		"twins too far apart": func(e string, _, opening int) float64 {
			switch {
			case e == candidate:
				return 50
			case e == twin && opening == 2:
				return 105
			}
			return 100
		},
		"worse at 40": func(e string, pos, _ int) float64 {
			switch {
			case e != candidate:
				return 100
			case pos == 40:
				return 102
			}
			return 70
		},
		"by where it lies": func(e string, _, opening int) float64 {
			if e == candidate {
				return []float64{90, 104, 92, 103, 95, 101}[opening%6]
			}
			return 100
		},
	} {
		g := newFakeGPU()
		g.us = us
		v := g.judges(t, requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil))
		require.Equal(t, search.Pass, v.Class, name)
		require.Equal(t, search.Revert, v.Decision, name)
	}
}

// Where six openings seem to show a gain that counts, and do not, six more are taken, and nowhere else.
func TestMoreOpenings(t *testing.T) {
	for name, c := range map[string]struct {
		us, off  float64 // of the candidate, and what it is off by in every other opening
		rung     search.Rung
		openings int
		want     search.Decision
	}{
		"shown":            {98, 0, search.Final, 6, search.Keep},
		"by more openings": {98, 1, search.Final, 12, search.Keep},
		"not even then":    {98.5, 3, search.Final, 12, search.Revert},
		"too little":       {99.4, 1, search.Final, 6, search.Revert},
		"alike":            {100, 1, search.Final, 6, search.Revert},
		"not to be kept":   {98, 1, search.Screen, 1, search.Promising},
	} {
		g := newFakeGPU()
		g.us = func(e string, _, opening int) float64 {
			if e == candidate {
				return c.us + c.off*float64(2*(opening%2)-1)
			}
			return 100
		}
		r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
		r.Rung = c.rung
		v := g.judges(t, r)
		require.Equal(t, c.want, v.Decision, "%s: %s", name, v.Why)
		builds := 3
		if c.rung == search.Screen {
			builds = 2 // there is no twin at a first look
		}
		require.Len(t, g.launched, c.openings*builds*len(r.Positions), name)

		// What was measured counts, where there is no time for more.
		g.launched = nil
		r.Left = func() time.Duration { return 0 }
		require.Equal(t, search.Pass, g.judges(t, r).Class, name)
		require.Len(t, g.launched, min(c.openings, efforts[c.rung].openings)*builds*len(r.Positions), name)
	}
}

func TestMeasurementsThatFail(t *testing.T) {
	of := func(who string, err error) func(string) error {
		return func(entrant string) error {
			if entrant == who {
				return err
			}
			return nil
		}
	}
	r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
	for want, c := range map[search.Class]error{
		search.Fail:     errors.Join(turns.ErrDiffers),
		search.Rejected: &host.ArtefactError{Latency: 1, Ceiling: 2},
		search.Crash:    errors.New("out of memory"),
	} {
		g := newFakeGPU()
		g.fail = of(candidate, c)
		v := g.judges(t, r)
		require.Equal(t, want, v.Class)
		require.Nil(t, v.Timing)
	}
	g := newFakeGPU()
	g.fail = of(twin, errors.New("out of memory"))
	r.Device, r.Build, r.Measure = search.DeviceCUDA, g.build, g.take
	_, err := Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "baseline: error: cannot be measured at position 0: out of memory")

	g = newFakeGPU() // times without a check do not count
	g.check = nil
	r.Build, r.Measure = g.build, g.take
	_, err = Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "was not checked in this run")

	r.Build = func(context.Context, *compiler.Scheduled, compiler.Kernels, time.Duration, progress.Func) (string,
		error) {
		return "", diag.Errorf(codeTools, "nvcc", "is not here")
	}
	_, err = Evaluate(t.Context(), r)
	require.ErrorContains(t, err, "is not here", "without tools there is no verdict on anything")
}
