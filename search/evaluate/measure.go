package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/search"
	"amkc/search/turns"
)

// A Builder makes a build of a proved program for a GPU, and returns its directory. kernels and limit are those of
// [compiler.CachedOf].
type Builder func(ctx context.Context, l *compiler.Scheduled, kernels compiler.Kernels, limit time.Duration,
	report progress.Func) (dir string, err error)

// A Measurer measures builds on a GPU, interleaved. Package turns has one; tests have others.
type Measurer func(ctx context.Context, entrants []turns.Entrant, o turns.Options, emit func(turns.Turn) error) (
	all bool, err error)

// measured is the Measurer of a GPU.
func measured(ctx context.Context, entrants []turns.Entrant, o turns.Options, emit func(turns.Turn) error) (bool,
	error) {
	return turns.Take(ctx, entrants, o, emit)
}

// cached makes builds in the cache of builds, or finds them there.
func cached(ctx context.Context, l *compiler.Scheduled, kernels compiler.Kernels, limit time.Duration,
	report progress.Func) (string, error) {
	b, err := compiler.CachedOf(ctx, l, kernels, limit, report)
	if err != nil {
		return "", err
	}
	return b.Dir, nil
}

// An effort is how much is measured.
type effort struct{ rounds, openings, launches int }

// efforts are those of the rungs. To open builds and check them takes most of the time, and openings are what is
// independent: so each has one round. Six are all orders that three builds have. The candidate is checked in each, the
// incumbent and its twin once. A screening opens the incumbent and the candidate once, without a twin.
var efforts = map[search.Rung]effort{
	search.Screen: {rounds: 1, openings: 1, launches: 24},
	search.Final:  {rounds: 6, openings: 6, launches: 24},
}

// The entrants. The twin is the incumbent's build, opened once more.
const (
	incumbent = "incumbent"
	candidate = "candidate"
	twin      = "twin"
)

// build makes the builds of baseline and candidate, which are proved by now, or finds them.
func (e *evaluation) build(ctx context.Context) (old, dir string, err error) {
	kernels := compiler.SearchKernels // nvcc takes half as long for what a search launches alone
	if old, err = e.Build(ctx, e.baseline, kernels, 0, e.Progress); err != nil {
		return "", "", err
	}
	if dir, err = e.Build(ctx, e.candidate, kernels, e.BuildLimit, e.Progress); err != nil {
		wrong := &fault{search.Crash, firstError(err)}
		if wrong.reason.Code == compiler.CodeTooSlow {
			wrong.class = search.Rejected
		}
		return "", "", wrong
	}
	return old, dir, nil
}

// time measures candidate, incumbent and the incumbent's twin interleaved. The candidate is proved by now, and so is
// the incumbent; nothing else is ever launched.
func (e *evaluation) time(ctx context.Context) error {
	old, dir, err := e.build(ctx)
	if err != nil {
		return err
	}
	how := efforts[e.Rung]
	entrants := []turns.Entrant{{Name: incumbent, Dir: old, Trusted: true},
		{Name: candidate, Dir: dir, Session: candidate}}
	if e.Rung != search.Screen {
		entrants = append(entrants, turns.Entrant{Name: twin, Dir: old, Session: twin, Trusted: true})
	}
	o := turns.Options{Positions: e.Positions, Rounds: how.rounds, Openings: how.openings, GPU: e.GPU,
		Bench: host.BenchOptions{Launches: how.launches, WarmUp: 5}}
	m := newMeasurement(e.Positions, entrants)
	if e.Rung == search.Final {
		began := time.Now()
		o.More = func() bool {
			again := time.Since(began) // with the wait for the GPU, so that it is not an underestimate
			return (e.Left == nil || e.Left() > again) && e.undecided(m)
		}
	}
	all, err := e.inTurn(ctx, entrants, o, m.take)
	if err != nil {
		return err
	}
	if (!all || m.openings < how.openings) && !m.failed {
		return diag.Errorf(codeMeasure, "eval", "not all turns were taken, and none says why")
	}
	e.v.Correctness = m.correctness
	if e.v.Timing, err = m.timing(); err != nil {
		return err
	}
	// The cost model may have nothing to say of the target, and nothing here depends on it.
	is, unknown := cost.New(e.candidate.Program)
	was, alsoUnknown := cost.New(e.baseline.Program)
	for i := range e.v.At {
		if unknown == nil && alsoUnknown == nil {
			e.v.At[i].Predicted = predictedBy(is, was, e.v.At[i].Position)
		}
	}
	return nil
}

// predictedBy is what the cost model makes of a position, or nil.
func predictedBy(candidate, baseline *cost.Model, pos int) *search.Predicted {
	is, err := candidate.At(pos)
	was, alsoErr := baseline.At(pos)
	if err != nil || alsoErr != nil {
		return nil
	}
	return &search.Predicted{Candidate: is.Latency, Baseline: was.Latency}
}

// undecided reports whether what was measured so far seems to be a gain that counts, and is not shown to be one. Then
// as many openings again are worth their time.
func (e *evaluation) undecided(m *measurement) bool {
	t, err := m.timing()
	if err != nil {
		return false // it is said in the end
	}
	v := *e.v
	v.Class, v.Timing = search.Pass, t
	return e.Rules.Undecided(&v)
}

// inTurn measures when it has the GPU.
func (e *evaluation) inTurn(ctx context.Context, entrants []turns.Entrant, o turns.Options,
	emit func(turns.Turn) error) (all bool, err error) {
	if e.Turn != nil {
		done, err := e.Turn(ctx)
		if err != nil {
			return false, err
		}
		defer done()
	}
	began := time.Now()
	all, err = e.Measure(ctx, entrants, o, emit)
	e.v.GPUSeconds = time.Since(began).Seconds()
	return all, err
}

// measurement collects turns.
type measurement struct {
	positions   []int
	openings    int // for which there are turns
	entrants    []turns.Entrant
	reports     map[string][][][]*host.BenchReport // by entrant, position and opening
	correctness *search.Correctness
	failed      bool
}

func newMeasurement(positions []int, entrants []turns.Entrant) *measurement {
	m := &measurement{positions: positions, entrants: entrants,
		reports: map[string][][][]*host.BenchReport{}}
	for i := range entrants {
		m.reports[entrants[i].Name] = make([][][]*host.BenchReport, len(positions))
	}
	return m
}

// take keeps a turn. A turn of the candidate that failed is its fault; any other ends the measurement.
func (m *measurement) take(t turns.Turn) error {
	if t.Build == candidate && t.Check != nil {
		m.check(t.Check)
	}
	if t.Report == nil {
		m.failed = true
		return turnFault(t)
	}
	i := slices.Index(m.positions, t.Position)
	if i < 0 || t.Opening < 0 || m.reports[t.Build] == nil {
		return diag.Errorf(codeMeasure, "eval", "a turn of %s at position %d, opening %d was not asked for", t.Build,
			t.Position, t.Opening)
	}
	of := &m.reports[t.Build][i]
	for len(*of) <= t.Opening {
		*of = append(*of, nil)
	}
	(*of)[t.Opening] = append((*of)[t.Opening], t.Report)
	m.openings = max(m.openings, t.Opening+1)
	return nil
}

// turnFault says what a turn without a report means.
func turnFault(t turns.Turn) error {
	if t.Build != candidate {
		return diag.Errorf(codeMeasure, "baseline", "cannot be measured at position %d: %s", t.Position, t.Error)
	}
	var artefact *host.ArtefactError
	switch {
	case errors.Is(t.Cause, turns.ErrDiffers):
		return &fault{search.Fail, diag.Errorf(codeDiffers, "candidate", "%s", t.Error)}
	case errors.As(t.Cause, &artefact):
		return &fault{search.Rejected, diag.Errorf(codeFloor, "position", "%d: %s", t.Position, t.Error)}
	}
	return &fault{search.Crash, diag.Errorf(codeMeasure, "candidate", "cannot be measured at position %d: %s",
		t.Position,
		t.Error)}
}

// check keeps what was compared, the worst of all openings.
func (m *measurement) check(r *host.CheckReport) {
	c := &search.Correctness{Oracle: "reference kernels", Passed: r.Passed}
	for _, s := range r.Spans {
		c.Spans = append(c.Spans, search.Span{First: s.First, Last: s.Last, RMS: s.RMS, Max: s.Max,
			Deterministic: &s.Deterministic})
	}
	switch old := m.correctness; {
	case old == nil || !c.Passed && old.Passed:
		m.correctness = c
	case c.Passed && old.Passed:
		worst(old, c)
	}
}

// worst takes over into what was found of an opening what is worse in another one. Both have the same spans.
func worst(of, other *search.Correctness) {
	for i := range min(len(of.Spans), len(other.Spans)) {
		a, b := &of.Spans[i], &other.Spans[i]
		a.RMS, a.Max = max(a.RMS, b.RMS), max(a.Max, b.Max)
		if b.Deterministic != nil && !*b.Deterministic {
			a.Deterministic = b.Deterministic
		}
	}
}

// timing makes of all turns what a verdict says.
func (m *measurement) timing() (*search.Timing, error) {
	if m.correctness == nil || !m.correctness.Passed {
		return nil, diag.Errorf(codeMeasure, "candidate", "was not checked in this run, and there is no time "+
			"without that")
	}
	samples := make([][]search.Sample, len(m.positions))
	for i, pos := range m.positions {
		for k := range m.openings {
			taken := map[string][]float64{}
			for _, e := range m.entrants {
				if of := m.reports[e.Name][i]; k < len(of) {
					taken[e.Name] = medians(of[k])
				}
				if len(taken[e.Name]) == 0 {
					return nil, diag.Errorf(codeMeasure, "eval", "opening %d has no turn of all at position %d", k, pos)
				}
			}
			samples[i] = append(samples[i], search.Sample{Candidate: taken[candidate], Baseline: taken[incumbent],
				Twin: taken[twin]})
		}
	}
	t := &search.Timing{}
	c := search.Compare(samples)
	t.Ratio, t.Band, t.Spread = c.All, c.Band, c.Spread
	for i, pos := range m.positions {
		of := slices.Concat(m.reports[candidate][i]...)
		one := search.At{Position: pos, Candidate: timesOf(of),
			Baseline: timesOf(slices.Concat(m.reports[incumbent][i]...)), Ratio: c.At[i],
			ReadGBs: middle(of, func(r *host.BenchReport) float64 { return r.ReadGBs }),
			Ceiling: middle(of, func(r *host.BenchReport) float64 { return r.Ceiling.Median }),
			Bytes:   of[0].BytesPerToken}
		t.At = append(t.At, one)
		machine := of[0].Machine
		t.Machine = fmt.Sprintf("%s, driver %s, CUDA %s", machine.GPU, machine.Driver, machine.CUDA)
	}
	return t, nil
}

func medians(reports []*host.BenchReport) []float64 {
	var out []float64
	for _, r := range reports {
		out = append(out, r.Latency.Median)
	}
	return out
}

// timesOf are the medians over turns of the quantiles over launches.
func timesOf(reports []*host.BenchReport) search.Times {
	return search.Times{
		Median: middle(reports, func(r *host.BenchReport) float64 { return r.Latency.Median }),
		P10:    middle(reports, func(r *host.BenchReport) float64 { return r.Latency.P10 }),
		P90:    middle(reports, func(r *host.BenchReport) float64 { return r.Latency.P90 }),
	}
}

// middle is the median of a number of each report.
func middle(reports []*host.BenchReport, of func(*host.BenchReport) float64) float64 {
	var v []float64
	for _, r := range reports {
		v = append(v, of(r))
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
