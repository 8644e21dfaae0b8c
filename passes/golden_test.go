package passes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
)

// pipeline is the order of the passes; compiler/pipeline.go has it with its reasons.
var pipeline = []Pass{Import, Quantise, Lower, Fuse, Tile, Assign, Replicate, SplitK, Barrier, Loop, PageColor,
	Exchange}

// lowered runs the passes up to and including the one named.
func lowered(t testing.TB, s *State, last string) *State {
	for _, p := range pipeline {
		require.NoError(t, p.Run(s), p.Name)
		if p.Name == last {
			return s
		}
	}
	t.Fatalf("no pass %s", last)
	return nil
}

const normedConfig = `{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 8, "vocab_size": 20, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

const cappedConfig = `{"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "hidden_size": 16,
	"intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 8, "vocab_size": 20, "sliding_window": 40, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

const wideConfig = `{"model_type": "gemma4_text", "architectures": ["Gemma4ForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 8, "global_head_dim": 16, "num_global_key_value_heads": 1, "attention_k_eq_v": true,
	"hidden_size_per_layer_input": 0, "vocab_size": 20, "sliding_window": 40, "max_position_embeddings": 64,
	"torch_dtype": "bfloat16"}`

const wholeConfig = `{"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
	"head_dim": 8, "vocab_size": 20, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

const expertsConfig = `{"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 12, "num_experts": 4,
	"num_experts_per_tok": 2, "norm_topk_prob": true, "mlp_only_layers": [1], "num_hidden_layers": 3,
	"num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 20, "max_position_embeddings": 64,
	"torch_dtype": "bfloat16"}`

const scoredConfig = `{"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "moe_intermediate_size": 8, "n_routed_experts": 8, "n_shared_experts": 1, "n_group": 4,
	"topk_group": 2, "num_experts_per_tok": 2, "routed_scaling_factor": 2.5, "first_k_dense_replace": 1,
	"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 20,
	"max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

const convConfig = `{"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "hidden_size": 16,
	"intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1,
	"layer_types": ["conv", "full_attention", "conv"], "conv_bias": true, "block_auto_adjust_ff_dim": false,
	"vocab_size": 20, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

const sinksConfig = `{"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 16,
	"intermediate_size": 8, "num_local_experts": 3, "num_experts_per_tok": 2, "num_hidden_layers": 2,
	"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 20, "sliding_window": 40,
	"rope_parameters": {"rope_type": "default", "rope_theta": 10000}, "max_position_embeddings": 64,
	"torch_dtype": "bfloat16"}`

// goldenCases are programs that differ in what the passes have to decide: grouped heads, a tied head and long contexts;
// or splits that are few at first; or one layer of float32, sizes that are not a multiple of a tile, and an explicit
// schedule; or heads with norms; or norms after branches, soft caps, a scaled embedding, layers of two kinds and a down
// whose columns are cut; or heads of two sizes, values that are normalised, and a factor of each layer; or norms of all
// queries and of all keys; or experts, one of them of every token, and a layer without; or experts that a bias and
// groups choose; or convolutions; or sinks, and experts with biases.
func goldenCases(t testing.TB) map[string]*State {
	return map[string]*State{
		"tiny": {Source: importers.Source{Name: "tiny", Config: modeltest.OpenConfig(t, modeltest.TinyConfig)},
			Target: modeltest.ToyTarget(6),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
		"middle": {Source: importers.Source{Name: "middle", Config: modeltest.OpenConfig(t, modeltest.TinyConfig)},
			Target: modeltest.ToyTarget(6),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16,
				"middle_splits": 2, "middle_until": 40}}}},
		"plain": {Source: importers.Source{Name: "plain", Config: modeltest.OpenConfig(t, modeltest.PlainConfig)},
			Target: modeltest.ToyTarget(4),
			Config: ir.ScheduleConfig{SMAssignment: ir.Assignment{Rotations: map[string]int{"qkv": 1, "attn": 2,
				"lm_head": 3}},
				Tiling: map[string]map[string]int{"exchange": {"flagged": 0, "copies": 1},
					"attention": {"max_splits": 1}}, PageAllocation: "linear"}},
		"capped": {Source: importers.Source{Name: "capped", Config: modeltest.OpenConfig(t, cappedConfig)},
			Target: modeltest.ToyTarget(4),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
		"wide": {Source: importers.Source{Name: "wide", Config: modeltest.OpenConfig(t, wideConfig)},
			Target: modeltest.ToyTarget(4),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
		"whole": {Source: importers.Source{Name: "whole", Config: modeltest.OpenConfig(t, wholeConfig)},
			Target: modeltest.ToyTarget(4),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
		"experts": {Source: importers.Source{Name: "experts", Config: modeltest.OpenConfig(t, expertsConfig)},
			Target: modeltest.ToyTarget(3),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"max_splits": 1}}}},
		"scored": {Source: importers.Source{Name: "scored", Config: modeltest.OpenConfig(t, scoredConfig)},
			Target: modeltest.ToyTarget(3),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"max_splits": 1}}}},
		"convolutions": {Source: importers.Source{Name: "convolutions", Config: modeltest.OpenConfig(t, convConfig)},
			Target: modeltest.ToyTarget(3),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"max_splits": 1}}}},
		"sinks": {Source: importers.Source{Name: "sinks", Config: modeltest.OpenConfig(t, sinksConfig)},
			Target: modeltest.ToyTarget(4),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
		"normed": {Source: importers.Source{Name: "normed", Config: modeltest.OpenConfig(t, normedConfig)},
			Target: modeltest.ToyTarget(6),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 32}}}},
	}
}

// Each pass turns its .in.amk into its .out.amk, having seen nothing but that file. What goes in is what the passes
// before it make.
func TestGoldens(t *testing.T) {
	for name, s := range goldenCases(t) {
		for _, p := range pipeline {
			base := filepath.Join("testdata", p.Name, name)
			var before []byte
			if s.Program != nil {
				before = ir.Print(s.Program)
			}
			require.NoError(t, p.Run(s), "%s %s", p.Name, name)
			if s.Program == nil {
				continue
			}
			after := ir.Print(s.Program)
			if *modeltest.Update {
				require.NoError(t, os.MkdirAll(filepath.Dir(base), 0o755))
				require.NoError(t, os.WriteFile(base+".out.amk", after, 0o644))
				if before != nil {
					require.NoError(t, os.WriteFile(base+".in.amk", before, 0o644))
				}
			}
			want, err := os.ReadFile(base + ".out.amk")
			require.NoError(t, err)
			require.Equal(t, string(want), string(after), "%s; go test ./passes -update rewrites the goldens", base)
			if p.Name == "lower" {
				continue // its input is a graph
			}
			in, err := os.ReadFile(base + ".in.amk")
			require.NoError(t, err)
			parsed, err := ir.Parse(in, base+".in.amk")
			require.NoError(t, err)
			alone := &State{Program: parsed}
			require.NoError(t, p.Run(alone), base)
			require.Equal(t, string(want), string(ir.Print(alone.Program)), "%s, run on the file alone", base)
			require.NoError(t, ir.Check(alone.Program).Err(), base)
		}
	}
}

// A pass that is given what it does not expect says so.
func TestPassesRefuseForeignPrograms(t *testing.T) {
	stage := map[string]string{"fuse": "exchange", "tile": "exchange", "assign": "exchange"}
	for _, p := range pipeline[2:] {
		after, ok := stage[p.Name]
		if !ok {
			continue
		}
		s := lowered(t, goldenCases(t)["tiny"], after)
		require.ErrorContains(t, p.Run(s), "AMK2011", p.Name)
	}
	s := lowered(t, goldenCases(t)["tiny"], "lower")
	require.ErrorContains(t, Assign.Run(s), "AMK2011", "assign before tile")
	require.ErrorContains(t, PageColor.Run(s), "AMK2011", "pagecolor before assign")
	s = lowered(t, goldenCases(t)["tiny"], "lower")
	setStages(&s.Program.Variants[0], nil)
	require.ErrorContains(t, Fuse.Run(s), "AMK2011", "no stages")
}
