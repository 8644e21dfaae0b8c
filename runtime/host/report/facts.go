package report

import (
	"fmt"
	"strings"

	"amkc/runtime/driver"
	"amkc/runtime/host"
)

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
		fact{"launches", fmt.Sprintf("%s of each kernel, in turn, after %s to warm up", count(b.Launches),
			count(b.WarmUp))},
		fact{"tokens a launch", fmt.Sprintf("%s: %s", count(b.StepsPerLaunch), positions(b))},
		fact{"a time", "the interval between two events around a launch, divided by its tokens"})
}

func byteFacts(p *Page) []fact {
	b, t := p.Bench, p.Facts.Traffic
	table := "the embedding table is not streamed: a step reads one row of it, which is not counted"
	if p.Facts.Model.Tied {
		table = "the embedding table is also the matrix of lm_head, which streams it once"
	}
	mean := float64(b.Position) + float64(b.StepsPerLaunch-1)/2
	return []fact{
		{"weights", fmt.Sprintf("%s B a token: every matrix that is multiplied with, and the norms; %s",
			count(int(t.Weights)), table)},
		{"KV cache", fmt.Sprintf("%s B a token: %s B of K and V of all layers for each of %s earlier positions (the "+
			"mean of the launch)",
			fixed(mean*float64(t.CacheRow), 0), count(int(t.CacheRow)), fixed(mean, 1))},
		{"together", fmt.Sprintf("%s B a token, of decode and ceiling alike; GB are 10⁹ bytes",
			fixed(b.BytesPerToken, 0))},
	}
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
			"vocabulary %s", m.Name, m.Architecture, m.DType,
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
