package knobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// The vectors of a pass over a prompt take a 64th of the memory at most, as far as 64 tokens do.
func TestPromptsThatFit(t *testing.T) {
	model := func(hidden int) ir.Model {
		return ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: hidden, Intermediate: 4 * hidden, Heads: hidden / 128,
			KVHeads: 8, HeadDim: 128, Vocab: 32000, MaxSeq: 4096}
	}
	h100, t4, small := ir.FindTarget("h100"), ir.FindTarget("t4"), *ir.FindTarget("a10g")
	unknown := small
	small.HBMBytes, unknown.HBMBytes = 8<<30, 0
	given := func(n int) ir.ScheduleConfig { return tiling("prompt", "tokens", n) }
	for name, c := range map[string]struct {
		hidden int
		target *ir.Target
		config ir.ScheduleConfig
		want   int
		code   string
	}{
		"room enough":              {4096, h100, ir.ScheduleConfig{}, 2048, ""},
		"a small memory":           {4096, &small, ir.ScheduleConfig{}, 320, ""},
		"a wide model there":       {16384, &small, ir.ScheduleConfig{}, 64, ""},
		"a memory of unknown size": {16384, &unknown, ir.ScheduleConfig{}, 2048, ""},
		"the user has decided":     {16384, &small, given(1024), 1024, ""},
		"none":                     {4096, h100, given(0), 0, ""},
		"no tensor cores":          {4096, t4, given(128), 128, codeKnob.ID},
		"none, and none needed":    {4096, t4, given(0), 0, ""},
		"half a tile":              {4096, h100, given(96), 2048, codeRange.ID},
	} {
		m := model(c.hidden)
		out, diags := Resolve(c.config, &m, c.target, Build{Format: ir.MatrixFormat(m.Weights)})
		require.Equal(t, c.want, PromptTokens.Of(&out), name)
		if c.code == "" {
			require.NoError(t, diags.Err(), name)
		} else {
			require.ErrorContains(t, diags.Err(), c.code, name)
		}
	}
}

// What the splits of all tokens of a pass publish has numbers of 31 bits.
func TestPromptsThatCanBeCounted(t *testing.T) {
	m := ir.Model{DTypes: ir.Uniform(ir.BF16), Hidden: 4096, Intermediate: 4096, Heads: 128, KVHeads: 1, HeadDim: 256,
		Vocab: 32000, MaxSeq: 4096}
	target := *ir.FindTarget("h100")
	target.HBMBytes = 0 // of which they would take more than their part
	resolve := func(splits, tokens int) (int, error) {
		config := tiling("attention", "max_splits", splits)
		if tokens > 0 {
			PromptTokens.Set(&config, tokens)
		}
		out, diags := Resolve(config, &m, &target, Build{Format: ir.MatrixFormat(m.Weights)})
		return PromptTokens.Of(&out), diags.Err()
	}
	tokens, err := resolve(128, 0)
	require.NoError(t, err)
	require.Equal(t, 448, tokens)
	_, err = resolve(128, 448)
	require.NoError(t, err)
	_, err = resolve(128, 512)
	require.ErrorContains(t, err, "want 0 to 448, or a smaller attention.max_splits [AMK2002]")
	_, err = resolve(32, 512)
	require.NoError(t, err)
}
