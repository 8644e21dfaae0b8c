package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/refvm"
	"amkc/validate"
)

// shared are models that GPUs share: with kv heads for each of 2 and of 4, and of 8 for every two; with a table that is
// the head, or not; with biases before attention, with norms of heads.
var shared = map[string]string{
	"llama": `"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": false`,
	"tied":  `"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": true`,
	"qwen2": `"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": false`,
	"qwen3": `"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": false,
		"attention_bias": false`,
}

// optionsOfShared compiles such a model with random weights, for small GPUs.
func optionsOfShared(t *testing.T, family string) Options {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{`+shared[family]+`, "hidden_size": 64,
		"intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 4,
		"head_dim": 16, "vocab_size": 512, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu",
		"rope_theta": 10000.0, "torch_dtype": "bfloat16"}`), 0o666))
	target, seed := *ir.FindTarget("h200"), uint64(3)
	target.SMs = 6
	o := Options{Model: dir, Name: family, RandomSeed: &seed, Target: &target, Check: true}
	knobs.Parts.Set(&o.Config, 8)
	knobs.MaxSplits.Set(&o.Config, 1)
	return o
}

// With parts 8, logits and tokens are to the bit the same on 1, 2, 4 and 8 GPUs, in any order of their tasks, and the
// programs of all GPUs together are proved.
func TestGPUsAgreeToTheBit(t *testing.T) {
	for family := range shared {
		var want []string
		for _, n := range []int{1, 2, 4, 8} {
			o := optionsOfShared(t, family)
			o.Ranks = n
			l, err := RunPasses(o)
			require.NoError(t, err, "%s on %d", family, n)
			proof := validate.Program(l.Program)
			require.True(t, proof.OK, "%s on %d: %v", family, n, proof.Diags)
			for _, order := range []refvm.Order{{Kind: refvm.InOrder}, {Kind: refvm.Latest},
				{Kind: refvm.Random, Seed: 5}} {
				s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Record: true})
				require.NoError(t, err)
				s.Order = order
				var got []string
				token := 7
				for range 6 {
					logits, next, err := s.Step(token)
					require.NoError(t, err)
					require.Len(t, logits, 512)
					for _, f := range logits {
						require.False(t, math.IsNaN(float64(f)))
						got = append(got, fmt.Sprintf("%08x", math.Float32bits(f)))
					}
					got = append(got, fmt.Sprint(next))
					token = next
				}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, "%s on %d, order %v", family, n, order)
			}
			require.NoError(t, l.Close())
		}
	}
}

// By default a rank's share of the columns is one part, and no fewer parts than GPUs are accepted.
func TestPartsOfGPUs(t *testing.T) {
	o := optionsOfShared(t, "llama")
	o.Ranks, o.Config = 4, ir.ScheduleConfig{}
	l, err := RunPasses(o)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Equal(t, 4, knobs.Parts.Of(&l.Program.Config))
	knobs.Parts.Set(&o.Config, 2)
	_, err = RunPasses(o)
	require.ErrorContains(t, err, "2; each of 4 GPUs has an equal share of the columns: want 4 parts or more")
}

// A sum that GPUs push is added to the residual, and nothing else is made of it.
func TestWhatIsMadeOfSumsIsNotShared(t *testing.T) {
	for model, says := range map[string]string{
		"gemma2-tied":       "node post_attn_norm: a norm of the sum of what GPUs compute",
		"gemma4-keys-serve": "node post_attn_norm: a norm of the sum of what GPUs compute",
		"granite-scaled":    "node attn_scale: scale of the sum of what GPUs compute; want sums that are added",
	} {
		text, err := os.ReadFile("../testdata/models/zoo/" + model + "/config.json")
		require.NoError(t, err)
		o := optionsOfShared(t, "llama")
		o.Ranks = 2
		require.NoError(t, os.WriteFile(filepath.Join(o.Model, "config.json"),
			[]byte(strings.Replace(string(text), `"vocab_size": 223`, `"vocab_size": 224`, 1)), 0o666))
		_, err = RunPasses(o)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "AMK2012")
	}
}

// Mutants of programs that GPUs share: what is accepted of one rank is accepted with the tasks of all, whose proof says
// nothing of the end of a step. Most change what orders ranks, so most are refused: a word of a peer is overwritten
// that nobody has read, an exchange is not waited for, a rank does not join.
func TestMutantsOfGPUs(t *testing.T) {
	mutants := 300
	if testing.Short() {
		mutants = 30
	}
	for _, n := range []int{2, 4} {
		o := optionsOfShared(t, "qwen3")
		o.Ranks = n
		l, err := RunPasses(o)
		require.NoError(t, err)
		lines := strings.Split(string(ir.Print(l.Program)), "\n")
		require.NoError(t, l.Close())
		seen := map[string]int{}
		for seed := range uint64(mutants) {
			what, text := mutantOf(lines, rand.New(rand.NewPCG(seed, uint64(n))).IntN)
			p, diags := ir.ParseText([]byte(text), "f")
			if diags.Err() != nil || ir.Check(p).Err() != nil {
				seen["malformed"]++
				continue
			}
			one, all := validate.Program(p), true
			for v := range p.Variants {
				flat, diags := ir.Unroll(p, &p.Variants[v])
				require.NoError(t, diags.Err())
				all = all && validate.Flat(flat).OK
			}
			require.False(t, one.OK && !all, "on %d, seed %d: %s", n, seed, what)
			switch {
			case one.OK:
				seen["accepted"]++
			case all:
				seen["of one rank alone "+one.Diags.Errors()[0].Code]++
			default:
				seen[one.Diags.Errors()[0].Code]++
			}
		}
		t.Logf("on %d: %v", n, seen)
		for _, code := range []*diag.Code{validate.CodeReadRace, validate.CodeOverwriteRace} {
			require.Greater(t, seen[code.ID], mutants/60, "on %d: %v", n, seen)
		}
		require.Less(t, seen["accepted"], mutants/2, "on %d: %v", n, seen)
	}
}

// mutantOf returns a program with one line changed, and says which.
func mutantOf(lines []string, next func(int) int) (what, text string) {
	edits := []struct {
		pattern *regexp.Regexp
		instead func(line string) string
	}{
		{regexp.MustCompile(`^ *wait `), func(string) string { return "" }},
		{regexp.MustCompile(`^ *signal `), func(string) string { return "" }},
		{regexp.MustCompile(`^buffer .* page p`), func(line string) string {
			page := regexp.MustCompile(`page (\S+)`)
			var pages []string
			space := strings.Fields(line[strings.Index(line, "]"):])[1]
			for _, l := range lines {
				if f := strings.Fields(l); len(f) > 2 && f[0] == "page" && f[2] == space {
					pages = append(pages, f[1])
				}
			}
			if len(pages) == 0 {
				return line
			}
			return page.ReplaceAllString(line, "page "+pages[next(len(pages))])
		}},
		{regexp.MustCompile(`^counter .* flagged`), func(line string) string {
			return strings.Replace(line, "flagged", "counter", 1)
		}},
		{regexp.MustCompile(`^counter .* system`), func(line string) string {
			return strings.Replace(line, "system", "gpu", 1)
		}},
		{regexp.MustCompile(`\[rank,`), func(line string) string { return strings.Replace(line, "[rank,", "[0,", 1) }},
		{regexp.MustCompile(`sums\[1,`), func(line string) string {
			return strings.Replace(line, "sums[1,", "sums[0,", 1)
		}},
	}
	e := edits[next(len(edits))]
	var at []int
	for i, line := range lines {
		if e.pattern.MatchString(line) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return "nothing", strings.Join(lines, "\n")
	}
	out, i := slices.Clone(lines), at[next(len(at))]
	out[i] = e.instead(lines[i])
	return fmt.Sprintf("%q is %q", lines[i], out[i]), strings.Join(out, "\n")
}

// Each of several GPUs streams a share of the weights, and exchanges words with the others twice per layer and once
// per token.
func TestCostOfGPUs(t *testing.T) {
	before := math.Inf(1)
	for _, n := range []int{1, 2, 4, 8} {
		l, err := RunPasses(Options{Model: "../testdata/configs/llama-3.1-8b", Name: "m", ConfigOnly: true,
			Target: ir.FindTarget("h200"), Ranks: n})
		require.NoError(t, err)
		m, err := cost.New(l.Program)
		require.NoError(t, err)
		step, err := m.At(128)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.Less(t, step.Latency, before, "%d GPUs", n)
		before = step.Latency
		sum := step.StepEnd
		for _, s := range step.Stages {
			sum += s.Total()
		}
		require.InEpsilon(t, step.Latency, sum, 1e-6)
		if n == 1 {
			require.Nil(t, step.Link)
			continue
		}
		require.Equal(t, cost.NeverMeasured, step.Label)
		require.Equal(t, 2*32+1, step.Link.Exchanges)
		// a float and its epoch of each row, and a value and a token of each SM, of each of the others
		require.EqualValues(t, (n-1)*8*(2*32*4096+2*132), step.Link.Bytes)
	}
}

// Between GPUs of which no link is known nothing is predicted.
func TestCostWithoutALink(t *testing.T) {
	l, err := RunPasses(Options{Model: "../testdata/configs/llama-3.2-1b", Name: "m", ConfigOnly: true,
		Target: ir.FindTarget("l40s"), Ranks: 2})
	require.NoError(t, err)
	defer l.Close()
	_, err = cost.New(l.Program)
	require.ErrorContains(t, err,
		"is one of 2 GPUs, and no link between them is known; want a100, h100, h200, b200 or gb200")
}
