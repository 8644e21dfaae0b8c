package search

import (
	"bytes"
	_ "embed" // the template of the page
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"amkc/knobs"
)

//go:embed report.html.tmpl
var reportText string

var reportPage = template.Must(template.New("report").Parse(reportText))

// reportData is what the page shows.
type reportData struct {
	Campaign  *Campaign
	Predicted bool
	Best      []setting
	Ratio     string // of the best, as chained through the trials
	Confirmed *Verdict
	Refuted   bool // the interval of what was to confirm the best is not below 1
	Interval  string
	Null      bool
	Adopted   bool // of a stage: the step shows what the stage has gained
	Reverted  bool // it does not
	Trials    int
	Seconds   string
	Soundness Soundness
	Classes   []counted
	Curve     curve
	Knobs     []knobEffect
	Codes     []counted
	Regions   []RegionInfo
	Rows      []reportRow
}

type setting struct {
	Path         string
	Value, Start knobs.Value
}

type counted struct {
	Name    string
	Count   int
	Example string
}

// knobEffect is what the values of a knob went with.
type knobEffect struct {
	Path   string
	Values []valueEffect
}

type valueEffect struct {
	Value    knobs.Value
	Default  bool
	Trials   int
	Timed    int
	Median   string // of the times relative to the start, where any are known
	Width    int    // of a bar, 0 to 200
	Retired  string
	Fastest  bool
	fraction float64
}

type reportRow struct {
	N                            int
	Role, Rung, Class, ID, Ratio string
	Decision, Why, Hypothesis    string
	Kept, Accepted               bool
}

// Report renders the campaign as one HTML page: it needs no network and has no script. The same trials give the same
// bytes.
func (s *State) Report() ([]byte, error) {
	c := s.campaign
	best, ratio := s.Best()
	d := reportData{Campaign: c, Predicted: c.Device == DeviceCost, Ratio: fmt.Sprintf("%.4f", ratio),
		Null: IDOf(best) == IDOf(c.Start), Trials: len(s.trials), Seconds: fmt.Sprintf("%.0f", s.seconds),
		Soundness: s.Soundness(), Curve: s.curve(), Knobs: s.effects(), Regions: s.Regions()}
	for _, path := range slices.Sorted(maps.Keys(best)) {
		if k := c.Space.Knob(path); k != nil {
			d.Best = append(d.Best, setting{path, best[path], k.value(c.Start)})
		}
	}
	if t := s.Confirmed(); t != nil && t.Verdict.Class.Holds() {
		d.Confirmed, d.Refuted = t.Verdict, !t.Verdict.Confirms()
		d.Interval = fmt.Sprintf("%.4f (%.4f to %.4f)", t.Verdict.Ratio.Mean, t.Verdict.Ratio.Low, t.Verdict.Ratio.High)
	}
	if c.Stage != "" && !d.Null {
		adopted, known := s.Adopted()
		d.Adopted = IDOf(adopted) != IDOf(c.Start)
		d.Reverted = known && !d.Adopted
	}
	for _, class := range Classes {
		d.Classes = append(d.Classes, counted{Name: string(class), Count: s.found[class]})
	}
	for _, code := range slices.Sorted(maps.Keys(s.reasons)) {
		d.Codes = append(d.Codes, counted{code, s.reasons[code], s.example(code)})
	}
	for i := range s.trials {
		d.Rows = append(d.Rows, rowOf(&s.trials[i]))
	}
	var b bytes.Buffer
	err := reportPage.Execute(&b, d)
	return b.Bytes(), err
}

func rowOf(t *Trial) reportRow {
	row := reportRow{N: t.N, Role: string(t.Role), Rung: string(t.Rung), ID: IDOf(t.Settings), Hypothesis: t.Why,
		Kept: t.Best, Accepted: t.Accepted}
	if v := t.Verdict; v != nil {
		row.Class, row.Decision, row.Why = string(v.Class), string(v.Decision), v.Why
		if v.Timing != nil {
			row.Ratio = fmt.Sprintf("%.4f", v.Ratio.Mean)
		}
	} else {
		row.Class, row.Why = "no proposal", placed(t.Refused)
	}
	return row
}

// example is the first message with a code.
func (s *State) example(code string) string {
	for i := range s.trials {
		if v := s.trials[i].Verdict; v != nil && v.Reason != nil && v.Reason.Code == code {
			return placed(v.Reason)
		}
	}
	return ""
}

// A curve is the best over the trials, as points of an SVG of 720 by 220.
type curve struct {
	Line     string
	Points   []point
	Lo, Hi   string
	Last     int
	Baseline float64
}

type point struct {
	X, Y float64
	Kept bool
	Text string
}

// curve draws the time of the best relative to the start over the trials, and each time that a final trial has found.
func (s *State) curve() curve {
	type found struct {
		n     int
		ratio float64
		kept  bool
	}
	var all []found
	lo, hi := 1.0, 1.0
	for i := range s.trials {
		t := &s.trials[i]
		if v := t.Verdict; v != nil && v.Class.Holds() && t.Rung == Final && t.Role != RoleConfirm {
			ratio := math.Exp(s.score[v.BaselineID]) * v.Ratio.Mean
			all = append(all, found{t.N, ratio, t.Best})
			lo, hi = min(lo, ratio), max(hi, min(ratio, 1.5))
		}
	}
	lo, hi = lo-0.01, hi+0.01
	x := func(n int) float64 { return 10 + 700*float64(n)/float64(max(1, len(s.trials)-1)) }
	y := func(ratio float64) float64 { return 10 + 200*(hi-min(ratio, hi))/(hi-lo) }
	c := curve{Lo: fmt.Sprintf("%.3f", lo), Hi: fmt.Sprintf("%.3f", hi), Last: max(0, len(s.trials)-1), Baseline: y(1)}
	var line strings.Builder
	best := 1.0
	fmt.Fprintf(&line, "M%.1f %.1f", x(0), y(1))
	for _, f := range all {
		if f.kept {
			fmt.Fprintf(&line, "H%.1f", x(f.n))
			best = f.ratio
			fmt.Fprintf(&line, "V%.1f", y(best))
		}
		c.Points = append(c.Points, point{x(f.n), y(f.ratio), f.kept, fmt.Sprintf("trial %d: %.4f", f.n, f.ratio)})
	}
	fmt.Fprintf(&line, "H%.1f", x(c.Last))
	c.Line = line.String()
	return c
}

// effects says what each value of each knob went with: how often it was tried, and the median of the known times.
func (s *State) effects() []knobEffect {
	var all []knobEffect
	for i := range s.campaign.Space.Knobs {
		k := &s.campaign.Space.Knobs[i]
		e := knobEffect{Path: k.Path}
		fastest := -1
		for _, v := range k.choices() {
			one := valueEffect{Value: v, Default: v == k.Default, Retired: s.retired[k.Path+"="+string(v)]}
			var times []float64
			seen := map[string]bool{}
			for j := range s.trials {
				t := &s.trials[j]
				id := IDOf(t.Settings)
				if k.value(t.Settings) != v || t.Verdict == nil || seen[id] {
					continue
				}
				seen[id] = true
				one.Trials++
				if score, is := s.score[id]; is {
					times = append(times, math.Exp(score))
					one.Timed++
				}
			}
			if one.Trials == 0 {
				continue
			}
			if len(times) > 0 {
				slices.Sort(times)
				one.fraction = (times[(len(times)-1)/2] + times[len(times)/2]) / 2
				one.Median, one.Width = fmt.Sprintf("%.3f", one.fraction), int(min(200, 100*one.fraction))
				if fastest < 0 || one.fraction < e.Values[fastest].fraction {
					fastest = len(e.Values)
				}
			}
			e.Values = append(e.Values, one)
		}
		if len(e.Values) < 2 {
			continue
		}
		if fastest >= 0 {
			e.Values[fastest].Fastest = true
		}
		all = append(all, e)
	}
	return all
}
