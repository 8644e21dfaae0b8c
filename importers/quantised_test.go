package importers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
)

const quantisedModels = "../testdata/models/quantised/models/"

// tensorsOf reads the tensors and the config of a model.
func tensorsOf(t *testing.T, dir string) (map[string]modeltest.Stored, string) {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	out := map[string]modeltest.Stored{}
	for _, tensor := range c.Tensors() {
		raw, err := tensor.Raw()
		require.NoError(t, err)
		out[tensor.Name] = modeltest.Stored{DType: string(tensor.DType), Shape: slices.Clone(tensor.Shape),
			Data: slices.Clone(raw)}
	}
	return out, string(c.Config.Model.Raw)
}

// Every tensor of a quantised model is accounted for, and its matrices are those that the graph asks for.
func TestQuantisedModels(t *testing.T) {
	dirs, err := os.ReadDir(quantisedModels)
	require.NoError(t, err)
	for _, dir := range dirs {
		s, err := importModel(t, quantisedModels+dir.Name())
		require.NoError(t, err, dir.Name())
		require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), dir.Name())
		require.NotEmpty(t, s.Matrices)
		keys := map[string]bool{}
		for w := range s.Graph.Weights() {
			keys[w.Key] = true
		}
		for key := range s.Matrices {
			require.True(t, keys[key], "%s: %s", dir.Name(), key)
		}
	}
}

// A checkpoint whose inputs are quantised too is compiled with a warning.
func TestQuantisedInputs(t *testing.T) {
	for name, warned := range map[string]bool{"llama-ct-fp8": true, "llama-fp8-blocks": true, "llama-gptq-v2": false,
		"llama-ct-int4": false} {
		s, err := importModel(t, quantisedModels+name)
		require.NoError(t, err)
		require.Equal(t, warned, strings.Contains(s.Warnings.Error(), "AMK1126"), "%s: %v", name, s.Warnings)
	}
}

// What does not fit between the tensors of a quantised model, its config and what one stage streams is refused.
func TestQuantisedRefusals(t *testing.T) {
	const q = "model.layers.1.self_attn.q_proj"
	zeros := func(dtype string, size int, shape ...int) modeltest.Stored {
		for _, n := range shape {
			size *= n
		}
		return modeltest.Stored{DType: dtype, Shape: shape, Data: make([]byte, size)}
	}
	plain := func(tensors map[string]modeltest.Stored, module string, shape ...int) {
		for name := range tensors {
			if strings.HasPrefix(name, module+".weight") {
				delete(tensors, name)
			}
		}
		tensors[module+".weight"] = zeros("BF16", 2, shape...)
	}
	group := func(tensors map[string]modeltest.Stored, module string, groups ...int) {
		tensors[module+".weight_scale"] = modeltest.Stored{DType: "F16", Shape: groups, Data: slices.Repeat([]byte{0,
			0x3c}, groups[0]*groups[1])}
	}
	for name, c := range map[string]struct {
		model string
		edit  func(tensors map[string]modeltest.Stored, config *string)
		says  string
	}{
		"a stage of two kinds": {"llama-ct-int4", func(tensors map[string]modeltest.Stored, _ *string) {
			plain(tensors, "model.layers.0.self_attn.k_proj", 32, 128)
		}, "tensor model.layers.0.self_attn.k_proj.weight: error: is not quantised, and " +
			"model.layers.0.self_attn.q_proj.weight is I4 in groups of 32 with scales of BF16"},
		"scales of another type": {"llama-ct-int4", func(tensors map[string]modeltest.Stored, _ *string) {
			group(tensors, "model.layers.1.mlp.up_proj", 96, 4)
		}, "tensor model.layers.1.mlp.up_proj.weight: error: is I4 in groups of 32 with scales of F16, and " +
			"model.layers.1.mlp.gate_proj.weight is I4 in groups of 32 with scales of BF16; accepted: matrices that " +
			"are quantised alike where one stage of a layer streams them"},
		"no config": {"llama-ct-int4", func(_ map[string]modeltest.Stored, config *string) {
			*config = strings.Replace(*config, "quantization_config", "sep_token_id", 1)
		}, "the config does not say how"},
		"another size": {"llama-ct-int4", func(_ map[string]modeltest.Stored, config *string) {
			*config = strings.Replace(*config, `"intermediate_size": 96`, `"intermediate_size": 64`, 1)
		}, "has shape [96 128]; the config makes it [64 128]"},
		"a part is missing": {"llama-ct-int4", func(tensors map[string]modeltest.Stored, _ *string) {
			delete(tensors, q+".weight_scale")
		}, "tensor " + q + ".weight: error: weight_scale is missing"},
		"a part too many": {"llama-ct-int4", func(tensors map[string]modeltest.Stored, _ *string) {
			tensors[q+".qweight"] = zeros("I32", 4, 1)
		}, "AMK1111"},
		"a matrix that is said to be plain": {"llama-ct-int4", func(_ map[string]modeltest.Stored, config *string) {
			*config = strings.Replace(*config, `"ignore": []`, `"ignore": ["re:.*q_proj"]`, 1)
		}, "tensor " + q + ".weight: error: is stored quantised, and quantization_config says that it is not"},
		"a matrix twice": {"llama-gptq-v2", func(tensors map[string]modeltest.Stored, _ *string) {
			tensors[q+".weight"] = zeros("F16", 2, 128, 128)
		}, "AMK1111"},
	} {
		t.Run(name, func(t *testing.T) {
			tensors, config := tensorsOf(t, quantisedModels+c.model)
			c.edit(tensors, &config)
			_, err := importModel(t, modeltest.WriteModel(t, config, tensors))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Layers that are quantised in another way, or not at all, are of kinds of their own.
func TestLayersOfSeveralStorages(t *testing.T) {
	kinds := func(model string) (*ir.Graph, []string) {
		s, err := importModel(t, quantisedModels+model)
		require.NoError(t, err)
		return s.Graph, modeltest.StoredKinds(s.Graph)
	}
	g, got := kinds("llama-ct-int4-layers")
	require.Equal(t, []string{"[0 2] I4 I4", "[1] I4 plain", "[3] I4 I4"}, got)
	require.Nil(t, g.Kinds[2].Nodes[1].Weights[0].Storage, "q_proj of layer 3")
	_, got = kinds("llama-fp8-layers")
	require.Equal(t, []string{"[0] plain plain", "[1] F8E4M3 F8E4M3"}, got)

	tensors, config := tensorsOf(t, quantisedModels+"llama-ct-int4")
	const down = "model.layers.1.mlp.down_proj"
	tensors[down+".weight_scale"] = modeltest.Stored{DType: "F16", Shape: []int{128, 3}, Data: slices.Repeat([]byte{0,
		0x3c}, 128*3)}
	s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
	require.NoError(t, err)
	require.Len(t, s.Graph.Kinds, 2, "scales of another type")
}

// What tools say of a matrix that they leave out is seen from the tensors, and from the config where there are none.
func TestMatrixLeftOut(t *testing.T) {
	const down = "model.layers.1.mlp.down_proj"
	for model, says := range map[string][2]string{
		"llama-gptq-v2": {`"desc_act"`, `"dynamic": {"-:.*layers.1.mlp.down_proj": {}}, "desc_act"`},
		"qwen3-awq":     {`"lm_head"` + "\n", `"lm_head", "layers.1.mlp.down_proj"` + "\n"},
	} {
		tensors, config := tensorsOf(t, quantisedModels+model)
		text := strings.Replace(config, says[0], says[1], 1)
		require.NotEqual(t, config, text, model)
		shape := []int{128, 160}
		if model == "qwen3-awq" {
			shape[1] = 192
		}
		for name := range tensors {
			if strings.HasPrefix(name, down+".") {
				delete(tensors, name)
			}
		}
		tensors[down+".weight"] = modeltest.Stored{DType: "F16", Shape: shape, Data: make([]byte, 2*shape[0]*shape[1])}
		s, err := importModel(t, modeltest.WriteModel(t, text, tensors))
		require.NoError(t, err, model)
		full := modeltest.StoredKinds(s.Graph)
		require.Len(t, full, 2, model)
		require.Contains(t, full[1], "[1]")
		require.Contains(t, full[1], "plain")
		without, err := Import(Source{Name: "m", Config: modeltest.OpenConfig(t, text)})
		require.NoError(t, err)
		require.Equal(t, full, modeltest.StoredKinds(without.Graph), "%s without its files", model)
	}
}

// Zero points may be there in one matrix of a stage and not in another.
func TestZerosOfSome(t *testing.T) {
	tensors, config := tensorsOf(t, quantisedModels+"llama-gptq-zeros")
	config = strings.Replace(config, `"desc_act"`, `"dynamic": {"+:.*q_proj": {"sym": true}}, "desc_act"`, 1)
	for layer := range 2 {
		key := "model.layers." + string(rune('0'+layer)) + ".self_attn.q_proj.qzeros"
		for i := range tensors[key].Data {
			tensors[key].Data[i] = 0x77 // the middle, less one
		}
	}
	s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
	require.NoError(t, err)
	require.False(t, s.Matrices["model.layers.0.self_attn.q_proj.weight"].Zeros)
	require.True(t, s.Matrices["model.layers.0.self_attn.k_proj.weight"].Zeros)
	require.Len(t, s.Graph.Kinds, 1)
}

// Zero points in some layers alone make no further kind of layers.
func TestZerosOfSomeLayers(t *testing.T) {
	tensors, config := tensorsOf(t, quantisedModels+"llama-gptq-zeros")
	config = strings.Replace(config, `"desc_act"`, `"dynamic": {"+:.*0.mlp.down_proj": {"sym": true}}, "desc_act"`, 1)
	zeros := tensors["model.layers.0.mlp.down_proj.qzeros"].Data
	for i := range zeros {
		zeros[i] = 0x77
	}
	s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
	require.NoError(t, err)
	require.False(t, s.Matrices["model.layers.0.mlp.down_proj.weight"].Zeros)
	require.Len(t, s.Graph.Kinds, 1)
}

// A family whose checkpoints have columns as rows is not read from tensors that have rows as rows.
func TestTransposedFamily(t *testing.T) {
	config, err := os.ReadFile("../testdata/models/zoo/gpt2/config.json")
	require.NoError(t, err)
	tensors, _ := tensorsOf(t, "../testdata/models/zoo/gpt2")
	const key = "transformer.h.0.attn.c_proj"
	w, ok := tensors[key+".weight"]
	require.True(t, ok)
	require.Equal(t, w.Shape[0], w.Shape[1], "a square matrix, whose shape tells nothing")
	n := w.Shape[0]
	delete(tensors, key+".weight")
	tensors[key+".weight"] = modeltest.Stored{DType: "F8_E4M3", Shape: w.Shape, Data: make([]byte, n*n)}
	tensors[key+".weight_scale_inv"] = modeltest.Stored{DType: "F32", Shape: []int{1, 1}, Data: modeltest.F32Bytes(1)}
	text := strings.Replace(string(config), "{", `{"quantization_config": {"quant_method": "fp8",
		"weight_block_size": null},`, 1)
	_, err = importModel(t, modeltest.WriteModel(t, text, tensors))
	require.ErrorContains(t, err, "columns as rows")
}
