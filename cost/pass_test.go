package cost_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
)

func predictPass(t testing.TB, p, one *ir.Program, pos int) *cost.Pass {
	m, err := cost.NewPass(p, one)
	require.NoError(t, err)
	out, err := m.At(pos)
	require.NoError(t, err)
	return out
}

const (
	pycoderRows   = pycoder + "/rows8"
	nemo          = "mistral-nemo_h200_bf16_sequences"
	nemoSequences = nemo + "/sequences4"
)

func TestPartsOfPassesAddUp(t *testing.T) {
	for _, name := range []string{pycoderRows, nemo + "/rows2", nemoSequences} {
		p := schedule(t, name)
		for _, v := range p.Variants {
			got := predictPass(t, p, nil, v.Hi)
			sum := got.StepEnd
			for _, s := range got.Stages {
				sum += s.Total()
				require.GreaterOrEqual(t, min(s.Instructions, s.Exchange, s.Stream), 0.0, "%s %s", name, s.Name)
			}
			require.InEpsilon(t, got.Latency, sum, 1e-6, "%s at %d", name, v.Hi)
			require.Less(t, got.Ceiling, got.Latency, name)
			require.InEpsilon(t, 1e6*float64(got.Rows*got.Sequences)/got.Latency, got.TokensPerSecond, 1e-9)
			require.Zero(t, got.OneToken, "nobody has said what one token is")
			require.Equal(t, got, predictPass(t, p, nil, v.Hi), "the same program, the same numbers")
		}
	}
}

// A pass takes longer than one token, and less than as many passes of one as it has tokens.
func TestPassesBesideOneToken(t *testing.T) {
	for pass, one := range map[string]string{pycoderRows: pycoder, nemo + "/rows2": nemo, nemoSequences: nemo} {
		got := predictPass(t, schedule(t, pass), schedule(t, one), 0)
		tokens := float64(got.Rows * got.Sequences)
		require.InEpsilon(t, got.Latency, got.Times*got.OneToken, 1e-9)
		require.Greater(t, got.Times, 1.0, pass)
		require.Less(t, got.Times, tokens, pass)
	}
}

// Each constant of passes moves what it is about, and nothing else does: 16 bits make no digits.
func TestConstantsOfPasses(t *testing.T) {
	p := schedule(t, pycoderRows)
	with := func(edit func(*cost.PassCalibration)) *cost.Pass {
		fit := cost.PassCalibrated()
		edit(&fit)
		m, err := cost.NewPassWith(p, nil, fit)
		require.NoError(t, err)
		out, err := m.At(0)
		require.NoError(t, err)
		return out
	}
	base := predictPass(t, p, nil, 0)
	slower := with(func(f *cost.PassCalibration) { f.TokenCode *= 10 })
	require.Greater(t, slower.Latency, base.Latency)
	require.Greater(t, slower.Ceiling, base.Ceiling)
	again := with(func(f *cost.PassCalibration) { f.Rereads *= 10 })
	require.Greater(t, again.Latency, base.Latency)
	require.Equal(t, again.Ceiling, base.Ceiling, "the ceiling waits for no word")
	require.Equal(t, base, with(func(f *cost.PassCalibration) { f.DigitQuad, f.IntegerQuad = 1e5, 1e5 }))
}

func TestLabelsOfPasses(t *testing.T) {
	require.True(t, cost.PassesHeld("h100", ir.PassOf(1, 8)))
	require.True(t, cost.PassesHeld("h100", ir.PassOf(8, 1)))
	require.True(t, cost.PassesHeld("h200", ir.PassOf(8, 1)))
	require.True(t, cost.PassesHeld("h200", ir.PassOf(1, 8)))
	require.False(t, cost.PassesHeld("h100", ir.PassOf(2, 4)))
	require.False(t, cost.PassesHeld("h100", ir.PassOf(1, 4)), "passes of eight tokens were measured")
	require.True(t, cost.PassesHeld("h200", ir.PassOf(1, 1)))
	require.False(t, cost.PassesHeld("l4", ir.PassOf(8, 1)))

	four := predictPass(t, schedule(t, nemoSequences), nil, 0)
	require.Equal(t, cost.NeverMeasured, four.Label)
	require.Contains(t, four.Assumptions, "passes of 8 tokens were measured; what 4 take follows from the code")
	eight := predictPass(t, schedule(t, pycoderRows), nil, 0)
	require.Equal(t, cost.Predicted, eight.Label)
	require.NotContains(t, strings.Join(eight.Assumptions, "\n"), "tokens")
}

func TestRefusalsOfPasses(t *testing.T) {
	p := schedule(t, pycoderRows)
	p.Target = nil
	_, err := cost.NewPass(p, nil)
	require.Equal(t, "AMK3601", codeOf(t, err))
	m, err := cost.NewPass(schedule(t, pycoderRows), nil)
	require.NoError(t, err)
	_, err = m.At(508)
	require.Equal(t, "AMK3602", codeOf(t, err))
	_, err = cost.NewPass(schedule(t, pycoderRows), p)
	require.Equal(t, "AMK3601", codeOf(t, err))
}
