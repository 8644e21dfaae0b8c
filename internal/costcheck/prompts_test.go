package costcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
)

// A promptRow is a row of section prompts, or of timedPrompts.
type promptRow struct {
	row
	Prompt     int     `json:"prompt"`
	FirstToken float64 `json:"first_token_ms"`
}

// otherPromptKernels are the builds of amkc that have rows of section prompts with an earlier kernel for prompts:
// 128 rows by 64 tokens at a time, a chain for each quarter, and attention that brings splits together in memory. Rows
// do not say it, so those of any other build are compared.
var otherPromptKernels = []string{"eee40e5700c7", "30c27ad2ec78", "546ff4916942"}

// timedPrompts are first tokens that have no row: 30 November 2026, one H200, bench --prompt, the host's clock, check
// passed, a build with 8,448 positions, a kernel whose passes had tokens of one variant (docs/performance.md).
var timedPrompts = []struct {
	model, weights string
	tokens         int
	ms             float64
}{
	{"llama-3.1-8b", "int4:g128", 2048, 147.5},
}

// promptRows returns the prompts that are compared, and how many rows are not: of otherPromptKernels.
func promptRows(t testing.TB) (out []promptRow, other int) {
	for _, p := range timedPrompts {
		r := promptRow{Prompt: p.tokens, FirstToken: p.ms}
		r.Model, r.Weights, r.target, r.Defaults = p.model, p.weights, ir.FindTarget(cost.CalibratedOn), 2
		r.ID = strings.TrimSpace(fmt.Sprintf("prompt of %d, %s %s", p.tokens, p.model, p.weights))
		r.command = fmt.Sprintf("amkc testdata/configs/%s --dtype bf16 --max-seq 8448", p.model)
		if p.weights != "" {
			r.command += " --weights " + p.weights
		}
		out = append(out, r)
	}
	for _, text := range results(t) {
		for _, raw := range rawRows(t, text, "prompts") {
			var r promptRow
			require.NoError(t, json.Unmarshal(raw, &r))
			if !r.Passed {
				continue
			}
			if slices.Contains(otherPromptKernels, amkcOf(t, text, r.Environment)) {
				other++
				continue
			}
			r.command = compiling(t, r.Commands)
			r.target = targetOf(t, r.command)
			out = append(out, r)
		}
	}
	return out, other
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
	// One prompt is not enough to say it of quantised matrices, nor of experts.
	if r.Weights == "" && p.Model.Most(ir.ExpertsOf) == 0 {
		require.Equal(t, cost.Predicted, out.Label, "%s was measured", r.ID)
	}
	predictedPrompts[r.name()] = out
	return out
}

// TestPromptsHold requires the tolerance of all other predictions of the time to the first token.
func TestPromptsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	rows, other := promptRows(t)
	for _, r := range rows {
		hold(t, r.name(), predictPrompt(t, r).FirstToken, r.FirstToken)
	}
	t.Logf("%d prompts are compared; %d rows are left out, of an earlier kernel for prompts", len(rows), other)
}

// TestPromptsGrow: longer prompts take longer, whatever is read by passes and what by steps, and products by mma take
// longer than by wgmma.
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
	plain := *p.Target
	plain.Arch = "sm_80"
	wide, narrow := *p, *p
	narrow.Target = &plain
	var products [2]float64
	for i, of := range []*ir.Program{&wide, &narrow} {
		m, err := cost.NewPrompt(of, 512)
		require.NoError(t, err)
		out, err := m.At(512)
		require.NoError(t, err)
		products[i] = out.Products
	}
	require.Greater(t, products[1], products[0], "mma instead of wgmma")
}

// promptTable has a line for each row.
func promptTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| GPU | model | tokens | products, ms | attention, ms | head, ms | first token, predicted | " +
		"measured, ms | error |\n|" + strings.Repeat("---|", 9) + "\n")
	rows, other := promptRows(t)
	for _, r := range rows {
		p := predictPrompt(t, r)
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %+.1f %% |\n", r.target.Name, r.build(),
			r.Prompt, p.Products, p.Attention, p.Head, p.FirstToken, r.FirstToken,
			100*(p.FirstToken/r.FirstToken-1))
	}
	fmt.Fprintf(&b, "\nLeft out: %d rows of docs/results, of an earlier kernel for prompts.\n\n", other)
	return b.String()
}
