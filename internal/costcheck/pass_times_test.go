package costcheck

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
)

// A timed pass is one of section pass_times, predicted and measured against a pass of one token of the same build.
type timedPass struct {
	target         *ir.Target
	model, formats string
	position       int
	rows           int // 8, or 1 of each of 8 sequences
	is             *cost.Pass
	latency        float64 // measured
	ceiling        float64 // measured; 0: it was not
	one            float64 // measured, of a pass of one token
}

// build is what is held out together where constants are looked for.
func (p *timedPass) build() string { return strings.TrimSpace(p.model + " " + p.formats) }

func (p *timedPass) name() string {
	return fmt.Sprintf("%s %s %d %s", p.target.Name, p.build(), p.position, p.kind())
}

func (p *timedPass) kind() string {
	if p.rows > 1 {
		return fmt.Sprintf("%d rows", p.rows)
	}
	return "8 sequences"
}

// A passRow is a row of section pass_times.
type passRow struct {
	row
	Passes []struct {
		Rows    int    `json:"rows"`
		Latency micros `json:"latency_us"`
		Ceiling micros `json:"ceiling_us"`
	} `json:"passes"`
}

// passRows keeps what everyPassRow has read.
var passRows []passRow

// everyPassRow returns the rows of section pass_times of every GPU.
func everyPassRow(t testing.TB) []passRow {
	if passRows != nil {
		return passRows
	}
	for _, text := range results(t) {
		rows := rowsOf(t, text, passTimes)
		for _, raw := range rawRows(t, text, passTimes) {
			var r passRow
			require.NoError(t, json.Unmarshal(raw, &r))
			if !r.Passed {
				continue
			}
			r.row, rows = rows[0], rows[1:]
			passRows = append(passRows, r)
		}
	}
	require.NotEmpty(t, passRows)
	return passRows
}

// programOf is that of eight rows, or of one row of each of eight sequences.
func programOf(l *compiler.Scheduled, rows int) *ir.Program {
	if rows > 1 {
		return l.Passes[0]
	}
	return l.Passes[1]
}

// predictedPasses keeps predictions: several tests ask for the same.
var predictedPasses = map[step]*cost.Pass{}

// predictPass predicts a pass, with one of one token.
func predictPass(t testing.TB, name string, p, one *ir.Program, position int) *cost.Pass {
	key := step{p, position}
	if known, ok := predictedPasses[key]; ok {
		return known
	}
	m, err := cost.NewPass(p, one)
	require.NoError(t, err, name)
	out, err := m.At(position)
	require.NoError(t, err, name)
	predictedPasses[key] = out
	return out
}

// timedPasses keeps what timed has predicted: the tests ask for the same.
var timedPasses []timedPass

// timed predicts the passes that are compared: but in the long tests, those of the shape with fewest layers.
func timed(t testing.TB) []timedPass {
	if timedPasses != nil {
		return timedPasses
	}
	var out []timedPass
	rows := everyPassRow(t)
	for i := range rows {
		r := &rows[i]
		if !everything() && r.Model != "llama-3.2-1b" {
			continue
		}
		l := buildOf(t, r.row, byDefault)
		add := func(p *ir.Program, rows int, latency, ceiling float64) {
			require.True(t, cost.PassesHeld(r.target.Name, p.Pass), r.ID)
			is := predictPass(t, r.name(), p, l.Program, r.Position+r.Steps/2)
			out = append(out, timedPass{r.target, r.Model, r.Weights, r.Position, rows, is, latency, ceiling,
				float64(r.measured("latency"))})
		}
		for _, p := range r.Passes {
			add(programOf(l, p.Rows), p.Rows, float64(p.Latency), float64(p.Ceiling))
		}
	}
	timedPasses = out
	return out
}

// beyondPasses are predictions for passes that are further off than the tolerance, and why.
var beyondPasses = map[string]string{
	"h100 llama-3.1-8b int4 128 8 sequences ceiling": "measured 15 % above that of 8 rows, which the " +
		"model has alike; not explained",
	"h100 llama-3.1-8b int4 2048 8 sequences times": "one token is predicted 7 % too long, and eight 7 % too short",
	"h200 llama-3.1-8b int4 128 8 sequences times":  "one token is predicted 4 % too long, and eight 7 % too short",
	"h200 llama-3.1-8b int4 2048 8 rows times":      "one token is predicted 8 % too long, and eight 4 % too short",
	"h200 llama-3.1-8b int4 2048 8 sequences times": "one token is predicted 8 % too long, and eight 5 % too short",
	"h100 llama-3.1-8b int4 8192 8 rows times": "16 SMs attend in a pass of one token, and stream faster than " +
		"the model says: it is predicted 14 % too long",
	"h100 llama-3.1-8b int4 8192 8 sequences times": "the same",
	"h200 llama-3.1-8b int8 8192 8 rows times":      "the same",
	"h200 llama-3.1-8b int4 8192 8 rows times":      "the same",
	"h200 llama-3.1-8b int4 8192 8 sequences times": "the same",
}

// TestPassesHold holds the latency of passes and their ceiling.
func TestPassesHold(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seen := map[string]bool{}
	for _, p := range timed(t) {
		holdPass(t, seen, p.name()+" latency", p.is.Latency, p.latency)
		holdPass(t, seen, p.name()+" ceiling", p.is.Ceiling, p.ceiling)
		holdPass(t, seen, p.name()+" times", p.is.Times, p.latency/p.one)
	}
	for name := range beyondPasses {
		require.True(t, seen[name] || !everything(), "%s is listed and was not measured", name)
	}
}

func holdPass(t testing.TB, seen map[string]bool, name string, predicted, measured float64) {
	seen[name] = true
	off := math.Abs(predicted/measured - 1)
	if why, listed := beyondPasses[name]; listed {
		assert.Greater(t, off, tolerance, "%s is within the tolerance: take it off the list (%s)", name, why)
		return
	}
	assert.LessOrEqual(t, off, tolerance, "%s: predicted %.4g, measured %.4g", name, predicted, measured)
}

// TestPassesOfOneToken: where no SM has less to stream than others, the rules of passes say of one token what those of
// a step say, to the last digit.
func TestPassesOfOneToken(t *testing.T) {
	p := compileAs(t, "amkc testdata/configs/llama-3.2-1b --dtype bf16 --max-seq 600", ir.FindTarget("h100"), byDefault)
	m, err := cost.NewPass(p, p)
	require.NoError(t, err)
	pass, err := m.At(0)
	require.NoError(t, err)
	step := predict(t, "one token", p, 0)
	require.Equal(t, step.Latency, pass.Latency)
	require.Equal(t, step.Ceiling, pass.Ceiling)
	require.Equal(t, step.Drain, pass.Drain)
	require.Equal(t, 1.0, pass.Times)
}

// TestFewPassConstants: those that were chosen to fit passes are few against what they fit.
func TestFewPassConstants(t *testing.T) {
	fitted, held := 0, 0
	for _, r := range everyPassRow(t) {
		if r.target.Name == "h100" {
			fitted += 2 * len(r.Passes)
		} else {
			held++
		}
	}
	require.GreaterOrEqual(t, fitted, 10*len(passConstants(new(cost.PassCalibration))))
	require.GreaterOrEqual(t, held, 3*len(passConstants(new(cost.PassCalibration))), "numbers that none was chosen on")
}

// passTable has a line for each pass that is compared. Those that are not predicted again are taken from the document.
func passTable(t testing.TB, text string) string {
	var b strings.Builder
	b.WriteString("\n| GPU | build | position | pass | predicted, µs | measured, µs | error | ceiling, predicted | " +
		"measured | error | over one token, predicted | measured |\n|" + strings.Repeat("---|", 12) + "\n")
	known := map[string]timedPass{}
	for _, p := range timed(t) {
		known[p.name()] = p
	}
	rows := everyPassRow(t)
	for i := range rows {
		r := &rows[i]
		for _, n := range []int{8, 1} {
			p := timedPass{target: r.target, model: r.Model, formats: r.Weights, position: r.Position, rows: n}
			head := fmt.Sprintf("| %s | %s | %d | %s | ", p.target.Name, p.build(), p.position, p.kind())
			if is, predicted := known[p.name()]; predicted {
				b.WriteString(head + passCells(is) + " |\n")
			} else {
				b.WriteString(lineOf(t, text, head))
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func passCells(p timedPass) string {
	off := func(what string, predicted, measured float64) string {
		if why, listed := beyondPasses[p.name()+" "+what]; listed {
			return fmt.Sprintf("%+.1f %%, outside: %s", 100*(predicted/measured-1), why)
		}
		return fmt.Sprintf("%+.1f %%", 100*(predicted/measured-1))
	}
	ceiling := fmt.Sprintf("%.0f | %s |", p.ceiling, off("ceiling", p.is.Ceiling, p.ceiling))
	times := fmt.Sprintf("%.2f × | %.2f ×", p.is.Times, p.latency/p.one)
	if why, listed := beyondPasses[p.name()+" times"]; listed {
		times += ", outside: " + why
	}
	return fmt.Sprintf("%.0f | %.0f | %s | %.0f | %s %s", p.is.Latency, p.latency,
		off("latency", p.is.Latency, p.latency), p.is.Ceiling, ceiling, times)
}
