package cli

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
)

// The plain kernels of a build, compiled for the CPU, give the logits that transformers gives: with heads that are
// normalised and layers of two kinds, with biases of some and of all projections, after a window, with rotations that
// scale or leave a part of each head, with a scaled embedding and norms of 1 + w, with scaled branches, in
// layers that do not rotate, by pairs that are neighbours, without norms before branches, within bounds, and with
// states. AMKC_LONG asks for models too all of whose kernels others have.
func TestPlainKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	cases := map[string]int{"llama-biases-yarn": 4, "gemma-odd-dims": 4, "phi3-partial": 4, "glm-three-quarters": 4,
		"exaone4-windows": 4, "apertus-biases": 4, "cohere-head-norms-odd": 4, "nemotron-half": 4, "olmo-clipped": 4,
		"falcon-groups": 4, "phi-head-norms": 4, "gpt2": 4, "opt-tied": 4,
		"mistral-window-narrow": 13, // beyond its window, of 12, as that of the next
		"gemma4-odd-dims":       13,
		"qwen3-5-text":          6, // beyond what its convolutions see, 4
	}
	if os.Getenv("AMKC_LONG") != "" {
		maps.Copy(cases, map[string]int{"qwen2-bias": 4, "phi3-long": 4, "phi-half": 4, "arcee-biases": 4,
			"cohere2-listed": 4, "starcoder2-plain": 4, "mistral-wide-group": 4, "qwen3-window-half": 4,
			"llama-rope-proportional": 4, "granite-biases": 4, "smollm3-tied": 4, "stablelm-head-norms": 4,
			"olmo3-windows": 4, "hunyuan-alpha": 4, "gpt-neox-parallel": 4, "starcoder2-tied": 13})
	}
	for model, positions := range cases {
		t.Run(model, func(t *testing.T) {
			want, shape := readNPY[float32](t, models+"zoo/"+model+"/ref_logits_f32.npy")
			got := plainLogits(t, models+"zoo/"+model, positions, "")
			require.LessOrEqual(t, maxError(t, got, want[:positions*shape[len(shape)-1]]), maxLogitError)
		})
	}
}

// With a cache of integers they give the logits that the reference VM gives, as far as both round k and v alike: with
// heads as they are published, after a window, and with heads that are normalised.
func TestPlainKernelsOfIntegers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const positions = 13
	for _, model := range []string{"llama-gqa", "mistral-window-narrow", "qwen3-window-half"} {
		t.Run(model, func(t *testing.T) {
			from := models + "zoo/" + model
			got := plainLogits(t, from, positions, "int8")
			require.LessOrEqual(t, maxError(t, got, vmLogits(t, from, positions, ir.I8)), 10*maxLogitError)
			require.Greater(t, maxError(t, got, vmLogits(t, from, positions, ir.F32)), 10*maxLogitError)
		})
	}
}

// vmLogits are those of the reference VM in fp32, with a type for the cache.
func vmLogits(t *testing.T, model string, positions int, cache ir.DType) (logits []float32) {
	t.Helper()
	dtype := ir.F32
	l, err := builder.RunPasses(builder.Options{Model: model, Target: ir.FindTarget("h200"), DType: &dtype,
		Cache: &cache})
	require.NoError(t, err)
	defer l.Close()
	vm, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	ids, _ := readNPY[int32](t, model+"/ref_input_ids.npy")
	for _, id := range ids[:positions] {
		step, _, err := vm.Step(int(id))
		require.NoError(t, err)
		logits = append(logits, step...)
	}
	return logits
}

// plainLogits compiles the plain kernels of a build in fp32, and returns their logits at the first positions.
func plainLogits(t *testing.T, from string, positions int, cache string) (logits []float32) {
	t.Helper()
	dir := emittedAs(t, "fp32", cache, builder.Options{Model: from})
	program := onCPUProgram(t, "plain.cc", []string{dir})
	ids, _ := readNPY[int32](t, from+"/ref_input_ids.npy")
	args := []string{filepath.Join(dir, "weights.safetensors")}
	for _, id := range ids[:positions] {
		args = append(args, strconv.Itoa(int(id)))
	}
	out := outputOnCPU(t, program, nil, args...)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		v, err := strconv.ParseFloat(lines.Text(), 32)
		require.NoError(t, err)
		logits = append(logits, float32(v))
	}
	return logits
}
