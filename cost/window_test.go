package cost_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A step of a windowed model reads the rows of its window, and streams the blocks that they are in: at any position
// beyond it as many bytes as at any other, give or take a block.
func TestWindow(t *testing.T) {
	p := schedule(t, "mistral-window_h200_bf16")
	text := ir.Print(p)
	full, err := ir.Parse([]byte(strings.ReplaceAll(string(text), "max(0,pos-71):pos", "0:pos")), "full.amk")
	require.NoError(t, err)
	m := &p.Model
	row := int64(m.Layers * 2 * m.KVHeads * m.HeadDim * 2)
	weights := predict(t, p, 0).BytesPerToken
	require.Equal(t, weights, predict(t, full, 0).BytesPerToken)
	cache := func(p *ir.Program, pos int) (read, streamed int64) {
		step := predict(t, p, pos)
		for _, s := range step.Stages {
			if strings.HasSuffix(s.Name, ".part") || strings.HasSuffix(s.Name, ".attn") {
				streamed += s.Bytes
			}
		}
		return (step.BytesPerToken - weights) / row, streamed / row
	}
	for _, pos := range []int{1, 15, 16, 17, 71, 72, 87, 88, 127} {
		first, end := max(0, pos-71), (pos+15)/16*16
		read, streamed := cache(p, pos)
		require.Equal(t, [2]int{pos - first, end - first/16*16}, [2]int{int(read), int(streamed)}, pos)
		read, streamed = cache(full, pos)
		require.Equal(t, [2]int{pos, end}, [2]int{int(read), int(streamed)}, pos)
	}
}
