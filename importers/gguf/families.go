package gguf

import (
	"slices"
	"strings"

	"amkc/ir/diag"
)

// A family is what an architecture of llama.cpp is called in a Hugging Face checkpoint, and how its files differ from
// one.
type family struct {
	modelType, class string

	eps      string            // the field of the epsilon of norms; "": rms_norm_eps
	layerEps bool              // norms are LayerNorms
	parts    map[string]string // of a layer, besides those of usualParts; one with its ending becomes a whole name
	pairs    bool              // rows of q and k are in the order of pairs that rotate: neighbours instead of halves
	offset   bool              // norms are stored plus one
	partial  bool              // a part of a head may be rotated
	gate     string            // the field of the activation, which is gelu in its tanh form; "": it is SiLU
	tied     bool              // files never have the head
	drafting bool              // layers that only speculation runs may follow the others
	experts  *experts          // how a file has them; nil: none are read
	facts    func(*facts)      // reads what others do not have
}

// experts are what layers of a family have in place of an MLP: a file has three tensors for those of a layer, and a
// checkpoint three for each of them.
type experts struct {
	count, width   string // the fields of config.json: how many there are, and how wide
	router, part   string // the parts of a layer
	gate, up, down string // parts of an expert
	normed         string // the field that says whether weights of the chosen ones add up to 1; "": they do
	sigmoid        bool   // scores are sigmoids, not a softmax
	choosing       string // what is added to scores for the choice alone; "": nothing is
	rows           bool   // which a checkpoint has as one row of a matrix
	scale          string // the field of what weights are multiplied by at the end; "": nothing
	weights        bool   // whether they do, in llama.cpp
	only           bool   // every file has experts
}

var usualExperts = experts{count: "num_experts", width: "moe_intermediate_size", router: "mlp.gate",
	part: "mlp.experts", gate: "gate_proj", up: "up_proj", down: "down_proj", normed: "norm_topk_prob", only: true}

// renormalised are experts whose weights add up to 1.
func (e experts) renormalised() *experts {
	e.weights = true
	return &e
}

// usualParts are the parts of a layer, and of what comes before and after, in most families.
var usualParts = map[string]string{
	"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_output": "self_attn.o_proj",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}

var outerParts = map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm",
	"token_embd_norm": "model.embedding_norm", "output": "lm_head"}

// postNorms are parts of families with a norm after each branch.
var postNorms = map[string]string{"post_attention_norm": "post_attention_layernorm",
	"ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}

// families are those that are read, by general.architecture.
var families = map[string]family{
	"llama": {modelType: "llama", class: "LlamaForCausalLM", pairs: true, facts: (*facts).llama,
		experts: &experts{count: "num_local_experts", width: "intermediate_size", router: "block_sparse_moe.gate",
			part: "block_sparse_moe.experts", gate: "w1", up: "w3", down: "w2", weights: true}},
	"qwen2": {modelType: "qwen2", class: "Qwen2ForCausalLM"},
	"qwen3": {modelType: "qwen3", class: "Qwen3ForCausalLM", facts: (*facts).biased},
	"qwen2moe": {modelType: "qwen2_moe", class: "Qwen2MoeForCausalLM", experts: &usualExperts,
		facts: (*facts).qwen2MoE, parts: map[string]string{"ffn_gate_inp_shexp": "mlp.shared_expert_gate",
			"ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
			"ffn_down_shexp": "mlp.shared_expert.down_proj"}},
	"qwen3moe": {modelType: "qwen3_moe", class: "Qwen3MoeForCausalLM", experts: usualExperts.renormalised(),
		facts: (*facts).biased},
	"olmoe": {modelType: "olmoe", class: "OlmoeForCausalLM", experts: &experts{count: "num_experts",
		width: "intermediate_size", router: "mlp.gate", part: "mlp.experts", gate: "gate_proj", up: "up_proj",
		down: "down_proj", normed: "norm_topk_prob", only: true}, facts: (*facts).biased},
	"gpt-oss": {modelType: "gpt_oss", class: "GptOssForCausalLM", experts: &experts{count: "num_local_experts",
		width: "intermediate_size", router: "mlp.router", part: "mlp.experts", gate: "gate_proj", up: "up_proj",
		down: "down_proj", only: true}, facts: (*facts).gptOSS, parts: map[string]string{
		"attn_sinks.weight": "self_attn.sinks", "post_attention_norm": "post_attention_layernorm"}},
	"ernie4_5-moe": {modelType: "ernie4_5_moe", class: "Ernie4_5_MoeForCausalLM", experts: &experts{
		count: "moe_num_experts", width: "moe_intermediate_size", router: "mlp.gate", part: "mlp.experts",
		gate: "gate_proj", up: "up_proj", down: "down_proj", weights: true, only: true, rows: true,
		choosing: "mlp.moe_statics.e_score_correction_bias"}, facts: (*facts).ernieMoE,
		parts: map[string]string{
			"ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
			"ffn_down_shexp": "mlp.shared_experts.down_proj"}},
	"glm4moe": {modelType: "glm4_moe", class: "Glm4MoeForCausalLM", partial: true, drafting: true,
		experts: &experts{count: "n_routed_experts", width: "moe_intermediate_size", router: "mlp.gate",
			part: "mlp.experts", gate: "gate_proj", up: "up_proj", down: "down_proj", normed: "norm_topk_prob",
			weights: true, sigmoid: true, only: true, choosing: "mlp.gate.e_score_correction_bias",
			scale: "routed_scaling_factor"}, facts: (*facts).glm4MoE,
		parts: map[string]string{"post_attention_norm": "post_attention_layernorm",
			"ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
			"ffn_down_shexp": "mlp.shared_experts.down_proj"}},
	"lfm2": {modelType: "lfm2", class: "Lfm2ForCausalLM", eps: "norm_eps", parts: convolved,
		facts: (*facts).lfm2},
	"lfm2moe": {modelType: "lfm2_moe", class: "Lfm2MoeForCausalLM", eps: "norm_eps", parts: convolved,
		experts: &experts{count: "num_experts", width: "moe_intermediate_size", router: "feed_forward.gate",
			part: "feed_forward.experts", gate: "w1", up: "w3", down: "w2", normed: "norm_topk_prob", weights: true,
			sigmoid: true, only: true, choosing: "feed_forward.expert_bias"}, facts: (*facts).lfm2MoE},
	"gemma": {modelType: "gemma", class: "GemmaForCausalLM", offset: true, gate: "hidden_act", tied: true},
	"gemma2": {modelType: "gemma2", class: "Gemma2ForCausalLM", parts: postNorms, offset: true,
		gate: "hidden_activation", tied: true, facts: (*facts).gemma2},
	"gemma3": {modelType: "gemma3_text", class: "Gemma3ForCausalLM", parts: postNorms, offset: true,
		gate: "hidden_activation", facts: (*facts).gemma3},
	"phi3": {modelType: "phi3", class: "Phi3ForCausalLM", partial: true, facts: (*facts).phi3,
		parts: map[string]string{"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}},
	"granite": {modelType: "granite", class: "GraniteForCausalLM", pairs: true, facts: (*facts).granite},
	"olmo2":   {modelType: "olmo2", class: "Olmo2ForCausalLM", parts: postNorms, facts: (*facts).olmo2},
	"command-r": {modelType: "cohere", class: "CohereForCausalLM", eps: "layer_norm_eps", layerEps: true,
		facts: (*facts).cohere},
	"cohere2": {modelType: "cohere2", class: "Cohere2ForCausalLM", eps: "layer_norm_eps", layerEps: true,
		facts: (*facts).cohere2},
	"stablelm": {modelType: "stablelm", class: "StableLmForCausalLM", eps: "layer_norm_eps", layerEps: true,
		partial: true, facts: (*facts).stablelm},
	"starcoder2": {modelType: "starcoder2", class: "Starcoder2ForCausalLM", eps: "norm_epsilon", layerEps: true,
		gate: "hidden_act", parts: map[string]string{"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
		facts: (*facts).starcoder2},
	"smollm3":  {modelType: "smollm3", class: "SmolLM3ForCausalLM", pairs: true},
	"mistral3": {modelType: "ministral3", class: "Ministral3ForCausalLM", pairs: true, facts: (*facts).mistral3},
	"ernie4_5": {modelType: "ernie4_5", class: "Ernie4_5ForCausalLM", facts: (*facts).ernie},
	"arcee":    {modelType: "arcee", class: "ArceeForCausalLM", pairs: true, facts: (*facts).arcee},
	"exaone4":  {modelType: "exaone4", class: "Exaone4ForCausalLM", parts: postNorms, facts: (*facts).exaone4},
	"hunyuan-dense": {modelType: "hunyuan_v1_dense", class: "HunYuanDenseV1ForCausalLM", facts: (*facts).biased,
		parts: map[string]string{"attn_q_norm": "self_attn.query_layernorm",
			"attn_k_norm": "self_attn.key_layernorm"}},
	"glm4": {modelType: "glm4", class: "Glm4ForCausalLM", partial: true, facts: (*facts).biased,
		parts: map[string]string{"post_attention_norm": "post_self_attn_layernorm",
			"post_ffw_norm": "post_mlp_layernorm", "ffn_up": "mlp.gate_up_proj"}},
	"seed_oss": {modelType: "seed_oss", class: "SeedOssForCausalLM", facts: (*facts).seedOSS,
		parts: map[string]string{"post_attention_norm": "post_attention_layernorm"}},
}

// notModels say why architectures that are known are not read.
var notModels = map[string]string{
	"clip": "it is a projector of images (mmproj), a part of a model; give the file of its language model",
}

// familyOf returns the family of a file, and the architecture that its fields begin with.
func (h *Header) familyOf() (family, string, *diag.Diagnostic) {
	v := h.Fields["general.architecture"]
	arch, _ := v.(string)
	f, known := families[arch]
	kind, _ := h.Fields["general.type"].(string)
	pos := h.Name + ": general.architecture"
	accepted := "accepted: " + strings.Join(architectures(), ", ")
	switch {
	case kind == "adapter":
		return f, arch, diag.Errorf(codeArchitecture, h.Name+": general.type", "is \"adapter\": this is a change to "+
			"another model, which is not read from GGUF; merge it into its model first")
	case notModels[arch] != "":
		return f, arch, diag.Errorf(codeArchitecture, pos, "is %s: %s", spell(v), notModels[arch])
	case v == nil:
		return f, arch, diag.Errorf(codeArchitecture, pos, "is missing; %s", accepted)
	case !known:
		return f, arch, diag.Errorf(codeArchitecture, pos, "is %s, which is not compiled; %s", spell(v), accepted)
	}
	if len(h.Tensors) == 0 {
		return f, arch, diag.Errorf(codeArchitecture, h.Name, "has no tensors: a vocabulary alone is not a model")
	}
	return f, arch, nil
}

func architectures() []string {
	var names []string
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// hfName is what a checkpoint calls a tensor of a file, or its own name if the family has no such part.
func (f *family) hfName(name string) string {
	if layer, part, ending, ok := inLayer(name); ok {
		if whole, known := f.parts[part+"."+ending]; known {
			return "model.layers." + layer + "." + whole
		}
		named, known := f.parts[part]
		if !known {
			named, known = usualParts[part]
		}
		if f.experts != nil && part == "ffn_gate_inp" {
			named, known = f.experts.router, true
		}
		if f.experts != nil && f.experts.choosing != "" && part+"."+ending == choosing {
			return "model.layers." + layer + "." + f.experts.choosing
		}
		if known {
			return "model.layers." + layer + "." + named + "." + ending
		}
		return name
	}
	part, ending, ok := cutLast(name)
	if named, known := outerParts[part]; ok && known {
		return named + "." + ending
	}
	return name
}

// inLayer takes the name of a tensor of a layer apart, "blk.LAYER.PART.ENDING".
func inLayer(name string) (layer, part, ending string, ok bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	layer, rest, _ = strings.Cut(rest, ".")
	part, ending, whole := cutLast(rest)
	return layer, part, ending, ok && whole
}

func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
