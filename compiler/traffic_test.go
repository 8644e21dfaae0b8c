package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/ir"
)

// A step reads all that its layers keep besides a cache, once, and writes it. The facts of a build and the cost model
// count the same bytes.
func TestBytesOfStates(t *testing.T) {
	l := lowerModel(t, "zoo/qwen3-5-text", "h200", ir.BF16, 48, ir.ScheduleConfig{})
	facts, err := codegen.Facts(l.Program)
	require.NoError(t, err)
	kept := int64(0)
	for i := range l.Program.Buffers {
		if b := &l.Program.Buffers[i]; b.Kind == ir.Recurrent {
			kept += int64(b.Bytes() * max(1, b.Count))
		}
	}
	require.NotZero(t, kept)
	require.Equal(t, kept, facts.Traffic.States)
	c, err := cost.New(l.Program)
	require.NoError(t, err)
	at, err := c.At(40)
	require.NoError(t, err)
	require.Equal(t, facts.Traffic.Weights+int64(facts.Traffic.CacheBytes(40, 1)), at.BytesPerToken)
}
