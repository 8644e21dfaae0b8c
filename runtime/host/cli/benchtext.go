package cli

import (
	"fmt"
	"strings"

	"amkc/runtime/host"
)

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
	line("clocks", "%s", clocksText(&r.Machine))
	line("context", "positions %d to %d, %d tokens a launch, %d launches", r.Position, r.Position+r.StepsPerLaunch-1,
		r.StepsPerLaunch, r.Launches)
	line("latency", "%.1f µs a token (p10 %.1f, p90 %.1f)", r.Latency.Median, r.Latency.P10, r.Latency.P90)
	line("ceiling", "%.1f µs (p10 %.1f, p90 %.1f): the same bytes streamed in the same run, no dependencies",
		r.Ceiling.Median, r.Ceiling.P10, r.Ceiling.P90)
	line("drain", "%.1f µs (p10 %.1f, p90 %.1f): decoding with the stream taken away", r.Drain.Median, r.Drain.P10,
		r.Drain.P90)
	line("traffic", "%.1f MB a token, %.0f GB/s; ceiling %.0f GB/s, plain read %.0f GB/s", r.BytesPerToken/1e6, r.GBs,
		r.CeilingGBs, r.ReadGBs)
	if r.FitsL2() {
		line("", "all of that fits the L2, which these rates are of: the memory is hardly touched")
	}
	line("share", "%.1f %% of the ceiling, %.1f %% of the plain read", 100*r.Share, 100*r.GBs/r.ReadGBs)
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
func clocksText(m *host.Machine) string {
	c := m.Clocks
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
