package gguf

import (
	"fmt"
	"slices"
	"strings"
)

// This file reads mixtures of experts. Of each layer a file has the matrices of all experts in three tensors, and a
// checkpoint in three for each expert.

// mostOfExperts bounds the tensors that those of experts become: 61 layers with 256 experts have 46,848.
const mostOfExperts = 1 << 18

// The functions that make scores of what a router computes, as files number them.
const (
	softmax = 1
	sigmoid = 2
)

// choosing is the part of a layer that is added to scores for the choice alone.
const choosing = "exp_probs_b.bias"

// isRow reports whether a part of a layer is a vector in a file, and one row of a matrix in a checkpoint.
func (f *family) isRow(part string) bool {
	return part == "ffn_gate_inp_shexp" || f.experts != nil && f.experts.rows && choosing == part+".bias"
}

// partsOfExperts are the tensors of a layer that have the matrices of all experts, and which part of one they are.
var partsOfExperts = map[string]func(*experts) string{
	"ffn_gate_exps": func(e *experts) string { return e.gate },
	"ffn_up_exps":   func(e *experts) string { return e.up },
	"ffn_down_exps": func(e *experts) string { return e.down },
}

// mixture reads the experts of a model, if it has any.
func (x *facts) mixture() {
	e := x.family.experts
	if v, key := x.field("expert_count"); v == nil || v == int64(0) {
		if v, key := x.field("expert_used_count"); v != nil && v != int64(0) {
			x.fail(key, "is %s, and there are no experts; accepted: 0", spell(v))
		}
		if e != nil && e.only {
			x.fail(key, "is %s; want how many experts a layer has", spell(v))
		}
		return
	} else if e == nil {
		x.fail(key, "is %s: the model is a mixture of experts, which is not read from GGUF for %s; accepted: 0",
			spell(v), x.arch)
		return
	}
	c := x.config
	x.experts = x.count("expert_count", 0)
	c[e.count], c["num_experts_per_tok"] = x.experts, x.count("expert_used_count", 0)
	width, _ := c[e.width].(int) // where layers have experts alone, feed_forward_length is theirs
	c[e.width] = x.count("expert_feed_forward_length", width)
	if e.normed != "" {
		c[e.normed] = e.weights
	}
	if e.scale != "" {
		c[e.scale] = float32(1)
		x.take("expert_weights_scale", e.scale)
	} else {
		x.only("expert_weights_scale", float32(0), float32(1))
	}
	scores := []Value{int64(0), int64(softmax)}
	if e.sigmoid {
		scores = []Value{int64(sigmoid)}
	}
	for _, of := range []struct {
		field    string
		accepted []Value
	}{
		{"expert_group_count", []Value{int64(0), int64(1)}}, {"expert_group_used_count", []Value{int64(0), int64(1)}},
		{"expert_gating_func", scores},
		{"expert_weights_norm", []Value{e.weights}},
	} {
		x.only(of.field, of.accepted...)
	}
}

// only refuses other values of a field than some.
func (x *facts) only(field string, accepted ...Value) {
	v, key := x.field(field)
	for _, a := range accepted {
		if v == nil || v == a {
			return
		}
	}
	x.fail(key, "is %s, which is not modelled for %s; accepted: %s", spell(v), x.arch, spell(accepted[len(accepted)-1]))
}

// split appends the tensors that a checkpoint has of one with those of all experts.
func (x *facts) split(out []NamedTensor, t Tensor, experts, part string) []NamedTensor {
	if len(t.Shape) < 2 || t.Shape[0] != x.experts {
		x.fail(t.Name, "has shape %v; want %d of a shape, one for each expert", t.Shape, x.experts)
		return out
	}
	if len(out)+x.experts > mostOfExperts {
		x.fail(t.Name, "is the tensor with which those of single experts become more than %d, the most that is read",
			mostOfExperts)
		return out
	}
	one := Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape[1:], At: t.At, Size: t.Size / int64(x.experts)}
	for i := range x.experts {
		out = append(out, NamedTensor{Tensor: one, Name: fmt.Sprintf("%s.%d.%s", experts, i, part)})
		one.At += one.Size
	}
	return out
}

// biases appends those of all experts, which a checkpoint has in one tensor as a file has: of gate and up in turn, and
// of down.
func (x *facts) biases(out []NamedTensor, t Tensor, experts string) []NamedTensor {
	n := NamedTensor{Tensor: t, Name: experts + ".down_proj_bias"}
	if gate := strings.Contains(t.Name, "gate"); gate || strings.Contains(t.Name, "ffn_up") {
		from, to := "ffn_gate_exps", "ffn_up_exps"
		if !gate {
			from, to = to, from
		}
		other := x.tensors[strings.Replace(t.Name, from, to, 1)]
		if other == nil || other.Type.Name != "F32" || t.Type.Name != "F32" || !slices.Equal(other.Shape, t.Shape) {
			x.fail(t.Name, "is %s %v; want it and the biases of %s to be F32, and of one shape", t.Type.Name, t.Shape,
				to)
			return out
		}
		if !gate {
			return out // with gate
		}
		n.Name, n.Other = experts+".gate_up_proj_bias", other
		n.Shape, n.Size = append(slices.Clone(t.Shape[:len(t.Shape)-1]), 2*t.Shape[len(t.Shape)-1]), 2*t.Size
	}
	return append(out, n)
}

// mixtral is what a Llama with experts is.
func (x *facts) mixtral() {
	x.config["model_type"], x.config["architectures"] = "mixtral", []string{"MixtralForCausalLM"}
	x.config["sliding_window"] = nil
}

// qwen2MoE reads the expert that every token has, whose gate is a vector in a file and a matrix in a checkpoint.
func (x *facts) qwen2MoE() {
	x.config["qkv_bias"] = x.has("blk.0.attn_q.bias")
	width, _ := x.config["intermediate_size"].(int)
	x.config["shared_expert_intermediate_size"] = x.count("expert_shared_feed_forward_length", width)
}

// gptOSS reads the windows and the rotation, whose bounds are not rounded in any model of the family; files do not say.
func (x *facts) gptOSS() {
	x.config["attention_bias"] = x.has("blk.0.attn_q.bias")
	x.windows(128)
	scaling := map[string]any{"rope_type": "default"}
	if scaled := x.scaling(x.headDim); scaled != nil {
		scaling = scaled
	}
	if scaling["rope_type"] == "yarn" {
		scaling["truncate"] = false
	}
	scaling["rope_theta"] = x.theta()
	x.config["rope_parameters"] = scaling
}

// glm4MoE reads the experts that every token has, and how many layers have none. Layers that draft come last.
func (x *facts) glm4MoE() {
	x.biased()
	x.config["use_qk_norm"] = x.has("blk.0.attn_q_norm.weight")
	x.config["n_group"], x.config["topk_group"] = 1, 1
	x.config["n_shared_experts"] = x.perhaps("expert_shared_count")
	x.config["first_k_dense_replace"] = x.perhaps("leading_dense_block_count")
}

// ernieMoE reads the experts that every token has, and which layers have none. The width that files state of the former
// is that of no tensor: theirs is that of the others, times how many there are.
func (x *facts) ernieMoE() {
	x.ernie()
	x.field("expert_shared_feed_forward_length")
	x.config["moe_num_shared_experts"] = x.perhaps("expert_shared_count")
	x.config["moe_layer_interval"] = x.count("interleave_moe_layer_step", 1)
	x.config["moe_layer_start_index"] = x.perhaps("leading_dense_block_count")
}
