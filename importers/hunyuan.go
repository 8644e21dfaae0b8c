package importers

import (
	"maps"
	"math"

	"amkc/ir"
)

// importHunyuan builds the graph of a dense Hunyuan: a Llama with a norm of each head of queries and keys, after their
// rotation. Defaults of absent fields are those of transformers' HunYuanDenseV1Config.
func importHunyuan(m *importer) *ir.Graph {
	attention := m.truth("attention_bias", false)
	return m.decoder(&decoder{architecture: "HunYuanDenseV1ForCausalLM", modelled: glmModelled, inert: hunyuanInert,
		layers: 32, hidden: 4096, intermediate: 11008, heads: 32, vocab: 290943, positions: 2048, eps: 1e-5,
		check: (*importer).refuseUnmodelled, ropes: hunyuanRopes, normedRotated: true,
		biased: projections{heads: attention, o: attention},
		names: &tensorNames{body: "model.", head: "lm_head", parts: map[string]string{
			"q_norm": "self_attn.query_layernorm", "k_norm": "self_attn.key_layernorm"}}})
}

// hunyuanInert are the inert fields of a Hunyuan, whose MLP has no biases, and which normalises heads without a switch.
var hunyuanInert = func() map[string]known {
	inert := maps.Clone(glmInert)
	inert["use_qk_norm"] = isTrue.does("heads of queries and keys have no norm")
	// What published configs say of siblings with images, experts or shared caches, and of their tokenizer.
	for _, field := range []string{"eod_token_id", "im_start_id", "im_end_id", "im_newline_id", "text_start_id",
		"text_end_id", "mask_init_id", "pad_id", "org_vocab_size", "pool_type", "class_num", "dense_list",
		"cla_share_factor", "attention_head_dim", "kv_lora_rank", "q_lora_rank"} {
		inert[field] = whatever
	}
	inert["use_cla"] = isFalse.does("layers share their caches")
	inert["use_mla"] = isFalse.does("attention is latent")
	inert["add_classification_head"] = isFalse.does("there is another head")
	inert["position_embedding_xdrope"] = isFalse.does("positions have several dimensions")
	inert["use_rotary_pos_emb"] = isTrue.does("nothing is rotated")
	inert["norm_type"] = isText("rms").does("norms are others")
	return inert
}()

// hunyuanRopes reads one rotary embedding for all layers. Where its type is dynamic and it has an alpha, that raises
// the base, and the class reads nothing else of the object.
func hunyuanRopes(m *importer, model *ir.Model, trained int) (ir.Rope, *ir.Rope) {
	const alpha = "alpha"
	where, params := m.ropeObject()
	theta := m.ropeTheta("rope_theta", 10000, where, params)
	r := m.ropeReader(where, params, theta, model, trained)
	if params == nil || r.ropeType() != "dynamic" || !r.has(alpha) {
		return r.read(), nil
	}
	dim := float64(model.HeadDim)
	if dim <= 2 {
		m.fail(codeRope, r.at(alpha), "raises the base by a power that heads of %d elements do not have; want larger "+
			"heads", model.HeadDim)
		return ir.Rope{}, nil
	}
	r.theta *= math.Pow(r.number(alpha, 1), dim/(dim-2))
	return r.plain(), nil
}
