package host

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// cuttable has two variants. Stages of the second one have other numbers and the same labels.
func cuttable(stages ...string) *Session {
	exchange := func(stage string, number, layers int) Exchange {
		return Exchange{Stage: stage, Number: number, Layers: layers}
	}
	last := func(label string, before int) int {
		k := before
		for k--; k > 0 && stages[k] != label; {
			k--
		}
		return k
	}
	n := len(stages)
	down, head := last("L{i}.down", n), last("lm_head", n)
	return &Session{
		facts: &Facts{Stages: stages, Variants: []Variant{
			{Exchanges: []Exchange{exchange("embed", 0, 0), exchange("L{i}.qkv", slices.Index(stages, "L{i}.qkv"), 3),
				exchange("L{i}.attn", slices.Index(stages, "L{i}.attn"), 3), exchange("L{i}.down", down, 3),
				exchange("lm_head", head, 0)}},
			{Exchanges: []Exchange{exchange("embed", 0, 0), exchange("L{i}.qkv", slices.Index(stages, "L{i}.qkv"), 3),
				exchange("L{i}.part", last("L{i}.part", n), 3), exchange("L{i}.attn", last("L{i}.attn", n), 3),
				exchange("L{i}.down", down, 3), exchange("lm_head", head, 0)}}}},
		info: Info{Layers: 3, VariantEnds: []int{512, 1024}}}
}

// The parts of a step do all of its stages once and in order, each at its exchange: in a layer those of the position's
// variant, and no stage of another layer.
func TestCuttings(t *testing.T) {
	s := cuttable("embed", "L{i}.qkv", "L{i}.attn", "L{i}.part", "L{i}.attn", "L{i}.part", "L{i}.attn", "L{i}.down",
		"hidden", "lm_head") // the second part and attn are those of a variant in the middle
	for position, numbers := range map[int][]uint32{0: {1, 2, 7}, 600: {1, 5, 6, 7}} {
		cuts := s.cuttings(position)
		require.Len(t, cuts, 2)
		require.Equal(t, []string{ofLayers, ofStages}, []string{cuts[0].of, cuts[1].of})
		require.Len(t, cuts[0].parts, 3+1, "a launch for each layer, the embedding with the first, and one for the end")
		require.Len(t, cuts[1].parts, 1+3*len(numbers)+1)
		type done struct {
			stage uint32
			layer int
		}
		want := []done{{0, 0}}
		for layer := range 3 {
			for _, n := range numbers {
				want = append(want, done{n, layer})
			}
		}
		want = append(want, done{8, 3}, done{9, 3})
		for _, c := range cuts {
			var is []done
			before := uint32(noStage)
			for k, p := range c.parts {
				require.Equal(t, len(is), p.ended, "of %s: part %d", c.of, k)
				require.Equal(t, before, p.before, "of %s: part %d", c.of, k)
				require.NotEmpty(t, p.stages)
				for _, n := range p.stages {
					is = append(is, done{n, p.layer})
					before = n
				}
			}
			require.Equal(t, want, is, c.of)
		}
		of := cuts[1].parts[1+2*len(numbers)-1]
		require.Equal(t, part{stages: []uint32{7}, layer: 1, ended: 2 * len(numbers), before: numbers[len(numbers)-2]},
			of, "down of the second layer")
	}
	b := (&timedParts{}).encode(make([]byte, launchSize),
		part{stages: []uint32{7, 9}, layer: 2, ended: 5, before: 4}, true)
	require.Len(t, b, launchSize+2*8+(6+PartStages)*4)
	words := make([]uint32, 8)
	_, err := binary.Decode(b[launchSize+16:], binary.LittleEndian, words)
	require.NoError(t, err)
	require.Equal(t, []uint32{2, 5, 4, 1, 2, 7, 9, 0}, words)
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
