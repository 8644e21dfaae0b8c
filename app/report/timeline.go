package report

import (
	"cmp"
	"fmt"
	"maps"
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
	stepSpans    = 60_000 // most strokes of the timeline that shows a whole one; beyond that SMs are left out
	overviewX    = 2000   // units of its width
	detailX      = 6000
)

// timelines shows the last step of the profile, in which the pipeline has filled: all of it, and its middle layers
// closer. A step of few layers is shown once.
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
	what := fmt.Sprintf("step %s of %s, position %s", count(step+1), count(max(ix.Steps, step+1)),
		count(ix.Position+step))
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

// share is where a time lies, from 0 to 1.
func (w window) share(at float64) float64 { return (at - w.from) / (w.to - w.from) }

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

// draw makes a timeline of a window. A detailed one has producers too, and tells publishing from computing.
func (ix *index) draw(w window, title, what string, detail bool) timeline {
	t := timeline{Title: title, Width: overviewX}
	every, rowUnits, rowPixels := 1, 2, 2
	if detail {
		t.Width, t.Class, rowUnits, rowPixels = detailX, "detail", 6, 6
	}
	visible := ix.visible(w, detail)
	if drawn := apart(visible); !detail && drawn > stepSpans {
		every = (drawn + stepSpans - 1) / stepSpans
	}
	rows := max(1, (max(1, ix.SMs)+every-1)/every)
	t.Height = rows * rowUnits
	t.Pixels = max(rows*rowPixels, 48)
	t.Note = what + "; µs from the beginning of the drawing on"
	if !detail {
		t.Note += "; publishing is in the stage’s colour"
	}
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
			switch {
			case s.Role == producer:
				l.kind = ""
			case !detail && s.Kind == signal:
				l.what = compute
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
		if s.End > w.from && s.Start < w.to && (detail || s.Role == consumer) {
			all = append(all, s)
		}
	}
	return all
}

// apart counts the spans that become strokes of their own where publishing is drawn as computing: it follows upon
// that.
func apart(spans []host.Span) int {
	n := 0
	for _, s := range spans {
		if s.Kind != signal {
			n++
		}
	}
	return n
}

// paths turns strokes into paths: waits first, so that what was done is on top.
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
	slices.SortFunc(strokes, func(a, b stroke) int {
		return cmp.Or(cmp.Compare(a.sm, b.sm),
			cmp.Compare(a.from, b.from))
	})
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

// mostMarks is how many layers an axis names; a character of a name takes up to charPercent of it.
const (
	mostMarks   = 12
	charPercent = 1.05
)

// A mark is where the first SM begins with a layer, or with a stage that a step has once.
type mark struct {
	stageName
	at float64 // µs
}

func (m mark) label() string {
	if m.layer == noLayer {
		return m.kind
	}
	return fmt.Sprintf("L%02d", m.layer)
}

// marks names the stage that ends a step, layers at equal distances, and other stages that a step has once where
// there is room; all of them get a line.
func (ix *index) marks(w window, width, height int) ([]tick, string) {
	seen := ix.begun(w)
	every, grid := (len(seen)+mostMarks-1)/mostMarks, ""
	var named []mark
	if n := len(seen); n > 0 && seen[n-1].layer == noLayer {
		named = append(named, seen[n-1])
	}
	for _, once := range []bool{false, true} {
		for _, m := range seen {
			if once == (m.layer == noLayer) && (once || m.layer%every == 0) && fits(named, m, w) {
				named = append(named, m)
			}
		}
	}
	for _, m := range seen {
		grid += fmt.Sprintf("M%d 0V%d", int(math.Round(w.share(m.at)*float64(width))), height)
	}
	slices.SortFunc(named, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var all []tick
	for _, m := range named {
		all = append(all, tick{percent(w.share(m.at), 1), m.label()})
	}
	return all, grid
}

// begun returns the marks within a window, in order.
func (ix *index) begun(w window) []mark {
	first := map[string]mark{}
	for _, s := range ix.Spans {
		if s.Role != consumer || s.Step != w.step {
			continue
		}
		m := mark{ix.names[s.Stage], s.Start}
		if old, known := first[m.label()]; !known || m.at < old.at {
			first[m.label()] = m
		}
	}
	maps.DeleteFunc(first, func(_ string, m mark) bool { return m.at < w.from || m.at >= w.to })
	return slices.SortedFunc(maps.Values(first),
		func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.label(), b.label())) })
}

// fits says whether a name, which begins at its mark, overlaps no other.
func fits(named []mark, m mark, w window) bool {
	return !slices.ContainsFunc(named, func(n mark) bool {
		left, right := n, m
		if right.at < left.at {
			left, right = right, left
		}
		return 100*w.share(right.at-left.at+w.from) < charPercent*float64(len(left.label())+1)
	})
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
