package report_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// small is a profile that can be added up by hand: 2 SMs, 2 layers, one step of 20 µs.
func small() *host.Profile {
	p := &host.Profile{Position: 7, Steps: 1, SMs: 2, Latency: 22, Plain: 20}
	add := func(sm int, role, kind, stage string, from, to float64) {
		p.Spans = append(p.Spans, host.Span{SM: sm, Role: role, Kind: kind, Stage: stage, Start: from, End: to})
	}
	for sm := range 2 {
		for l := range 2 {
			at := float64(10 * l)
			name := fmt.Sprintf("L%02d.", l)
			add(sm, "consumer", "exchange wait", name+"qkv", at, at+1)
			add(sm, "consumer", "compute", name+"qkv", at+1, at+4)
			add(sm, "consumer", "signal", name+"qkv", at+4, at+4.5)
			if sm == 0 {
				add(sm, "consumer", "compute", name+"mlp<0>", at+5, at+10) // a kind nobody knows, on one SM
			}
		}
		add(sm, "producer", "slot wait", "L01.qkv", 2, 6)
	}
	return p
}

func row(t *testing.T, page, name string) []string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<span class="name">`+name+`</span> `)
	require.True(t, found, name)
	rest, _, _ = strings.Cut(rest, "</tr>")
	var cells []string
	for _, m := range regexp.MustCompile(`<td>(?:<b>)?([^<]*)(?:</b>)?</td>`).FindAllStringSubmatch(rest, -1) {
		cells = append(cells, m[1])
	}
	return cells
}

func TestBreakdownAddsUp(t *testing.T) {
	out := render(t, measured(small()))
	// exchange wait, compute, signal, sum each time; µs and percent of a token; producer's slot and step wait
	require.Equal(t, []string{"1.00", "3.00", "0.50", "4.50", "9.0", "45.0", "4.0", "0.0"}, row(t, out, "qkv"))
	require.Equal(t, []string{"0.00", "2.50", "0.00", "2.50", "5.0", "25.0", "0.0", "0.0"}, row(t, out, "mlp&lt;0&gt;"),
		"a mean over both SMs")
	require.Contains(t, out, "<td>6.0</td><td>30.0</td>", "SM 1 is idle after it is done")
	require.Contains(t, out, "<td>20.0</td><td>100.0</td>", "a token")
	require.Contains(t, out, "<title>qkv, compute: 6.0 µs per token</title>")
	require.Contains(t, out, "1 step from position 7 on. Launches of so few steps take 22.0 µs per token with the "+
		"instruments and 20.0 µs without, interleaved: they cost 10.0 %")
}

// SMs without work in a stage are at the next one before others have begun: what comes first is told by who is done
// last.
func TestStagesAreInTheOrderOfALayer(t *testing.T) {
	p := &host.Profile{Steps: 1, SMs: 2}
	add := func(sm int, kind, stage string, from, to float64) {
		p.Spans = append(p.Spans, host.Span{SM: sm, Role: "consumer", Kind: kind, Stage: stage, Start: from, End: to})
	}
	add(0, "compute", "embed", 0, 1)
	add(0, "exchange wait", "L00.o", 1, 6)
	add(0, "compute", "L00.o", 6, 7)
	add(1, "compute", "embed", 0, 2)
	add(1, "compute", "L00.qkv", 2, 3)
	add(1, "compute", "L00.attn", 3, 5)
	add(1, "exchange wait", "L00.o", 5, 5.5)
	add(1, "compute", "L00.o", 5.5, 7.5)
	add(0, "compute", "L01.qkv", 7, 9)
	add(1, "compute", "L01.qkv", 7.5, 9)
	p.Spans = append(p.Spans, host.Span{Role: "producer", Kind: "slot wait", Stage: "L00.gate_up", Start: 0, End: 1})
	_, list, _ := strings.Cut(render(t, measured(p)), `<table class="stages">`)
	var order []string
	for _, m := range regexp.MustCompile(`<span class="name">([^<]*)</span> `).FindAllStringSubmatch(list, -1) {
		order = append(order, m[1])
	}
	require.Equal(t, []string{"embed", "qkv", "attn", "o", "gate_up"}, order)
}

// Names of an axis do not lie upon one another: a stage of its own is not named where its neighbour is too near.
func TestMarksDoNotOverlap(t *testing.T) {
	out := render(t, measured(synthetic(4, 16, 1)))
	_, overview, _ := strings.Cut(out, "<h3>One step</h3>")
	_, overview, _ = strings.Cut(overview, `<div class="marks">`)
	overview, _, _ = strings.Cut(overview, "</div>")
	require.NotContains(t, overview, ">embed<", "layer 0 begins at once")
	for _, name := range []string{">L00<", ">L02<", ">L14<"} {
		require.Contains(t, overview, name)
	}
	require.Equal(t, 1, strings.Count(overview, ">lm_head<"), "it comes before any layer that is too near")
}

// Of the whole step, publishing is drawn as part of what it ends: a drawing so coarse would have holes in its place.
func TestTheWholeStepHasNoHoles(t *testing.T) {
	out := render(t, measured(synthetic(4, 16, 1)))
	_, overview, _ := strings.Cut(out, "<h3>One step</h3>")
	overview, detail, _ := strings.Cut(overview, "<h3>Layers")
	require.NotContains(t, overview, `class="signal"`)
	require.Contains(t, overview, "publishing is in the stage’s colour")
	require.Contains(t, detail, `class="signal"`)
}

// A step of few layers is drawn once, in detail.
func TestTimelineOfASmallModel(t *testing.T) {
	out := render(t, measured(small()))
	require.Equal(t, 1, strings.Count(out, `class="plot detail"`))
	require.NotContains(t, out, `class="plot "`)
	require.Contains(t, out, "step 1 of 1, position 7;")
	// 6000 units for 20 µs. Row 0 at y 2 and row 1 at y 8: computing from 1 to 4 µs and from 11 to 14.
	require.Contains(t, out, `<path class="c1" d="m300 2h900m2100 0h900m-3900 6h900m2100 0h900"><title>qkv, `+
		`compute</title>`)
	require.Contains(t, out, `<path class="slot producer" d="m600 5h1200m-1200 6h1200"><title>producer, slot `+
		`wait</title>`)
	require.Contains(t, out, `<span class="tick" style="left:50%">L01</span>`)
}

// Beyond a few layers there is the whole step, and the middle of it closer.
func TestTimelineOfManyLayers(t *testing.T) {
	out := render(t, measured(synthetic(132, 16, 2)))
	require.Contains(t, out, "<h3>One step</h3>")
	require.Contains(t, out, "<h3>Layers 6 to 9</h3>")
	require.Contains(t, out, "step 2 of 2, position 129;", "the last step, in which the pipeline is full")
	require.Contains(t, out, `>SM 128</span>`)
	require.NotContains(t, out, "SM is shown")
}

// A page about 80 layers is no larger than a browser likes.
func TestTimelineOfVeryManyLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	out := render(t, measured(synthetic(132, 80, 2)))
	require.Contains(t, out, "one SM in 2 is shown")
	require.Less(t, len(out), 2<<20)
}

func TestWithoutProducerSpans(t *testing.T) {
	p := synthetic(132, 4, 1)
	p.Spans = slices.DeleteFunc(p.Spans, func(s host.Span) bool { return s.Role == "producer" })
	out := render(t, measured(p))
	require.NotContains(t, out, `class="slot`)
	require.NotContains(t, out, `<th>slot<br>wait</th>`)
	require.NotContains(t, out, "ring full")
	require.Len(t, row(t, out, "qkv"), 6)
	wellFormed(t, out)
}

func TestOneSM(t *testing.T) {
	out := render(t, measured(synthetic(1, 16, 1)))
	require.Contains(t, out, `<span class="tick" style="top:50%">SM 0</span>`)
	require.NotContains(t, out, "NaN")
	wellFormed(t, out)
}

func TestDroppedSpansAreSaid(t *testing.T) {
	p := synthetic(4, 2, 1)
	p.Dropped = 1234
	require.Contains(t, render(t, measured(p)),
		"1,234 spans did not fit the buffer and are missing below: sums are too low by them.")
	p.Spans = nil
	out := render(t, measured(p))
	require.Contains(t, out, "It recorded no spans.")
	require.NotContains(t, out, "What every SM does")
	wellFormed(t, out)
}

// Producers alone leave nothing to draw a step from; what they waited for is still listed.
func TestProducersAlone(t *testing.T) {
	p := small()
	p.Spans = slices.DeleteFunc(p.Spans, func(s host.Span) bool { return s.Role == "consumer" })
	out := render(t, measured(p))
	require.NotContains(t, out, "What every SM does")
	require.Equal(t, []string{"0.00", "0.00", "0.00", "0.00", "0.0", "0.0", "4.0", "0.0"}, row(t, out, "qkv"))
	require.NotContains(t, out, "NaN")
}

// Times and numbers of SMs that no GPU reports do not bring the page down.
func TestAbsurdProfiles(t *testing.T) {
	p := small()
	p.SMs, p.Steps = 0, 0
	render(t, measured(p))
	p = small()
	for i := range p.Spans {
		p.Spans[i].Start, p.Spans[i].End = 5, 5
	}
	out := render(t, measured(p))
	require.NotContains(t, out, "NaN")
	p = small()
	p.Spans[0].SM = 99
	render(t, measured(p))
}
