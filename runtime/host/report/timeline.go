package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"amkc/runtime/host"
)

// A timeline shows what every SM did, a row each. Spans of one look are one path of horizontal strokes, so that tens of
// thousands stay small.
type timeline struct {
	Title, Note   string
	Width, Height int    // of the drawing, in its own units
	Pixels        int    // its height on the page
	Class         string // "detail" has a line for the producer under each row
	Paths         []timelinePath
	Grid          string // path of the marks' lines
	Ticks         []tick // µs
	Marks         []tick // layers
	Rows          []tick // SMs
}

type timelinePath struct{ Class, D, Title string }

const (
	windowLayers = 4      // of the timeline that shows a part of a step
	stepSpans    = 60_000 // most spans of the timeline that shows a whole one; beyond that SMs are left out
	overviewX    = 2000   // units of its width
	detailX      = 6000
)

// timelines shows the last step of the profile, in which the pipeline has filled: all of it, and its middle layers closer.
// A step of few layers is shown once.
func timelines(ix *index) []timeline {
	step := 0
	for _, s := range ix.Spans {
		if s.Role == consumer {
			step = max(step, s.Step)
		}
	}
	whole := ix.window(step, func(stageName) bool { return true })
	if whole.to <= whole.from {
		return nil
	}
	what := fmt.Sprintf("step %s of %s, position %s", count(step+1), count(max(ix.Steps, step+1)), count(ix.Position+step))
	if ix.layers <= windowLayers {
		return []timeline{ix.draw(whole, "One step", what, true)}
	}
	first := (ix.layers - windowLayers) / 2
	part := ix.window(step, func(n stageName) bool { return n.layer >= first && n.layer < first+windowLayers })
	all := []timeline{ix.draw(whole, "One step", what, false)}
	if part.to > part.from {
		all = append(all, ix.draw(part, fmt.Sprintf("Layers %d to %d", first, first+windowLayers-1), what, true))
	}
	return all
}

// A window is an interval of time, and the step that it is of.
type window struct {
	from, to float64 // µs
	step     int
}

// window returns the time that consumers spent in some stages of a step.
func (ix *index) window(step int, in func(stageName) bool) window {
	w := window{from: math.Inf(1), to: math.Inf(-1), step: step}
	for _, s := range ix.Spans {
		if s.Role == consumer && s.Step == step && in(ix.names[s.Stage]) {
			w.from, w.to = min(w.from, s.Start), max(w.to, s.End)
		}
	}
	return w
}

// A stroke is a span as it is drawn: whole units, clipped to the window.
type stroke struct{ sm, from, to int }

// A look is what strokes of one path share.
type look struct{ role, kind, what string }

// draw makes a timeline of a window. A detailed one has producers and signals too.
func (ix *index) draw(w window, title, what string, detail bool) timeline {
	t := timeline{Title: title, Width: overviewX}
	every, rowUnits, rowPixels := 1, 2, 2
	if detail {
		t.Width, t.Class, rowUnits, rowPixels = detailX, "detail", 6, 6
	}
	visible := ix.visible(w, detail)
	if !detail && len(visible) > stepSpans {
		every = (len(visible) + stepSpans - 1) / stepSpans
	}
	rows := max(1, (max(1, ix.SMs)+every-1)/every)
	t.Height = rows * rowUnits
	t.Pixels = max(rows*rowPixels, 48)
	t.Note = what + "; µs from the beginning of the drawing on"
	if every > 1 {
		t.Note += fmt.Sprintf("; one SM in %s is shown", count(every))
	}
	strokes := map[look][]stroke{}
	unit := float64(t.Width) / (w.to - w.from)
	for _, s := range visible {
		if s.SM%every != 0 || s.SM/every >= rows {
			continue
		}
		from := int(math.Round((max(s.Start, w.from) - w.from) * unit))
		to := int(math.Round((min(s.End, w.to) - w.from) * unit))
		if to > from {
			l := look{s.Role, ix.names[s.Stage].kind, s.Kind}
			if s.Role == producer {
				l.kind = ""
			}
			strokes[l] = append(strokes[l], stroke{s.SM / every, from, to})
		}
	}
	t.Paths = ix.paths(strokes, rowUnits, detail)
	t.Ticks = ticks(0, w.to-w.from, 8)
	t.Marks, t.Grid = ix.marks(w, t.Width, t.Height)
	t.Rows = smTicks(rows, every)
	return t
}

// visible returns the spans that a window shows.
func (ix *index) visible(w window, detail bool) []host.Span {
	var all []host.Span
	for _, s := range ix.Spans {
		if s.End > w.from && s.Start < w.to && (detail || s.Role == consumer && s.Kind != signal) {
			all = append(all, s)
		}
	}
	return all
}

// paths turns strokes into paths: waits first, so that what was done lies on top.
func (ix *index) paths(strokes map[look][]stroke, rowUnits int, detail bool) []timelinePath {
	order := []string{exchangeWait, compute, signal, slotWait, stepWait}
	var looks []look
	for l := range strokes {
		looks = append(looks, l)
	}
	slices.SortFunc(looks, func(a, b look) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.what), slices.Index(order, b.what)),
			cmp.Compare(slices.Index(ix.kinds, a.kind), slices.Index(ix.kinds, b.kind)), cmp.Compare(a.role, b.role))
	})
	var all []timelinePath
	for _, l := range looks {
		y, class := 1, spanClass(l.kind, l.what)
		title := l.kind + ", " + l.what
		switch {
		case l.role == producer:
			y, class, title = 5, class+" producer", "producer, "+l.what
		case detail:
			y = 2
		}
		all = append(all, timelinePath{class, pathOf(strokes[l], y, rowUnits), title})
	}
	return all
}

// pathOf writes strokes as relative moves, joining those of a row that touch.
func pathOf(strokes []stroke, y, rowUnits int) string {
	slices.SortFunc(strokes, func(a, b stroke) int { return cmp.Or(cmp.Compare(a.sm, b.sm), cmp.Compare(a.from, b.from)) })
	var d []byte
	atX, atY := 0, 0
	for i := 0; i < len(strokes); {
		s := strokes[i]
		for i++; i < len(strokes) && strokes[i].sm == s.sm && strokes[i].from <= s.to; i++ {
			s.to = max(s.to, strokes[i].to)
		}
		row := s.sm*rowUnits + y
		d = append(d, 'm')
		d = strconv.AppendInt(d, int64(s.from-atX), 10)
		d = append(d, ' ')
		d = strconv.AppendInt(d, int64(row-atY), 10)
		d = append(d, 'h')
		d = strconv.AppendInt(d, int64(s.to-s.from), 10)
		atX, atY = s.to, row
	}
	return string(d)
}

// mostMarks is how many layers an axis names.
const mostMarks = 12

// marks names the layers of a step, and the stages that a step has once, where the first SM begins with each.
func (ix *index) marks(w window, width, height int) ([]tick, string) {
	first := map[string]float64{}
	for _, s := range ix.Spans {
		if s.Role != consumer || s.Step != w.step {
			continue
		}
		n := ix.names[s.Stage]
		name := n.kind
		if n.layer != noLayer {
			name = fmt.Sprintf("L%02d", n.layer)
		}
		if at, known := first[name]; !known || s.Start < at {
			first[name] = s.Start
		}
	}
	var names []string
	for name, at := range first {
		if at >= w.from && at < w.to {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b)) })
	every := (len(names) + mostMarks - 1) / mostMarks
	var all []tick
	grid := ""
	for i, name := range names {
		x := (first[name] - w.from) / (w.to - w.from)
		grid += fmt.Sprintf("M%d 0V%d", int(math.Round(x*float64(width))), height)
		if i%every == 0 || name == "lm_head" {
			all = append(all, tick{percent(x, 1), name})
		}
	}
	return all, grid
}

// smTicks names some rows.
func smTicks(rows, every int) []tick {
	step := 1
	for rows/step > 10 {
		step *= 2
	}
	var all []tick
	for r := 0; r < rows; r += step {
		all = append(all, tick{percent(float64(r)+0.5, float64(rows)), "SM " + count(r*every)})
	}
	return all
}
