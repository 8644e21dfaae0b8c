package importers

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
)

// llamaModelled are the config fields that the graph is built from.
var llamaModelled = []string{
	"model_type", "architectures", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
	"num_key_value_heads", "head_dim", "vocab_size", "rms_norm_eps", "tie_word_embeddings", "hidden_act",
	"max_position_embeddings", "original_max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
	"attention_bias", "mlp_bias",
	"torch_dtype", "dtype", "quantization_config", "quantization", "compression_config",
	"sliding_window", "use_sliding_window", "partial_rotary_factor", "layer_types",
}

// llamaInert are the fields that real configs of this family carry besides those, with the values for which they have
// no effect on the logits of a decode step. Dropout and initialisation belong to training; generation defaults, token
// ids and bookkeeping do not reach the model.
var llamaInert = map[string]known{
	"attention_dropout": whatever, "hidden_dropout": whatever, "resid_pdrop": whatever, "embd_pdrop": whatever,
	"attn_pdrop": whatever, "dropout": whatever, "activation_dropout": whatever, "classifier_dropout": whatever,
	"layerdrop": whatever, "attention_probs_dropout_prob": whatever, "hidden_dropout_prob": whatever,
	"summary_first_dropout": whatever, "initializer_range": whatever, "use_cache": whatever,
	"init_std": whatever, "initializer_factor": whatever,
	"transformers_version": whatever, "tokenizer_class": whatever,
	"bos_token_id": whatever, "eos_token_id": whatever, "pad_token_id": whatever, "unk_token_id": whatever,
	"sep_token_id": whatever, "decoder_start_token_id": whatever, "max_sequence_length": whatever,
	"model_max_length":    whatever,
	"attn_implementation": whatever, "use_flash_attention_2": whatever, "transformers.js_config": whatever,
	"unsloth_fixed": whatever, "unsloth_version": whatever, "is_llama_config": whatever,
	"gradient_checkpointing": whatever,
	"auto_map":               isEmpty, // code that comes with the model: only the user can know what it computes
	"pruned_heads":           isEmpty.does("some heads have been removed"),
	"rope_interleaved":       isFalse.does("a rotation then takes neighbouring elements"),
	// With more than 1, transformers cut the matrices of the projections into that many slices, and summed or
	// concatenated their products: the same products in another order. It has removed the field since.
	"pretraining_tp": whatever,

	"return_dict": whatever, "output_hidden_states": whatever, "output_attentions": whatever, "torchscript": whatever,
	"use_bfloat16": whatever, "tf_legacy_loss": whatever, "finetuning_task": whatever, "id2label": whatever,
	"label2id": whatever, "num_labels": whatever, "problem_type": whatever, "task_specific_params": whatever,
	"prefix":                  whatever,
	"chunk_size_feed_forward": whatever, "is_decoder": whatever, // models of this family do not read them
	"is_encoder_decoder": isFalse.does(encoder), "add_cross_attention": isFalse.does(encoder),
	"cross_attention_hidden_size": isNull.does(encoder), "tie_encoder_decoder": isFalse.does(encoder),

	"max_length": whatever, "min_length": whatever, "do_sample": whatever, "early_stopping": whatever,
	"num_beams":       whatever,
	"num_beam_groups": whatever, "diversity_penalty": whatever, "temperature": whatever, "top_k": whatever,
	"top_p":     whatever,
	"typical_p": whatever, "length_penalty": whatever, "num_return_sequences": whatever, "output_scores": whatever,
	"return_dict_in_generate": whatever, "remove_invalid_values": whatever,
	"repetition_penalty": isNumber(1).does(choice), "no_repeat_ngram_size": isNumber(0).does(choice),
	"encoder_no_repeat_ngram_size": isNumber(0).does(choice), "bad_words_ids": isNull.does(choice),
	"forced_bos_token_id": isNull.does(choice), "forced_eos_token_id": isNull.does(choice),
	"suppress_tokens":       isNull.does(choice),
	"begin_suppress_tokens": isNull.does(choice), "exponential_decay_length_penalty": isNull.does(choice),

	// What transformers reads from the config of any family.
	"allow_global_per_layer_attribute_access": whatever, // of code that reads a config, not of what it says
	"serialize_explicit_per_layer_config":     whatever,
	perLayerConfig:                            isEmpty.does("layers differ in sizes or switches"),
	"is_causal":                               onlyTrue.does(bothWays),
	"attention_chunk_size":                    isNull.does("attention is cut into chunks"),
	"kv_sharing_modes":                        isNull.does("layers share keys and values"),
	"mtp_layer_types":                         whatever, // of layers that only speculation runs
	"mlp_layer_types":                         isNull.does("layers have MLPs of several kinds"),
	"distributed_config":                      whatever, // which device computes what

	// Fields of other families, which tools that convert and merge models leave in configs.
	"attn_logit_softcapping":  isNull.does("attention scores are capped"),
	"final_logit_softcapping": isNull.does("logits are capped"),
	"embedding_multiplier":    isNumber(1).does(scaled), "residual_multiplier": isNumber(1).does(scaled),
	"attention_multiplier": isNull.does(scaled),
	"logits_scaling":       isNumber(1).does(scaled), "logit_scale": isNumber(1).does(scaled),
	"query_pre_attn_scalar": isNull.does(scaled),
	"use_qk_norm":           isFalse.does(headNorm), "qk_norm": isFalse.does(headNorm),
	"clip_qkv":              isNull.does("queries, keys and values are clipped"),
	"qkv_bias":              isFalse.does("the projections have biases"),
	"use_parallel_residual": isFalse.does("attention and MLP run side by side"),
	"parallel_attn":         isFalse.does("attention and MLP run side by side"),
	"alibi":                 isFalse.does("positions enter by ALiBi"),
	"rotary_pct":            isNumber(1).does("a part of each head is rotated"),
	"no_rope_layers":        isEmpty.does("some layers have no rotary embedding"),
	"num_local_experts":     isNumber(0).does(experts), "num_experts": isNumber(0).does(experts),
	"num_experts_per_tok": isNumber(0).does(experts), "output_router_logits": isFalse.does(experts),
	"router_aux_loss_coef": whatever, "router_z_loss_coef": whatever, "router_jitter_noise": whatever, // of training
}

const (
	encoder  = "the decoder attends to an encoder"
	choice   = "the most likely token is then not always the one to choose"
	scaled   = "what the layers compute is scaled"
	headNorm = "every query and key head has a norm"
	bothWays = "a token attends to those after it"
	experts  = "the MLP is a mixture of experts"
)

// importLlama builds the graph of a Llama. Defaults of absent fields are those of transformers' LlamaConfig.
func importLlama(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "LlamaForCausalLM", modelled: append(slices.Clone(llamaModelled),
		perLayerConfig), inert: llamaInert, perLayer: []string{"intermediate_size", "num_attention_heads",
		"num_key_value_heads"},
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 32000, positions: 2048,
		check: (*importer).refuseUnmodelled, biased: projections{heads: attention, o: attention,
			mlp: m.truth("mlp_bias", false)}})
}

// windowOf reads a size of the window that may be null, which means none; absent is what the family's class says.
func (m *importer) windowOf(absent int) int {
	v, there := m.doc.Get("sliding_window")
	switch {
	case !there:
		return absent
	case v == nil:
		return 0
	}
	return m.size("sliding_window", 1, "max_seq")
}

// unlessNull is what an absent field means, or 0 where the field is null: the size then follows from others.
func (m *importer) unlessNull(field string, absent int) int {
	if v, there := m.doc.Get(field); there && v == nil {
		return 0
	}
	return absent
}

// headDim is the size of a head; absent is what it is without the field, or 0 where that follows from the others.
func (m *importer) headDim(model *ir.Model, absent int) int {
	if m.diags.Err() != nil {
		return 2 // the sizes it is computed from may be stand-ins
	}
	if v, there := m.doc.Get("head_dim"); there && v == nil {
		absent = 0
	}
	absent = m.unlessNull("head_dim", absent)
	if _, explicit := m.value("head_dim"); !explicit && absent == 0 && model.Hidden%model.Heads != 0 {
		m.fail(codeField, "head_dim", "is missing, and hidden_size %d is not a multiple of num_attention_heads %d",
			model.Hidden, model.Heads)
		return 2
	}
	hd := m.size("head_dim", cmp.Or(absent, max(1, model.Hidden/model.Heads)), "head_dim")
	if most := ir.ModelBound("head_dim").Hi; m.diags.Err() == nil && (hd%2 != 0 || hd > most) {
		m.fail(codeField, "head_dim", "is %d; want an even number up to %d, because a rotation takes two elements", hd,
			most)
		return 2
	}
	return hd
}

// refuseUnmodelled checks the fields of which one value is modelled, and the others change the maths.
func (m *importer) refuseUnmodelled() {
	m.refuseWindows()
	m.refuseOfDecoders()
}

// refuseWindows demands that all layers see all positions.
func (m *importer) refuseWindows() {
	m.refuseTrue("use_sliding_window")
	if v, ok := m.value("sliding_window"); ok {
		m.fail(codeNotModelled, "sliding_window", "is %s, and sliding windows are not modelled; accepted: null",
			spell(v))
	}
	m.refuseLayerTypes(fullAttention)
}

// refuseTrue checks switches that are modelled off.
func (m *importer) refuseTrue(fields ...string) {
	for _, field := range fields {
		if m.truth(field, false) {
			m.fail(codeNotModelled, field, "is true, which is not modelled; accepted: false")
		}
	}
}

// refuseLayerTypes demands one kind of layers throughout, if the config lists kinds.
func (m *importer) refuseLayerTypes(want string) {
	if v, ok := m.value("layer_types"); ok && !allText(want).accept(v) {
		m.fail(codeNotModelled, "layer_types", "has layers of other kinds; accepted: %q throughout", want)
	}
}

// layerTypes reads the kinds of the layers, full or windowed; nil if the config does not list them.
func (m *importer) layerTypes(layers int) []string {
	v, ok := m.value("layer_types")
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	types := make([]string, 0, layers)
	for _, kind := range list {
		if text, _ := kind.(string); text == fullAttention || text == slidingAttention {
			types = append(types, text)
		}
	}
	if len(types) != len(list) || len(types) != layers {
		m.fail(codeNotModelled, "layer_types", "is %s; accepted: a list of %d, each %q or %q", spell(v), layers,
			fullAttention, slidingAttention)
		return make([]string, layers)
	}
	return types
}

// refuseOfDecoders checks those fields that every family of the form has.
func (m *importer) refuseOfDecoders() {
	m.refuseGate()
	m.refusePartial()
}

// refuseGate demands that the activation of the MLP is SiLU.
func (m *importer) refuseGate() {
	if act := m.text("hidden_act", "silu"); !slices.Contains([]string{"silu", "swish"}, act) {
		m.fail(codeNotModelled, "hidden_act", "%s is not modelled; accepted: \"silu\"", spell(act))
	}
}

// refusePartial demands that heads are rotated whole.
func (m *importer) refusePartial() {
	if v, ok := m.value("partial_rotary_factor"); ok && !isNumber(1).accept(v) {
		m.fail(codeNotModelled, "partial_rotary_factor", "is %s, and partial rotation is not modelled; accepted: 1",
			spell(v))
	}
}

// graph lists the nodes of the model. Layers that see as many positions, and rotate alike, are of one kind; a window
// that no position lies beyond does not count. windowed is how layers with a window rotate; nil: as all others.
func (m *importer) graph(d *decoder, model ir.Model, windows []int, rope ir.Rope, windowed *ir.Rope) *ir.Graph {
	h, embedding := model.Hidden, m.names.embedding()
	head := []ir.GraphWeight{weight(m.names.logits(), model.Vocab, h)}
	if model.Tied {
		head[0] = weight(embedding, model.Vocab, h)
	}
	if d.biasedHead {
		head = append(head, weight(m.names.head+".bias", model.Vocab))
	}
	var before, after nodes
	before.add("embed", "embed", []int{h}, nil, weight(embedding, model.Vocab, h))
	if d.learned != nil {
		last := &before[0]
		last.Weights = append(last.Weights, weight(m.names.of("positions")+".weight", d.learnedRows, h))
		before.param(ir.IntParam("offset", ir.Int(d.learned.offset)))
	}
	if d.embedScale != nil && d.embedScale(&model) != 1 {
		before.param(ir.FloatParam("scale", d.embedScale(&model)))
	}
	n := d.norm(&after, "final_norm", ir.Stream, h, model.Eps, m.names.of("final_norm"))
	logits := after.add("lm_head", "linear", []int{model.Vocab}, []string{n}, head...)
	logits = after.scaled("logits_scale", logits, model.Vocab, d.logitsScale)
	if d.logitsCap > 0 {
		logits = after.add("logits_cap", "soft_cap", []int{model.Vocab}, []string{logits})
		after.param(ir.FloatParam("cap", d.logitsCap))
	}
	after.add("argmax", "argmax", []int{1}, []string{logits})
	rotate := slices.Repeat([]bool{true}, model.Layers)
	if d.rotate != nil {
		rotate = d.rotate(windows)
	}
	mixers := make([]*mixer, model.Layers)
	if d.mixers != nil {
		if mixers = d.mixers(m, &model); m.diags.Err() == nil {
			model.SetFacts(factsOfMixers(mixers, &model))
		}
	}
	g := &ir.Graph{Model: model, Rope: rope, Before: before, After: after}
	kinds := map[layerForm]int{}
	for i, window := range windows {
		f, name := layerForm{facts: *model.Of(i), window: window, rotates: rotate[i], mixer: mixers[i],
			served: d.keysServe && window == 0}, fullAttention
		if f.mixer != nil {
			f, name = layerForm{facts: f.facts, mixer: f.mixer}, f.mixer.kind
		}
		if window > 0 {
			f.rope = windowed
		}
		if window >= model.MaxSeq {
			f.window = 0
		}
		if f.window > 0 || f.rope != nil {
			name = slidingAttention
		}
		if !f.rotates && f.mixer == nil {
			name += " without rotation"
		}
		if len(model.Kinds) > 0 {
			of := fmt.Sprintf("%d heads, %d kv heads and ", f.facts.Heads, f.facts.KVHeads)
			if model.Differ(ir.HeadDimOf) {
				of = fmt.Sprintf("%d heads of %d elements, %d kv heads and ", f.facts.Heads, f.facts.HeadDim,
					f.facts.KVHeads)
			}
			if f.mixer != nil {
				of = ""
			}
			name += fmt.Sprintf(" of %s%d wide", of, f.facts.Intermediate)
			if f.facts.Experts > 0 {
				name += fmt.Sprintf(" with %d experts", f.facts.Experts)
			}
		}
		kind, known := kinds[f]
		if !known {
			kind = len(g.Kinds)
			kinds[f] = kind
			g.Kinds = append(g.Kinds, ir.LayerKind{Name: name, Rope: f.rope,
				Nodes: d.layer(&model, m.names, &f)})
			if len(g.Kinds) == MostKinds+1 { // windows, rotations and mixers alone are fewer
				m.fail(codeKinds, perLayerConfig, "makes layers of more than %d kinds: layer %d is of another one "+
					"than all before it; want at most %d kinds, each of which has code of its own in the kernel",
					MostKinds, i, MostKinds)
			}
		}
		g.Layers = append(g.Layers, kind)
	}
	return g
}

// sameWindow is the window of a family whose layers are of one kind.
func sameWindow(window, layers int) []int { return slices.Repeat([]int{window}, layers) }

// Kinds of layers, as configs have them.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)
