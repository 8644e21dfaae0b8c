package cli

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The plain kernels of a build, compiled for the CPU, give the logits that transformers gives: with heads that are
// normalised and layers of two kinds, with biases of some and of all projections, behind a window, with rotations that
// scale or leave a part of each head, with a scaled embedding and norms of 1 + w, with scaled branches, in
// layers that do not rotate, by pairs that are neighbours, without norms before branches, and within bounds. AMKC_LONG
// asks for models too all of whose kernels others have.
func TestPlainKernels(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	cases := map[string]int{"qwen3-window-half": 4, "llama-biases-yarn": 4, "llama-rope-proportional": 4,
		"gemma-odd-dims": 4, "phi3-partial": 4, "granite-biases": 4, "smollm3-tied": 4, "glm-three-quarters": 4,
		"exaone4-windows": 4, "apertus-biases": 4, "cohere-head-norms-odd": 4, "stablelm-head-norms": 4,
		"olmo3-windows": 4, "hunyuan-alpha": 4, "gpt-neox-parallel": 4, "nemotron-half": 4, "olmo-clipped": 4,
		"falcon-groups": 4, "phi-head-norms": 4, "gpt2": 4, "opt-tied": 4,
		"mistral-window-narrow": 13, // beyond its window, of 12
		"starcoder2-tied":       13,
	}
	if os.Getenv("AMKC_LONG") != "" {
		maps.Copy(cases, map[string]int{"qwen2-bias": 4, "phi3-long": 4, "phi-half": 4, "arcee-biases": 4,
			"cohere2-listed": 4, "starcoder2-plain": 4, "mistral-wide-group": 4})
	}
	for model, positions := range cases {
		t.Run(model, func(t *testing.T) {
			dir, from := filepath.Join(t.TempDir(), "build"), models+"zoo/"+model
			code, _, stderr := amkc(from, "-o", dir, "--no-build", "--dtype", "fp32", "--target", "h200")
			require.Equal(t, 0, code, stderr)
			for _, header := range []string{"cuda_bf16.h", "cuda_fp16.h"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, header), nil, 0o600))
			}
			edit(t, filepath.Join(dir, "amk", "reference.cuh"), "kReferenceThreads = 256", "kReferenceThreads = 32")
			source, err := os.ReadFile(filepath.Join(dir, "reference.cu"))
			require.NoError(t, err)
			var kernels []string
			for _, m := range regexp.MustCompile(`__global__ void (\w+)\(`).FindAllSubmatch(source, -1) {
				kernels = append(kernels, `{"`+string(m[1])+`", `+string(m[1])+`}`)
			}
			program := filepath.Join(dir, "plain")
			out, err := exec.Command(compiler, "-std=c++17", "-O0", "-U_FORTIFY_SOURCE", "-w", "-I"+dir,
				"-DKERNELS="+strings.Join(kernels, ", "), "-o", program, "testdata/plain.cc").CombinedOutput()
			require.NoError(t, err, "%s", out)

			ids, _ := readNPY[int32](t, from+"/ref_input_ids.npy")
			want, shape := readNPY[float32](t, from+"/ref_logits_f32.npy")
			args := []string{filepath.Join(dir, "weights.safetensors")}
			for _, id := range ids[:positions] {
				args = append(args, strconv.Itoa(int(id)))
			}
			out, err = exec.Command(program, args...).Output()
			require.NoError(t, err)
			var got []float32
			for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
				v, err := strconv.ParseFloat(lines.Text(), 32)
				require.NoError(t, err)
				got = append(got, float32(v))
			}
			require.LessOrEqual(t, maxError(t, got, want[:positions*shape[len(shape)-1]]), maxLogitError)
		})
	}
}

// edit replaces text in a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(have), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(have), old, text, 1)), 0o600))
}
