package passes

import (
	"fmt"
	"slices"

	"amkc/ir"
	"amkc/passes/checkpoint"
)

// llamaModelled are the config fields that the graph is built from.
var llamaModelled = []string{
	"model_type", "architectures", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
	"num_key_value_heads", "head_dim", "vocab_size", "rms_norm_eps", "tie_word_embeddings", "hidden_act",
	"max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters", "attention_bias", "mlp_bias",
	"torch_dtype", "dtype", "quantization_config",
	"sliding_window", "use_sliding_window", "partial_rotary_factor", "layer_types",
}

// llamaInert are the fields that real configs of this family carry beside those, with the values for which they have no
// effect on the logits of a decode step. Dropout and initialisation belong to training; generation defaults, token ids and
// bookkeeping do not reach the model.
var llamaInert = map[string]known{
	"attention_dropout": whatever, "hidden_dropout": whatever, "initializer_range": whatever, "use_cache": whatever,
	"transformers_version": whatever, "_name_or_path": whatever, "_commit_hash": whatever, "tokenizer_class": whatever,
	"bos_token_id": whatever, "eos_token_id": whatever, "pad_token_id": whatever, "unk_token_id": whatever,
	"sep_token_id": whatever, "decoder_start_token_id": whatever, "max_sequence_length": whatever, "model_max_length": whatever,
	"_attn_implementation": whatever, "_attn_implementation_autoset": whatever, "_flash_attn_2_enabled": whatever,
	"attn_implementation": whatever, "use_flash_attention_2": whatever, "transformers.js_config": whatever,
	"unsloth_fixed": whatever, "unsloth_version": whatever, "is_llama_config": whatever, "gradient_checkpointing": whatever,
	"rope_interleaved": isFalse, "pretraining_tp": isNumber(1), "auto_map": isEmpty, "pruned_heads": isEmpty,

	"return_dict": whatever, "output_hidden_states": whatever, "output_attentions": whatever, "torchscript": whatever,
	"use_bfloat16": whatever, "tf_legacy_loss": whatever, "finetuning_task": whatever, "id2label": whatever,
	"label2id": whatever, "num_labels": whatever, "problem_type": whatever, "task_specific_params": whatever, "prefix": whatever,
	"chunk_size_feed_forward": isNumber(0), "is_encoder_decoder": isFalse, "is_decoder": whatever, "add_cross_attention": isFalse,
	"cross_attention_hidden_size": isNull, "tie_encoder_decoder": isFalse,

	"max_length": whatever, "min_length": whatever, "do_sample": whatever, "early_stopping": whatever, "num_beams": whatever,
	"num_beam_groups": whatever, "diversity_penalty": whatever, "temperature": whatever, "top_k": whatever, "top_p": whatever,
	"typical_p": whatever, "length_penalty": whatever, "num_return_sequences": whatever, "output_scores": whatever,
	"return_dict_in_generate": whatever, "remove_invalid_values": whatever,
	"repetition_penalty": isNumber(1), "no_repeat_ngram_size": isNumber(0), "encoder_no_repeat_ngram_size": isNumber(0),
	"bad_words_ids": isNull, "forced_bos_token_id": isNull, "forced_eos_token_id": isNull, "suppress_tokens": isNull,
	"begin_suppress_tokens": isNull, "exponential_decay_length_penalty": isNull,
}

const llamaArchitecture = "LlamaForCausalLM"

// importLlama builds the graph of a Llama: RMSNorm, rotary attention with grouped heads, and a SiLU-gated MLP, without
// biases. Defaults of absent fields are those of transformers' LlamaConfig.
func importLlama(m *importer) *ir.Graph {
	m.checkFields(llamaModelled, llamaInert, m.src.AssumeInert)
	m.checkArchitecture(llamaArchitecture)
	m.refuseUnmodelled()
	model := ir.Model{
		Name: m.src.Name, Architecture: llamaArchitecture, DType: m.chooseDType(),
		Layers: m.size("num_hidden_layers", 32, 1024), Hidden: m.size("hidden_size", 4096, 1<<20),
		Intermediate: m.size("intermediate_size", 11008, 1<<22), Heads: m.size("num_attention_heads", 32, 1<<14),
		Vocab: m.size("vocab_size", 32000, 1<<24), Tied: m.truth("tie_word_embeddings", false), Eps: 1e-6,
	}
	model.KVHeads = m.size("num_key_value_heads", model.Heads, 1<<14)
	model.MaxSeq = m.chooseMaxSeq(m.size("max_position_embeddings", 2048, 1<<30))
	if v, ok := m.value("rms_norm_eps"); ok {
		model.Eps = m.positive("rms_norm_eps", v)
	}
	model.HeadDim = m.headDim(&model)
	if model.Heads%model.KVHeads != 0 {
		m.fail(codeField, "num_key_value_heads", "is %d; want a divisor of num_attention_heads, %d", model.KVHeads, model.Heads)
	}
	return llamaGraph(model, m.rope(model.HeadDim))
}

func (m *importer) headDim(model *ir.Model) int {
	const limit = 1024
	if m.diags.Err() != nil {
		return 2 // the sizes it is computed from may be stand-ins
	}
	if _, explicit := m.value("head_dim"); !explicit && model.Hidden%model.Heads != 0 {
		m.fail(codeField, "head_dim", "is missing, and hidden_size %d is not a multiple of num_attention_heads %d", model.Hidden, model.Heads)
		return 2
	}
	hd := m.size("head_dim", max(1, model.Hidden/model.Heads), limit)
	if hd%2 != 0 || hd > limit {
		m.fail(codeField, "head_dim", "is %d; want an even number up to %d, because a rotation takes two elements", hd, limit)
		return 2
	}
	return hd
}

func (m *importer) checkArchitecture(want string) {
	v, ok := m.value("architectures")
	if !ok {
		return // model_type decides, and the tensors must fit
	}
	list, _ := v.([]any)
	switch {
	case len(list) == 1 && list[0] == want:
	case len(list) == 1:
		m.fail(codeArchitecture, "architectures", "[%s] is not supported; accepted: [%q]", spell(list[0]), want)
	default:
		m.fail(codeArchitecture, "architectures", "want an array of one name, [%q]", want)
	}
}

// refuseUnmodelled checks the fields of which one value is modelled, and the others change the maths.
func (m *importer) refuseUnmodelled() {
	for _, field := range []string{"attention_bias", "mlp_bias", "use_sliding_window"} {
		if m.truth(field, false) {
			m.fail(codeNotModelled, field, "is true, which is not modelled; accepted: false")
		}
	}
	if act := m.text("hidden_act", "silu"); !slices.Contains([]string{"silu", "swish"}, act) {
		m.fail(codeNotModelled, "hidden_act", "%q is not modelled; accepted: \"silu\"", act)
	}
	if v, ok := m.value("sliding_window"); ok {
		m.fail(codeNotModelled, "sliding_window", "is %s, and sliding windows are not modelled; accepted: null", spell(v))
	}
	if v, ok := m.value("partial_rotary_factor"); ok && !isNumber(1).accept(v) {
		m.fail(codeNotModelled, "partial_rotary_factor", "is %s, and partial rotation is not modelled; accepted: 1", spell(v))
	}
	if v, ok := m.value("layer_types"); ok && !allText("full_attention").accept(v) {
		m.fail(codeNotModelled, "layer_types", "has layers that are not full attention; accepted: \"full_attention\" throughout")
	}
	if v, ok := m.value("quantization_config"); ok {
		method := "an unnamed method"
		if o, ok := v.(*checkpoint.Object); ok && get(o, "quant_method") != nil {
			method = spell(get(o, "quant_method"))
		}
		m.fail(codeQuantised, "quantization_config", "the weights are quantised (%s); accepted: weights in F32, F16 or BF16", method)
	}
}

// llamaGraph lists the nodes in execution order.
func llamaGraph(model ir.Model, invFreq []float32) *ir.Graph {
	b := graphBuilder{g: &ir.Graph{Model: model, Rope: ir.Rope{InvFreq: invFreq}}, layer: -1}
	h, hd := model.Hidden, model.HeadDim
	qd, kd := model.Heads*hd, model.KVHeads*hd
	const embedding = "model.embed_tokens.weight"
	x := b.add("embed", "embed", []int{h}, nil, weight(embedding, model.Vocab, h))
	for l := range model.Layers {
		b.layer = l
		w := func(part string, shape ...int) ir.GraphWeight {
			return weight(fmt.Sprintf("model.layers.%d.%s.weight", l, part), shape...)
		}
		n := b.add("input_norm", "rmsnorm", []int{h}, []string{x}, w("input_layernorm", h))
		q := b.add("q_proj", "linear", []int{qd}, []string{n}, w("self_attn.q_proj", qd, h))
		k := b.add("k_proj", "linear", []int{kd}, []string{n}, w("self_attn.k_proj", kd, h))
		v := b.add("v_proj", "linear", []int{kd}, []string{n}, w("self_attn.v_proj", kd, h))
		q = b.add("q_rope", "rope", []int{qd}, []string{q})
		k = b.add("k_rope", "rope", []int{kd}, []string{k})
		att := b.add("attention", "attention", []int{qd}, []string{q, k, v})
		b.add("k_append", "kv_append", []int{kd}, []string{k})
		b.add("v_append", "kv_append", []int{kd}, []string{v})
		o := b.add("o_proj", "linear", []int{h}, []string{att}, w("self_attn.o_proj", h, qd))
		x = b.add("attn_add", "add", []int{h}, []string{x, o})
		n = b.add("post_norm", "rmsnorm", []int{h}, []string{x}, w("post_attention_layernorm", h))
		gate := b.add("gate_proj", "linear", []int{model.Intermediate}, []string{n}, w("mlp.gate_proj", model.Intermediate, h))
		up := b.add("up_proj", "linear", []int{model.Intermediate}, []string{n}, w("mlp.up_proj", model.Intermediate, h))
		act := b.add("silu_mul", "silu_mul", []int{model.Intermediate}, []string{gate, up})
		d := b.add("down_proj", "linear", []int{h}, []string{act}, w("mlp.down_proj", h, model.Intermediate))
		x = b.add("mlp_add", "add", []int{h}, []string{x, d})
	}
	b.layer = -1
	n := b.add("final_norm", "rmsnorm", []int{h}, []string{x}, weight("model.norm.weight", h))
	head := weight("lm_head.weight", model.Vocab, h)
	if model.Tied {
		head = weight(embedding, model.Vocab, h)
	}
	logits := b.add("lm_head", "linear", []int{model.Vocab}, []string{n}, head)
	b.add("argmax", "argmax", []int{1}, []string{logits})
	return b.g
}

func weight(key string, shape ...int) ir.GraphWeight { return ir.GraphWeight{Key: key, Shape: shape} }

// A graphBuilder appends nodes to a graph, naming them after their layer.
type graphBuilder struct {
	g     *ir.Graph
	layer int
	seen  map[string]bool
}

// add appends a node and returns its name.
func (b *graphBuilder) add(name, op string, shape []int, inputs []string, weights ...ir.GraphWeight) string {
	if b.layer >= 0 {
		name = layerPrefix(b.layer) + name
	}
	node := ir.GraphNode{Name: name, Op: op, Layer: b.layer, Inputs: inputs, Shape: shape}
	for _, w := range weights {
		node.Weights = append(node.Weights, w.Key)
		if b.seen == nil {
			b.seen = map[string]bool{}
		}
		if !b.seen[w.Key] {
			b.seen[w.Key] = true
			b.g.Weights = append(b.g.Weights, w)
		}
	}
	b.g.Nodes = append(b.g.Nodes, node)
	return name
}

// layerPrefix is how names of layer l begin.
func layerPrefix(l int) string { return fmt.Sprintf("L%02d.", l) }
