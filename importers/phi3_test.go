package importers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/transform"
)

// Fields of a Phi-3: the forms that mean the same, and what is refused.
func TestFieldsOfPhi3(t *testing.T) {
	short, long := []int{1, 1, 1, 1, 2, 2, 2, 2}, []int{1, 1, 2, 2, 4, 4, 8, 8}
	rope := func(kind string) fieldsOf {
		return fieldsOf{"type": kind, "short_factor": short, "long_factor": long}
	}
	scaled := fieldsOf{"rope_scaling": rope("longrope"), "original_max_position_embeddings": 64}
	base, err := importConfig(t, edit(phi3Config, scaled), Source{})
	require.NoError(t, err)
	for name, changes := range map[string]fieldsOf{
		"su":   {"rope_scaling": rope("su")},
		"yarn": {"rope_scaling": rope("yarn")},
		"as transformers 5 writes it": {"rope_scaling": remove{}, "partial_rotary_factor": 1.0,
			"rope_parameters": fieldsOf{"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 1.0,
				"short_factor": short, "long_factor": long, "original_max_position_embeddings": 64}},
		"as it is published": {"attention_bias": false, "attention_dropout": 0.0, "embd_pdrop": 0.0,
			"resid_pdrop": 0.0, "auto_map": fieldsOf{"AutoConfig": "configuration_phi3.Phi3Config",
				"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM", "AutoTokenizer": "Xenova/gpt-4o"},
			"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false,
			"sliding_window": 262144, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu"},
	} {
		s, err := importConfig(t, edit(edit(phi3Config, scaled), changes), Source{})
		require.NoError(t, err, name)
		require.Equal(t, base.Graph, s.Graph, name)
	}
	for name, c := range map[string]struct {
		changes fieldsOf
		want    string
	}{
		"another class": {fieldsOf{"auto_map": fieldsOf{"AutoModelForCausalLM": "modeling_phi4mm.Phi4MM"}},
			"auto_map: error: is an object; it is known to have no effect when it names the classes of the family"},
		"biases": {fieldsOf{"attention_bias": true}, "the projections have biases, which is not modelled"},
		"gelu":   {fieldsOf{"hidden_act": "gelu"}, `hidden_act: error: "gelu" is not modelled`},
		"linear": {fieldsOf{"rope_scaling": fieldsOf{"type": "linear", "factor": 2}},
			`rope type "linear" is not modelled; accepted: default, longrope, su, yarn`},
		"factors of another part": {fieldsOf{"rope_scaling": rope("longrope"), "partial_rotary_factor": 0.75},
			"short_factor: error: is an array of 8; want an array of 6 numbers"},
		"two parts": {fieldsOf{"rope_scaling": fieldsOf{"partial_rotary_factor": 0.5},
			"partial_rotary_factor": 0.75}, "partial_rotary_factor: error: is 0.5, but partial_rotary_factor is 0.75"},
		"no pair": {fieldsOf{"partial_rotary_factor": 0.1}, "so that 1 of the 16 elements of a head are rotated; " +
			"want an even number from 2 on"},
		"more than all": {fieldsOf{"partial_rotary_factor": 1.5}, "is 1.5; want a number from 1e-06 to 1"},
		// transformers' class takes its default, and not what the object says
		"the original length in the object alone": {fieldsOf{"original_max_position_embeddings": remove{},
			"rope_scaling": fieldsOf{"type": "longrope", "short_factor": short, "long_factor": long,
				"original_max_position_embeddings": 64}}, "is 64, but original_max_position_embeddings is 4096"},
	} {
		_, err := importConfig(t, edit(phi3Config, c.changes), Source{})
		require.ErrorContains(t, err, c.want, name)
	}
	s, err := importConfig(t, `{"model_type": "phi3"}`, Source{MaxSeq: 64})
	require.NoError(t, err)
	require.Equal(t, ir.Model{Architecture: "Phi3ForCausalLM", DTypes: ir.Uniform(ir.BF16), Layers: 32, Hidden: 3072,
		Intermediate: 8192, Heads: 32, KVHeads: 32, HeadDim: 96, Vocab: 32064, MaxSeq: 64, Eps: 1e-5}, s.Graph.Model)
}

// A build is for texts that are longer than the original length, or for others. It says which, unless the user has
// chosen the shorter ones, for which nothing differs from transformers.
func TestLongRopeHasTwoSides(t *testing.T) {
	config := func(short, long int) string {
		repeated := func(n int) []int { return []int{n, n, n, n, n, n, n, n} }
		return edit(phi3Config, fieldsOf{"original_max_position_embeddings": 64, "rope_scaling": fieldsOf{
			"type": "longrope", "short_factor": repeated(short), "long_factor": repeated(long)}})
	}
	for maxSeq, factor := range map[int]float32{1: 2, 64: 2, 65: 4, 512: 4} {
		s, err := importConfig(t, config(2, 4), Source{MaxSeq: maxSeq})
		require.NoError(t, err)
		require.Equal(t, 1/factor, s.Graph.Rope.InvFreq[0])
		if factor == 2 {
			require.Empty(t, s.Warnings)
			continue
		}
		require.Len(t, s.Warnings, 1)
		require.Contains(t, s.Warnings[0].Error(), "long_factor is used for texts of every length")
		require.Contains(t, s.Warnings[0].Error(), "compile with --max-seq 64 [AMK1119]")
	}
	s, err := importConfig(t, config(2, 2), Source{})
	require.NoError(t, err)
	require.Empty(t, s.Warnings, "both are the same")
	s, err = importConfig(t, edit(config(2, 4), fieldsOf{"original_max_position_embeddings": DefaultMaxSeq,
		"max_position_embeddings": 131072}), Source{})
	require.NoError(t, err)
	require.Len(t, s.Warnings, 1)
	require.Contains(t, s.Warnings[0].Error(),
		"short_factor is used, for texts of up to 4096 positions; with --max-seq")
}

// Kinds of layers that rotate parts of two sizes would pack one family of weights in two ways.
func TestPartsDifferByKind(t *testing.T) {
	s, err := importConfig(t, edit(gemma3Config, fieldsOf{"sliding_window": 16}), Source{})
	require.NoError(t, err)
	for k := range s.Graph.Kinds {
		if rope := s.Graph.Kinds[k].Rope; rope != nil {
			rope.InvFreq = rope.InvFreq[:len(rope.InvFreq)/2]
		}
	}
	_, err = LowerGraph(s.Graph)
	require.ErrorContains(t, err, "in another; want layers that pack their weights alike")
}

// Rows of a fused matrix that rotate in part are paired within that part.
func TestPartialRotationOfFusedRows(t *testing.T) {
	s, err := importConfig(t, edit(phi3Config, fieldsOf{"partial_rotary_factor": 0.75}), Source{})
	require.NoError(t, err)
	require.Equal(t, 12, s.Graph.Rope.Turned())
	p, err := LowerGraph(s.Graph)
	require.NoError(t, err)
	chains := map[string]transform.Chain{}
	for _, b := range p.Buffers {
		if len(b.Pieces) == 1 {
			chains[b.Name] = b.Pieces[0].Chain
		}
		if b.Name == "rope.inv_freq" {
			require.Equal(t, []int{6}, b.Shape)
		}
	}
	pairs := transform.Transform{Kind: transform.Pairs, Ints: []int{16, 12}}
	require.Equal(t, transform.Of(transform.Rows, 0, 64).Then(pairs), chains["L{i}.q_proj.weight"])
	require.Equal(t, transform.Of(transform.Rows, 64, 96).Then(pairs), chains["L{i}.k_proj.weight"])
	require.Equal(t, transform.Of(transform.Rows, 96, 128), chains["L{i}.v_proj.weight"])
	require.Equal(t, transform.Of(transform.Rows, 96, 192), chains["L{i}.up_proj.weight"])
}
