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
		"room enough":              {4096, h100, ir.ScheduleConfig{}, 512, ""},
		"a small memory":           {4096, &small, ir.ScheduleConfig{}, 320, ""},
		"a wide model there":       {16384, &small, ir.ScheduleConfig{}, 64, ""},
		"a memory of unknown size": {16384, &unknown, ir.ScheduleConfig{}, 512, ""},
		"the user has decided":     {16384, &small, given(1024), 1024, ""},
		"none":                     {4096, h100, given(0), 0, ""},
		"no tensor cores":          {4096, t4, given(128), 128, codeKnob.ID},
		"none, and none needed":    {4096, t4, given(0), 0, ""},
		"half a tile":              {4096, h100, given(96), 512, codeRange.ID},
	} {
		m := model(c.hidden)
		out, diags := Resolve(c.config, &m, c.target, ir.Kept{}, ir.MatrixFormat(m.Weights), 1)
		require.Equal(t, c.want, PromptTokens.Of(&out), name)
		if c.code == "" {
			require.NoError(t, diags.Err(), name)
		} else {
			require.ErrorContains(t, diags.Err(), c.code, name)
		}
	}
}
