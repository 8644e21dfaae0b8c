package cli

import (
	"bufio"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sbinet/npyio"
	"github.com/stretchr/testify/require"
)

const models = "../../testdata/models/"

// readNPY returns the elements and the shape of a NumPy file.
func readNPY[T int32 | float32](t *testing.T, path string) ([]T, []int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := npyio.NewReader(bufio.NewReader(f)) // it reads number by number
	require.NoError(t, err)
	var out []T
	require.NoError(t, r.Read(&out))
	return out, r.Header.Descr.Shape
}

func joinIDs(ids []int32) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(int(id))
	}
	return strings.Join(words, ",")
}

// refLogits is `amkc logits` on the reference VM: float32 [len(ids), vocab].
func refLogits(t *testing.T, model string, ids []int32, flags ...string) ([]float32, []int) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "logits.npy")
	args := append([]string{"logits", model, "--device", "ref", "--ids", joinIDs(ids), "-o", out}, flags...)
	code, _, stderr := amkc(args...)
	require.Equal(t, 0, code, stderr)
	return readNPY[float32](t, out)
}

func maxError(t *testing.T, got, want []float32) float64 {
	t.Helper()
	require.Len(t, got, len(want))
	worst := 0.0
	for i := range got {
		worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		require.False(t, math.IsNaN(float64(got[i])), "element %d", i)
	}
	return worst
}

// maxLogitError is what the reference VM may differ from transformers in float32: both sum in float32, in other orders.
const maxLogitError = 1e-4

// zoo are the small models of testdata/models/zoo, with how amkc refuses those that it does not compile yet. Most of
// them, and what transformers computes for them, are made by testdata/models/generate.py.
var zoo = map[string]string{
	"apertus-biases":         "",
	"apertus-gelu":           "",
	"apertus-llama3":         "",
	"arcee-biases":           "",
	"arcee-plain":            "",
	"aya-vision":             "",
	"bloom":                  `"bloom" is not supported`,
	"cohere-biases":          "",
	"cohere-head-norms":      "",
	"cohere-head-norms-odd":  "",
	"cohere-tied":            "",
	"cohere2-head-dim":       "",
	"cohere2-listed":         "",
	"cohere2-tied":           "",
	"cohere2-vision":         "",
	"cwm-listed":             "",
	"cwm-windows":            "",
	"dots1-windows":          "",
	"ernie4-5-biases":        "",
	"ernie4-5-moe-biases":    "",
	"ernie4-5-moe-tied":      "",
	"ernie4-5-tied":          "",
	"exaone4-full":           "",
	"exaone4-windows":        "",
	"falcon-groups":          "",
	"falcon-groups-one-norm": "",
	"falcon-multi-query":     "",
	"falcon-sequential":      "",
	"flex-olmo":              "",
	"gemma-odd-dims":         "",
	"gemma-tied":             "",
	"gemma2-split-k":         "",
	"gemma2-tied":            "",
	"gemma2-uncapped":        "",
	"gemma3-images":          "",
	"gemma3-odd-dims":        "",
	"gemma3-tied":            "",
	"gemma4-images":          "",
	"gemma4-keys-serve":      "",
	"gemma4-odd-dims":        "",
	"glm-half":               "",
	"glm-three-quarters":     "",
	"glm4-half":              "",
	"glm4-moe-groups":        "",
	"glm4-moe-head-norms":    "",
	"glm4-plain":             "",
	"gpt-neox-parallel":      "",
	"gpt-neox-sequential":    "",
	"gpt-oss-mxfp4":          "",
	"gpt-oss-sinks":          "",
	"gpt2":                   "",
	"gpt2-odd-dims":          "",
	"granite-biases":         "",
	"granite-moe-scaled":     "",
	"granite-moe-shared":     "",
	"granite-scaled":         "",
	"helium-biases":          "",
	"helium-plain":           "",
	"hunyuan-alpha":          "",
	"hunyuan-biases":         "",
	"hyperclovax-bare":       "",
	"hyperclovax-post":       "",
	"idefics3":               "",
	"internlm3-biases":       "",
	"internlm3-plain":        "",
	"internvl":               "",
	"iquestcoder":            "",
	"lfm2-biases":            "",
	"lfm2-former":            "",
	"lfm2-moe":               "",
	"llama-attention-bias":   "",
	"llama-biases-yarn":      "",
	"llama-gelu":             `hidden_act: error: "gelu" is not modelled`,
	"llama-gqa":              "", "llama-layer-heads": "", "llama-layer-widths": "",
	"llama-mha-tied-bf16":      "",
	"llama-mlp-bias":           "",
	"llama-odd-dims":           "",
	"llama-rope-dynamic":       "",
	"llama-rope-linear":        "",
	"llama-rope-llama3":        "",
	"llama-rope-proportional":  "",
	"llama-rope-yarn":          "",
	"llama-sharded-fp16":       "",
	"llava":                    "",
	"llava-next":               "",
	"llava-onevision":          "",
	"minimax-m2-part":          "",
	"ministral-windows":        "",
	"ministral3-window":        "",
	"ministral3-yarn":          "",
	"mistral-full":             "",
	"mistral-head-dim":         "",
	"mistral-nemo":             "",
	"mistral-wide-group":       "",
	"mistral-window":           "",
	"mistral-window-narrow":    "",
	"mistral-window-wide":      "",
	"mistral3-ministral":       "",
	"mistral3-small":           "",
	"mixtral-window":           "",
	"nemotron-biases":          "",
	"nemotron-half":            "",
	"olmo-biases":              "",
	"olmo-clipped":             "",
	"olmo-plain":               "",
	"olmo2-biases":             "",
	"olmo2-plain":              "",
	"olmo3-former":             "",
	"olmo3-windows":            "",
	"olmoe-plain":              "",
	"opt-plain":                "",
	"opt-tied":                 "",
	"phi-half":                 "",
	"phi-head-norms":           "",
	"phi-odd-dims":             "",
	"phi3-long":                "",
	"phi3-partial":             "",
	"phi3-short":               "",
	"phi3-window":              "",
	"phimoe-long":              "",
	"phimoe-window":            "",
	"qwen2-5-vl":               "",
	"qwen2-bias":               "",
	"qwen2-moe-shared":         "",
	"qwen2-odd-dims":           "",
	"qwen2-tied":               "",
	"qwen2-vl":                 "",
	"qwen2-window-half":        "",
	"qwen2-window-of-no-layer": "",
	"qwen2-window-unused":      "",
	"qwen3-5":                  "",
	"qwen3-5-moe":              "",
	"qwen3-5-moe-text":         "",
	"qwen3-5-text":             "",
	"qwen3-5-tied":             "",
	"qwen3-attention-bias":     "",
	"qwen3-moe-dense-layer":    "",
	"qwen3-moe-windows":        "",
	"qwen3-next":               "",
	"qwen3-odd-dims":           "",
	"qwen3-qknorm":             "",
	"qwen3-rope-yarn":          "",
	"qwen3-tied":               "",
	"qwen3-vl":                 "",
	"qwen3-window-half":        "",
	"seed-oss-biases":          "",
	"seed-oss-odd-dims":        "",
	"smollm3-listed":           "",
	"smollm3-tied":             "",
	"smollm3-windows":          "",
	"smolvlm":                  "",
	"solar-open":               "",
	"stablelm-head-norms":      "",
	"stablelm-layernorm":       "",
	"stablelm-odd-dims":        "",
	"stablelm-parallel":        "",
	"starcoder2-plain":         "",
	"starcoder2-tied":          "",
}

// TestZoo compares the reference VM with transformers on every small model: all logits, and of every third model, or
// with AMKC_LONG of each, the greedy continuation.
// A model that has come to compile fails the test until its row says so.
func TestZoo(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	folders, err := os.ReadDir(models + "zoo")
	require.NoError(t, err)
	for _, f := range folders {
		require.Contains(t, zoo, f.Name(), "want a row for each folder of testdata/models/zoo")
	}
	for i, name := range slices.Sorted(maps.Keys(zoo)) {
		refusal := zoo[name]
		t.Run(name, func(t *testing.T) {
			dir := models + "zoo/" + name
			ids, _ := readNPY[int32](t, dir+"/ref_input_ids.npy")
			if refusal != "" {
				code, _, stderr := amkc("logits", dir, "--device", "ref", "--max-seq", strconv.Itoa(len(ids)), "--ids",
					joinIDs(ids), "-o", filepath.Join(t.TempDir(), "logits.npy"))
				require.Equal(t, 1, code, stderr)
				require.Contains(t, stderr, refusal)
				return
			}
			requireReference(t, dir, ids)
			if i%3 == 0 || os.Getenv("AMKC_LONG") != "" {
				requireContinuation(t, dir, ids)
			}
		})
	}
}

// TestQuantised runs every model of testdata/models/quantised/models like those of the zoo: what the stored elements
// mean in float32 is what the libraries that wrote them take them for.
func TestQuantised(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	folders, err := os.ReadDir(models + "quantised/models")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			dir := models + "quantised/models/" + f.Name()
			ids, _ := readNPY[int32](t, dir+"/ref_input_ids.npy")
			requireReference(t, dir, ids)
			requireContinuation(t, dir, ids)
		})
	}
}

// inBlocks are the names of models whose embedding is in blocks.
var inBlocks = regexp.MustCompile("-(q[48]_[01]|mixed|mxfp4)$")

// TestGGUF runs every model of testdata/models/gguf/models, which llama.cpp's converter wrote, like those of the zoo.
// What is not streamed in blocks is stored in float32, in which gguf-py reads it too.
func TestGGUF(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	folders, err := os.ReadDir(models + "gguf/models")
	require.NoError(t, err)
	require.Greater(t, len(folders), 20)
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			dir := models + "gguf/models/" + f.Name()
			ids, _ := readNPY[int32](t, dir+"/ref_input_ids.npy")
			var flags []string
			if inBlocks.MatchString(f.Name()) {
				flags = []string{"--dtype", "fp32"}
			}
			requireReference(t, dir, ids, flags...)
			requireContinuation(t, dir, ids, flags...)
		})
	}
}

// A file whose tokenizer is not read decodes ids, and says why it decodes no text.
func TestGGUFWithoutTokenizer(t *testing.T) {
	model := models + "gguf/models/llama-q8_0/llama-q8_0.gguf"
	code, _, stderr := amkc("run", model, "--device", "ref", "--prompt", "x")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `llama-q8_0.gguf: tokenizer.ggml.model: error: is "none": not known, which is not read`)
	code, _, stderr = amkc(model, "-o", filepath.Join(t.TempDir(), "build"), "--no-build", "--target", "h200")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stderr, "the build will decode token ids, and no text")
}

// requireReference demands that the reference VM computes the logits that transformers does.
func requireReference(t *testing.T, dir string, ids []int32, flags ...string) {
	positions := strconv.Itoa(len(ids))
	want, wantShape := readNPY[float32](t, dir+"/ref_logits_f32.npy")
	got, shape := refLogits(t, dir, ids, append(flags, "--max-seq", positions)...)
	require.Equal(t, wantShape, shape)
	worst := maxError(t, got, want)
	require.LessOrEqual(t, worst, maxLogitError)
	t.Logf("max |logit error| %.2g over %v", worst, shape)
}

// requireContinuation demands that it decodes the tokens that transformers does.
func requireContinuation(t *testing.T, dir string, ids []int32, flags ...string) {
	positions := strconv.Itoa(len(ids))
	greedy, _ := readNPY[int32](t, dir+"/ref_greedy_from8.npy")
	code, stdout, stderr := amkc(append([]string{"run", dir, "--device", "ref", "--target", "sm_90", "--num-sms", "6",
		"--ignore-eos", "--ids", joinIDs(ids[:8]), "--max-tokens", strconv.Itoa(len(greedy)),
		"--max-seq", positions}, flags...)...)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, joinIDs(greedy)+"\n", stdout)
}

// reference is testdata/models/pycoder-5m/reference.json, as transformers computed it in float32.
type reference struct {
	Perplexity float64 `json:"ppl_fp32_windows_of_512_over_8192"`
	Positions  []int   `json:"logit_positions"`
	Greedy     []struct {
		Prompt    string
		PromptIDs []int `json:"prompt_ids"`
		GreedyIDs []int `json:"greedy_ids"`
		Text      string
	}
}

func pycoder(t *testing.T) (string, reference) {
	t.Helper()
	text, err := os.ReadFile(models + "pycoder-5m/reference.json")
	require.NoError(t, err)
	var r reference
	require.NoError(t, json.Unmarshal(text, &r))
	require.NotEmpty(t, r.Greedy)
	return models + "pycoder-5m", r
}

// TestPycoderText decodes the demo's prompts to the reference text, token for token: one prompt as text, and the others
// with their tokens.
func TestPycoderText(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir, want := pycoder(t)
	first := want.Greedy[0]
	code, stdout, stderr := amkc("run", dir, "--prompt", first.Prompt, "--device", "ref")
	require.Equal(t, 0, code, stderr)
	require.Equal(t, strings.TrimSuffix(first.Text, "\n")+"\n", stdout)

	for _, g := range want.Greedy[1:] {
		code, stdout, stderr := amkc("run", dir, "--prompt", g.Prompt, "--device", "ref", "--json")
		require.Equal(t, 0, code, stderr)
		var got completion
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		require.Equal(t, g.PromptIDs, got.PromptIDs)
		require.Equal(t, g.GreedyIDs, got.IDs)
		require.Equal(t, g.Text, *got.Text)
	}
}

// TestPycoderLogits compares logits at a few positions of the evaluation text. Those after 63 take seconds: AMKC_LONG
// asks for them.
func TestPycoderLogits(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir, want := pycoder(t)
	if os.Getenv("AMKC_LONG") == "" {
		want.Positions = slices.DeleteFunc(want.Positions, func(at int) bool { return at > 63 })
	}
	ids, _ := readNPY[int32](t, dir+"/eval_ids.npy")
	last := want.Positions[len(want.Positions)-1]
	got, shape := refLogits(t, dir, ids[:last+1])
	all, _ := readNPY[float32](t, dir+"/logits_first8_last.npy")
	vocab := shape[1]
	for i, at := range want.Positions {
		worst := maxError(t, got[at*vocab:(at+1)*vocab], all[i*vocab:(i+1)*vocab])
		require.LessOrEqual(t, worst, maxLogitError, "position %d", at)
		t.Logf("position %d: max |logit error| %.2g", at, worst)
	}
}

// TestPycoderPerplexity takes a minute: AMKC_LONG asks for it.
func TestPycoderPerplexity(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("AMKC_LONG is not set")
	}
	const window, total = 512, 8192
	dir, want := pycoder(t)
	ids, _ := readNPY[int32](t, dir+"/eval_ids.npy")
	loss, count := 0.0, 0
	for start := 0; start < total; start += window {
		logits, shape := refLogits(t, dir, ids[start:start+window])
		for i := range window {
			row := logits[i*shape[1]:][:shape[1]]
			loss += crossEntropy(row, int(ids[start+i+1]))
			count++
		}
	}
	got := math.Exp(loss / float64(count))
	t.Logf("perplexity %.10f, transformers %.10f", got, want.Perplexity)
	require.InEpsilon(t, want.Perplexity, got, 1e-5)
}

// crossEntropy is -log softmax(row)[id], in float64.
func crossEntropy(row []float32, id int) float64 {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, float64(v))
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum) - float64(row[id])
}

// TestBuildOnRef runs a build, not a model, on the reference VM: the packed weights give the same logits.
func TestBuildOnRef(t *testing.T) {
	model := models + "zoo/llama-odd-dims"
	build := filepath.Join(t.TempDir(), "build")
	code, _, stderr := amkc(model, "-o", build, "--target", "t4", "--no-build")
	require.Equal(t, 0, code, stderr)
	ids, _ := readNPY[int32](t, model+"/ref_input_ids.npy")
	fromModel, _ := refLogits(t, model, ids[:12], "--target", "t4")
	fromBuild, _ := refLogits(t, build, ids[:12])
	require.Equal(t, fromModel, fromBuild)

	code, _, stderr = amkc("logits", build, "--device", "ref", "--ids", "1", "-o", filepath.Join(t.TempDir(), "x.npy"),
		"--dtype", "fp32")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--dtype says how to compile a model, and")
}

// TestAdapters holds models with adapters to what PEFT merges them to: logits in float32.
func TestAdapters(t *testing.T) {
	folders, err := os.ReadDir(models + "adapters")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			dir := models + "adapters/" + f.Name()
			text, err := os.ReadFile(dir + "/case.json")
			require.NoError(t, err)
			var c struct {
				Model  string
				Before []string
			}
			require.NoError(t, json.Unmarshal(text, &c))
			ids, _ := readNPY[int32](t, dir+"/ids.npy")
			want, wantShape := readNPY[float32](t, dir+"/logits.npy")
			flags := []string{"--max-seq", strconv.Itoa(len(ids)), "--dtype", "fp32"}
			for _, before := range c.Before {
				flags = append(flags, "--adapter", models+"adapters/"+before)
			}
			got, shape := refLogits(t, models+"zoo/"+c.Model, ids, append(flags, "--adapter", dir)...)
			require.Equal(t, wantShape, shape)
			require.LessOrEqual(t, maxError(t, got, want), maxLogitError)
			plain, _ := refLogits(t, models+"zoo/"+c.Model, ids, "--max-seq", strconv.Itoa(len(ids)), "--dtype", "fp32")
			require.Greater(t, maxError(t, plain, want), 100*maxLogitError, "the adapter changes what is compared")
		})
	}
}
