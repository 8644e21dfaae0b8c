package importers

import "cmp"

// tensorNames are how a checkpoint calls the tensors of a decoder.
type tensorNames struct {
	body   string            // what comes before the parts
	layers string            // what comes before those of a layer, after body; "": layers.{i}.
	head   string            // the linear of the logits
	parts  map[string]string // what nodes take, by their names; others take what llamaParts says
}

var plainNames = &tensorNames{body: "model.", head: "lm_head"}

// postNormParts are those of families that have a norm after each branch, in which Llama's name means the first.
var postNormParts = map[string]string{"post_attn_norm": "post_attention_layernorm",
	"post_norm": "pre_feedforward_layernorm", "post_mlp_norm": "post_feedforward_layernorm"}

var postNormNames = &tensorNames{body: "model.", head: "lm_head", parts: postNormParts}

// llamaParts are the parts of a Llama, and of families that call theirs likewise.
var llamaParts = map[string]string{
	"embed": "embed_tokens", "final_norm": "norm",
	"input_norm": "input_layernorm", "post_norm": "post_attention_layernorm",
	"q_proj": "self_attn.q_proj", "k_proj": "self_attn.k_proj", "v_proj": "self_attn.v_proj",
	"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm", "o_proj": "self_attn.o_proj",
	"gate_proj": "mlp.gate_proj", "up_proj": "mlp.up_proj", "down_proj": "mlp.down_proj",
}

// within is what a checkpoint calls the part that a node takes.
func (n *tensorNames) within(node string) string {
	if part, ok := n.parts[node]; ok {
		return part
	}
	return llamaParts[node]
}

// of is the part of the body that a node takes, and ofLayer that of each layer.
func (n *tensorNames) of(node string) string { return n.body + n.within(node) }

func (n *tensorNames) ofLayer(node string) string { return n.inLayer(n.within(node)) }

func (n *tensorNames) inLayer(part string) string {
	return n.body + cmp.Or(n.layers, "layers.{i}.") + part
}

// embedding and logits are the matrices of these names.
func (n *tensorNames) embedding() string { return n.of("embed") + ".weight" }
func (n *tensorNames) logits() string    { return n.head + ".weight" }
