package report

import "amkc/runtime/host"

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
	Time      string // µs a token
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
			r.Rows[0].OfCeiling = none // what a cache gives to loads is no share of what the ring takes from one
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
