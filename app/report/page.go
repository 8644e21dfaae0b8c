// Package report renders a measurement as one self-contained HTML page: no network, no script, no font. Charts are
// inline SVG without text, which stretches to any width, and their labels are HTML. The same measurement gives the same
// bytes: the page has no time, host or path.
//
// The package is copied into every emitted launcher. It imports the standard library, runtime/host and runtime/driver,
// and must not import any other package of amkc; it measures nothing, and computes only the derived numbers on the
// page.
package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"amkc/runtime/driver"
	"amkc/runtime/host"
)

// A Page is the data of the page.
type Page struct {
	Facts   host.Facts
	Build   host.Provenance
	Command string // repeats the measurement; may be empty
	Check   *host.CheckReport
	Bench   *host.BenchReport
	Profile *host.Profile // nil: none, which the page says
}

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// errNothing refuses a page about a measurement that was not made.
var errNothing = errors.New("there is no measurement to show")

// Write writes the page. Without a passed check the error is [host.ErrNotChecked].
func Write(w io.Writer, p Page) error {
	if p.Check == nil || !p.Check.Passed {
		return host.ErrNotChecked
	}
	if p.Bench == nil {
		return errNothing
	}
	return page.Execute(w, viewOf(&p))
}

// A view is what the template prints: texts and coordinates, nothing to compute.
type view struct {
	Title     string
	Model     string
	Where     string // dtype, GPU, positions
	Headline  []figure
	Verdict   string
	Roofline  roofline
	Latencies []histogram
	Stages    *breakdown // nil without a profile
	Timelines []timeline
	Profile   string // what the profile is worth, or that there is none
	Facts     []factGroup
}

// A figure is a number to be read first.
type figure struct{ Value, Unit, Note string }

func viewOf(p *Page) *view {
	m, b := &p.Facts.Model, p.Bench
	v := &view{
		Title:     fmt.Sprintf("%s: %s µs per token on %s", m.Name, fixed(b.Latency.Median, 1), b.Device),
		Model:     m.Name,
		Where:     strings.Join([]string{m.Types(), b.Device, positions(b), "one sequence"}, " · "),
		Headline:  headline(b),
		Verdict:   verdict(p.Check),
		Roofline:  rooflineOf(b),
		Latencies: histograms(b),
		Facts:     facts(p),
	}
	if p.Profile == nil {
		v.Profile = "No profile was taken in this run."
		return v
	}
	v.Profile = profileNote(p.Profile)
	if len(p.Profile.Spans) > 0 {
		ix := indexOf(p.Profile)
		v.Stages, v.Timelines = breakdownOf(ix), timelines(ix)
	}
	return v
}

func positions(b *host.BenchReport) string {
	if b.StepsPerLaunch <= 1 {
		return fmt.Sprintf("position %s", count(b.Position))
	}
	return fmt.Sprintf("positions %s to %s", count(b.Position), count(b.Position+b.StepsPerLaunch-1))
}

func headline(b *host.BenchReport) []figure {
	figures := []figure{
		{fixed(b.Latency.Median, 1), "µs per token",
			fmt.Sprintf("median of %s launches; p10 %s, p90 %s", count(b.Launches),
				fixed(b.Latency.P10, 1), fixed(b.Latency.P90, 1))},
		{fixed(100*b.Share, 1), "% of the ceiling",
			fmt.Sprintf("which takes %s µs in the same run", fixed(b.Ceiling.Median, 1))},
		{fixed(b.GBs, 0), "GB/s", fmt.Sprintf("%s MB per token", fixed(b.BytesPerToken/1e6, 1))},
	}
	if b.ReadGBs > 0 && !b.FitsL2() {
		figures[2].Note += fmt.Sprintf("; %s %% of a plain read", fixed(100*b.GBs/b.ReadGBs, 1))
	}
	return figures
}

// verdict says that the kernel was compared in the same run, and how well it agreed.
func verdict(c *host.CheckReport) string {
	var rms, most float64
	compared := 0
	for _, s := range c.Spans {
		rms, most = max(rms, s.RMS), max(most, s.Max)
		compared += s.Last - s.First + 1
	}
	return fmt.Sprintf("Check passed in the same run: the logits of %s positions agree with those of the build’s "+
		"plain kernels. The largest error is "+
		"%.2g of the largest logit (%.2g is allowed), and the RMS error %.2g of the RMS of the logits (%.2g).",
		count(compared), most, c.Tolerance.Max, rms, c.Tolerance.RMS)
}

// profileNote says what the instruments cost and lost.
func profileNote(p *host.Profile) string {
	s := fmt.Sprintf("From one launch of the instrumented kernel: %s %s from position %s on.", count(p.Steps),
		plural(p.Steps, "step", "steps"), count(p.Position))
	if p.Plain > 0 && p.Latency > 0 {
		s += fmt.Sprintf(" Launches of so few steps take %s µs per token with the instruments and %s µs without, "+
			"interleaved: they cost %s %%, so read proportions here, and "+
			"latencies above.", fixed(p.Latency, 1), fixed(p.Plain, 1), fixed(100*(p.Latency/p.Plain-1), 1))
	}
	if p.Dropped > 0 {
		s += fmt.Sprintf(" %s %s did not fit the buffer and are missing below: sums are too low by them.",
			count(p.Dropped), plural(p.Dropped, "span", "spans"))
	}
	if len(p.Spans) == 0 {
		s += " It recorded no spans."
	}
	return s
}

// A factGroup is what a reader needs to repeat the measurement, or to doubt it.
type factGroup struct {
	Title string
	Facts []fact
}

type fact struct{ Name, Value string }

func facts(p *Page) []factGroup {
	groups := []factGroup{{"Machine", machineFacts(&p.Bench.Machine)}, {"Run", runFacts(p)}, {"Bytes", byteFacts(p)},
		{"Build", buildFacts(p)}}
	if len(p.Build.Knobs) > 0 {
		knobs := factGroup{Title: "Knobs"}
		for _, k := range p.Build.Knobs {
			knobs.Facts = append(knobs.Facts, fact{k.Name, k.Value})
		}
		groups = append(groups, knobs)
	}
	return groups
}

func machineFacts(m *host.Machine) []fact {
	all := []fact{
		{"GPU", fmt.Sprintf("%s (%s, %s SMs, %s GB, L2 %s MB)", m.GPU, m.Arch, count(m.SMs),
			fixed(float64(m.MemoryBytes)/1e9, 1),
			fixed(float64(m.L2Bytes)/1e6, 1))},
		{"driver", told(m.Driver, "version not told") + ", CUDA up to " + m.CUDA},
		{"clocks, maximum", fmt.Sprintf("SM %s, memory %s", megahertz(m.MaxSMClockMHz),
			megahertz(m.MaxMemoryClockMHz))},
	}
	if m.Clocks == nil {
		all = append(all, fact{"clocks, measured", "not read: " + m.ClocksAbsent})
	} else {
		c := m.Clocks
		all = append(all,
			fact{"clocks, measured", fmt.Sprintf("SM %s, memory %s; %s %s while the kernels ran", span(c.SM, "MHz"),
				span(c.Memory, "MHz"), count(c.Samples),
				plural(c.Samples, "sample", "samples"))},
			fact{"held back by", heldBack(c)},
			fact{"power", span(c.PowerW, "W") + limit(m.PowerLimitW)},
			fact{"temperature", span(c.Temperature, "°C")})
	}
	return append(all, fact{"ECC", told(m.ECC, "not told")})
}

func told(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func megahertz(mhz int) string {
	if mhz == 0 {
		return "not told"
	}
	return count(mhz) + " MHz"
}

// span prints a range of what was seen.
func span(r host.Range, unit string) string {
	switch {
	case r.Max == 0:
		return "not told"
	case fixed(r.Min, 0) == fixed(r.Max, 0):
		return fixed(r.Max, 0) + " " + unit
	}
	return fixed(r.Min, 0) + " to " + fixed(r.Max, 0) + " " + unit
}

func limit(watts float64) string {
	if watts == 0 {
		return ""
	}
	return fmt.Sprintf(" of %s W allowed", fixed(watts, 0))
}

func heldBack(c *host.Clocks) string {
	switch {
	case c.LimitedBy == nil:
		return "not told"
	case len(c.LimitedBy) == 0:
		return "nothing"
	}
	return strings.Join(c.LimitedBy, ", ")
}

func runFacts(p *Page) []fact {
	b := p.Bench
	all := []fact{}
	if p.Command != "" {
		all = append(all, fact{"command", p.Command})
	}
	return append(all,
		fact{"launches", fmt.Sprintf("%s of each kernel, interleaved, after %s to warm up", count(b.Launches),
			count(b.WarmUp))},
		fact{"tokens per launch", fmt.Sprintf("%s: %s", count(b.StepsPerLaunch), positions(b))},
		fact{"a time", "the interval between two events around a launch, divided by its tokens"})
}

func byteFacts(p *Page) []fact {
	b, t := p.Bench, p.Facts.Traffic
	table := "the embedding table is not streamed: a step reads one row of it, which is not counted"
	if p.Facts.Model.Tied {
		table = "the embedding table is also the matrix of lm_head, which streams it once"
	}
	facts := []fact{
		{"weights", fmt.Sprintf("%s B per token: every matrix that is multiplied with, and the norms; %s",
			count(int(t.Weights)), table)},
	}
	for _, rows := range t.Cache {
		one := host.Traffic{Cache: []host.CacheRows{rows}}
		bytes := one.CacheBytes(b.Position, b.StepsPerLaunch)
		layers := "all layers"
		if rows.Window > 0 {
			layers = fmt.Sprintf("layers that see %s positions", count(rows.Window))
		}
		facts = append(facts, fact{"KV cache", fmt.Sprintf("%s B per token: %s B of K and V of %s for each of %s "+
			"earlier positions (the mean of the launch)", fixed(bytes, 0), count(int(rows.Bytes)), layers,
			fixed(bytes/float64(max(1, rows.Bytes)), 1))})
	}
	return append(facts, fact{"together", fmt.Sprintf("%s B per token, of decode and ceiling alike; GB are 10⁹ bytes",
		fixed(b.BytesPerToken, 0))})
}

func buildFacts(p *Page) []fact {
	m, t := p.Facts.Model, p.Facts.Target
	cuda := "not told"
	if p.Facts.CUDA > 0 {
		cuda = driver.FormatVersion(p.Facts.CUDA)
	}
	weights := told(p.Build.Weights, "not told")
	if p.Build.RandomSeed != nil {
		weights = fmt.Sprintf("random, seed %d; SHA-256 %s", *p.Build.RandomSeed, weights)
	} else {
		weights = "SHA-256 " + weights
	}
	return []fact{
		{"model", fmt.Sprintf("%s (%s, %s): %s layers, hidden %s, intermediate %s, %s heads of %s, %s kv heads, "+
			"vocabulary %s", m.Name, m.Architecture, m.Types(),
			count(m.Layers), count(m.Hidden), count(m.Intermediate), count(m.Heads), count(m.HeadDim), count(m.KVHeads),
			count(m.Vocab))},
		{"compiled for", fmt.Sprintf("%s (%s, %s SMs), positions 0 to %s", t.Name, t.Arch, count(t.SMs),
			count(m.MaxSeq-1))},
		{"weights", weights},
		{"program", "SHA-256 " + told(p.Build.Program, "not told")},
		{"amkc", told(p.Build.AMKC, "not told")},
		{"nvcc", told(p.Build.NVCC, "not told") + "; CUDA of the kernels: " + cuda},
	}
}
