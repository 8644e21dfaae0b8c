package exploration

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"amkc/compiler"
	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/passes"
)

// A Build says how a small model is compiled: a property for each column of builds.txt.
type Build map[string]string

//go:embed builds.txt
var table string

// Columns are those of builds.txt.
var Columns = strings.Fields(firstLine(table))

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Builds are the rows of builds.txt.
func Builds() []Build {
	var all []Build
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		b := Build{}
		for i, value := range strings.Fields(line) {
			b[Columns[i]] = value
		}
		all = append(all, b)
	}
	return all
}

// Name is unique among the builds of the table.
func (b Build) Name() string {
	return strings.Join([]string{b["model"], b["arch"], b["dtype"], b["weights"]}, " ")
}

// llama is the model that is not in testdata/models/zoo.
const llama = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rms_norm_eps": 1e-5,
"rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "bfloat16"}`

// Sizes of models: two layers, so that there is a loop, and little else. Matrices of fewer than 128 columns are not
// quantised. A window that is shorter than the texts of jobs hides rows from them.
var (
	sizes = map[string]any{"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
		"hidden_size": 64, "intermediate_size": 96, "vocab_size": 96, "max_position_embeddings": 64}
	quantised = map[string]any{"hidden_size": 128, "intermediate_size": 128}
	windows   = map[string]any{"sliding_window": 4, "layer_types": []string{"sliding_attention", "full_attention"}}
	// The second layer has heads of another size, and one whose keys serve as values.
	wideHeads = map[string]any{"sliding_window": 4, "layer_types": windows["layer_types"],
		"per_layer_config": map[string]any{"1": map[string]any{"head_dim": 32, "num_key_value_heads": 1}}}
	// The first layer has a convolution in place of attention, and no experts.
	convolutions = map[string]any{"layer_types": []string{"conv", "full_attention"}, "full_attn_idxs": nil,
		"block_auto_adjust_ff_dim": nil, "block_ffn_dim_multiplier": nil, "block_multiple_of": nil}
	// The first layer has a gated delta rule in place of attention.
	states = map[string]any{"layer_types": []string{"linear_attention", "full_attention"}}
	// What a model differs in from its config.json, after its sizes.
	models = map[string]map[string]any{
		"llama":             {"intermediate_size": 128}, // whole quads: a prompt's gate_up writes down's operand
		"qwen2-bias":        {"layer_types": nil},
		"ministral-windows": windows,
		"qwen3-window-half": windows,
		"olmo2-biases":      {},
		"olmo3-windows":     windows,
		"exaone4-windows":   {"sliding_window": 4},
		"gemma2-tied":       {"sliding_window": 4},
		"gemma3-tied":       windows,
		"gemma4-keys-serve": wideHeads,
		"glm4-plain":        {},
		"glm4-half":         {},
		"arcee-plain":       {},
		"apertus-gelu":      {},
		"apertus-biases":    {},
		"nemotron-half":     {},
		"gpt2":              {"n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64},
		"gpt-neox-parallel": {"num_key_value_heads": nil, "head_dim": nil},
		"phi-head-norms":    {},
		"cohere-head-norms": {},
		"cohere2-tied":      windows,
		"cohere2-listed":    windows,
		"mixtral-window":    {"sliding_window": 4},
		"olmoe-plain":       {"norm_topk_prob": true},
		"gpt-oss-sinks":     windows,
		"gpt-oss-mxfp4":     windows,
		"glm4-moe-groups":   {},
		"qwen2-moe-shared":  {"num_experts_per_tok": 5}, // whose digits are in shared memory
		"lfm2-biases":       convolutions,
		"lfm2-moe":          convolutions,
		"qwen3-5-text":      states,
	}
)

// config is the config.json of the build's model.
func (b Build) config(root string) ([]byte, error) {
	text, model := []byte(llama), b["model"]
	if model != "llama" {
		var err error
		if text, err = os.ReadFile(filepath.Join(root, "testdata", "models", "zoo", model, "config.json")); err != nil {
			return nil, err
		}
	}
	edits, ok := models[model]
	if !ok && !b.isDrawn() {
		return nil, fmt.Errorf("model %q has no sizes here", model)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	switch {
	case b.isDrawn() && model != "llama": // it has properties for the fields that the model has
		for _, name := range []string{"max_position_embeddings", "n_positions"} {
			if config[name] != nil {
				config[name] = sizes["max_position_embeddings"]
			}
		}
	case model != "gpt2": // which calls them otherwise
		maps.Copy(config, sizes)
	}
	maps.Copy(config, edits)
	if b["weights"] != "none" && !b.isDrawn() {
		if model == "gpt2" {
			config["n_embd"] = 128
		} else {
			maps.Copy(config, quantised)
		}
	}
	b.size(config)
	if stored := storedForms[b["weights"]]; stored != nil {
		config["quantization_config"] = stored(config)
	}
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	return json.Marshal(config)
}

// isDrawn reports whether the build has been drawn, with a seed for its weights.
func (b Build) isDrawn() bool { return b["seed"] != "" }

// configFields are what models call properties that a build may have besides those of its columns.
var configFields = map[string][]string{
	"hidden_size":         {"hidden_size", "n_embd", "word_embed_proj_dim"},
	"intermediate_size":   {"intermediate_size", "ffn_dim", "ffn_hidden_size"},
	"vocab_size":          {"vocab_size"},
	"num_key_value_heads": {"num_key_value_heads", "num_kv_heads"},
	"num_attention_heads": {"num_attention_heads", "n_head"},
	"head_dim":            {"head_dim"},
	"num_hidden_layers":   {"num_hidden_layers", "n_layer"},
	"window":              {"sliding_window"},
	"eps":                 {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"},
	"theta":               {"rope_theta", "rotary_emb_base"},
	"cap":                 {"attn_logit_softcapping", "final_logit_softcapping"},
	"multiplier": {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling",
		"logit_scale"},
	"clip": {"clip_qkv"},
}

// size gives fields of a model that it has the values of such properties.
func (b Build) size(config map[string]any) {
	for property, names := range configFields {
		for _, name := range names {
			if value, ok := b[property]; ok && config[name] != nil {
				config[name] = json.Number(value)
			}
		}
	}
	if rope, ok := config["rope_parameters"].(map[string]any); ok && b["theta"] != "" && rope["rope_theta"] != nil {
		rope["rope_theta"] = json.Number(b["theta"])
	}
	if heads := b["num_attention_heads"]; heads != "" && config["head_dim"] == nil {
		for _, name := range configFields["hidden_size"] {
			if config[name] != nil {
				config[name] = number(heads) * number(b["head_dim"])
			}
		}
	}
	if b["layers"] == "heads" {
		kvHeads, group := number(b["num_key_value_heads"]), number(b["group"])
		config["per_layer_config"] = map[string]any{"1": map[string]any{"num_key_value_heads": kvHeads + 1,
			"num_attention_heads": (kvHeads + 1) * max(1, group-1)}}
	}
	if types, ok := config["layer_types"].([]string); ok && b["num_hidden_layers"] != "" {
		config["layer_types"] = types[:number(b["num_hidden_layers"])]
	}
	if act := b["activation"]; act != "" && slices.Contains(withoutGate, b["model"]) {
		for _, name := range []string{"hidden_act", "activation_function", "activation"} {
			if config[name] != nil {
				config[name] = act
			}
		}
	}
}

// withoutGate are models whose MLP may have any of the activations that several families have.
var withoutGate = []string{"opt-tied", "falcon-groups", "gpt-neox-parallel", "gpt2", "apertus-gelu", "arcee-plain",
	"nemotron-half", "phi-head-norms", "starcoder2-plain"}

// number is a property that is one.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

var dtypes = map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32, "int8": ir.I8}

// options are how the build is compiled, of the model in a directory.
func (b Build) options(model string) (o compiler.Options, err error) {
	number := func(text string) int {
		n, wrong := strconv.Atoi(text)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%s: %v", b.Name(), wrong)
		}
		return n
	}
	dtype := func(name string) *ir.DType {
		d, ok := dtypes[name]
		if !ok && err == nil {
			err = fmt.Errorf("%s: no dtype is called %s", b.Name(), name)
		}
		return &d
	}
	o = compiler.Options{Model: model, Name: "small", RandomSeed: new(uint64), DType: dtype(b["dtype"]),
		Target: ir.ArchTarget(number(strings.TrimPrefix(b["arch"], "sm_")), number(b["SMs"]))}
	if b.isDrawn() {
		*o.RandomSeed = uint64(number(b["seed"]))
	}
	if b["cache"] != b["dtype"] {
		o.Cache = dtype(b["cache"])
	}
	if rows := number(b["rows"]); rows > 1 {
		o.Passes = []ir.Pass{{Rows: rows}}
	}
	sequences, ofEach, several := strings.Cut(b["sequences"], "x")
	if n := number(sequences); n > 1 {
		o.Passes = append(o.Passes, ir.PassOf(n, 1))
		if several {
			o.Passes = append(o.Passes, ir.PassOf(n, number(ofEach)))
		}
	}
	if b["weights"] != "none" && storedForms[b["weights"]] == nil {
		var wrong error
		if o.Formats, wrong = passes.ParseWeightFormats(b["weights"]); wrong != nil {
			return o, wrong
		}
	}
	tiling := map[string]any{
		"ring":     map[string]any{"chunk_bytes": 4096, "in_flight": 2, "run_ahead": 3 * one(b["prefetch"])},
		"exchange": map[string]any{"flagged": 1 - one(b["exchange"])},
		"loop":     map[string]any{"barrier": one(b["barrier"])},
		"prompt":   map[string]any{"tokens": 128 * one(b["prompt"])},
	}
	switch b["context"] {
	case "whole":
		tiling["attention"] = map[string]any{"max_splits": 1}
	case "split":
		tiling["attention"] = map[string]any{"max_splits": 2, "split_from": 0}
	case "crossing":
		from := 3
		if number(b["rows"]) > 1 {
			from = 8 // a pass fits before it
		}
		tiling["attention"] = map[string]any{"max_splits": 2, "split_from": from}
	case "":
		tiling["attention"] = map[string]any{"max_splits": number(b["splits"]), "split_from": number(b["split_from"])}
	}
	for property, value := range b { // knobs
		if group, knob, ok := strings.Cut(property, "."); ok {
			if tiling[group] == nil {
				tiling[group] = map[string]any{}
			}
			tiling[group].(map[string]any)[knob] = number(value)
		}
	}
	all := map[string]any{"tiling": tiling}
	if b["prompt"] == "no" && !b.isDrawn() {
		all["smem_bytes_per_block"] = 57344 // in which the ring has few slots, and goes round often
	}
	text, wrong := json.Marshal(all)
	if wrong != nil {
		return o, wrong
	}
	config, problems := ir.ParseConfig(text, b.Name())
	if len(problems) > 0 {
		return o, problems
	}
	o.Config = config
	return o, err
}

// one is 1 for the properties that are there.
func one(value string) int {
	if value == "yes" || value == "counters" {
		return 1
	}
	return 0
}

// Compile writes the model and the build below a directory, and returns the directory of the build. root is that of
// the repository. The error is errAlike where layers are to have heads of another size and cannot.
func (b Build) Compile(ctx context.Context, root, dir string) (string, error) {
	model, out := filepath.Join(dir, "model"), filepath.Join(dir, "build")
	config, err := b.config(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(model, 0o777); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(model, "config.json"), config, 0o666); err != nil {
		return "", err
	}
	o, err := b.options(model)
	if err != nil {
		return "", err
	}
	if b["layers"] == "size" {
		o.Edit = widen
	}
	if b["magnitude"] != "" {
		if err := b.magnified(o); err != nil {
			return "", err
		}
		o.RandomSeed = nil
	}
	_, err = compiler.Compile(ctx, compiler.BuildOptions{Options: o, OutDir: out, NoBuild: true, NoLauncher: true})
	return out, err
}

// errAlike says that layers of a model cannot differ in the size of heads.
var errAlike = errors.New("kv heads are odd, or norms have weights for each element of a head")

// widen makes the heads of the second of two layers half as many and twice as large, with a rotation of their own. Its
// matrices stay as they are.
func widen(g *ir.Graph) error {
	kind := g.Kinds[g.Layers[1]]
	f := *g.Model.Of(1)
	if f.KVHeads%2 != 0 || slices.ContainsFunc(kind.Nodes, func(n ir.GraphNode) bool {
		return n.Op != "rope" && n.Op != "attention" && n.IntOr("head_dim", 0) > 0
	}) {
		return errAlike
	}
	rope := *g.RopeOf(g.Layers[1])
	twice := make([]float32, 2*len(rope.InvFreq))
	for j := range twice {
		twice[j] = rope.InvFreq[j/2] / float32(1+j%2)
	}
	if rope.InvFreq = twice; len(twice) > 0 {
		kind.Rope = &rope
	}
	f.Heads, f.KVHeads, f.HeadDim = f.Heads/2, f.KVHeads/2, 2*f.HeadDim
	g.Model.SetFacts([]ir.LayerFacts{*g.Model.Of(0), f})
	if g.Layers[0] != g.Layers[1] {
		g.Kinds[g.Layers[1]] = kind
		return nil
	}
	kind.Name += " with wide heads"
	g.Layers[1] = len(g.Kinds)
	g.Kinds = append(g.Kinds, kind)
	return nil
}

// magnified writes random weights whose matrices are multiplied: activations then get arguments at which they differ.
func (b Build) magnified(o compiler.Options) error {
	seed := *o.RandomSeed
	o.ConfigOnly, o.RandomSeed = true, nil
	l, err := compiler.RunPasses(o)
	if err != nil {
		return err
	}
	defer l.Close()
	specs := importers.RequiredTensors(l.Graph, checkpoint.F32)
	random, err := checkpoint.NewRandom(l.Config, seed, specs, importers.UnitOffsets(l.Graph))
	if err != nil {
		return err
	}
	header, data := map[string]any{}, []byte(nil)
	for _, spec := range specs {
		tensor, _ := random.Tensor(spec.Name)
		values := make([]float32, tensor.Rows()*tensor.RowLen())
		if err := tensor.ReadF32(values, 0); err != nil {
			return err
		}
		if len(spec.Shape) == 2 {
			for i := range values {
				values[i] *= float32(number(b["magnitude"]))
			}
		}
		header[spec.Name] = map[string]any{"dtype": "F32", "shape": spec.Shape,
			"data_offsets": []int{len(data), len(data) + 4*len(values)}}
		data = append(data, rawOf(values)...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return os.WriteFile(filepath.Join(o.Model, "model.safetensors"), slices.Concat(size, text, data), 0o666)
}

// Product is each model for each architecture in each dtype, with the other properties of rows of the table by turns.
func Product() []Build {
	var all []Build
	table := Builds()
	for _, model := range slices.Sorted(maps.Keys(models)) {
		for _, arch := range []string{"sm_75", "sm_80", "sm_90"} {
			for _, dtype := range []string{"bf16", "fp16", "fp32"} {
				b := maps.Clone(table[len(all)%len(table)])
				if b["cache"] == b["dtype"] {
					b["cache"] = dtype
				}
				b["model"], b["arch"], b["dtype"] = model, arch, dtype
				if arch == "sm_75" || dtype == "fp32" {
					b["prompt"] = "no"
				}
				all = append(all, b)
			}
		}
	}
	return all
}
