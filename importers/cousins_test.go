package importers

import (
	"fmt"
	"math"
	"slices"
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

// ministral3Scaling is the rotation of a Ministral 3 that was trained for 512 positions first.
var ministral3Scaling = fieldsOf{"rope_type": "yarn", "rope_theta": 1e6, "factor": 16,
	"original_max_position_embeddings": 512, "max_position_embeddings": 8192, "llama_4_scaling_beta": 0.1}

// mistral3Config is a Mistral 3 that sees images too.
var mistral3Config = edit(`{"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
	"image_token_index": 10, "projector_hidden_act": "gelu", "spatial_merge_size": 2, "vision_feature_layer": -1,
	"multimodal_projector_bias": false, "vision_config": {"model_type": "pixtral"}}`, fieldsOf{"text_config": fieldsOf{
	"model_type": "mistral", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
	"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 128,
	"max_position_embeddings": 512, "sliding_window": 16}})

// What distinguishes the graphs of families that share their layers with Llama.
func TestFieldsOfCousins(t *testing.T) {
	smol := cousin("smollm3", "SmolLM3ForCausalLM")
	hunyuan := cousin("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")
	glm, exaone := cousin("glm", "GlmForCausalLM"), cousin("exaone4", "Exaone4ForCausalLM")
	cwm := edit(cousin("cwm", "CwmForCausalLM"), fieldsOf{"rope_scaling": fieldsOf{"type": "linear", "factor": 2}})
	const bare = "norms q_norm k_norm post_attn_norm post_mlp_norm; "
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
		"glm4": {base: cousin("glm4", "Glm4ForCausalLM"),
			want: "neighbours, 6; qkv+bias gate_up; norms input_norm post_attn_norm post_norm post_mlp_norm; 0:full"},
		"apertus": {base: cousin("apertus", "ApertusForCausalLM"), changes: fieldsOf{"attention_bias": true,
			"qk_norm": true, "post_norm": false, "hidden_dropout": 0},
			want: "pairs; qkv+bias o+bias up; norms input_norm q_norm k_norm post_norm; 0:full"},
		"apertus, another activation": {base: cousin("apertus", "ApertusForCausalLM"),
			changes: fieldsOf{"hidden_act": "silu"}, refusal: `"relu", "relu2", "xielu"`},
		"apertus, no norms of heads": {base: cousin("apertus", "ApertusForCausalLM"),
			changes: fieldsOf{"qk_norm": false}, refusal: "queries and keys have no norms, which is not modelled"},
		"arcee": {base: cousin("arcee", "ArceeForCausalLM"), changes: fieldsOf{"mlp_bias": true},
			want: "pairs; qkv up+bias down+bias; 0:full"},
		"arcee, another activation": {base: cousin("arcee", "ArceeForCausalLM"),
			changes: fieldsOf{"hidden_act": "silu"}, refusal: `"silu" is not modelled; accepted: "gelu"`},
		"exaone4": {base: exaone, changes: fieldsOf{"sliding_window": 16, "sliding_window_pattern": 2},
			want: "pairs; qkv gate up; " + bare + "0:16 1:full unrotated 0:16"},
		"exaone4, a pattern in letters": {base: exaone, changes: fieldsOf{"sliding_window": 16,
			"sliding_window_pattern": "LLLG", "layer_types": []string{fullAttention, slidingAttention, fullAttention}},
			want: "pairs; qkv gate up; " + bare + "0:full unrotated 1:16 0:full unrotated"},
		"exaone4, letters alone": {base: exaone, changes: fieldsOf{"sliding_window_pattern": "LLLG"},
			refusal: `sliding_window_pattern: error: is "LLLG"; want an integer`},
		"exaone4, no window": {base: exaone, changes: fieldsOf{"sliding_window": nil},
			want: "pairs; qkv gate up; " + bare + "0:full"},
		"exaone4, biases": {base: exaone, changes: fieldsOf{"attention_bias": true},
			refusal: "the projections have biases"},
		"ministral3": {base: cousin("ministral3", "Ministral3ForCausalLM"),
			changes: fieldsOf{"rope_parameters": ministral3Scaling}, want: "pairs; qkv gate up; 0:full"},
		"ministral3, positions beyond": {base: cousin("ministral3", "Ministral3ForCausalLM"),
			changes: fieldsOf{"rope_parameters": ministral3Scaling, "max_position_embeddings": 513},
			refusal: "from position 512 on, which is not modelled; accepted: 0, or --max-seq up to 512"},
		"ministral3, without its factor": {base: cousin("ministral3", "Ministral3ForCausalLM"),
			changes: fieldsOf{"rope_parameters": fieldsOf{"rope_type": "yarn", "factor": 2}},
			refusal: "llama_4_scaling_beta: error: is missing"},
		"mistral3": {base: mistral3Config, want: "pairs; qkv gate up; 0:16"},
		"mistral3, tied outside": {base: mistral3Config, changes: fieldsOf{"tie_word_embeddings": true},
			want: "pairs; tied; qkv gate up; 0:16"},
		"mistral3, no text_config": {base: mistral3Config, changes: fieldsOf{"text_config": nil},
			refusal: "want an object, which describes the language model"},
		"mistral3, a part of another type": {base: mistral3Config,
			changes: fieldsOf{"text_config": fieldsOf{"model_type": "llama"}},
			refusal: `is "llama"; want "mistral", "ministral3"`},
		"hunyuan": {base: hunyuan, changes: fieldsOf{"use_qk_norm": true, "attention_bias": true},
			want: "pairs; qkv+bias o+bias gate up; norms input_norm q_norm k_norm post_norm; 0:full"},
		"hunyuan, no norms of heads": {base: hunyuan, changes: fieldsOf{"use_qk_norm": false},
			refusal: "heads of queries and keys have no norm"},
		"hunyuan, an alpha of another type": {base: hunyuan,
			changes: fieldsOf{"rope_scaling": fieldsOf{"type": "linear", "factor": 2, "alpha": 2}},
			refusal: "rope_scaling.alpha: error: is not part of rope type linear"},
		"hyperclovax": {base: cousin("hyperclovax", "HyperCLOVAXForCausalLM"),
			want: "pairs; qkv gate up; norms input_norm post_attn_norm post_norm post_mlp_norm; 0:full"},
		"hyperclovax, scaled norms": {base: cousin("hyperclovax", "HyperCLOVAXForCausalLM"),
			changes: fieldsOf{"residual_multiplier": 0.5}, refusal: "accepted: 1, or use_post_norm false"},
		"hyperclovax, no norms after": {base: cousin("hyperclovax", "HyperCLOVAXForCausalLM"),
			changes: fieldsOf{"residual_multiplier": 0.5, "use_post_norm": false}, want: "pairs; qkv gate up; 0:full"},
		"olmo2": {base: cousin("olmo2", "Olmo2ForCausalLM"), changes: fieldsOf{"attention_bias": true},
			want: "pairs; qkv+bias o+bias gate up; " + bare + "0:full"},
		"olmo2, biases of the MLP": {base: cousin("olmo2", "Olmo2ForCausalLM"), changes: fieldsOf{"mlp_bias": true},
			refusal: "mlp_bias"},
		"olmo3": {base: cousin("olmo3", "Olmo3ForCausalLM"), changes: fieldsOf{"sliding_window": 16,
			"layer_types": []string{fullAttention, slidingAttention, fullAttention}},
			want: "pairs; qkv gate up; " + bare + "0:full 1:16 0:full"},
		"olmo3, one base for both kinds": {base: cousin("olmo3", "Olmo3ForCausalLM"),
			changes: fieldsOf{"rope_theta": 1e4}, refusal: "accepted: 500000, or rope_parameters with a base for each"},
		"olmo3, no window": {base: cousin("olmo3", "Olmo3ForCausalLM"), changes: fieldsOf{"sliding_window": nil},
			refusal: "layer_types may list layers without a window"},
		"helium": {base: cousin("helium", "HeliumForCausalLM"),
			changes: fieldsOf{"attention_bias": true}, want: "neighbours; qkv+bias gate up; 0:full"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importConfig(t, edit(c.base, c.changes), Source{})
			if c.refusal != "" {
				require.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			require.Empty(t, s.Warnings.Err())
			require.Equal(t, c.want, traits(s.Graph))
		})
	}
}

// A class may scale its rotation where the config has no object for it, which then says nothing of the base either.
func TestDefaultScalings(t *testing.T) {
	for base, scaling := range map[string]fieldsOf{
		cousin("ministral3", "Ministral3ForCausalLM"): {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16,
			"original_max_position_embeddings": 16384, "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1},
		cousin("cwm", "CwmForCausalLM"): {"rope_type": "llama3", "rope_theta": 1e6, "factor": 16, "low_freq_factor": 1,
			"high_freq_factor": 4, "original_max_position_embeddings": 8192},
	} {
		absent, err := importConfig(t, base, Source{})
		require.NoError(t, err)
		stated, err := importConfig(t, edit(base, fieldsOf{"rope_parameters": scaling}), Source{})
		require.NoError(t, err)
		require.Equal(t, stated.Graph, absent.Graph)
		plain := unscaled(invFreq(1e6, absent.Graph.Model.HeadDim))
		require.NotEqual(t, plain.InvFreq, absent.Graph.Rope.InvFreq)
		_, err = importConfig(t, edit(base, fieldsOf{"rope_theta": 5e5}), Source{})
		require.ErrorContains(t, err, "but rope_theta is 500000; want one of them")
	}
}

// An alpha raises the base of a dynamic rotation, which then does not change with the length.
func TestAlphaOfHunyuan(t *testing.T) {
	s, err := importConfig(t, edit(cousin("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM"), fieldsOf{
		"rope_scaling": fieldsOf{"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32}}), Source{})
	require.NoError(t, err)
	hd := float64(s.Graph.Model.HeadDim)
	require.Equal(t, unscaled(invFreq(1e4*math.Pow(1000, hd/(hd-2)), 24)), s.Graph.Rope)
}

// traits spells what distinguishes the families: the rotation, with the pairs of a head if they are not all; tied; the
// projections, with those that have biases; the norms of a layer where they are not Llama's; and the kind of each layer
// with its window.
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
	var linears, layers, norms []string
	seen := map[string]bool{}
	for _, n := range g.Kinds[0].Nodes {
		if n.Op == "rmsnorm" {
			norms = append(norms, n.Name)
		}
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
	if !slices.Equal(norms, []string{"input_norm", "post_norm"}) {
		linears = append(linears, "; norms "+strings.Join(norms, " "))
	}
	return strings.ReplaceAll(rotation+"; "+strings.Join(linears, " ")+"; "+strings.Join(layers, " "), " ;", ";")
}
