package cli

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
)

// A storedTensor is a tensor of a file of a test.
type storedTensor struct {
	dtype string
	shape []int
	data  []byte
}

// writeModel writes a directory of a model.
func writeModel(t *testing.T, config string, tensors map[string]storedTensor) string {
	dir, header, data := t.TempDir(), map[string]any{}, []byte{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		v := tensors[name]
		header[name] = map[string]any{"dtype": v.dtype, "shape": v.shape,
			"data_offsets": []int{len(data), len(data) + len(v.data)}}
		data = append(data, v.data...)
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(file, data...), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644))
	return dir
}

func float32s(values []float32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Experts that have a tensor each are read where these are quantised: logits are those of the weights that the integers
// and scales mean, to the bit.
func TestQuantisedExperts(t *testing.T) {
	const config = `{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 128,
		"moe_intermediate_size": 136, "intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2,
		"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
		"vocab_size": 40, "max_position_embeddings": 32, "torch_dtype": "float32"%s}`
	const quantised = `, "quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized",
		"config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy":
		"channel"}}}}`
	plain := fmt.Sprintf(config, "")
	read, err := checkpoint.OpenConfig(writeModel(t, plain, nil))
	require.NoError(t, err)
	s, err := importers.Import(importers.Source{Config: read})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	asIntegers, asFloats, experts := map[string]storedTensor{}, map[string]storedTensor{}, 0
	for _, w := range importers.RequiredTensors(s.Graph, checkpoint.F32) {
		n := w.Shape[0] * w.Shape[len(w.Shape)-1]
		if len(w.Shape) == 1 {
			n = w.Shape[0]
		}
		values := make([]float32, n)
		if module, _ := strings.CutSuffix(w.Name, ".weight"); strings.Contains(module, ".experts.") {
			q, scale := make([]byte, n), make([]float32, w.Shape[0])
			for row := range scale {
				scale[row] = (1 + rng.Float32()) / 1024
			}
			for i := range values {
				q[i] = byte(rng.IntN(255) - 127)
				values[i] = float32(int8(q[i])) * scale[i/w.Shape[1]]
			}
			asIntegers[w.Name] = storedTensor{"I8", w.Shape, q}
			asIntegers[module+".weight_scale"] = storedTensor{"F32", []int{w.Shape[0], 1}, float32s(scale)}
			experts++
		} else {
			for i := range values {
				values[i] = (rng.Float32() - 0.5) / 4
			}
			asIntegers[w.Name] = storedTensor{"F32", w.Shape, float32s(values)}
		}
		asFloats[w.Name] = storedTensor{"F32", w.Shape, float32s(values)}
	}
	require.Equal(t, 2*4*3, experts)
	ids := []int32{1, 7, 3, 39, 0, 12}
	want, _ := refLogits(t, writeModel(t, plain, asFloats), ids)
	got, _ := refLogits(t, writeModel(t, fmt.Sprintf(config, quantised), asIntegers), ids)
	require.Equal(t, want, got)
	require.NotEqual(t, want[:40], want[40:80], "positions differ")
}
