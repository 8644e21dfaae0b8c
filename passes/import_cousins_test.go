package passes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// cousin is a small config of a family of the form of Llama.
func cousin(modelType, class string) string {
	return fmt.Sprintf(`{"architectures": [%q], "model_type": %q, "hidden_size": 64, "intermediate_size": 96,
		"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
		"max_position_embeddings": 512}`, class, modelType)
}

// What distinguishes the graphs of families that share their layers with Llama.
func TestFieldsOfCousins(t *testing.T) {
	smol := cousin("smollm3", "SmolLM3ForCausalLM")
	glm := cousin("glm", "GlmForCausalLM")
	cwm := edit(cousin("cwm", "CwmForCausalLM"), fieldsOf{"rope_scaling": fieldsOf{"type": "linear", "factor": 2}})
	for name, c := range map[string]struct {
		base    string
		changes fieldsOf
		want    string // of traits
		refusal string // instead
	}{
		"granite": {base: graniteConfig, want: "pairs; qkv gate up; 0:full"},
		"smollm3": {base: smol, changes: fieldsOf{"no_rope_layer_interval": 2},
			want: "pairs; tied; qkv gate up; 0:full 1:full unrotated 0:full"},
		"smollm3, a list before an interval": {base: smol,
			changes: fieldsOf{"no_rope_layer_interval": 2, "no_rope_layers": []int{0, 1, 1, 1}},
			want:    "pairs; tied; qkv gate up; 0:full unrotated 1:full 1:full"},
		"smollm3, windows where nothing rotates": {base: smol, changes: fieldsOf{"no_rope_layer_interval": 2,
			"use_sliding_window": true, "sliding_window": 16},
			want: "pairs; tied; qkv gate up; 0:full 1:16 unrotated 0:full"},
		"smollm3, windows that are listed": {base: smol, changes: fieldsOf{"no_rope_layer_interval": 2,
			"use_sliding_window": true, "sliding_window": 16,
			"layer_types": []string{slidingAttention, fullAttention, fullAttention}},
			want: "pairs; tied; qkv gate up; 0:16 1:full unrotated 2:full"},
		"smollm3, windows without use": {base: smol,
			changes: fieldsOf{"layer_types": []string{slidingAttention, fullAttention, fullAttention}},
			refusal: "layers of other kinds"},
		"smollm3, no rotation at all": {base: smol, changes: fieldsOf{"no_rope_layer_interval": 1},
			refusal: "leaves no layer a rotary embedding"},
		"smollm3, two": {base: smol, changes: fieldsOf{"no_rope_layers": []int{1, 2, 1}},
			refusal: "has 2; want 1 for a layer that rotates"},
		"smollm3, too short a list": {base: smol, changes: fieldsOf{"no_rope_layers": []int{1, 0}},
			refusal: "want a list of 3 or more"},
		"seed_oss": {base: cousin("seed_oss", "SeedOssForCausalLM"),
			want: "pairs; qkv+bias gate up; 0:full"},
		"seed_oss, bias of o_proj": {base: cousin("seed_oss", "SeedOssForCausalLM"),
			changes: fieldsOf{"attention_out_bias": true, "attention_bias": false},
			want:    "pairs; qkv o+bias gate up; 0:full"},
		"internlm3": {base: cousin("internlm3", "InternLM3ForCausalLM"), changes: fieldsOf{"qkv_bias": false},
			want: "pairs; qkv gate up; 0:full"},
		"internlm3, biases": {base: cousin("internlm3", "LlamaForCausalLM"),
			changes: fieldsOf{"attention_bias": true, "bias": true},
			want:    "pairs; qkv+bias o+bias gate+bias up+bias down+bias; 0:full"},
		"internlm3, some biases": {base: cousin("internlm3", "LlamaForCausalLM"),
			changes: fieldsOf{"qkv_bias": true},
			refusal: "bias: error: is false, and qkv_bias true; accepted: the same"},
		"internlm3, one switch by both names": {base: cousin("internlm3", "LlamaForCausalLM"),
			changes: fieldsOf{"qkv_bias": true, "attention_bias": false, "bias": true},
			refusal: "attention_bias: error: is false, and qkv_bias is true; want one of them"},
		"internlm3, its own code": {base: cousin("internlm3", "InternLM3ForCausalLM"),
			changes: fieldsOf{"auto_map": fieldsOf{"AutoConfig": "configuration_internlm3.InternLM3Config",
				"AutoModel":            "modeling_internlm3.InternLM3Model",
				"AutoModelForCausalLM": "modeling_internlm3.InternLM3ForCausalLM"}},
			want: "pairs; qkv gate up; 0:full"},
		"internlm3, other code": {base: cousin("internlm3", "InternLM3ForCausalLM"),
			changes: fieldsOf{"auto_map": fieldsOf{"AutoModel": "modeling_x.Model"}},
			refusal: "known to have no effect when it names the classes of the family"},
		"iquestcoder": {base: cousin("iquestcoder", "IQuestCoderForCausalLM"), want: "pairs; qkv gate up; 0:full"},
		"cwm": {base: cwm, changes: fieldsOf{"sliding_window": 16},
			want: "pairs; qkv gate up; 0:full 1:16 1:16"},
		"cwm, biases": {base: cwm, changes: fieldsOf{"attention_bias": true},
			refusal: "is true, which is not modelled"},
		"cwm, no window": {base: cwm, changes: fieldsOf{"sliding_window": nil}, refusal: "want an integer from 1 on"},
		"glm":            {base: glm, want: "neighbours, 6; qkv+bias gate_up; 0:full"},
		"glm, no biases": {base: glm, changes: fieldsOf{"attention_bias": false, "partial_rotary_factor": 0.25},
			want: "neighbours, 3; qkv gate_up; 0:full"},
		"glm, a window": {base: glm, changes: fieldsOf{"sliding_window": 16},
			refusal: "sliding windows are not modelled"},
		"glm, biases of the MLP": {base: glm, changes: fieldsOf{"mlp_bias": true},
			refusal: "the projections of the MLP have biases"},
		"ernie4_5": {base: cousin("ernie4_5", "Ernie4_5ForCausalLM"),
			want: "neighbours; tied; qkv gate up; 0:full"},
		"ernie4_5, biases": {base: cousin("ernie4_5", "Ernie4_5ForCausalLM"), changes: fieldsOf{"use_bias": true},
			want: "neighbours; tied; qkv+bias o+bias gate+bias up+bias down+bias; 0:full"},
		"helium": {base: cousin("helium", "HeliumForCausalLM"),
			changes: fieldsOf{"attention_bias": true}, want: "neighbours; qkv+bias gate up; 0:full"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.base, c.changes), State{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Empty(t, s.Diags)
			require.Equal(t, c.want, traits(s.Graph))
		})
	}
}

// A class may scale its rotation where the config has no object for it, which then says nothing of the base either.
func TestDefaultScalings(t *testing.T) {
	for base, scaling := range map[string]fieldsOf{
		cousin("cwm", "CwmForCausalLM"): {"rope_type": "llama3", "rope_theta": 1e6, "factor": 16, "low_freq_factor": 1,
			"high_freq_factor": 4, "original_max_position_embeddings": 8192},
	} {
		absent, err := importConfig(t, base, State{})
		require.NoError(t, err)
		stated, err := importConfig(t, edit(base, fieldsOf{"rope_parameters": scaling}), State{})
		require.NoError(t, err)
		require.Equal(t, stated.Graph, absent.Graph)
		plain, err := importConfig(t, edit(base,
			fieldsOf{"rope_parameters": fieldsOf{"rope_type": "default"}}), State{})
		require.NoError(t, err)
		require.NotEqual(t, plain.Graph.Rope, absent.Graph.Rope)
		_, err = importConfig(t, edit(base, fieldsOf{"rope_theta": 5e5}), State{})
		require.ErrorContains(t, err, "but rope_theta is 500000; want one of them")
	}
}

// traits spells what distinguishes the families: the rotation, with the pairs of a head if they are not all; tied; the
// projections, with those that have biases; and the kind of each layer with its window.
func traits(g *ir.Graph) string {
	rotation := "pairs"
	if g.Rope.Interleaved {
		rotation = "neighbours"
	}
	if n := len(g.Rope.InvFreq); n < g.Model.HeadDim/2 {
		rotation += fmt.Sprintf(", %d", n)
	}
	if g.Model.Tied {
		rotation += "; tied"
	}
	var linears, layers []string
	seen := map[string]bool{}
	for _, n := range g.Kinds[0].Nodes {
		if n.Op != "linear" {
			continue
		}
		name := strings.TrimSuffix(n.Name, "_proj")
		switch {
		case strings.Contains("qkv", name):
			name = "qkv"
		case strings.HasSuffix(n.Weights[0].Key, "gate_up_proj.weight"):
			name = "gate_up"
		}
		if len(n.Weights) > 1 {
			name += "+bias"
		} else if name == "o" || name == "down" {
			continue
		}
		if !seen[name] {
			linears = append(linears, name)
		}
		seen[name] = true
	}
	for _, kind := range g.Layers {
		window, rotates := "full", " unrotated"
		for _, n := range g.Kinds[kind].Nodes {
			if w := n.IntOr("window", 0); w > 0 {
				window = fmt.Sprint(w)
			}
			if n.Op == "rope" {
				rotates = ""
			}
		}
		layers = append(layers, fmt.Sprintf("%d:%s%s", kind, window, rotates))
	}
	if len(g.Kinds) == 1 {
		layers = layers[:1]
	}
	return rotation + "; " + strings.Join(linears, " ") + "; " + strings.Join(layers, " ")
}
