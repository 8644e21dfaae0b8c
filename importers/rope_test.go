package importers

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
)

// testdata/inv_freq.json holds what transformers 5.23 with PyTorch 2.8 on a CPU computes; testdata/inv_freq.py writes
// it.
func TestRopeAgainstTransformers(t *testing.T) {
	var cases []struct {
		Rope      map[string]any `json:"rope_parameters"`
		HeadDim   int            `json:"head_dim"`
		Positions int            `json:"max_position_embeddings"`
		MaxSeq    int            `json:"max_seq"` // of type longrope
		Scale     float64        `json:"scale"`
		Bits      []string       `json:"bits"`
	}
	text, err := os.ReadFile("testdata/inv_freq.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &cases))
	// What Llama 2 and 3.x, TinyLlama, SmolLM2 and the fixtures use is equal to the bit.
	exact := map[float64][]int{10000: {8, 16, 64, 80, 128}, 100000: {64}, 500000: {16, 64, 128}}
	off, total, kinds := 0, 0, map[any]int{}
	for _, c := range cases {
		kind, theta := c.Rope["rope_type"], c.Rope["rope_theta"].(float64)
		kinds[kind]++
		s, err := importConfig(t, edit(modeltest.TinyConfig, fieldsOf{"rope_parameters": c.Rope, "head_dim": c.HeadDim,
			"max_position_embeddings": c.Positions}), Source{MaxSeq: c.MaxSeq})
		require.NoError(t, err, "%v", c.Rope)
		g := s.Graph
		require.InEpsilon(t, c.Scale, g.Rope.Scale, 1e-15, "%v", c.Rope)
		require.Len(t, g.Rope.InvFreq, len(c.Bits))
		for j, bits := range c.Bits {
			want, err := strconv.ParseUint(bits, 16, 32)
			require.NoError(t, err)
			ulps := int64(math.Float32bits(g.Rope.InvFreq[j])) - int64(want)
			if slices.Contains(exact[theta], c.HeadDim) && (kind == "default" || kind == "llama3") {
				require.Zero(t, ulps, "%v head_dim %d element %d", c.Rope, c.HeadDim, j)
			}
			require.LessOrEqual(t, max(ulps, -ulps), int64(2), "%v head_dim %d element %d", c.Rope, c.HeadDim, j)
			if ulps != 0 {
				off++
			}
			total++
		}
	}
	require.Less(t, off*100, total, "%d of %d elements differ in the last bits", off, total)
	for kind := range ropeTypes {
		require.GreaterOrEqual(t, kinds[kind], 5, "want cases of rope type %s", kind)
	}
}

// The base, the type and the original length stand in several places, under several names; what contradicts itself or
// depends on the length of the text is refused.
func TestRopeSpellings(t *testing.T) {
	type fields = map[string]any
	yarn := fields{"rope_type": "yarn", "rope_theta": 5e5, "factor": 2, "original_max_position_embeddings": 32}
	want, err := importWith(t, fields{"rope_parameters": yarn})
	require.NoError(t, err)
	for name, same := range map[string]fields{
		"in two objects": {"rope_parameters": yarn, "rope_scaling": yarn},
		"as before": {"rope_theta": 5e5, "rope_scaling": fields{"type": "yarn", "factor": 2,
			"original_max_position_embeddings": 32}},
		"original length next to it": {"rope_theta": 5e5, "rope_scaling": fields{"type": "yarn", "factor": 2},
			"original_max_position_embeddings": 32},
		"original length twice": {"rope_parameters": yarn, "original_max_position_embeddings": 32},
		"defaults": {"rope_theta": 5e5, "rope_scaling": fields{"rope_type": "yarn", "factor": 2,
			"original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1, "truncate": true,
			"attention_factor": nil, "mscale": nil}},
		"factor by the lengths": {"rope_theta": 5e5, "rope_scaling": fields{"rope_type": "yarn", "factor": nil,
			"original_max_position_embeddings": 32}},
		"keys of other types": {"rope_theta": 5e5, "rope_scaling": fields{"type": "yarn", "factor": 2,
			"original_max_position_embeddings": 32, "low_freq_factor": 4, "short_factor": []int{2}}},
	} {
		got, err := importWith(t, same)
		require.NoError(t, err, name)
		require.Equal(t, want.Rope, got.Rope, name)
	}
	for name, c := range map[string]struct {
		fields fields
		want   string
	}{
		"two lengths": {fields{"rope_parameters": yarn, "original_max_position_embeddings": 64},
			"rope_parameters.original_max_position_embeddings: error: is 32, but original_max_position_embeddings is " +
				"64"},
		"a shrunk model": {fields{"rope_scaling": fields{"type": "yarn", "factor": nil},
			"original_max_position_embeddings": 128}, "is null, which stands for max_position_embeddings over"},
		"factor missing": {fields{"rope_scaling": fields{"type": "yarn"}}, "is missing; rope type yarn needs factor"},
		"a base of 1": {fields{"rope_theta": 1, "rope_scaling": fields{"type": "yarn", "factor": 2}},
			"which is 1; want more than 1"},
		"truncate": {fields{"rope_scaling": fields{"type": "yarn", "factor": 2, "truncate": nil}},
			"want true or false"},
		"of no type": {fields{"rope_scaling": fields{"type": "linear", "factor": 2, "beta": 32}},
			"beta: error: is not part of rope type linear, so it may change the model; accepted: rope_type, " +
				"rope_theta, factor"},
		"no type of transformers": {fields{"rope_scaling": fields{"type": "axial", "factor": 2}}, `rope type "axial" ` +
			"is not modelled; accepted: default, dynamic, linear, llama3, longrope, proportional, yarn"},
		"proportional to nothing": {fields{"rope_scaling": fields{"type": "proportional",
			"partial_rotary_factor": nil}}, "rope_scaling.partial_rotary_factor: error: is null; want a number from"},
		"too few factors": {fields{"rope_scaling": fields{"type": "longrope", "short_factor": []int{1, 1, 1, 1},
			"long_factor": []int{1, 1, 1}}}, "long_factor: error: is an array of 3; want an array of 4 numbers"},
		"no factors": {fields{"rope_scaling": fields{"type": "longrope", "short_factor": "dynamic",
			"long_factor": []int{1, 1, 1, 1}}}, `short_factor: error: is "dynamic"; want an array of 4 numbers`},
		"grown from 1": {fields{"rope_scaling": fields{"type": "longrope", "short_factor": []int{1, 1, 1, 1},
			"long_factor": []int{1, 1, 1, 1}}, "original_max_position_embeddings": 1},
			"original_max_position_embeddings, which is 1; want more than 1"},
	} {
		_, err := importWith(t, c.fields)
		require.ErrorContains(t, err, c.want, name)
	}
	dynamic := edit(modeltest.TinyConfig, fieldsOf{"rope_scaling": fields{"type": "dynamic", "factor": 2}})
	within, err := importConfig(t, dynamic, Source{MaxSeq: 64})
	require.NoError(t, err)
	plain, err := importConfig(t, modeltest.TinyConfig, Source{})
	require.NoError(t, err)
	require.Equal(t, plain.Graph.Rope, within.Graph.Rope)
	_, err = importConfig(t, dynamic, Source{MaxSeq: 65})
	require.ErrorContains(t, err, "--max-seq is 65; accepted: --max-seq up to 64")
}
