package costcheck

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
)

// A promptRow is a row of section prompts. Two constants were chosen on those of promptModel, and none on others.
type promptRow struct {
	row
	Prompt     int     `json:"prompt"`
	FirstToken float64 `json:"first_token_ms"`
}

const promptModel = "llama-3.2-1b"

func promptRows(t testing.TB) []promptRow {
	var out []promptRow
	for _, text := range results(t) {
		for _, raw := range rawRows(t, text, "prompts") {
			var r promptRow
			require.NoError(t, json.Unmarshal(raw, &r))
			if !r.Passed {
				continue
			}
			r.command = compiling(t, r.Commands)
			r.target = targetOf(t, r.command)
			out = append(out, r)
		}
	}
	require.NotEmpty(t, out)
	return out
}

// predictedPrompts keeps what predictPrompt has predicted.
var predictedPrompts = map[string]*cost.Prompt{}

// predictPrompt predicts the first token of a row.
func predictPrompt(t testing.TB, r promptRow) *cost.Prompt {
	if known, ok := predictedPrompts[r.name()]; ok {
		return known
	}
	p := compileRow(t, r.row, byDefault)
	facts, err := codegen.Facts(p)
	require.NoError(t, err, r.ID)
	require.Positive(t, facts.Prompt, "%s was measured with a kernel for prompts", r.ID)
	m, err := cost.NewPrompt(p, facts.Prompt)
	require.NoError(t, err, r.ID)
	out, err := m.At(r.Prompt)
	require.NoError(t, err, r.ID)
	require.Equal(t, cost.Predicted, out.Label, "%s was measured", r.ID)
	predictedPrompts[r.name()] = out
	return out
}

// TestPromptsHold requires the tolerance of all other predictions of the time to the first token.
func TestPromptsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	unseen := 0
	for _, r := range promptRows(t) {
		hold(t, r.name(), predictPrompt(t, r).FirstToken, r.FirstToken)
		if r.Model != promptModel {
			unseen++
		}
	}
	require.Positive(t, unseen, "rows that no constant was chosen on")
}

// TestPromptsGrow: longer prompts take longer, whatever is read by passes and what by steps.
func TestPromptsGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	p := compileAs(t, "amkc testdata/configs/llama-3.2-1b --dtype bf16 --max-seq 2048", ir.FindTarget("h100"),
		byDefault)
	for _, tokens := range []int{0, 64, 512} {
		m, err := cost.NewPrompt(p, tokens)
		require.NoError(t, err)
		last := 0.0
		for _, n := range []int{1, 100, 512, 1024, 2048} {
			out, err := m.At(n)
			require.NoError(t, err)
			require.Greater(t, out.FirstToken, last, "%d tokens a pass, prompt of %d", tokens, n)
			last = out.FirstToken
		}
		_, err = m.At(2049)
		require.Error(t, err)
	}
}

// promptTable has a line for each row.
func promptTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| GPU | model | tokens | products, ms | attention, ms | step, ms | first token, predicted | " +
		"measured, ms | error |\n|" + strings.Repeat("---|", 9) + "\n")
	for _, r := range promptRows(t) {
		p := predictPrompt(t, r)
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %+.1f %% |\n", r.target.Name, r.Model,
			r.Prompt, p.Products, p.Attention, p.Stepping, p.FirstToken, r.FirstToken,
			100*(p.FirstToken/r.FirstToken-1))
	}
	b.WriteByte('\n')
	return b.String()
}
