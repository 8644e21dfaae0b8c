package gguf

import "fmt"

// This file reads families whose layers are short convolutions, but for some with attention.

// convolved are their parts.
var convolved = map[string]string{"attn_norm": "operator_norm", "ffn_norm": "ffn_norm",
	"attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm", "attn_output": "self_attn.out_proj",
	"shortconv.conv": "conv.conv", "shortconv.in_proj": "conv.in_proj", "shortconv.out_proj": "conv.out_proj",
	"ffn_gate": "feed_forward.w1", "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2"}

// headsOfKeys reads how many heads keys have. In these families there is a number for each layer, 0 where it is a
// convolution.
func (x *facts) headsOfKeys() int {
	const field = "attention.head_count_kv"
	v, key := x.field(field)
	each, ok := v.(*Array)
	if _, convolved := x.family.parts["shortconv.conv"]; !convolved || !ok || each.kind == kindString ||
		each.Len() != x.layers {
		return x.count(field, x.heads)
	}
	heads, types := int64(0), make([]string, each.Len())
	for i := range types {
		n, isInt := each.At(i).(int64)
		types[i] = "full_attention"
		switch {
		case !isInt || n < 0 || n > 1<<31-1 || n > 0 && heads > 0 && n != heads:
			x.fail(key, "is %s for layer %d; want 0 for a convolution, and one number for all with attention",
				spell(each.At(i)), i)
		case n == 0:
			types[i] = "conv"
		default:
			heads = n
		}
	}
	if heads == 0 {
		x.fail(key, "is 0 for all layers, which are convolutions then; want some with attention")
	}
	x.config["layer_types"] = types
	return max(1, int(heads))
}

// lfm2 reads the convolutions. Layers without keys are convolutions.
func (x *facts) lfm2() {
	x.config["conv_L_cache"] = x.count("shortconv.l_cache", 0)
	x.config["block_auto_adjust_ff_dim"] = false // files state what it came to
}

// lfm2MoE reads which layers have no experts, and whether scores have a part for the choice alone.
func (x *facts) lfm2MoE() {
	x.lfm2()
	delete(x.config, "block_auto_adjust_ff_dim")
	dense := x.perhaps("leading_dense_block_count")
	x.config["num_dense_layers"] = dense
	x.config["use_expert_bias"] = x.has(fmt.Sprintf("blk.%d.%s", dense, choosing))
}
