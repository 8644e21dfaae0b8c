package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func cuttable(stages ...string) *Session {
	exchange := func(stage string, layers int) Exchange { return Exchange{Stage: stage, Layers: layers} }
	return &Session{
		facts: &Facts{Stages: stages, Variants: []Variant{
			{Exchanges: []Exchange{exchange("embed", 0), exchange("L{i}.qkv", 3), exchange("L{i}.attn", 3),
				exchange("L{i}.down", 3), exchange("lm_head", 0)}},
			{Exchanges: []Exchange{exchange("embed", 0), exchange("L{i}.qkv", 3), exchange("L{i}.part", 3),
				exchange("L{i}.attn", 3), exchange("L{i}.down", 3), exchange("lm_head", 0)}}}},
		info: Info{Layers: 3, VariantEnds: []int{512, 1024}}}
}

// The parts of a step follow one another without a gap, and each stage of the position's variant begins one, or each
// layer does.
func TestCuttings(t *testing.T) {
	s := cuttable("embed", "L{i}.qkv", "L{i}.attn", "L{i}.part", "L{i}.attn", "L{i}.down", "hidden", "lm_head")
	for position, stages := range map[int]int{0: 3, 600: 4} {
		cuts := s.cuttings(position)
		require.Len(t, cuts, 2)
		require.Equal(t, []string{ofLayers, ofStages}, []string{cuts[0].of, cuts[1].of})
		require.Len(t, cuts[0].parts, 3+1, "a launch for each layer, the embedding with the first, and one for the end")
		require.Len(t, cuts[1].parts, 1+3*stages+1)
		for _, c := range cuts {
			require.Equal(t, [2]int{1, 5}, [2]int{c.loopFirst, c.loopLast})
			end, rotating := uint32(0), 0
			for _, p := range c.parts {
				require.Equal(t, end, p.first)
				require.Greater(t, p.end, p.first)
				if end = p.end; p.rotates && p.first > 0 {
					rotating++
				}
			}
			require.Equal(t, ^uint32(0), end)
			require.GreaterOrEqual(t, rotating, 2, "of each layer but the first, whose part has the embedding")
		}
		down, attention := cuts[1].parts[1+2*stages-1], cuts[1].parts[1+2*stages-2]
		require.Equal(t, uint32(2*placeOfLayers+5), down.first, "down of the second layer")
		require.Equal(t, uint32(2*placeOfLayers+2*(stages-2)), attention.first, "of the two, that of the variant")
	}
	require.Len(t, (&timedParts{}).encode(make([]byte, launchSize), &cutting{}, part{}, true), partSize)
}

// A step is not cut where layers are of several kinds, stand one by one, or are interrupted.
func TestNoCuttings(t *testing.T) {
	for i, s := range []*Session{
		cuttable("embed", "L00.qkv", "L01.qkv", "lm_head"),
		cuttable("embed", "L{i}.qkv", "between", "L{i}.attn", "L{i}.part", "L{i}.attn", "L{i}.down", "lm_head"),
		cuttable("embed", "L{i}.attn", "L{i}.qkv", "L{i}.part", "L{i}.attn", "L{i}.down", "lm_head"),
	} {
		require.Empty(t, s.cuttings(0), fmt.Sprint(i))
	}
	s := cuttable("embed", "L{i}.qkv", "L{i}.attn", "L{i}.part", "L{i}.attn", "L{i}.down", "hidden", "lm_head")
	s.info.Layers = 6
	require.Empty(t, s.cuttings(0), "a loop over some of the layers")
}
