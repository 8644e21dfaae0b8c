package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"amkc/runtime/host"
	"amkc/runtime/host/report"
	"amkc/runtime/outfile"
	"amkc/runtime/printable"
)

// benchSchema names the JSON of bench; docs/bench.md describes it.
const benchSchema = "amkc.bench/1"

// benchResult is what bench prints as JSON.
type benchResult struct {
	Schema  string            `json:"schema"`
	Version int               `json:"version"`
	Check   *host.CheckReport `json:"check"`
	*host.BenchReport
	Build *host.Provenance `json:"build"`
	Trace *traceResult     `json:"trace,omitempty"`
}

// benchFlags are what was asked of bench. An empty path asks for no file.
type benchFlags struct {
	bench         host.BenchOptions
	profile       host.ProfileOptions
	trace, report string
}

// parseBench reads the flags, and refuses files that cannot be written before anything is measured for them.
func (c *command) parseBench(args []string) (*benchFlags, error) {
	set := c.flags("bench")
	f := &benchFlags{}
	set.IntVar(&f.bench.Position, "position", 0, "first `POSITION` of every launch: the length of the context")
	set.IntVar(&f.bench.StepsPerLaunch, "steps-per-launch", 0, "decode `N` tokens a launch (default 16)")
	set.IntVar(&f.bench.Launches, "launches", 0, "measure `N` launches of each kernel (default 100)")
	set.IntVar(&f.bench.WarmUp, "warm-up", 0, "run `N` launches of each kernel before that (default 10)")
	set.StringVar(&f.report, "report", "", "show the measurement on one HTML page, `FILE`")
	set.StringVar(&f.trace, "trace", "", "record who did what when into `FILE`, which ui.perfetto.dev opens")
	set.IntVar(&f.profile.Steps, "trace-steps", 0,
		"record `N` steps (default 1; a step of a large model is some 10 MB)")
	if err := c.parse(set, args); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["trace"] {
		if err := c.mayWrite("--trace", f.trace, "trace.json"); err != nil {
			return nil, err
		}
	} else if given["trace-steps"] {
		return nil, usagef("bench: --trace-steps says how much --trace FILE records, and there is none")
	}
	if given["report"] {
		if err := c.mayWrite("--report", f.report, "report.html"); err != nil {
			return nil, err
		}
	}
	f.profile.Position = f.bench.Position
	return f, nil
}

func (c *command) bench(ctx context.Context, args []string) error {
	f, err := c.parseBench(args)
	if err != nil {
		return err
	}
	facts, err := c.facts()
	if err != nil {
		return err
	}
	build, err := host.ReadProvenance(c.dir)
	if err != nil {
		return err
	}
	return c.withSession(ctx, func(s *host.Session) error {
		check, err := c.runCheck(ctx, s)
		if err != nil {
			return err
		}
		if !check.Passed {
			fmt.Fprint(c.stderr, printable.Text(checkText(check)))
			return checkFailure(check)
		}
		// Before the measurement, which takes longer: what cannot be profiled is refused first.
		var p *host.Profile
		if f.trace != "" || f.report != "" {
			if p, err = s.Profile(ctx, f.profile); err != nil {
				return err
			}
		}
		r, err := c.runBench(ctx, s, f.bench)
		if err != nil {
			return err
		}
		result, text := benchResult{benchSchema, 1, check, r, build, nil}, benchText(check, r)
		// A file that cannot be written does not lose the measurement.
		var failed []error
		if f.trace != "" {
			if result.Trace, err = c.trace(p, r.Device, f.trace); err == nil {
				text += traceText(result.Trace)
			}
			failed = append(failed, err)
		}
		if f.report != "" {
			page := report.Page{Facts: *facts, Build: *build, Command: c.benchCommand(r), Check: check, Bench: r,
				Profile: p}
			if err = outfile.Write(f.report, func(w io.Writer) error { return report.Write(w, page) }); err == nil {
				text += fmt.Sprintf("report     %s\n", f.report)
			}
			failed = append(failed, err)
		}
		return errors.Join(append(failed, c.print(result, text))...)
	})
}

func (c *command) runBench(ctx context.Context, s *host.Session, o host.BenchOptions) (*host.BenchReport, error) {
	line := c.newProgress()
	defer line.Clear()
	return s.Bench(ctx, o, line.Report)
}

// benchCommand is a command line that measures the same again, with nothing left to defaults.
func (c *command) benchCommand(r *host.BenchReport) string {
	s := fmt.Sprintf("%s bench --position %d --steps-per-launch %d --launches %d --warm-up %d", c.launcher.Model.Name,
		r.Position, r.StepsPerLaunch,
		r.Launches, r.WarmUp)
	if c.gpu != 0 {
		s += fmt.Sprintf(" --gpu %d", c.gpu)
	}
	return s
}
