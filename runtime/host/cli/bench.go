package cli

import (
	"context"
	"flag"
	"fmt"

	"amkc/runtime/host"
)

// benchResult is what bench prints as JSON.
type benchResult struct {
	Version int               `json:"version"`
	Check   *host.CheckReport `json:"check"`
	*host.BenchReport
	Trace *traceResult `json:"trace,omitempty"`
}

func (c *command) bench(ctx context.Context, args []string) error {
	set := c.flags("bench")
	var o host.BenchOptions
	set.IntVar(&o.Position, "position", 0, "first `POSITION` of every launch: the length of the context")
	set.IntVar(&o.StepsPerLaunch, "steps-per-launch", 0, "decode `N` tokens a launch (default 16)")
	set.IntVar(&o.Launches, "launches", 0, "measure `N` launches of each kernel (default 100)")
	set.IntVar(&o.WarmUp, "warm-up", 0, "run `N` launches of each kernel before that (default 10)")
	var profile host.ProfileOptions
	trace := set.String("trace", "", "record who did what when into `FILE`, which ui.perfetto.dev opens")
	set.IntVar(&profile.Steps, "trace-steps", 0, "record `N` steps (default 1; a step of a large model is some 10 MB)")
	if err := c.parse(set, args); err != nil {
		return err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["trace"] {
		if err := mayWrite("--trace", *trace, "trace.json"); err != nil {
			return err
		}
	} else if given["trace-steps"] {
		return usagef("bench: --trace-steps says how much --trace FILE records, and there is none")
	}
	if _, err := c.facts(); err != nil {
		return err
	}
	return c.withSession(ctx, func(s *host.Session) error {
		check, err := c.runCheck(ctx, s)
		if err != nil {
			return err
		}
		if !check.Passed {
			fmt.Fprint(c.stderr, checkText(check))
			return checkFailure(check)
		}
		r, err := c.runBench(ctx, s, o)
		if err != nil {
			return err
		}
		result, text := benchResult{1, check, r, nil}, benchText(r)
		if given["trace"] {
			profile.Position = o.Position
			if result.Trace, err = c.trace(ctx, s, *trace, profile); err != nil {
				return err
			}
			text += traceText(result.Trace)
		}
		return c.print(result, text)
	})
}

func (c *command) runBench(ctx context.Context, s *host.Session, o host.BenchOptions) (*host.BenchReport, error) {
	progress := c.newProgress()
	defer progress.done()
	return s.Bench(ctx, o, progress.report)
}

func benchText(r *host.BenchReport) string {
	return fmt.Sprintf(`check      passed in this run
device     %s
context    positions %d to %d, %d tokens a launch, %d launches
latency    %.1f µs a token (p10 %.1f, p90 %.1f)
ceiling    %.1f µs (p10 %.1f, p90 %.1f): the same bytes streamed in the same run, no dependencies
drain      %.1f µs (p10 %.1f, p90 %.1f): decoding with the stream taken away
traffic    %.1f MB a token, %.0f GB/s; ceiling %.0f GB/s, plain read %.0f GB/s
share      %.1f %% of the ceiling
`, r.Device, r.Position, r.Position+r.StepsPerLaunch-1, r.StepsPerLaunch, r.Launches,
		r.Latency.Median, r.Latency.P10, r.Latency.P90, r.Ceiling.Median, r.Ceiling.P10, r.Ceiling.P90,
		r.Drain.Median, r.Drain.P10, r.Drain.P90, r.BytesPerToken/1e6, r.GBs, r.CeilingGBs, r.ReadGBs, 100*r.Share)
}
