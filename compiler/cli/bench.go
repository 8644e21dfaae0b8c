package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/progress"
	"amkc/search/turns"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	positions []int
	rounds    int
	openings  int
	launches  int
	gpu       int

	take func(context.Context, []turns.Entrant, turns.Options, func(turns.Turn) error) (bool, error)
}

func benchVerb() verb { return (&benchFlags{take: turns.Take}).verb() }

func (f *benchFlags) verb() verb {
	return verb{
		name: "bench", synopsis: "DIR... [--position N,...] [--rounds N] [--gpu N]", min: 1, max: -1,
		summary: "measure builds on a GPU, by turns, after a check",
		details: `
All builds are open at once, and their launches are interleaved. They are reopened several times, in another order,
because the addresses of weights and cache change a time by up to 2 % (docs/bench.md). To decide which of two is
faster, use amkc search eval, which also measures a twin of the baseline. Exit code 1: a build failed its check; 2:
one could not be measured.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *benchFlags) define(set *pflag.FlagSet) {
	set.Var(newCounts(&f.positions, []int{0}), "position", "measure a step at position `N`; several with commas")
	set.Var(front.NewCount(&f.rounds, 6, 1, 1e4), "rounds", "take `N` turns of each build at each position")
	set.Var(front.NewCount(&f.openings, 3, 1, 1e3), "openings", "reopen the builds `N` times")
	set.Var(front.NewCount(&f.launches, 40, 1, 1e5), "launches", "time `N` launches in a turn")
	set.Var(newGPU(&f.gpu), "gpu", "use GPU number `N`")
}

// predicts is the advice of verbs that measure, where there is no GPU.
const predicts = "amkc cost predicts, without a GPU"

// benched is the result of bench in JSON.
type benched struct {
	Builds []benchedBuild `json:"builds"`
}

// benchedBuild is what was measured of a build, in microseconds per token.
type benchedBuild struct {
	Dir   string      `json:"dir"`
	At    []benchedAt `json:"at"`
	Error string      `json:"error,omitempty"` // the first reason for which a turn could not be taken
}

// benchedAt are medians over the turns at a position.
type benchedAt struct {
	Position int     `json:"position"`
	Turns    int     `json:"turns"`
	Latency  float64 `json:"latency_us"`
	Lowest   float64 `json:"lowest_us"` // the least and the largest median of a turn
	Highest  float64 `json:"highest_us"`
	Ceiling  float64 `json:"ceiling_us"`
	ReadGBs  float64 `json:"read_gbs"`
	Machine  string  `json:"machine"`
}

func (f *benchFlags) run(c *call) error {
	if len(slices.Compact(slices.Sorted(slices.Values(f.positions)))) != len(f.positions) {
		return c.usage("--position names one twice; want each once")
	}
	if f.openings > f.rounds {
		return c.usage("--openings %d of --rounds %d leave some without a turn; want no more than rounds", f.openings,
			f.rounds)
	}
	var entrants []turns.Entrant
	for i, dir := range c.args {
		if !isBuild(dir) {
			return notBuild(dir)
		}
		facts, err := host.ReadFacts(dir)
		if err != nil {
			return hostError(dir, err)
		}
		if far, last := slices.Max(f.positions), facts.Model.MaxSeq-1; far > last {
			return c.usage("--position %d is beyond %s; want 0 to %d, for which it is compiled", far, dir, last)
		}
		// The number tells a build from its twin: both may be named.
		entrants = append(entrants, turns.Entrant{Name: fmt.Sprint(i), Dir: dir, Session: fmt.Sprint(i)})
	}
	ctx, cancel := interruptible()
	defer cancel()
	line := c.progress()
	defer line.Clear()
	o := turns.Options{Positions: f.positions, Rounds: f.rounds, Openings: f.openings, GPU: f.gpu,
		Bench: host.BenchOptions{Launches: f.launches, WarmUp: 5}}
	taken, failures := map[string]map[int][]*host.BenchReport{}, map[string]error{}
	step := progress.Step{Activity: "measuring", Unit: "turns",
		Total: int64(len(entrants) * f.rounds * len(f.positions))}
	_, err := f.take(ctx, entrants, o, func(t turns.Turn) error {
		if t.Report == nil {
			if failures[t.Build] == nil {
				failures[t.Build] = t.Cause
			}
		} else {
			if taken[t.Build] == nil {
				taken[t.Build] = map[int][]*host.BenchReport{}
			}
			taken[t.Build][t.Position] = append(taken[t.Build][t.Position], t.Report)
		}
		step.Done++
		line.Show(step)
		return nil
	})
	line.Clear()
	if err != nil {
		return withoutGPU(c.args[0], err, predicts)
	}
	return f.tell(c, entrants, taken, failures)
}

// tell reports what was measured, and every build that could not be.
func (f *benchFlags) tell(c *call, entrants []turns.Entrant, taken map[string]map[int][]*host.BenchReport,
	failures map[string]error) error {
	result := benched{Builds: []benchedBuild{}}
	var text strings.Builder
	var wrong diag.List
	differs := false
	for _, e := range entrants {
		b := benchedBuild{Dir: e.Dir, At: []benchedAt{}}
		switch err := failures[e.Name]; {
		case errors.Is(err, turns.ErrDiffers):
			b.Error, differs = err.Error(), true
			fmt.Fprintf(&text, "%s: %s\n", e.Dir, b.Error)
		case err != nil:
			b.Error = err.Error()
			wrong = append(wrong, asList(e.Dir, withoutGPU(e.Dir, err, predicts))...)
		}
		for _, pos := range f.positions {
			if reports := taken[e.Name][pos]; len(reports) > 0 && b.Error == "" {
				at := benchedOf(pos, reports)
				b.At = append(b.At, at)
				fmt.Fprintf(&text, "%s at position %d: %.1f µs per token (turns %.1f to %.1f), ceiling %.1f µs; %s\n",
					e.Dir, pos, at.Latency, at.Lowest, at.Highest, at.Ceiling, at.Machine)
			}
		}
		result.Builds = append(result.Builds, b)
	}
	if len(taken) > 0 || differs {
		c.payload = result
	}
	if err := c.printf("%s", text.String()); err != nil {
		return err
	}
	switch {
	case len(wrong) > 0:
		return wrong
	case differs:
		return errDifferent
	}
	return nil
}

func benchedOf(pos int, reports []*host.BenchReport) benchedAt {
	var latency, ceiling, read []float64
	for _, r := range reports {
		latency, ceiling, read = append(latency, r.Latency.Median), append(ceiling, r.Ceiling.Median),
			append(read, r.ReadGBs)
	}
	m := reports[0].Machine
	return benchedAt{Position: pos, Turns: len(reports), Latency: medianOf(latency), Lowest: slices.Min(latency),
		Highest: slices.Max(latency), Ceiling: medianOf(ceiling), ReadGBs: medianOf(read),
		Machine: fmt.Sprintf("%s, driver %s, CUDA %s", m.GPU, m.Driver, m.CUDA)}
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
