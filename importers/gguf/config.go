package gguf

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"amkc/ir/diag"
)

// A Model is what a file says of its model, in the words of a Hugging Face checkpoint.
type Model struct {
	Config     []byte // config.json
	Generation []byte // generation_config.json
	Tensors    []NamedTensor
}

// A NamedTensor is a tensor of a file as a checkpoint has it.
type NamedTensor struct {
	Tensor
	Name  string  // in a checkpoint
	Heads int     // above 0: of each head, rows are in the order of pairs that rotate
	Minus float32 // what is subtracted from each element
	Other *Tensor // whose elements stand between those of this one, in F32
}

// MostFactors bounds the factors of a rotation: there is one for each pair of elements of a head.
const MostFactors = 1 << 12

// Model reads the fields of the model. values reads a whole tensor of F32 with at most MostFactors elements. Errors:
// AMK1056 and AMK1057.
func (h *Header) Model(values func(Tensor) ([]float32, *diag.Diagnostic)) (*Model, *diag.Diagnostic) {
	f, arch, err := h.familyOf()
	if err != nil {
		return nil, err
	}
	x := &facts{h: h, family: f, arch: arch, values: values, config: map[string]any{"model_type": f.modelType,
		"architectures": []string{f.class}}, read: map[string]bool{}, tensors: map[string]*Tensor{},
		rotations: map[string]bool{}}
	for i := range h.Tensors {
		x.tensors[h.Tensors[i].Name] = &h.Tensors[i]
	}
	x.usual()
	if f.facts != nil {
		f.facts(x)
	}
	x.rope()
	x.refuseUnread()
	m := &Model{Tensors: x.named()}
	if x.bad != nil {
		return nil, x.bad
	}
	x.config["quantization_config"] = map[string]any{"quant_method": "gguf", "types": storedTypes(m.Tensors)}
	m.Config, m.Generation = document(x.config), document(x.generation())
	return m, nil
}

func document(fields map[string]any) []byte {
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		panic(err) // of numbers and strings that were read from a file: none is a NaN, which number refuses
	}
	return append(text, '\n')
}

// storedTypes are the types of matrices in blocks, by the names of their modules.
func storedTypes(tensors []NamedTensor) map[string]string {
	types := map[string]string{}
	for _, t := range tensors {
		if module, ok := strings.CutSuffix(t.Name, ".weight"); ok && len(t.Shape) == 2 && t.Type.Elements > 1 {
			types[module] = t.Type.Name
		}
	}
	return types
}

// facts turn the fields of a file into those of config.json.
type facts struct {
	h       *Header
	family  family
	arch    string
	values  func(Tensor) ([]float32, *diag.Diagnostic)
	config  map[string]any
	read    map[string]bool // fields
	tensors map[string]*Tensor
	bad     *diag.Diagnostic // the first one

	layers, heads, kvHeads, headDim, hidden, trained int
	drafting                                         int             // layers that only speculation runs, after these
	experts                                          int             // of a layer that has them; 0: none has
	rotations                                        map[string]bool // tensors that are factors of the rotation
}

func (x *facts) fail(key, format string, args ...any) {
	if x.bad == nil {
		x.bad = diag.Errorf(codeField, x.h.Name+": "+key, format, args...)
	}
}

// field is a field of the architecture, which counts as read.
func (x *facts) field(name string) (Value, string) {
	key := x.arch + "." + name
	x.read[key] = true
	return x.h.Fields[key], key
}

// count reads a positive integer; absent 0 makes it mandatory. An array, which has one for each layer, must have the
// same throughout.
func (x *facts) count(name string, absent int) int {
	v, key := x.field(name)
	if v == nil && absent > 0 {
		return absent
	}
	if a, ok := v.(*Array); ok && a.kind != kindString && a.Len() > 0 && a.Len() == max(1, x.layers) {
		v = a.At(0)
		for i := range a.Len() {
			if a.At(i) != v {
				x.fail(key, "differs from layer to layer, which is not modelled; accepted: one number for all")
			}
		}
	}
	n, ok := v.(int64)
	if !ok || n < 1 || n > 1<<31-1 {
		x.fail(key, "is %s; want an integer from 1 to %d", spell(v), 1<<31-1)
		return 1
	}
	return int(n)
}

// perhaps reads a count that may be absent, or 0.
func (x *facts) perhaps(name string) int {
	if v, _ := x.field(name); v == nil || v == int64(0) {
		return 0
	}
	return x.count(name, 0)
}

// number reads a finite number, and whether it is there.
func (x *facts) number(name string) (any, float64, bool) {
	v, key := x.field(name)
	var f float64
	switch v := v.(type) {
	case nil:
		return nil, 0, false
	case float32:
		f = float64(v)
	case float64:
		f = v
	case int64:
		f = float64(v)
	default:
		f = 1
		x.fail(key, "is %s; want a number", spell(v))
	}
	if f-f != 0 {
		x.fail(key, "is %g; want a number", f)
		return float32(1), 1, true
	}
	return v, f, true
}

// take copies a number of the file to a field of the config, if it is there.
func (x *facts) take(name, to string) {
	if v, _, ok := x.number(name); ok {
		x.config[to] = v
	}
}

// need is take of a number that has to be there.
func (x *facts) need(name, to string) {
	if x.take(name, to); x.config[to] == nil {
		x.fail(x.arch+"."+name, "is missing; want a number")
	}
}

func (x *facts) truth(name string, absent bool) bool {
	v, key := x.field(name)
	if v == nil {
		return absent
	}
	b, ok := v.(bool)
	if !ok {
		x.fail(key, "is %s; want a boolean", spell(v))
	}
	return b
}

// has reports whether the file has a tensor.
func (x *facts) has(name string) bool { return x.tensors[name] != nil }

// usual reads what all families have.
func (x *facts) usual() {
	c := x.config
	x.layers = x.count("block_count", 0)
	if x.family.drafting {
		if n := x.perhaps("nextn_predict_layers"); n < x.layers {
			x.layers, x.drafting = x.layers-n, n
		} else {
			x.fail(x.arch+".nextn_predict_layers", "is %d, and there are %d layers; want fewer", n, x.layers)
		}
	}
	x.hidden = x.count("embedding_length", 0)
	x.heads = x.count("attention.head_count", 0)
	x.kvHeads = x.headsOfKeys()
	x.trained = x.count("context_length", 0)
	c["num_hidden_layers"], c["hidden_size"] = x.layers, x.hidden
	c["intermediate_size"] = x.count("feed_forward_length", 0)
	c["num_attention_heads"], c["num_key_value_heads"] = x.heads, x.kvHeads
	c["max_position_embeddings"] = x.trained
	x.headDim = max(1, x.hidden/x.heads)
	if v, _ := x.field("attention.key_length"); v != nil {
		x.headDim = x.count("attention.key_length", 0)
	} else if x.hidden%x.heads != 0 {
		x.fail(x.arch+".attention.head_count", "is %d, which does not divide embedding_length, %d; want a divisor, or "+
			"attention.key_length", x.heads, x.hidden)
	}
	if n := x.count("attention.value_length", x.headDim); n != x.headDim {
		x.fail(x.arch+".attention.value_length", "is %d, and keys have %d elements, which is not modelled; accepted: "+
			"the same", n, x.headDim)
	}
	if x.family.modelType != "stablelm" {
		c["head_dim"] = x.headDim
	}
	eps, field := "attention.layer_norm_rms_epsilon", x.family.eps
	if x.family.layerEps {
		eps = "attention.layer_norm_epsilon"
	} else if field == "" {
		field = "rms_norm_eps"
	}
	x.need(eps, field)
	if x.family.gate != "" {
		c[x.family.gate] = "gelu_pytorch_tanh"
	}
	embedding := x.tensors["token_embd.weight"]
	if embedding == nil || len(embedding.Shape) != 2 {
		x.fail("token_embd.weight", "is missing, or no matrix; want the embedding")
		return
	}
	c["vocab_size"] = embedding.Shape[0]
	if n := x.count("vocab_size", embedding.Shape[0]); n != embedding.Shape[0] {
		x.fail(x.arch+".vocab_size", "is %d, and token_embd.weight has %d rows; want as many", n, embedding.Shape[0])
	}
	c["tie_word_embeddings"] = !x.has("output.weight")
	if x.family.tied && x.has("output.weight") {
		x.fail("output.weight", "is there, and the family has the embedding instead; want no such tensor")
	}
	x.mixture()
	if !x.truth("attention.causal", true) {
		x.fail(x.arch+".attention.causal", "is false: a token attends to those after it; accepted: true")
	}
	if v, key := x.field("pooling_type"); v != nil && v != int64(0) {
		x.fail(key, "is %s: the model makes embeddings of texts; accepted: 0", spell(v))
	}
}

// inert are fields of an architecture that say how a rotation was trained, and change nothing.
var inert = []string{"rope.scaling.finetuned", "tensor_data_layout"}

// refuseUnread refuses fields of the architecture that nothing has read.
func (x *facts) refuseUnread() {
	for _, key := range slices.Sorted(maps.Keys(x.h.Fields)) {
		name, ours := strings.CutPrefix(key, x.arch+".")
		if ours && !x.read[key] && !slices.Contains(inert, name) {
			x.fail(key, "is not a field that amkc knows for %s; it may change what the model computes", x.arch)
		}
	}
}

// rope reads the rotation of queries and keys.
func (x *facts) rope() {
	if _, base, ok := x.number("rope.freq_base"); ok && !(base >= 1) {
		x.fail(x.arch+".rope.freq_base", "is %g; want a number from 1 on", base)
	}
	turned := x.count("rope.dimension_count", x.headDim)
	if turned != x.headDim {
		if !x.family.partial || turned > x.headDim {
			x.fail(x.arch+".rope.dimension_count", "is %d, and a head has %d elements, which is not modelled for %s; "+
				"accepted: %d", turned, x.headDim, x.arch, x.headDim)
		}
	}
	if x.family.partial {
		x.config["partial_rotary_factor"] = float64(turned) / float64(x.headDim)
	}
	if _, own := x.config["rope_parameters"]; own {
		return
	}
	theta := x.theta()
	x.config["rope_theta"] = theta
	if scaling := x.scaling(turned); scaling != nil {
		x.config["rope_scaling"] = scaling
	}
}

// theta is the base of the frequencies.
func (x *facts) theta() any {
	if theta, _, ok := x.number("rope.freq_base"); ok {
		return theta
	}
	return 10000
}

// scaling is how frequencies are scaled; nil: they are not.
func (x *facts) scaling(turned int) map[string]any {
	v, key := x.field("rope.scaling.type")
	kind, _ := v.(string)
	factor, by, scaled := x.number("rope.scaling.factor")
	if linear, old, ok := x.number("rope.scale_linear"); ok && !scaled { // what former files have
		factor, by, scaled = linear, old, true
		if v == nil {
			kind = "linear"
		}
	}
	original := x.count("rope.scaling.original_context_length", x.trained)
	factors := x.factors("rope_freqs.weight", turned)
	switch {
	case kind == "" && scaled: // llama.cpp takes linear for the type that is absent
		kind = "linear"
	case v != nil && kind == "":
		x.fail(key, "is %s; want \"none\", \"linear\", \"yarn\" or \"longrope\"", spell(v))
	}
	switch kind {
	case "", "none", "longrope":
		if kind == "longrope" && scaled && by != 1 {
			x.fail(x.arch+".rope.scaling.factor", "is %g, which is not modelled with rope.scaling.type \"longrope\"; "+
				"accepted: 1", by)
		}
		if factors == nil {
			return nil
		}
		// Each frequency is divided by a number of its own, whatever the length of a text.
		return map[string]any{"rope_type": "longrope", "short_factor": factors, "long_factor": factors,
			"attention_factor": 1, "original_max_position_embeddings": original}
	case "linear":
		if by == 1 && factors == nil || !scaled && factors == nil {
			return nil
		}
	case "yarn":
	default:
		x.fail(key, "is %q, which is not modelled; accepted: \"none\", \"linear\", \"yarn\", \"longrope\"", kind)
	}
	if factors != nil {
		x.fail("rope_freqs.weight", "is there, and rope.scaling.type is %q, which is not modelled together", kind)
	}
	out := map[string]any{"rope_type": kind, "factor": factor}
	if kind == "yarn" {
		out["original_max_position_embeddings"] = original
		for name, to := range map[string]string{"yarn_beta_fast": "beta_fast", "yarn_beta_slow": "beta_slow"} {
			if v, _, ok := x.number("rope.scaling." + name); ok {
				out[to] = v
			}
		}
		for _, name := range []string{"yarn_ext_factor", "attn_factor", "yarn_attn_factor"} {
			if _, n, ok := x.number("rope.scaling." + name); ok && n != 1 {
				x.fail(x.arch+".rope.scaling."+name, "is %g, which is not modelled; accepted: 1", n)
			}
		}
	}
	return out
}

// factors reads a tensor with a number for each pair of elements that rotate; nil if it is not there.
func (x *facts) factors(name string, turned int) []float32 {
	t := x.tensors[name]
	if t == nil {
		return nil
	}
	x.rotations[name] = true
	if len(t.Shape) != 1 || t.Shape[0] != turned/2 || t.Type.Name != "F32" || t.Shape[0] > MostFactors {
		x.fail(name, "is %s %v; want F32 [%d], a factor for each pair of elements of a head that is rotated",
			t.Type.Name, t.Shape, turned/2)
		return nil
	}
	out, err := x.values(*t)
	if err != nil {
		if x.bad == nil {
			x.bad = err
		}
		return nil
	}
	for i, f := range out {
		if !(f > 0) || f-f != 0 {
			x.fail(name, "element %d is %g; want a positive number", i, f)
			return nil
		}
	}
	return out
}

// named are the tensors as a checkpoint has them, but those that are factors of the rotation.
func (x *facts) named() []NamedTensor {
	var out []NamedTensor
	for _, t := range x.h.Tensors {
		if x.rotations[t.Name] {
			continue
		}
		n := NamedTensor{Tensor: t, Name: x.family.hfName(t.Name)}
		layer, part, ending, _ := inLayer(t.Name)
		if i, err := strconv.Atoi(layer); err == nil && i >= x.layers && i < x.layers+x.drafting {
			continue
		}
		if of := partsOfExperts[part]; x.experts > 0 && of != nil {
			experts := "model.layers." + layer + "." + x.family.experts.part
			if ending == "bias" {
				out = x.biases(out, t, experts)
			} else {
				out = x.split(out, t, experts, of(x.family.experts)+"."+ending)
			}
			continue
		}
		if kind, expert, one := strings.Cut(part, "."); one && x.experts > 0 && partsOfExperts[kind+"_exps"] != nil {
			x.fail(t.Name, "is a matrix of expert %s alone, as files of before 2024 have them; want one tensor of all "+
				"experts, %s_exps: convert the model again", expert, kind)
		}
		if x.family.isRow(part) && len(t.Shape) == 1 {
			n.Shape = []int{1, t.Shape[0]}
		}
		if part == "shortconv.conv" && len(t.Shape) == 2 {
			n.Shape = []int{t.Shape[0], 1, t.Shape[1]}
		}
		switch {
		case !x.family.pairs:
		case part == "attn_q":
			n.Heads = x.heads
		case part == "attn_k":
			n.Heads = x.kvHeads
		}
		if n.Heads > 0 && t.Shape[0]%(2*n.Heads) != 0 {
			n.Heads = 0 // a shape that the importer refuses
		}
		if n.Heads > 0 && len(t.Shape) == 1 && t.Type.Elements > 1 {
			x.fail(t.Name, "is stored as %s, and its elements are in another order than rows; accepted: F32, F16, BF16",
				t.Type.Name)
		}
		if x.family.offset && strings.HasSuffix(t.Name, "norm.weight") {
			if n.Minus = 1; t.Type.Name != "F32" {
				x.fail(t.Name, "is stored as %s, and norms of %s are stored plus one; accepted: F32", t.Type.Name,
					x.arch)
			}
		}
		out = append(out, n)
	}
	return out
}

// generation is generation_config.json: the tokens that end a text.
func (x *facts) generation() map[string]any {
	out := map[string]any{}
	if id, ok := x.h.token("bos_token_id"); ok {
		out["bos_token_id"] = id
	}
	ends := []int{}
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if id, ok := x.h.token(key); ok && !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	if len(ends) > 0 {
		out["eos_token_id"] = ends
	}
	return out
}

// token is the id of a token that a field of the tokenizer names.
func (h *Header) token(key string) (int, bool) {
	id, ok := h.Fields["tokenizer.ggml."+key].(int64)
	return int(id), ok && id >= 0 && id < 1<<31
}

// llama reads the biases of a Llama: those of all four projections of attention, or of queries, keys and values alone,
// which a Seed-OSS has.
func (x *facts) llama() {
	c := x.config
	if x.experts > 0 {
		x.mixtral()
		return
	}
	if x.has("blk.0.attn_q.bias") {
		c["attention_bias"] = true
		if !x.has("blk.0.attn_output.bias") {
			c["model_type"], c["architectures"] = "seed_oss", []string{"SeedOssForCausalLM"}
			c["attention_out_bias"] = false
		}
	}
	if x.has("blk.0.ffn_up.bias") {
		c["mlp_bias"] = true
	}
}

func (x *facts) biased() { x.config["attention_bias"] = x.has("blk.0.attn_q.bias") }

func (x *facts) arcee() {
	x.config["hidden_act"] = "relu2"
	x.config["attention_bias"], x.config["mlp_bias"] = x.has("blk.0.attn_q.bias"), x.has("blk.0.ffn_up.bias")
}

func (x *facts) exaone4() {
	x.config["sliding_window"] = nil
	if v, _ := x.field("attention.sliding_window"); v != nil && v != int64(0) {
		x.windows(0)
	}
}

func (x *facts) ernie() { x.config["use_bias"] = x.has("blk.0.attn_q.bias") }

func (x *facts) seedOSS() {
	x.config["attention_bias"] = x.has("blk.0.attn_q.bias")
	x.config["attention_out_bias"] = x.has("blk.0.attn_output.bias")
	x.config["mlp_bias"] = x.has("blk.0.ffn_up.bias")
}

// windows reads the window of a family in which all layers but every last one of n have one.
func (x *facts) windows(absent int) {
	if v, _ := x.field("attention.sliding_window"); v != nil || absent > 0 {
		x.config["sliding_window"] = x.count("attention.sliding_window", absent)
	}
	v, key := x.field("attention.sliding_window_pattern")
	switch v := v.(type) {
	case nil:
	case int64:
		if v < 1 || v > int64(x.layers) {
			x.fail(key, "is %d; want 1 to %d", v, x.layers)
			return
		}
		x.layerTypes(func(i int) bool { return (i+1)%int(v) != 0 })
	case *Array:
		if v.kind != kindBool || v.Len() != x.layers {
			x.fail(key, "is %s; want a boolean for each of %d layers", spell(v), x.layers)
			return
		}
		x.layerTypes(func(i int) bool { return v.At(i) == true })
	default:
		x.fail(key, "is %s; want an integer, or a boolean for each layer", spell(v))
	}
}

func (x *facts) layerTypes(windowed func(layer int) bool) {
	types := make([]string, min(x.layers, 1<<16))
	for i := range types {
		types[i] = "full_attention"
		if windowed(i) {
			types[i] = "sliding_attention"
		}
	}
	x.config["layer_types"] = types
}

// score is the number whose inverse root multiplies scores: of the models of 27B it is not that of a head.
func (x *facts) score(layersOf27B int) {
	x.config["query_pre_attn_scalar"] = x.headDim
	if x.layers == layersOf27B {
		x.config["query_pre_attn_scalar"] = x.hidden / x.heads
	}
}

// cap copies a soft cap; null, as 0 in a file, is none.
func (x *facts) cap(name string) {
	x.config[name] = nil
	if v, n, ok := x.number(name); ok && n != 0 {
		x.config[name] = v
	}
}

func (x *facts) gemma2() {
	x.windows(4096)
	x.score(46)
	for _, of := range [][2]string{{"attn_logit_softcapping", "50"}, {"final_logit_softcapping", "30"}} {
		if v, _ := x.field(of[0]); v == nil {
			x.config[of[0]] = json.Number(of[1]) // what llama.cpp has for files that do not say
		} else {
			x.cap(of[0])
		}
	}
}

func (x *facts) gemma3() {
	x.score(62)
	x.cap("final_logit_softcapping")
	full := map[string]any{"rope_type": "default"}
	if scaling := x.scaling(x.headDim); scaling != nil {
		full = scaling
	}
	full["rope_theta"] = json.Number("1e6")
	if v, _, ok := x.number("rope.freq_base"); ok {
		full["rope_theta"] = v
	}
	local := any(json.Number("1e4"))
	if v, _, ok := x.number("rope.freq_base_swa"); ok {
		local = v
	}
	if v, _ := x.field("attention.sliding_window"); v == nil || v == int64(0) {
		x.config["sliding_window"] = x.trained // no layer has one
		x.layerTypes(func(int) bool { return false })
	} else {
		x.windows(0)
	}
	x.config["rope_parameters"] = map[string]any{"full_attention": full,
		"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": local}}
}

// phi3 reads the factors of long texts, and the window, which llama.cpp does not go by and transformers does.
func (x *facts) phi3() {
	turned := x.count("rope.dimension_count", x.headDim)
	long, short := x.factors("rope_factors_long.weight", turned), x.factors("rope_factors_short.weight", turned)
	window, key := x.field("attention.sliding_window")
	if n, ok := window.(int64); window != nil && !ok {
		x.fail(key, "is %s; want an integer", spell(window))
	} else if n > 0 {
		x.config["sliding_window"] = n
	}
	original := x.count("rope.scaling.original_context_length", x.trained)
	x.config["original_max_position_embeddings"] = original
	factor, _, stated := x.number("rope.scaling.attn_factor")
	theta := x.theta()
	scaling := map[string]any{"rope_type": "default"}
	if (long == nil) != (short == nil) {
		x.fail("rope_factors_long.weight", "and rope_factors_short.weight are not both there; want both or neither")
	}
	if long != nil {
		scaling = map[string]any{"rope_type": "longrope", "long_factor": long, "short_factor": short,
			"original_max_position_embeddings": original}
		if stated {
			scaling["attention_factor"] = factor
		}
	}
	scaling["rope_theta"] = theta
	scaling["partial_rotary_factor"] = float64(turned) / float64(x.headDim)
	x.config["rope_parameters"] = scaling
	if v, key := x.field("rope.scaling.type"); v != nil && v != "longrope" && v != "none" {
		x.fail(key, "is %s, which is not modelled for phi3; accepted: \"longrope\", \"none\"", spell(v))
	}
}

func (x *facts) granite() {
	x.need("attention.scale", "attention_multiplier")
	x.need("logit_scale", "logits_scaling")
	x.take("embedding_scale", "embedding_multiplier")
	x.take("residual_scale", "residual_multiplier")
	x.config["attention_bias"], x.config["mlp_bias"] = x.has("blk.0.attn_q.bias"), x.has("blk.0.ffn_up.bias")
}

// olmo2 is an OLMo 3 where there is a window.
func (x *facts) olmo2() {
	x.config["attention_bias"] = x.has("blk.0.attn_q.bias")
	if v, _ := x.field("attention.sliding_window"); v == nil || v == int64(0) {
		x.field("attention.sliding_window_pattern")
		return
	}
	x.config["model_type"], x.config["architectures"] = "olmo3", []string{"Olmo3ForCausalLM"}
	x.windows(0)
	theta := x.theta()
	local := theta
	if v, _, ok := x.number("rope.freq_base_swa"); ok {
		local = v
	}
	full := map[string]any{"rope_type": "default"}
	if scaling := x.scaling(x.headDim); scaling != nil {
		full = scaling
	}
	full["rope_theta"] = theta
	x.config["rope_parameters"] = map[string]any{"full_attention": full,
		"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": local}}
}

func (x *facts) cohere() {
	x.need("logit_scale", "logit_scale")
	x.config["use_qk_norm"], x.config["attention_bias"] = x.has("blk.0.attn_q_norm.weight"), x.has("blk.0.attn_q.bias")
}

func (x *facts) cohere2() {
	x.need("logit_scale", "logit_scale")
	x.config["attention_bias"] = x.has("blk.0.attn_q.bias")
	x.windows(4096)
}

func (x *facts) stablelm() {
	x.config["use_qkv_bias"] = x.has("blk.0.attn_q.bias")
	parallel := !x.has("blk.0.ffn_norm.weight")
	if x.truth("use_parallel_residual", parallel) != parallel {
		// llama.cpp goes by the tensors.
		x.fail(x.arch+".use_parallel_residual", "is %t, and blk.0.ffn_norm.weight says otherwise", !parallel)
	}
	x.config["use_parallel_residual"] = parallel
	if x.has("blk.0.attn_q_norm.weight") {
		x.fail("blk.0.attn_q_norm.weight", "is there: heads have norms, which is not read from GGUF for stablelm")
	}
}

func (x *facts) starcoder2() {
	x.config["use_bias"] = x.has("blk.0.attn_q.bias")
	if v, _ := x.field("attention.sliding_window"); v != nil && v != int64(0) {
		x.config["sliding_window"] = x.count("attention.sliding_window", 0)
	} else {
		x.config["sliding_window"] = nil
	}
}

// mistral3 is a Mistral where queries are not multiplied by a factor that grows with their position.
func (x *facts) mistral3() {
	beta, n, ok := x.number("attention.temperature_scale")
	if !ok || n == 0 {
		x.config["model_type"], x.config["architectures"] = "mistral", []string{"MistralForCausalLM"}
		x.config["sliding_window"] = nil
		if _, n, ok := x.number("rope.scaling.yarn_log_multiplier"); ok && n != 0 {
			x.fail(x.arch+".rope.scaling.yarn_log_multiplier", "is %g, which is modelled only with "+
				"attention.temperature_scale; accepted: 0", n)
		}
		return
	}
	scaling := x.scaling(x.headDim)
	if scaling == nil || scaling["rope_type"] != "yarn" {
		x.fail(x.arch+".rope.scaling.type", "is not \"yarn\", and attention.temperature_scale is %g; want both", n)
		return
	}
	if v, n, _ := x.number("rope.scaling.yarn_log_multiplier"); n != 1 { // absent: llama.cpp scales cosines and sines
		x.fail(x.arch+".rope.scaling.yarn_log_multiplier", "is %s, which is not modelled; accepted: 1", spell(v))
	}
	theta := x.theta()
	scaling["rope_theta"], scaling["llama_4_scaling_beta"] = theta, beta
	scaling["mscale"], scaling["mscale_all_dim"] = 1, 1
	x.config["rope_parameters"] = scaling
}
