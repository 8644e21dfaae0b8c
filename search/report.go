package search

import (
	"bytes"
	_ "embed" // the template of the page
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"amkc/knobs"
	"amkc/runtime/printable"
)

//go:embed report.html.tmpl
var reportText string

var reportPage = template.Must(template.New("report").Parse(reportText))

// reportData is what the page shows.
type reportData struct {
	Campaign  *Campaign
	Predicted bool
	Best      []setting
	Ratio     string   // of the incumbent, as chained through the trials
	Confirmed *Verdict // of the incumbent at held-out positions; nil: not yet
	Shows     bool     // Confirmed shows the gain in all of its interval
	Interval  string
	Refuted   *Verdict // that took an incumbent back
	Null      bool
	Seconds   string
	Soundness Soundness
	Counts    []counted // trials, by class
	Codes     []counted
	Retired   []string
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

type reportRow struct {
	*Trial
	ID, Ratio string
}

// Report renders the campaign as one HTML page: it needs no network and has no script. The same trials give the same
// bytes.
func (s *State) Report() ([]byte, error) {
	c := s.campaign
	best, ratio := s.Best()
	d := reportData{Campaign: c, Predicted: c.Device == DeviceCost, Ratio: fmt.Sprintf("%.4f", ratio),
		Null: IDOf(best) == IDOf(c.Start), Seconds: fmt.Sprintf("%.0f", s.seconds), Soundness: s.Soundness()}
	for _, path := range slices.Sorted(maps.Keys(best)) {
		if k := c.Space.Knob(path); k != nil {
			d.Best = append(d.Best, setting{path, best[path], k.value(c.Start)})
		}
	}
	if t := s.Confirmed(); t != nil && t.Verdict.Class.Holds() {
		d.Confirmed, d.Shows = t.Verdict, t.Verdict.Confirms()
		d.Interval = fmt.Sprintf("%.4f (%.4f to %.4f)", t.Verdict.Ratio.Mean, t.Verdict.Ratio.Low, t.Verdict.Ratio.High)
	}
	if t := s.Refuted(); t != nil {
		d.Refuted = t.Verdict
	}
	for _, class := range Classes {
		d.Counts = append(d.Counts, counted{Name: string(class), Count: s.found[class]})
	}
	for _, code := range slices.Sorted(maps.Keys(s.reasons)) {
		first := slices.IndexFunc(s.trials, func(t Trial) bool {
			return t.Verdict.Reason != nil && t.Verdict.Reason.Code == code
		})
		d.Codes = append(d.Codes, counted{code, s.reasons[code], placed(s.trials[first].Verdict.Reason)})
	}
	for _, what := range slices.Sorted(maps.Keys(s.retired)) {
		d.Retired = append(d.Retired, what+": "+s.retired[what])
	}
	for i := range s.trials {
		row := reportRow{Trial: &s.trials[i], ID: IDOf(s.trials[i].Settings)}
		if v := row.Verdict; v.Timing != nil {
			row.Ratio = fmt.Sprintf("%.4f", v.Ratio.Mean)
		}
		d.Rows = append(d.Rows, row)
	}
	var b bytes.Buffer
	err := reportPage.Execute(&b, d)
	return b.Bytes(), err
}

// resultColumns are the twelve of the playbook, in its order, and then our own.
var resultColumns = []string{"experiment", "tag", "loop", "model", "gpu", "regime", "kept", "correctness", "latency_us",
	"pct_of_roofline", "schedule_or_kernel_id", "description",
	"role", "rung", "round", "accepted", "decision", "ratio", "ratio_low", "ratio_high", "band", "spread", "threshold",
	"predicted_us", "ceiling_us", "code", "build", "seconds"}

// Results renders the trials as results.tsv: one row for each trial, with any outcome. Times are those of the first
// position. Latency and distance from the roofline are measured or blank. Predictions have a separate column, and are
// never kept.
func (s *State) Results() string {
	var b strings.Builder
	b.WriteString(strings.Join(resultColumns, "\t") + "\n")
	for i := range s.trials {
		b.WriteString(strings.Join(s.resultRow(&s.trials[i]), "\t") + "\n")
	}
	return b.String()
}

func (s *State) resultRow(t *Trial) []string {
	c, v := s.campaign, t.Verdict
	row := map[string]string{"experiment": strconv.Itoa(t.N), "tag": c.Tag, "loop": "2", "model": c.Model,
		"gpu": c.Target, "regime": "single-stream", "kept": "revert", "correctness": string(v.Class),
		"schedule_or_kernel_id": v.ID, "description": strings.Trim(t.Why+"; "+v.Why, "; "), "role": string(t.Role),
		"rung": string(t.Rung), "round": strconv.Itoa(t.Round), "accepted": strconv.FormatBool(t.Accepted),
		"decision": string(v.Decision), "build": v.Build, "seconds": short(t.Seconds)}
	if t.Accepted && v.Decision == Keep {
		row["kept"] = "keep"
	}
	if v.Reason != nil {
		row["code"] = v.Reason.Code
	}
	if v.Timing != nil {
		timesOfRow(row, v)
	}
	out := make([]string, len(resultColumns))
	for i, name := range resultColumns {
		out[i] = cell(row[name])
	}
	return out
}

func timesOfRow(row map[string]string, v *Verdict) {
	at := &v.At[0]
	row["ratio"], row["ratio_low"], row["ratio_high"] = short(v.Ratio.Mean), short(v.Ratio.Low), short(v.Ratio.High)
	row["band"], row["spread"], row["threshold"] = short(v.Band), short(v.Spread), short(v.Threshold)
	row["ceiling_us"] = short(at.Ceiling)
	if v.Device != DeviceCUDA {
		row["predicted_us"] = short(at.Candidate.Median)
		return
	}
	row["latency_us"] = short(at.Candidate.Median)
	if at.ReadGBs > 0 {
		row["pct_of_roofline"] = short(100 * at.Bytes / at.ReadGBs / 1e3 / at.Candidate.Median)
	}
}

// short is a number with the digits that mean something.
func short(x float64) string {
	if x >= math.MaxFloat64/2 {
		return "inf"
	}
	return fmt.Sprintf("%.5g", x)
}

// cell is a text without what would end a cell or a row, or act on a terminal.
func cell(text string) string {
	return printable.Text(strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text))
}
