package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"amkc/app/chrometrace"
	"amkc/app/report"
	"amkc/runtime/host"
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
	set.IntVar(&f.bench.StepsPerLaunch, "steps-per-launch", 0, "decode `N` tokens per launch (default 16)")
	set.IntVar(&f.bench.Launches, "launches", 0, "measure `N` launches of each kernel (default 100)")
	set.IntVar(&f.bench.WarmUp, "warm-up", 0, "run `N` launches of each kernel before that (default 10)")
	set.IntVar(&f.bench.Prompt, "prompt", 0, "measure the time from a prompt of `N` tokens to the first one after it")
	set.BoolVar(&f.bench.Drawn, "drawn", false, "measure steps that draw their tokens too")
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
	if r.Prompt != nil {
		s += fmt.Sprintf(" --prompt %d", r.Prompt.Tokens)
	}
	if r.Drawn != nil {
		s += " --drawn"
	}
	if c.gpu != 0 {
		s += fmt.Sprintf(" --gpu %d", c.gpu)
	}
	return s
}

// benchText is what bench prints for people.
func benchText(check *host.CheckReport, r *host.BenchReport) string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", label, fmt.Sprintf(format, args...))
	}
	most := 0.0
	for _, s := range check.Spans {
		most = max(most, s.Max)
	}
	line("check", "passed in this run: largest logit error %.2e (allowed %.0e)", most, check.Tolerance.Max)
	line("device", "%s", deviceText(&r.Machine))
	line("clocks", "%s", clocksText(&r.Machine, r.Machine.Clocks))
	line("context", "positions %d to %d, %d tokens per launch, %d launches", r.Position, r.Position+r.StepsPerLaunch-1,
		r.StepsPerLaunch, r.Launches)
	line("latency", "%.1f µs per token (p10 %.1f, p90 %.1f)", r.Latency.Median, r.Latency.P10, r.Latency.P90)
	line("ceiling", "%.1f µs (p10 %.1f, p90 %.1f): the same bytes streamed in the same run, no dependencies",
		r.Ceiling.Median, r.Ceiling.P10, r.Ceiling.P90)
	drawn := func(label string, q *host.Quantiles, of host.Quantiles, how string) {
		if q != nil {
			line(label, "%.1f µs (p10 %.1f, p90 %.1f) where tokens are drawn %s: %+.2f %%", q.Median, q.P10, q.P90, how,
				100*(q.Median/of.Median-1))
		}
	}
	drawn("drawn", r.Drawn, r.Latency, "with a temperature")
	for i := range r.Chosen {
		drawn("", &r.Chosen[i].Latency, r.Latency, "with a temperature and "+r.Chosen[i].How)
	}
	if r.Drain.Median > 0 {
		line("drain", "%.1f µs (p10 %.1f, p90 %.1f): decoding with the stream taken away", r.Drain.Median, r.Drain.P10,
			r.Drain.P90)
	}
	line("traffic", "%.1f MB per token, %.0f GB/s; ceiling %.0f GB/s, plain read %.0f GB/s", r.BytesPerToken/1e6, r.GBs,
		r.CeilingGBs, r.ReadGBs)
	if r.FitsL2() {
		line("", "all of that fits the L2, which these rates are of: the memory is hardly touched")
	}
	line("share", "%.1f %% of the ceiling, %.1f %% of the plain read", 100*r.Share, 100*r.GBs/r.ReadGBs)
	for _, p := range r.Passes {
		line("pass", "%.1f µs per pass of %v (p10 %.1f, p90 %.1f), %.2f of a token's; ceiling %.1f µs",
			p.Latency.Median, p.Pass, p.Latency.P10, p.Latency.P90, p.Latency.Median/r.Latency.Median, p.Ceiling.Median)
		drawn("", p.Drawn, p.Latency, "with a temperature")
	}
	if p := r.Prompt; p != nil {
		line("prompt", "%.2f ms from %d tokens to the first after them (p10 %.2f, p90 %.2f, %d times)",
			p.FirstToken.Median/1000, p.Tokens, p.FirstToken.P10/1000, p.FirstToken.P90/1000, p.Times)
		if p.Clocks != nil {
			line("", "meanwhile %s", clocksText(&r.Machine, p.Clocks))
		}
	}
	return b.String()
}

func deviceText(m *host.Machine) string {
	s := m.GPU
	if m.Driver != "" {
		s += ", driver " + m.Driver
	}
	return s + ", CUDA " + m.CUDA
}

// clocksText says how fast the GPU ran, and what kept it from running faster.
func clocksText(m *host.Machine, c *host.Clocks) string {
	if c == nil {
		return "not recorded: " + m.ClocksAbsent
	}
	s := fmt.Sprintf("SM %s, memory %s", clockText(c.SM, m.MaxSMClockMHz), clockText(c.Memory, m.MaxMemoryClockMHz))
	if c.PowerW.Max > 0 {
		s += fmt.Sprintf(", %.0f W", c.PowerW.Max)
	}
	if c.Temperature.Max > 0 {
		s += fmt.Sprintf(", %.0f °C", c.Temperature.Max)
	}
	switch {
	case c.LimitedBy == nil:
		return s + "; the driver does not say what limits them"
	case len(c.LimitedBy) == 0:
		return s + "; limited by nothing"
	}
	return s + "; limited by " + strings.Join(c.LimitedBy, ", ")
}

func clockText(r host.Range, most int) string {
	s := fmt.Sprintf("%.0f", r.Max)
	if r.Min != r.Max {
		s = fmt.Sprintf("%.0f to %.0f", r.Min, r.Max)
	}
	if most > 0 {
		s += fmt.Sprintf(" of %d", most)
	}
	return s + " MHz"
}

// traceResult is what bench prints of a trace as JSON.
type traceResult struct {
	File     string  `json:"file"`
	Position int     `json:"position"` // of the first step in it
	Steps    int     `json:"steps"`
	Spans    int     `json:"spans"`
	Dropped  int     `json:"dropped"`    // spans that did not fit
	Latency  float64 `json:"latency_us"` // of a token while spans are recorded, median
	Plain    float64 `json:"plain_us"`   // of a token of the decode kernel in the same run, median
}

// trace writes a profile to a file.
func (c *command) trace(p *host.Profile, device, path string) (*traceResult, error) {
	about := map[string]any{"model": c.launcher.Model.Name, "device": device, "position": p.Position,
		"latency_us": p.Latency, "plain_us": p.Plain, "dropped": p.Dropped}
	if err := outfile.Write(path, func(w io.Writer) error { return drawProfile(w, p, about) }); err != nil {
		return nil, err
	}
	return &traceResult{path, p.Position, p.Steps, len(p.Spans), p.Dropped, p.Latency, p.Plain}, nil
}

// drawProfile puts consumers above producers, SM by SM.
func drawProfile(w io.Writer, p *host.Profile, about any) error {
	t := chrometrace.NewWriter(w)
	processes := map[string]int{}
	for i, role := range []string{"consumer", "producer"} {
		processes[role] = i + 1
		t.Process(i+1, role+"s")
		for sm := range p.SMs {
			t.Thread(chrometrace.Track{Process: i + 1, Thread: sm + 1}, fmt.Sprintf("SM %d %s", sm, role))
		}
	}
	for _, s := range p.Spans {
		t.Span(chrometrace.Span{Track: chrometrace.Track{Process: processes[s.Role], Thread: s.SM + 1}, Name: s.Stage,
			Category: s.Kind,
			Start:    s.Start, End: s.End, Args: struct {
				Step int    `json:"step"`
				Kind string `json:"kind"`
			}{s.Step, s.Kind}})
	}
	return t.Close(about)
}

func traceText(r *traceResult) string {
	steps := fmt.Sprintf("the step at position %d", r.Position)
	if r.Steps > 1 {
		steps = fmt.Sprintf("the steps at positions %d to %d", r.Position, r.Position+r.Steps-1)
	}
	text := fmt.Sprintf("trace      %s: %s, %d spans; https://ui.perfetto.dev opens it\n", r.File, steps, r.Spans)
	if r.Dropped > 0 {
		text += fmt.Sprintf("           INCOMPLETE: %d spans did not fit the buffer\n", r.Dropped)
	}
	return text + fmt.Sprintf("recording  %.1f µs per token with it and %.1f without, in the same run: it costs "+
		"%.1f %%\n",
		r.Latency, r.Plain, 100*(r.Latency/r.Plain-1))
}
