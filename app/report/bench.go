package report

import (
	"fmt"
	"slices"

	"amkc/runtime/host"
)

// A histogram shows the latencies of all launches of one kernel. Those of a page have bins of one width, so that their
// spreads can be compared by eye, and each begins where its own samples do.
type histogram struct {
	Class, Name string
	Caption     string
	Bars        []histogramBar
	Ticks       []tick
	Band        [2]string // p10, and p90 − p10, in percent of the axis
	Median      string
	Highest     string // launches in the highest bar
	Beyond      string // what lies outside of the axis; empty if nothing does
}

// A histogramBar is in percent of the axis and of the highest bar, from the top.
type histogramBar struct{ X, Width, Y, Height, Title string }

// histogramBins is how many bins the axis has.
const histogramBins = 32

func histograms(b *host.BenchReport) []histogram {
	kinds := []struct {
		class, name string
		samples     []float64
		q           host.Quantiles
	}{{"decode", "Decode", b.Samples.Decode, b.Latency}, {"ceiling", "Ceiling", b.Samples.Ceiling, b.Ceiling}}
	width := 0.0
	for _, k := range kinds {
		lo, hi := axis(k.samples, k.q)
		width = max(width, hi-lo)
	}
	var all []histogram
	for _, k := range kinds {
		if len(k.samples) > 0 {
			all = append(all, histogramOf(k.class, k.name, k.samples, k.q, width))
		}
	}
	return all
}

// axis returns what an axis should show: all samples, but for those that lie so far from the bulk that it would be a
// line. It is never narrower than half a percent of the median.
func axis(samples []float64, q host.Quantiles) (lo, hi float64) {
	if len(samples) == 0 {
		return 0, 0
	}
	spread := max(q.P90-q.P10, q.Median/1000)
	lo, hi = q.P10, q.P90
	for _, s := range samples {
		if s >= q.P10-3*spread && s <= q.P90+3*spread {
			lo, hi = min(lo, s), max(hi, s)
		}
	}
	if least := q.Median / 200; hi-lo < least {
		middle := (lo + hi) / 2
		lo, hi = middle-least/2, middle+least/2
	}
	return lo, hi
}

func histogramOf(class, name string, samples []float64, q host.Quantiles, width float64) histogram {
	lo, hi := axis(samples, q)
	lo = max(0, (lo+hi-width)/2)
	hi = lo + width
	h := histogram{Class: class, Name: name, Ticks: ticks(lo, hi, 6),
		Caption: fmt.Sprintf("median %s µs, p10 %s, p90 %s; %s %s", fixed(q.Median, 2), fixed(q.P10, 2),
			fixed(q.P90, 2), count(len(samples)),
			plural(len(samples), "launch", "launches")),
		Band:   [2]string{percent(q.P10-lo, width), percent(q.P90-q.P10, width)},
		Median: percent(q.Median-lo, width)}
	bins := make([]int, histogramBins)
	var below, above []float64
	for _, s := range samples {
		switch {
		case s < lo:
			below = append(below, s)
		case s > hi:
			above = append(above, s)
		default:
			bins[min(int((s-lo)/width*histogramBins), histogramBins-1)]++
		}
	}
	highest := slices.Max(bins)
	h.Highest = fmt.Sprintf("%s %s", count(highest), plural(highest, "launch", "launches"))
	bin := width / histogramBins
	for i, n := range bins {
		if n > 0 {
			from := lo + float64(i)*bin
			h.Bars = append(h.Bars, histogramBar{percent(float64(i), histogramBins), percent(1, histogramBins),
				percent(float64(highest-n), float64(highest)),
				percent(float64(n), float64(highest)),
				fmt.Sprintf("%s to %s µs: %s", fixed(from, 2), fixed(from+bin, 2), count(n))})
		}
	}
	h.Beyond = beyond(below, above)
	return h
}

// beyond describes the samples outside of the axis.
func beyond(below, above []float64) string {
	text := ""
	if n := len(below); n > 0 {
		text = fmt.Sprintf("%s faster %s not drawn, the fastest %s µs.", count(n),
			plural(n, "launch is", "launches are"), fixed(slices.Min(below), 1))
	}
	if n := len(above); n > 0 {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%s slower %s not drawn, the slowest %s µs.", count(n),
			plural(n, "launch is", "launches are"), fixed(slices.Max(above), 1))
	}
	return text
}

// A roofline compares the decode kernel with what the memory could do: bars from 0 µs, on one scale.
type roofline struct {
	Rows    []rooflineRow
	Ceiling string // where its time lies, in percent of the scale
	HasRead bool   // rows are compared with the plain read
	Cached  string // that the rates are not those of memory; empty if they are
}

type rooflineRow struct {
	Class     string // of the bar
	Name      string
	Meaning   string
	Width     string // percent of the scale
	Time      string // µs per token
	Spread    string // p10 to p90
	Rate      string // GB/s
	OfCeiling string // percent of its speed
	OfRead    string
}

// rooflineOf shows what was measured, from the fastest that memory allows to what decoding takes.
func rooflineOf(b *host.BenchReport) roofline {
	var r roofline
	readTime := 0.0
	if b.ReadGBs > 0 {
		readTime = b.BytesPerToken / b.ReadGBs / 1000
	}
	r.HasRead = readTime > 0 && !b.FitsL2()
	scale := max(readTime, b.Ceiling.Median, b.Latency.Median, b.Drain.Median)
	add := func(class, name, meaning string, q host.Quantiles, time float64, streams bool) {
		row := rooflineRow{Class: class, Name: name, Meaning: meaning, Width: percent(time, scale),
			Time: fixed(time, 1), Spread: none, Rate: none,
			OfCeiling: none, OfRead: none}
		if q.Median > 0 {
			row.Spread = fixed(q.P10, 1) + " to " + fixed(q.P90, 1)
		}
		if streams {
			row.Rate = fixed(b.BytesPerToken/time/1000, 0)
			row.OfCeiling = fixed(100*b.Ceiling.Median/time, 1)
			if r.HasRead {
				row.OfRead = fixed(100*readTime/time, 1)
			}
		}
		r.Rows = append(r.Rows, row)
	}
	if readTime > 0 {
		add("read", "Plain read", "as many bytes at the rate of a kernel that only reads", host.Quantiles{}, readTime,
			true)
		if !r.HasRead {
			r.Rows[0].OfCeiling = none // what a cache gives to loads is not a share of what the ring takes from one
		}
	}
	add("ceiling", "Ceiling", "the same bytes through the same ring, waiting for no activations", b.Ceiling,
		b.Ceiling.Median, true)
	add("decode", "Decode", "full steps: embedding, all layers, lm_head, argmax, token fed back", b.Latency,
		b.Latency.Median, true)
	if b.Drain.Median > 0 {
		add("drain", "Drain", "the decode kernel without the weight stream: products and exchanges alone", b.Drain,
			b.Drain.Median, false)
	}
	r.Ceiling = percent(b.Ceiling.Median, scale)
	if b.FitsL2() {
		r.Cached = "All bytes of a token fit the L2 of " + fixed(float64(b.Machine.L2Bytes)/1e6, 1) +
			" MB: the memory is hardly touched, and these are rates of caches, the plain read’s of those " +
			"nearest to the SMs."
	}
	return r
}
