package search

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"amkc/runtime/printable"
)

// resultColumns are the twelve of the playbook, in its order, and then our own.
var resultColumns = []string{"experiment", "tag", "loop", "model", "gpu", "regime", "kept", "correctness", "latency_us",
	"pct_of_roofline", "schedule_or_kernel_id", "description",
	"role", "rung", "basin", "bracket", "region", "proposer", "decision", "ratio", "ratio_low", "ratio_high", "band",
	"spread", "threshold", "predicted_us", "ceiling_us", "code", "build", "seconds"}

// Results renders the trials as results.tsv: one row each, whatever became of it. Times are those of the first
// position. Latency and distance from the roofline are measured or blank; a prediction has a column of its own, and is
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
	c := s.campaign
	row := map[string]string{"experiment": strconv.Itoa(t.N), "tag": c.Tag, "loop": "2", "model": c.Model,
		"gpu": c.Target, "regime": "single-stream", "kept": "revert", "correctness": string(Rejected),
		"schedule_or_kernel_id": IDOf(t.Settings), "description": t.Why, "role": string(t.Role), "rung": string(t.Rung),
		"basin": strconv.Itoa(t.Basin), "bracket": strconv.Itoa(t.Bracket), "region": t.Region, "proposer": t.Proposer,
		"decision": string(Revert), "seconds": short(t.Seconds)}
	if c.StageOf(&t.Job) != "" {
		row["loop"] = "1"
	}
	if t.Best && c.Device == DeviceCUDA {
		row["kept"] = "keep"
	}
	if v := t.Verdict; v != nil {
		row["correctness"], row["decision"], row["build"] = string(v.Class), string(v.Decision), v.Build
		row["description"] = strings.Trim(t.Why+"; "+v.Why, "; ")
		if v.Reason != nil {
			row["code"] = v.Reason.Code
		}
		if v.Timing != nil {
			timesOfRow(row, v)
		}
	} else {
		row["code"], row["description"] = t.Refused.Code, t.Refused.Msg
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
	row["band"], row["threshold"] = short(v.Band), short(v.Threshold)
	if v.Spread > 0 {
		row["spread"] = short(v.Spread)
	}
	if v.Stage == "" { // a stage by itself has neither a ceiling nor a distance from the roofline
		row["ceiling_us"] = short(at.Ceiling)
	}
	if v.Device != DeviceCUDA {
		row["predicted_us"] = short(at.Candidate.Median)
		return
	}
	row["latency_us"] = short(at.Candidate.Median)
	if at.ReadGBs > 0 && v.Stage == "" {
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
