package costcheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
)

// A pass reads weights once, whatever it takes, rows of the cache once for each sequence, and words of exchanges for
// each token.
func TestBytesOfPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	move := func(pass ir.Pass, pos int, built ...ir.Pass) *cost.Traffic {
		l, err := compiler.RunPasses(compiler.Options{Model: root + "testdata/configs/llama-3.1-8b", Name: "m",
			ConfigOnly: true, Target: ir.FindTarget("h200"), Pass: pass, Passes: built,
			Config: asMade(row{earlier: true}, byDefault)})
		require.NoError(t, err)
		p, err := cost.TrafficAt(l.Program, pos)
		require.NoError(t, err)
		return p
	}
	for _, pos := range []int{128, 2048} {
		for _, pass := range []ir.Pass{ir.PassOf(1, 2), ir.PassOf(1, 8), ir.PassOf(8, 1), ir.PassOf(2, 4)} {
			one, have := move(ir.Pass{}, pos, pass), move(pass, pos, pass)
			n, s := int64(pass.NumTokens()), int64(pass.NumSequences())
			polled := n * one.Polled
			if pass == ir.PassOf(1, 8) && pos == 128 {
				// Four units of two rows each poll what one polls of a kv head: q of 4 heads, and k and v, once to
				// attend to and once to append.
				polled += 3 * 32 * 8 * n * (4 + 2 + 2) * 128 * 4
			}
			require.Equal(t, &cost.Traffic{Target: "h200", Position: pos, Variant: one.Variant,
				Pass: pass.Written(), Weights: one.Weights, Cache: s * one.Cache,
				Stored: n * one.Stored, Polled: polled, Caches: s * one.Caches, Widest: n * one.Widest},
				have, "%v at %d", pass, pos)
		}
	}
	// 48 layers, in which a token has 8 experts of three matrices in 2 bytes. Each token of a pass has its own.
	experts := func(pass ir.Pass) int64 {
		l, err := compiler.RunPasses(compiler.Options{Model: root + "testdata/configs/qwen3-30b-a3b", Name: "m",
			ConfigOnly: true, Target: ir.FindTarget("h200"), Pass: pass})
		require.NoError(t, err)
		p, err := cost.TrafficAt(l.Program, 0)
		require.NoError(t, err)
		return p.Weights
	}
	require.Equal(t, int64(7*48*8*3*768*2048*2), experts(ir.PassOf(1, 8))-experts(ir.Pass{}))
	// 32 layers of 4096 rows of K and V of 8 heads of 128 elements in 2 bytes; the down projection's 14336 elements.
	one := move(ir.Pass{}, 0)
	require.Equal(t, int64(32*4096*2*8*128*2), one.Caches)
	require.Equal(t, int64(14336*2), one.Widest)
}
