package importers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/internal/watch"
	"amkc/ir/half"
)

const adapters = "../testdata/models/adapters/"

// An adapterCase is what testdata/models/adapters.py writes for an adapter.
type adapterCase struct {
	Model  string
	Before []string
	SHA256 map[string]string
	Merged []string
}

func readAdapterCase(t testing.TB, name string) adapterCase {
	text, err := os.ReadFile(adapters + name + "/case.json")
	require.NoError(t, err)
	var c adapterCase
	require.NoError(t, json.Unmarshal(text, &c))
	return c
}

func (c *adapterCase) open(t testing.TB, name string) *checkpoint.Checkpoint {
	var dirs []string
	for _, other := range append(slices.Clone(c.Before), name) {
		dirs = append(dirs, adapters+other)
	}
	w, err := checkpoint.Open("../testdata/models/zoo/"+c.Model, dirs...)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func floatsOf(t testing.TB, tensor checkpoint.Tensor) []float32 {
	out := make([]float32, tensor.Rows()*tensor.RowLen())
	require.NoError(t, tensor.ReadF32(out, 0))
	return out
}

// Merged weights have the bits of PEFT's merge_and_unload in float32, but for DoRA, whose norms depend on the order of
// a sum. What an adapter does not change stays as it is.
func TestAdaptersMergeAsPEFT(t *testing.T) {
	names, err := os.ReadDir(adapters)
	require.NoError(t, err)
	require.Len(t, names, 9)
	for _, dir := range names {
		name := dir.Name()
		t.Run(name, func(t *testing.T) {
			c := readAdapterCase(t, name)
			w := c.open(t, name)
			s, err := Import(Source{Name: "m", Config: w.Config, Weights: w})
			require.NoError(t, err)
			require.Empty(t, s.Warnings)
			var values []float32
			if len(c.Merged) > 0 {
				raw, err := os.ReadFile(adapters + name + "/merged.f32")
				require.NoError(t, err)
				values = make([]float32, len(raw)/4)
				half.DecodeF32(values, raw)
			}
			stored, seen := w.Stored(), 0
			for i, tensor := range w.Tensors() {
				got := floatsOf(t, tensor)
				want, byDigest := c.SHA256[tensor.Name]
				switch {
				case byDigest:
					raw, err := tensor.Raw()
					require.NoError(t, err)
					sum := sha256.Sum256(raw)
					require.Equal(t, want, hex.EncodeToString(sum[:]), tensor.Name)
					require.Equal(t, checkpoint.F32, tensor.DType)
					seen++
				case slices.Contains(c.Merged, tensor.Name):
					for j, v := range got {
						require.InDelta(t, values[j], v, 6e-7*max(0.02, math.Abs(float64(v))), "%s %d", tensor.Name, j)
					}
					values, seen = values[len(got):], seen+1
				default:
					require.Equal(t, floatsOf(t, stored[i]), got, tensor.Name)
				}
			}
			require.Empty(t, values)
			require.Equal(t, len(c.SHA256)+len(c.Merged), seen)
			_, err = Import(Source{Name: "m", Config: w.Config, Weights: w})
			require.NoError(t, err, "merged once")
		})
	}
}

// Parts of a merged tensor are those of the whole, in whatever order they are read.
func TestAdapterParts(t *testing.T) {
	for name, key := range map[string]string{"gpt2-dora": "transformer.h.0.attn.c_proj.weight",
		"llama-patterns": "model.layers.0.self_attn.q_proj.weight"} {
		c := readAdapterCase(t, name)
		w := c.open(t, name)
		_, err := Import(Source{Name: "m", Config: w.Config, Weights: w})
		require.NoError(t, err)
		tensor, ok := w.Tensor(key)
		require.True(t, ok)
		all := floatsOf(t, tensor)
		raw, err := tensor.Raw()
		require.NoError(t, err)
		for _, first := range []int{0, 5, 61, len(all) - 201} {
			part := make([]float32, 201)
			require.NoError(t, tensor.ReadF32(part, first))
			require.Equal(t, all[first:first+201], part)
			bytes := make([]byte, 3*7)
			require.NoError(t, tensor.ReadPieces(bytes, first+1, 7, 90))
			for i := range 3 {
				require.Equal(t, raw[first+1+90*i:][:7], bytes[7*i:][:7])
			}
		}
	}
}

// adapterOf writes an adapter: a configuration that has the fields and peft_type, r and lora_alpha, and tensors of
// zeros.
func adapterOf(t testing.TB, fields string, tensors map[string][]int) string {
	dir := t.TempDir()
	if fields != "" {
		fields = "," + fields
	}
	writeAdapter(t, dir, `{"peft_type": "LORA", "r": 2, "lora_alpha": 4`+fields+`}`, tensors)
	return dir
}

func writeAdapter(t testing.TB, dir, config string, tensors map[string][]int) {
	header, data := map[string]any{}, 0
	for name, shape := range tensors {
		size := 4
		for _, n := range shape {
			size *= n
		}
		header["base_model.model."+name] = map[string]any{"dtype": "F32", "shape": shape,
			"data_offsets": []int{data, data + size}}
		data += size
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	file = append(append(file, text...), make([]byte, data)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), file, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o644))
}

const queries = "model.layers.0.self_attn.q_proj"

// lowRank are the tensors of the queries' module of llama-gqa.
func lowRank() map[string][]int {
	return map[string][]int{queries + ".lora_A.weight": {2, 64}, queries + ".lora_B.weight": {64, 2}}
}

func lowRankWith(name string, shape ...int) map[string][]int {
	all := lowRank()
	all[name] = shape
	return all
}

// Adapters that are not modelled, or do not fit, are refused with what is wrong.
func TestAdaptersRefused(t *testing.T) {
	const llama, tied, gguf = "zoo/llama-gqa", "zoo/llama-mha-tied-bf16", "gguf/models/llama-q8_0/llama-q8_0.gguf"
	for name, c := range map[string]struct {
		model, fields string
		tensors       map[string][]int
		code, says    string
	}{
		"as it is":                  {tensors: lowRank()},
		"unknown field that is off": {fields: `"use_new": false, "new": {}, "of": []`, tensors: lowRank()},
		"init of another kind":      {fields: `"init_lora_weights": "pissa"`, code: "AMK1038", says: `is "pissa"`},
		"init that is an object":    {fields: `"init_lora_weights": {}`, code: "AMK1038", says: "is an object"},
		"layer replication": {fields: `"layer_replication": [[0, 2]]`,
			code: "AMK1038", says: `"layer_replication"`},
		"target parameters": {fields: `"target_parameters": ["x"]`,
			code: "AMK1038", says: `"target_parameters"`},
		"trainable tokens":      {fields: `"trainable_token_indices": [1]`, code: "AMK1038", says: "an array"},
		"unknown field":         {fields: `"use_new": true`, code: "AMK1038", says: `"use_new"`},
		"unknown, with escapes": {fields: `"\u001b[1mx": 1`, code: "AMK1038", says: `\x1b[1mx`},
		"a bias":                {fields: `"bias": "some"`, code: "AMK1038", says: `is "some"`},
		"rank of a pattern":     {fields: `"rank_pattern": {"q": 0}`, code: "AMK1038", says: "whole ones from 1"},
		"alpha of a pattern":    {fields: `"alpha_pattern": {"q": "1"}`, code: "AMK1038", says: `has "1"`},
		"a pattern":             {fields: `"rank_pattern": {"(?=q)": 1}`, code: "AMK1038", says: "an expression"},
		"a repeat count": {fields: `"alpha_pattern": {"layers.{,2}.*": 1}`,
			code: "AMK1038", says: "without {"},
		"targets": {fields: `"target_modules": [1]`, code: "AMK1038", says: "a list of names"},
		"saved":   {fields: `"modules_to_save": "x"`, code: "AMK1038", says: "a list of names"},

		"no tensors": {tensors: map[string][]int{}, code: "AMK1039", says: "no tensor"},
		"A alone": {tensors: map[string][]int{queries + ".lora_A.weight": {2, 64}},
			code: "AMK1039", says: "alone"},
		"another rank": {fields: `"rank_pattern": {"q_proj": 3}`, tensors: lowRank(),
			code: "AMK1039", says: "rank 3"},
		"a long A": {tensors: lowRankWith(queries+".lora_A.weight", 2, 65), code: "AMK1039", says: "[2 65]"},
		"a wide B": {tensors: lowRankWith(queries+".lora_B.weight", 2, 64), code: "AMK1039", says: "[2 64]"},
		"a flat B": {tensors: lowRankWith(queries+".lora_B.weight", 128), code: "AMK1039", says: "[128]"},
		"a deep B": {tensors: lowRankWith(queries+".lora_B.weight", 64, 2, 1),
			code: "AMK1039", says: "[64 2 1]"},
		"empty": {tensors: map[string][]int{queries + ".lora_A.weight": {0, 64},
			queries + ".lora_B.weight": {64, 0}},
			code: "AMK1039", says: "[0 64]"},
		"magnitudes": {tensors: lowRankWith(queries+".lora_magnitude_vector", 64),
			code: "AMK1039", says: "use_dora is false"},
		"no magnitudes": {fields: `"use_dora": true`, tensors: lowRank(), code: "AMK1039", says: "use_dora is true"},
		"two magnitudes": {fields: `"use_dora": true`, tensors: func() map[string][]int {
			all := lowRankWith(queries+".lora_magnitude_vector", 64)
			all[queries+".lora_magnitude_vector.weight"] = []int{64}
			return all
		}(), code: "AMK1039", says: "two names"},
		"short magnitudes": {fields: `"use_dora": true`, tensors: lowRankWith(queries+".lora_magnitude_vector", 63),
			code: "AMK1039", says: "[63]"},
		"a norm": {tensors: map[string][]int{"model.norm.lora_A.weight": {2, 64},
			"model.norm.lora_B.weight": {64, 2}},
			code: "AMK1039", says: "model.norm.weight of [64]"},
		"scalars of a norm": {fields: `"use_dora": true`, tensors: map[string][]int{"model.norm.lora_A.weight": {},
			"model.norm.lora_B.weight": {}, "model.norm.lora_magnitude_vector": {}},
			code: "AMK1039", says: "accepted: matrices"},
		"no such module": {tensors: map[string][]int{"model.layers.7.mlp.up_proj.lora_A.weight": {2, 64},
			"model.layers.7.mlp.up_proj.lora_B.weight": {176, 2}},
			code: "AMK1039", says: "no such tensor"},
		"no such tensor": {tensors: lowRankWith("model.norm.bias", 64), code: "AMK1039", says: "no such tensor"},
		"no such bias":   {tensors: lowRankWith(queries+".lora_B.bias", 64), code: "AMK1039", says: "q_proj.bias"},
		"another form": {tensors: lowRankWith(queries+".lora_A.default.weight", 2, 64),
			code: "AMK1039", says: "no tensor of a LoRA"},
		"not a target": {fields: `"target_modules": ["v_proj"]`, tensors: lowRank(),
			code: "AMK1039", says: "does not list"},
		"target missing": {fields: `"target_modules": ["q_proj", "v_proj"]`, tensors: lowRank(),
			code: "AMK1039", says: `"v_proj"`},
		"saved missing": {fields: `"modules_to_save": ["lm_head"]`, tensors: lowRank(),
			code: "AMK1039", says: `"lm_head"`},
		"one twice": {tensors: func() map[string][]int {
			all := lowRank()
			all["layers.0.self_attn.q_proj.lora_A.weight"] = []int{2, 64}
			all["layers.0.self_attn.q_proj.lora_B.weight"] = []int{64, 2}
			return all
		}(), code: "AMK1039", says: "another tensor of this adapter"},
		"a whole of another shape": {tensors: map[string][]int{"lm_head.weight": {513, 64}},
			code: "AMK1039", says: "[513 64]"},
		"a tied embedding": {model: tied, tensors: map[string][]int{"model.embed_tokens.weight": {512, 64}},
			code: "AMK1039", says: "tie_word_embeddings"},
		"a tied head": {model: tied, tensors: map[string][]int{"lm_head.weight": {512, 64}},
			code: "AMK1039", says: "no such tensor"},
		"a matrix of GGUF": {model: gguf, tensors: lowRank(), code: "AMK1041", says: "--weights"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.model == "" {
				c.model = llama
			}
			dir := adapterOf(t, c.fields, c.tensors)
			w, err := checkpoint.Open("../testdata/models/"+c.model, dir)
			if err == nil {
				defer w.Close()
				_, err = Import(Source{Name: "m", Config: w.Config, Weights: w})
			}
			if c.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "["+c.code+"]")
			require.ErrorContains(t, err, c.says)
			if w != nil {
				_, again := Import(Source{Name: "m", Config: w.Config, Weights: w})
				require.Equal(t, err.Error(), again.Error())
			}
		})
	}
}

// Modules of transformers are found where checkpoints call them otherwise, and what is not compiled is refused.
func TestAdapterNames(t *testing.T) {
	const attention = "layers.0.self_attn.q_proj"
	for _, c := range []struct{ model, module, changes, says string }{
		{"llava", "language_model.model." + attention, "language_model.model." + attention, ""},
		{"llava", "model.language_model." + attention, "language_model.model." + attention, ""},
		{"llava", "lm_head", "language_model.lm_head", ""},
		{"qwen2-5-vl", "model.language_model." + attention, "model." + attention, ""},
		{"llama-gqa", "model." + attention, "model." + attention, ""},
		{"llava", "vision_tower.encoder." + attention, "vision_tower.encoder." + attention, "that is not compiled"},
		{"llava", "model.vision_tower.vision_model.encoder." + attention, "", "no such tensor"},
		{"llava", attention, "", "no such tensor"}, // two have this ending
	} {
		t.Run(c.model+" "+c.module, func(t *testing.T) {
			model := "../testdata/models/zoo/" + c.model
			w, err := checkpoint.Open(model)
			require.NoError(t, err)
			shape := []int{1, 1}
			if tensor, ok := w.Tensor(c.changes + ".weight"); ok {
				shape = tensor.Shape
			}
			require.NoError(t, w.Close())
			w, err = checkpoint.Open(model, adapterOf(t, "", map[string][]int{
				c.module + ".lora_A.weight": {2, shape[1]}, c.module + ".lora_B.weight": {shape[0], 2}}))
			require.NoError(t, err)
			defer w.Close()
			_, err = Import(Source{Name: "m", Config: w.Config, Weights: w})
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			changed, err := w.Merge(nil)
			require.NoError(t, err)
			require.Equal(t, []string{c.changes + ".weight"}, changed)
		})
	}
}

// Matrices that any of the quantised forms stores are refused by what is stored instead of them.
func TestAdaptersOfQuantised(t *testing.T) {
	const models = "../testdata/models/quantised/models"
	dirs, err := os.ReadDir(models)
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		module := quantisedModule(t, filepath.Join(models, dir.Name()))
		w, err := checkpoint.Open(filepath.Join(models, dir.Name()), adapterOf(t, "", map[string][]int{
			module + ".lora_A.weight": {2, 64}, module + ".lora_B.weight": {64, 2}}))
		require.NoError(t, err, dir.Name())
		_, err = Import(Source{Name: "m", Config: w.Config, Weights: w})
		require.ErrorContains(t, err, "[AMK1041]", dir.Name())
		require.NoError(t, w.Close())
	}
}

// quantisedModule is the first module of a checkpoint whose matrix is quantised.
func quantisedModule(t *testing.T, dir string) string {
	w, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer w.Close()
	for _, tensor := range w.Tensors() {
		for _, ending := range []string{".qweight", ".weight_packed", ".weight"} {
			if module, ok := strings.CutSuffix(tensor.Name, ending); ok && !tensor.HasValues() {
				return module
			}
		}
	}
	require.Fail(t, "nothing is quantised", dir)
	return ""
}

// Numbers that are not finite are found where they are read, those of the sum too.
func TestAdapterNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		of    int // numbers, at the end of the file
		value float32
		says  string
	}{
		"a factor": {1, float32(math.Inf(1)), `.weight: error: element 127 is +Inf`},
		"the sum":  {256, 1e30, `q_proj.weight: error: element 0 with what the adapter adds is +Inf`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := adapterOf(t, "", lowRank())
			path := filepath.Join(dir, "adapter_model.safetensors")
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			for i := range c.of {
				binary.LittleEndian.PutUint32(file[len(file)-4*i-4:], math.Float32bits(c.value))
			}
			require.NoError(t, os.WriteFile(path, file, 0o644))
			w, err := checkpoint.Open("../testdata/models/zoo/llama-gqa", dir)
			require.NoError(t, err)
			defer w.Close()
			_, err = Import(Source{Name: "m", Config: w.Config, Weights: w})
			require.NoError(t, err)
			tensor, _ := w.Tensor(queries + ".weight")
			require.ErrorContains(t, tensor.ReadF32(make([]float32, 64), 0), c.says)
		})
	}
}

// Whatever the configuration and the tensors of an adapter say, the answer is a model or a diagnostic.
func FuzzAdapter(f *testing.F) {
	dir := adapterOf(f, `"target_modules": ["q_proj"], "rank_pattern": {"q": 2}`, lowRank())
	seed, err := os.ReadFile(filepath.Join(dir, "adapter_model.safetensors"))
	require.NoError(f, err)
	config, err := os.ReadFile(filepath.Join(dir, "adapter_config.json"))
	require.NoError(f, err)
	f.Add(config, seed)
	f.Add([]byte(`{"peft_type": "LORA", "r": 1e300, "lora_alpha": -1}`), seed)
	f.Add([]byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "use_dora": true}`), seed)
	f.Fuzz(func(t *testing.T, config, file []byte) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), config, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), file, 0o644))
		w, err := checkpoint.Open("../testdata/models/zoo/llama-gqa", dir)
		if err == nil {
			defer w.Close()
			if _, err = Import(Source{Name: "fuzz", Config: w.Config, Weights: w}); err == nil {
				for _, tensor := range w.Tensors() {
					if err == nil {
						err = tensor.ReadF32(make([]float32, tensor.RowLen()), 0)
					}
				}
			}
		}
		if err != nil {
			require.Contains(t, err.Error(), "[AMK10")
		}
	})
}
