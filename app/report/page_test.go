package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/report"
	"amkc/runtime/host"
)

var update = flag.Bool("update", false, "write golden files")

func render(t *testing.T, p report.Page) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, p))
	return b.String()
}

// The golden page is worth a look in a browser after -update.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "llama-3.2-1b.html")
	got := render(t, measured(synthetic(132, 16, 2)))
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.True(t, string(want) == got, "the page is not %s; look at what -update makes of it", golden)
	require.Less(t, len(got), 1<<20)
}

func TestSameBytesEveryTime(t *testing.T) {
	p := measured(synthetic(132, 16, 2))
	require.Equal(t, render(t, p), render(t, p))
}

// The page is one file: nothing on it is fetched, and nothing runs.
func TestSelfContained(t *testing.T) {
	out := render(t, measured(synthetic(132, 16, 2)))
	for _, word := range []string{"http:", "https:", "//", "<script", "<link", "<img", "url(", "@import", "src="} {
		require.NotContains(t, out, word)
	}
	require.NotContains(t, out, "ZgotmplZ", "the template refused a value")
	wellFormed(t, out)
}

// wellFormed checks that every element of the page is closed.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "br"}, xml.HTMLEntity
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestHeadline(t *testing.T) {
	p := measured(nil)
	b := p.Bench
	b.Latency, b.Ceiling = host.Quantiles{Median: 3370.64, P10: 3368.2, P90: 3375},
		host.Quantiles{Median: 3254.73, P10: 3254, P90: 3256}
	b.Share, b.GBs, b.ReadGBs = 3254.73/3370.64, 4475.2, 4560
	out := render(t, p)
	require.Contains(t, out, "<title>llama-3.2-1b: 3,370.6 µs per token on NVIDIA H200</title>")
	require.Contains(t, out, "<b>3,370.6</b><span>µs per token</span><small>median of 100 launches; p10 3,368.2, p90 "+
		"3,375.0</small>")
	require.Contains(t, out, "<b>96.6</b><span>% of the ceiling</span><small>which takes 3,254.7 µs in the "+
		"same run</small>")
	require.Contains(t, out, "<small>2,476.1 MB per token; 98.1 % of a plain read</small>")
	require.Contains(t, out, "the logits of 40 positions agree with those of the build’s plain kernels. The largest "+
		"error is 0.031 of the largest logit (0.1 is allowed), "+
		"and the RMS error 0.022 of the RMS of the logits (0.06).")
	require.Contains(t, out, "BF16 · NVIDIA H200 · positions 128 to 143 · one sequence")
}

func TestNoLatencyWithoutACheck(t *testing.T) {
	p := measured(nil)
	p.Check = &host.CheckReport{Failures: []string{"differ"}}
	require.ErrorIs(t, report.Write(io.Discard, p), host.ErrNotChecked)
	p.Check = nil
	require.ErrorIs(t, report.Write(io.Discard, p), host.ErrNotChecked)
	p = measured(nil)
	p.Bench = nil
	require.ErrorContains(t, report.Write(io.Discard, p), "no measurement")
}

func TestWithoutAProfile(t *testing.T) {
	out := render(t, measured(nil))
	require.Contains(t, out, "No profile was taken in this run.")
	require.NotContains(t, out, "What every SM does")
	require.NotContains(t, out, `class="stages"`)
	wellFormed(t, out)
}

// What was not measured is left out, and not shown as zero.
func TestWithoutPlainReadAndDrain(t *testing.T) {
	p := measured(nil)
	p.Bench.ReadGBs, p.Bench.Drain = 0, host.Quantiles{}
	out := render(t, p)
	for _, text := range []string{"Plain read", "plain read", "Drain"} {
		require.NotContains(t, out, text)
	}
	require.NotContains(t, out, "Inf")
	wellFormed(t, out)
}

// A small model is measured against its cache, and the page says so.
func TestModelInL2(t *testing.T) {
	p := measured(nil)
	require.NotContains(t, render(t, p), "L2 of")
	p.Bench.BytesPerToken = 9e6
	out := render(t, p)
	require.Contains(t, out, "All bytes of a token fit the L2 of 62.9 MB: the memory is hardly touched, and these "+
		"are rates of caches")
	require.NotContains(t, out, "plain read</small>", "shares of a cache’s rate mean nothing")
	require.NotContains(t, out, "% of plain read")
}

func TestSingleSample(t *testing.T) {
	p := measured(nil)
	b := p.Bench
	b.Launches, b.StepsPerLaunch = 1, 1
	b.Samples = host.Samples{Decode: []float64{594.5}, Ceiling: []float64{547.25}}
	b.Latency, b.Ceiling = host.Quantiles{Median: 594.5, P10: 594.5, P90: 594.5},
		host.Quantiles{Median: 547.25, P10: 547.25, P90: 547.25}
	out := render(t, p)
	require.Contains(t, out, "median 594.50 µs, p10 594.50, p90 594.50; 1 launch</p>")
	require.Contains(t, out, `<span class="highest">1 launch</span>`)
	require.Contains(t, out, "· position 128 ·")
	require.Equal(t, 2, strings.Count(out, `<rect class="band" x="50" width="0"`), "the one sample is in the middle")
	require.NotContains(t, out, "NaN")
	require.NotContains(t, out, "not drawn")
}

func TestAllSamplesAlike(t *testing.T) {
	p := measured(nil)
	p.Bench.Samples = host.Samples{Decode: slices.Repeat([]float64{200}, 20),
		Ceiling: slices.Repeat([]float64{180}, 20)}
	p.Bench.Latency, p.Bench.Ceiling = host.Quantiles{Median: 200, P10: 200, P90: 200},
		host.Quantiles{Median: 180, P10: 180, P90: 180}
	out := render(t, p)
	require.Equal(t, 2, strings.Count(out, `<span class="highest">20 launches</span>`))
	require.NotContains(t, out, "NaN")
}

// Far outliers are named instead of squeezing everything else into a line.
func TestOutliersAreNamed(t *testing.T) {
	p := measured(nil)
	p.Bench.Samples.Decode[3], p.Bench.Samples.Decode[5], p.Bench.Samples.Ceiling[9] = 2000, 900, 400
	out := render(t, p)
	require.Contains(t, out, "3 slower launches are not drawn, the slowest 2,000.0 µs.")
	require.Contains(t, out, "1 faster launch is not drawn, the fastest 400.0 µs.")
}

func TestClocks(t *testing.T) {
	p := measured(nil)
	out := render(t, p)
	require.Contains(t, out, "SM 1,965 to 1,980 MHz, memory 3,201 MHz; 13 samples while the kernels ran")
	require.Contains(t, out, "<dt>held back by</dt><dd>nothing</dd>")
	m := &p.Bench.Machine
	m.Clocks.LimitedBy = nil
	require.Contains(t, render(t, p), "<dt>held back by</dt><dd>not told</dd>")
	m.Clocks.LimitedBy = []string{"sw_power_cap", "sw_thermal_slowdown"}
	require.Contains(t, render(t, p), "<dd>sw_power_cap, sw_thermal_slowdown</dd>")
	m.Clocks, m.ClocksAbsent, m.Driver, m.MaxMemoryClockMHz = nil, "no NVML & no luck", "", 0
	out = render(t, p)
	require.Contains(t, out, "<dd>not read: no NVML &amp; no luck</dd>")
	require.Contains(t, out, "SM 1,980 MHz, memory not told")
	require.Contains(t, out, "<dd>version not told, CUDA up to 13.0</dd>")
}

func TestBytes(t *testing.T) {
	p := measured(nil)
	out := render(t, p)
	require.Contains(t, out, "2,471,628,800 B per token: every matrix that is multiplied with, and the norms; the "+
		"embedding table is also the matrix of lm_head")
	require.Contains(t, out, "4,440,064 B per token: 32,768 B of K and V of all layers for each of 135.5 "+
		"earlier positions")
	p.Facts.Model.Tied = false
	require.Contains(t, render(t, p), "the embedding table is not streamed: a step reads one row of it")
}
