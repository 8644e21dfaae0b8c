package cost_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
)

func predictPrompt(t testing.TB, p *ir.Program, pass, tokens int) *cost.Prompt {
	m, err := cost.NewPrompt(p, pass)
	require.NoError(t, err)
	out, err := m.At(tokens)
	require.NoError(t, err)
	return out
}

func TestPartsOfPrompts(t *testing.T) {
	p := schedule(t, pycoder)
	for _, c := range []struct{ pass, tokens, passes, steps int }{
		{0, 40, 0, 40},     // no kernel for prompts
		{512, 7, 0, 7},     // too few tokens
		{512, 8, 1, 0},     // enough
		{512, 512, 1, 0},   // as many as a pass has
		{512, 513, 1, 1},   // and one more
		{512, 516, 1, 4},   // and a rest that is too short for a pass
		{512, 1024, 2, 0},  // two
		{64, 128, 2, 0},    // of 64
		{1024, 1024, 1, 0}, // of two variants
	} {
		got := predictPrompt(t, p, c.pass, c.tokens)
		require.Equal(t, c.passes, got.Passes, "%+v", c)
		require.Equal(t, c.steps, got.Steps, "%+v", c)
		require.InEpsilon(t, got.FirstToken, got.Products+got.Attention+got.Head+got.Stepping, 1e-9)
		require.Equal(t, c.steps == 0, got.Head > 0, "%+v", c)
		require.Equal(t, c.passes > 0, got.Attention > 0, "%+v", c)
		require.Equal(t, got, predictPrompt(t, p, c.pass, c.tokens), "the same program, the same numbers")
	}
	one := predictPrompt(t, p, 512, 1)
	require.InEpsilon(t, predict(t, p, 0).Latency/1e3, one.FirstToken, 1e-9, "a prompt of one token is a step")
	for _, tokens := range []int{0, -3, 1025} {
		m, err := cost.NewPrompt(p, 512)
		require.NoError(t, err)
		_, err = m.At(tokens)
		require.Equal(t, "AMK3602", codeOf(t, err))
	}
}

// What the cache has of a prompt is not read; the positions of the rest are as they are.
func TestPromptsThatAreCached(t *testing.T) {
	m, err := cost.NewPrompt(schedule(t, pycoder), 512)
	require.NoError(t, err)
	at := func(cached, tokens int) *cost.Prompt {
		p, err := m.After(cached, tokens)
		require.NoError(t, err)
		require.Equal(t, cached, p.Cached)
		return p
	}
	whole, rest := at(0, 1000), at(512, 1000)
	require.Equal(t, []int{2, 1}, []int{whole.Passes, rest.Passes})
	require.Equal(t, cost.NeverMeasured, rest.Label)
	first := at(0, 513)
	require.InEpsilon(t, whole.Products+whole.Attention, first.Products+first.Attention+rest.Products+rest.Attention,
		1e-9)
	require.Equal(t, whole.Stepping, rest.Stepping)
	require.Equal(t, 0, at(999, 1000).Passes)
	for _, cached := range []int{-1, 1000} {
		_, err := m.After(cached, 1000)
		require.Equal(t, "AMK3602", codeOf(t, err))
	}
}

// Alongside others, parts take no longer than they may unless the least does, and all parts and launches make the time
// to the first token.
func TestPromptsAlongsideOthers(t *testing.T) {
	m, err := cost.NewPrompt(schedule(t, pycoder), 512)
	require.NoError(t, err)
	whole, err := m.At(999) // the last one is decoded with the others
	require.NoError(t, err)
	reading := whole.Products + whole.Attention
	last := 0
	for _, share := range []float64{0, 0.4, 0.7, 9} { // of the reading that fits into a pause
		pause := time.Duration((share*reading + 0.2) * 8 / 7 * 1e6)
		a, err := m.Between(0, 1000, pause, 200*time.Microsecond)
		require.NoError(t, err)
		require.GreaterOrEqual(t, a.FirstToken, reading+float64(a.Parts)*a.Launch-1e-9)
		require.LessOrEqual(t, a.Launch, 0.2)
		if share > 0.5 { // with less, 64 tokens at the last positions take longer
			require.LessOrEqual(t, a.Longest, pause.Seconds()*1e3*7/8)
		}
		require.True(t, last == 0 || a.Parts < last, "%d parts, after %d with less time", a.Parts, last)
		last = a.Parts
	}
	require.Equal(t, 1, last)
	for _, c := range []struct{ cached, tokens, pass int }{{99, 100, 512}, {0, 100, 0}, {0, 1, 512}} {
		m, err := cost.NewPrompt(schedule(t, pycoder), c.pass)
		require.NoError(t, err)
		a, err := m.Between(c.cached, c.tokens, time.Second, time.Second)
		require.NoError(t, err)
		require.Nil(t, a)
	}
}

// A window hides rows: of two models that differ in it alone, the one with it attends for less time.
func TestPromptsWithWindows(t *testing.T) {
	p := schedule(t, "mistral-window_h200_bf16")
	full, err := ir.Parse([]byte(strings.ReplaceAll(string(ir.Print(p)), "max(0,pos-71):pos", "0:pos")), "full.amk")
	require.NoError(t, err)
	windowed, whole := predictPrompt(t, p, 512, 120), predictPrompt(t, full, 512, 120)
	require.Less(t, windowed.Attention, whole.Attention)
	require.Equal(t, windowed.Products, whole.Products)
}

// What a GPU is better at shortens what it is for.
func TestPromptsOnOtherGPUs(t *testing.T) {
	base := predictPrompt(t, schedule(t, pycoder), 512, 513)
	with := func(edit func(t *ir.Target)) *cost.Prompt {
		p := schedule(t, pycoder)
		target := *p.Target
		edit(&target)
		p.Target = &target
		return predictPrompt(t, p, 512, 513)
	}
	slow := with(func(t *ir.Target) { t.HBMGBs /= 1000 })
	require.Greater(t, slow.Products, base.Products, "weights come from memory once")
	plain := with(func(t *ir.Target) { t.Arch = "sm_80" })
	for name, label := range map[string]string{cost.CalibratedOn: cost.Predicted, "other": cost.NeverMeasured} {
		p := schedule(t, pycoder)
		target := *p.Target
		target.Name = name
		p.Target = &target
		require.Equal(t, label, predictPrompt(t, p, 512, 513).Label, "prompts were measured on one GPU")
		require.Equal(t, cost.NeverMeasured, predictPrompt(t, p, 512, 511).Label, "none was as short")
	}
	require.Contains(t, strings.Join(plain.Assumptions, "\n"), "products by mma")
	none := predictPrompt(t, schedule(t, pycoder), 0, 20)
	require.Contains(t, strings.Join(none.Assumptions, "\n"), "steps read them")
}
