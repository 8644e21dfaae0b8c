package importers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
)

// plainTensors are the tensors of a config, all float32, each with values of its own.
func plainTensors(t testing.TB, config string) map[string]modeltest.Stored {
	s, err := importConfig(t, config, Source{})
	require.NoError(t, err)
	out := map[string]modeltest.Stored{}
	for k, w := range slices.Collect(s.Graph.Weights()) {
		n := 1
		for _, d := range w.Shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(k) + float32(i)/1024
		}
		out[w.Key] = modeltest.Stored{DType: "F32", Shape: w.Shape, Data: modeltest.F32Bytes(values...)}
	}
	return out
}

func TestTensorRefusals(t *testing.T) {
	const q = "model.layers.0.self_attn.q_proj.weight"
	type change = func(map[string]modeltest.Stored)
	modeltest.CheckRefusals(t, "testdata/tensor_refusals.golden", []modeltest.Refusal{
		{Name: "missing", Input: change(func(m map[string]modeltest.Stored) { delete(m, q) })},
		{Name: "all missing", Input: change(func(m map[string]modeltest.Stored) {
			clear(m)
			m["x"] = modeltest.Stored{DType: "F32", Shape: []int{1}, Data: modeltest.F32Bytes(1)}
		})},
		{Name: "bias", Input: change(func(m map[string]modeltest.Stored) {
			m["model.layers.0.self_attn.q_proj.bias"] = modeltest.Stored{DType: "F32", Shape: []int{24},
				Data: modeltest.F32Bytes(make([]float32, 24)...)}
			m["model.layers.0.self_attn.q_proj.bias"].Data[95] = 0x40
			m["model.layers.0.self_attn.k_proj.bias"] = modeltest.Stored{DType: "F16", Shape: []int{24},
				Data: slices.Repeat([]byte{0, 0x3c}, 24)}
		})},
		{Name: "bias of another size", Input: change(func(m map[string]modeltest.Stored) {
			m["model.layers.0.self_attn.q_proj.bias"] = modeltest.Stored{DType: "F32", Shape: []int{12},
				Data: make([]byte, 48)}
		})},
		{Name: "bias of integers", Input: change(func(m map[string]modeltest.Stored) {
			m["model.layers.0.self_attn.q_proj.bias"] = modeltest.Stored{DType: "I32", Shape: []int{24},
				Data: make([]byte, 96)}
		})},
		{Name: "bias of no module", Input: change(func(m map[string]modeltest.Stored) {
			m["model.layers.0.self_attn.r_proj.bias"] = modeltest.Stored{DType: "F32", Shape: []int{24},
				Data: make([]byte, 96)}
		})},
		{Name: "layer beyond the config",
			Input: change(func(m map[string]modeltest.Stored) {
				m["model.layers.1.input_layernorm.weight"] = m["model.norm.weight"]
			})},
		{Name: "shape", Input: change(func(m map[string]modeltest.Stored) {
			v := m[q]
			v.Shape = []int{12,
				48}
			m[q] = v
		})},
		{Name: "rank",
			Input: change(func(m map[string]modeltest.Stored) { v := m[q]; v.Shape = []int{576}; m[q] = v })},
		{Name: "quantised", Input: change(func(m map[string]modeltest.Stored) {
			m[q] = modeltest.Stored{DType: "I8", Shape: []int{24, 24}, Data: make([]byte, 576)}
		})},
		{Name: "mlx", Input: change(func(m map[string]modeltest.Stored) {
			m[q] = modeltest.Stored{DType: "U32", Shape: []int{24, 3}, Data: make([]byte, 288)}
			for _, ending := range []string{"scales", "biases"} {
				m[strings.TrimSuffix(q, "weight")+ending] = modeltest.Stored{DType: "F16", Shape: []int{24, 1},
					Data: make([]byte, 48)}
			}
		})},
		{Name: "classifier", Input: change(func(m map[string]modeltest.Stored) {
			delete(m, "lm_head.weight")
			m["score.weight"] = modeltest.Stored{DType: "F32", Shape: []int{2, 24}, Data: make([]byte, 192)}
		})},
		{Name: "bare model", Input: change(func(m map[string]modeltest.Stored) {
			delete(m, "lm_head.weight")
			for name, v := range maps.Clone(m) {
				delete(m, name)
				m[strings.TrimPrefix(name, "model.")] = v
			}
		})},
		{Name: "inv_freq", Input: change(func(m map[string]modeltest.Stored) {
			m["model.layers.0.self_attn.rotary_emb.inv_freq"] = modeltest.Stored{DType: "F32", Shape: []int{4},
				Data: modeltest.F32Bytes(1, 0.1, 0.01, 0.0011)}
		})},
		{Name: "inv_freq of another size", Input: change(func(m map[string]modeltest.Stored) {
			m["model.rotary_emb.inv_freq"] = modeltest.Stored{DType: "F32",
				Shape: []int{1}, Data: modeltest.F32Bytes(1)}
		})},
		{Name: "inv_freq of integers", Input: change(func(m map[string]modeltest.Stored) {
			m["model.rotary_emb.inv_freq"] = modeltest.Stored{DType: "I32", Shape: []int{4}, Data: modeltest.F32Bytes(1,
				0.1, 0.01, 0.001)}
		})},
	}, func(v any) error {
		tensors := plainTensors(t, modeltest.PlainConfig)
		v.(change)(tensors)
		_, err := importModel(t, modeltest.WriteModel(t, modeltest.PlainConfig, tensors))
		return err
	})
}

// Biases of zeros that the model has no place for change nothing, whatever they belong to, and each element is looked
// at.
func TestBiasesOfZeros(t *testing.T) {
	gptq, gptqConfig := tensorsOf(t, quantisedModels+"llama-gptq-zeros")
	phi3, phi3Config := tensorsOf(t, zoo+"phi3-short")
	for name, c := range map[string]struct {
		tensors map[string]modeltest.Stored
		config  string
	}{
		"plain":  {plainTensors(t, modeltest.PlainConfig), modeltest.PlainConfig},
		"gptq":   {gptq, gptqConfig},
		"stacks": {phi3, phi3Config},
	} {
		t.Run(name, func(t *testing.T) {
			without, err := importModel(t, modeltest.WriteModel(t, c.config, c.tensors))
			require.NoError(t, err)
			biased, added := maps.Clone(c.tensors), 0
			for w := range without.Graph.Weights() {
				module, isWeight := strings.CutSuffix(w.Key, ".weight")
				if !isWeight || w.Key == "model.embed_tokens.weight" {
					continue
				}
				data := make([]byte, 2*w.Shape[0])
				data[len(data)-1] = 0x80 // a zero too
				biased[module+".bias"] = modeltest.Stored{DType: "F16", Shape: w.Shape[:1], Data: data}
				added++
			}
			require.Greater(t, added, 7)
			s, err := importModel(t, modeltest.WriteModel(t, c.config, biased))
			require.NoError(t, err)
			without.Graph.Model.Name = s.Graph.Model.Name
			require.Equal(t, without.Graph, s.Graph)
			require.Len(t, s.Consumed, len(without.Consumed)+added)
			require.Contains(t, s.Warnings.Error(), fmt.Sprintf("%d biases of zeros", added))
			for name, v := range biased {
				if !strings.HasSuffix(name, ".bias") {
					continue
				}
				changed := maps.Clone(biased)
				data := slices.Clone(v.Data)
				at := len(data)/2 - 1
				data[2*at] = 1 // the least number that there is
				changed[name] = modeltest.Stored{DType: v.DType, Shape: v.Shape, Data: data}
				_, err := importModel(t, modeltest.WriteModel(t, c.config, changed))
				require.ErrorContains(t, err, "AMK1111")
				require.ErrorContains(t, err, fmt.Sprintf("%s: element %d is -", name, at))
			}
		})
	}
}

func TestStoredInvFreqIsConsumed(t *testing.T) {
	tensors := plainTensors(t, modeltest.PlainConfig)
	freq := invFreq(10000, 8)
	freq[2] = math.Nextafter32(freq[2], 1) // another maths library
	tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = modeltest.Stored{DType: "F32", Shape: []int{4},
		Data: modeltest.F32Bytes(freq...)}
	tensors["model.rotary_emb.inv_freq"] = modeltest.Stored{DType: "BF16", Shape: []int{4},
		Data: []byte{0x80, 0x3f, 0xcd, 0x3d, 0x24, 0x3c, 0x83, 0x3a}}
	s, err := importModel(t, modeltest.WriteModel(t, modeltest.PlainConfig, tensors))
	require.NoError(t, err)
	require.Contains(t, s.Consumed, "model.rotary_emb.inv_freq")
}

// Whatever a rotation scales, the frequencies before it may be stored, as before transformers scaled them itself; those
// of another base may not.
func TestUnscaledInvFreqIsConsumed(t *testing.T) {
	const name = "model.layers.0.self_attn.rotary_emb.inv_freq"
	for kind, keys := range map[string]fieldsOf{
		"linear": {"factor": 4.0}, "dynamic": {"factor": 4.0},
		"yarn": {"factor": 4.0, "original_max_position_embeddings": 16},
		"llama3": {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
			"original_max_position_embeddings": 16},
	} {
		t.Run(kind, func(t *testing.T) {
			rope := maps.Clone(keys)
			rope["type"] = kind
			config := edit(modeltest.PlainConfig, fieldsOf{"rope_scaling": rope})
			tensors := plainTensors(t, config)
			without, err := importModel(t, modeltest.WriteModel(t, config, tensors))
			require.NoError(t, err)
			plain := invFreq(10000, 8)
			require.Equal(t, kind == "dynamic", slices.Equal(plain, without.Graph.Rope.InvFreq))
			for _, freq := range [][]float32{plain, without.Graph.Rope.InvFreq} {
				tensors[name] = modeltest.Stored{DType: "F32", Shape: []int{4}, Data: modeltest.F32Bytes(freq...)}
				s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
				require.NoError(t, err)
				require.Contains(t, s.Consumed, name)
				require.Equal(t, without.Graph.Rope, s.Graph.Rope, "what is stored is not computed with")
			}
			tensors[name] = modeltest.Stored{DType: "F32", Shape: []int{4}, Data: modeltest.F32Bytes(invFreq(20000,
				8)...)}
			_, err = importModel(t, modeltest.WriteModel(t, config, tensors))
			require.ErrorContains(t, err, "AMK1113")
			if kind == "linear" {
				require.ErrorContains(t, err, "element 1 is 0.084089644; the config makes it 0.025, and 0.1 before "+
					"it is scaled")
			}
		})
	}
}

func TestStoredTiedHead(t *testing.T) {
	config := edit(modeltest.PlainConfig, fieldsOf{"tie_word_embeddings": true})
	tensors := plainTensors(t, config)
	tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
	s, err := importModel(t, modeltest.WriteModel(t, config, tensors))
	require.NoError(t, err)
	require.Contains(t, s.Consumed, "lm_head.weight")

	head := tensors["lm_head.weight"]
	head.Data = slices.Clone(head.Data)
	head.Data[len(head.Data)-1] ^= 1
	tensors["lm_head.weight"] = head
	_, err = importModel(t, modeltest.WriteModel(t, config, tensors))
	require.ErrorContains(t, err, "AMK1112")

	_, err = importModel(t, modeltest.WriteModel(t, edit(config, fieldsOf{"tie_word_embeddings": false}),
		plainTensors(t, config)))
	require.ErrorContains(t, err, "AMK1109", "an untied model needs its head")
}

// Whether a Mistral 3 is tied stands outside of text_config: where it does not, the files say it.
func TestTiedByTheFiles(t *testing.T) {
	const head = "language_model.lm_head.weight"
	untied := plainTensors(t, mistral3Config)
	require.Contains(t, untied, head)
	tied := maps.Clone(untied)
	delete(tied, head)
	inside := func(says bool) string {
		return strings.Replace(mistral3Config, `"text_config":{`,
			fmt.Sprintf(`"text_config":{"tie_word_embeddings":%t,`, says), 1)
	}
	outside := func(says bool) string { return edit(mistral3Config, fieldsOf{"tie_word_embeddings": says}) }
	for _, c := range []struct {
		config  string
		tensors map[string]modeltest.Stored
		tied    bool
		refusal string
	}{
		{mistral3Config, untied, false, ""},
		{mistral3Config, tied, true, ""},
		{inside(false), untied, false, ""},
		{inside(false), tied, true, ""},
		{inside(true), tied, true, ""},
		{inside(true), untied, false, "AMK1112"},
		{outside(false), untied, false, ""},
		{outside(false), tied, false, "AMK1109"},
		{outside(true), tied, true, ""},
	} {
		s, err := importModel(t, modeltest.WriteModel(t, c.config, c.tensors))
		if c.refusal != "" {
			require.ErrorContains(t, err, c.refusal, "%s", c.config)
			continue
		}
		require.NoError(t, err, "%s", c.config)
		require.Equal(t, c.tied, s.Graph.Model.Tied, "%s", c.config)
	}
}

func TestRequiredTensors(t *testing.T) {
	s, err := importConfig(t, modeltest.PlainConfig, Source{})
	require.NoError(t, err)
	specs := RequiredTensors(s.Graph, checkpoint.BF16)
	require.Len(t, specs, 2+9+1)
	require.Equal(t, checkpoint.Spec{Name: "model.embed_tokens.weight", DType: checkpoint.BF16, Shape: []int{17, 24}},
		specs[0])
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	require.Equal(t, 1, strings.Count(strings.Join(names, " "), "model.norm.weight"))
}

// A config of a line describes millions of tensors, which are not all looked for.
func TestMillionsOfTensorsAreMissing(t *testing.T) {
	config := edit(qwen3MoEConfig, fieldsOf{"num_experts": 4096, "num_hidden_layers": 512})
	_, err := importModel(t, modeltest.WriteModel(t, config, map[string]modeltest.Stored{
		"x": {DType: "F32", Shape: []int{1}, Data: modeltest.F32Bytes(1)}}))
	require.ErrorContains(t, err, "more than 16384 tensors that the config describes are not in the files")
}
