package compiler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/validate"
	"amkc/validate/kernel"
)

// published are the models of testdata/configs/published.txt.
type published struct {
	name                                                              string
	hidden, intermediate, layers, heads, kvHeads, headDim, vocabulary int
	family                                                            string // model_type, /that of text_config
	config                                                            string // in testdata/configs, "-": sizes alone
}

func publishedModels(t *testing.T) []published {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "configs", "published.txt"))
	require.NoError(t, err)
	var out []published
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var m published
		_, err := fmt.Sscan(line, &m.name, &m.hidden, &m.intermediate, &m.layers, &m.heads, &m.kvHeads, &m.headDim,
			&m.vocabulary, &m.family, &m.config)
		require.NoError(t, err, line)
		out = append(out, m)
	}
	return out
}

func long() bool { return os.Getenv("AMKC_LONG") != "" }

var publishedTargets = []string{"t4", "l4", "rtx5090", "a100", "h100", "h200"}

const publishedDocument = "../docs/models.md"

// A published model has the sizes of its line, and its config is compiled without a word of the user's.
func TestPublishedSizes(t *testing.T) {
	held := 0
	for _, m := range publishedModels(t) {
		if m.config == "-" {
			continue
		}
		c, err := checkpoint.OpenConfig(publishedDir(t, m))
		require.NoError(t, err, m.name)
		s := &passes.State{Source: importers.Source{Name: m.name, Config: c}}
		require.NoError(t, passes.Import.Run(s), m.name)
		g := s.Graph.Model
		require.Equal(t, m, published{m.name, g.Hidden, g.Intermediate, g.Layers, g.Heads, g.KVHeads, g.HeadDim,
			g.Vocab, m.family, m.config})
		text, err := os.ReadFile(filepath.Join(root, "configs", m.config))
		require.NoError(t, err)
		for kind := range strings.SplitSeq(m.family, "/") {
			require.Contains(t, regexp.MustCompile(`\s`).ReplaceAllString(string(text), ""), `"model_type":"`+kind+`"`)
		}
		held++
	}
	require.Greater(t, held, 75)
}

// publishedDir is a directory with the config of a model.
func publishedDir(t *testing.T, m published) string {
	text, err := os.ReadFile(filepath.Join(root, "configs", m.config))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o666))
	return dir
}

// Every published model compiles for every target, or docs/models.md says what of it has no room where. Whether the
// kernel has room depends on the widths of a model, and neither on its layers nor on its vocabulary: AMKC_LONG
// compiles and proves all of it.
func TestPublishedModels(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models := publishedModels(t)
	columns := make([][]string, len(publishedTargets)) // for each target and model "", or the reason
	t.Run("compile", func(t *testing.T) {
		for i, name := range publishedTargets {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				columns[i] = refusals(t, models, ir.FindTarget(name))
			})
		}
	})
	if t.Failed() {
		return // a target that failed has no column
	}
	inDocument(t, "models", publishedTable(models, columns), "PublishedModels")
}

// The models with the largest programs are within the limits of one, with all of their layers, on the GPU with the most
// SMs.
func TestLargestPublishedModels(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models := publishedModels(t)
	for _, name := range []string{"gemma-2-9b", "gemma-3-12b"} {
		n := slices.IndexFunc(models, func(m published) bool { return m.name == name })
		require.GreaterOrEqual(t, n, 0, name)
		require.Empty(t, refusal(t, models[n], ir.FindTarget("rtx5090")))
	}
}

// refusals compiles the models for a target; of those with the same widths one.
func refusals(t *testing.T, models []published, target *ir.Target) []string {
	out := make([]string, len(models))
	known := map[published]string{}
	for i, m := range models {
		if !long() {
			m.layers, m.vocabulary = min(m.layers, 6), 1024 // enough layers for every kind: Gemma-3 has a period of six
		}
		widths := m
		widths.name = ""
		if _, done := known[widths]; !done {
			known[widths] = refusal(t, m, target)
		}
		out[i] = known[widths]
	}
	return out
}

// publishedFields are what configs of a family call fields of a Llama; "" for those that it has not.
var publishedFields = map[string]map[string]string{
	"falcon": {"intermediate_size": "ffn_hidden_size", "num_key_value_heads": "num_kv_heads", "head_dim": ""},
	"gpt2": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
		"intermediate_size": "n_inner", "max_position_embeddings": "n_positions", "num_key_value_heads": "",
		"head_dim": ""},
	"opt":      {"intermediate_size": "ffn_dim", "num_key_value_heads": "", "head_dim": ""},
	"gpt_neox": {"num_key_value_heads": "", "head_dim": ""},
	"stablelm": {"head_dim": ""},
}

// refusal compiles a model without its weights, and says why not if it is too large for the kernel. Proofs for the
// targets with room for everything take a while, and differ in nothing but the number of SMs.
func refusal(t *testing.T, m published, target *ir.Target) string {
	dir, dtype := t.TempDir(), ir.BF16
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), configOf(t, m), 0o666))
	l, err := RunPasses(Options{Model: dir, Name: "m", Target: target, ConfigOnly: true, DType: &dtype})
	require.NoError(t, err, "%s for %s", m.name, target.Name)
	_, err = codegen.CUDA(l.Program)
	if err != nil {
		var d *diag.Diagnostic
		require.ErrorAs(t, err, &d)
		require.Equal(t, "AMK4005", d.Code, "%s for %s", m.name, target.Name)
		return d.Pos + ": " + d.Msg
	}
	if target.SMs < 60 || long() {
		require.True(t, validate.ProgramFor(kernel.Backend, l.Program).OK, "%s for %s", m.name, target.Name)
	}
	return ""
}

// configOf is the config of a model with the layers and the vocabulary of m: as it is published, or one of its sizes.
func configOf(t *testing.T, m published) []byte {
	if m.config == "-" {
		return sizesAlone(t, m)
	}
	text, err := os.ReadFile(filepath.Join(root, "configs", m.config))
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	inner := fields
	if of, ok := fields["text_config"].(map[string]any); ok {
		inner = of
	}
	layers := 0
	for _, name := range []string{"num_hidden_layers", "n_layer"} {
		if n, ok := inner[name].(float64); ok {
			layers, inner[name] = int(n), m.layers
		}
	}
	if _, nested := fields["text_config"]; nested && layers == 0 { // what its class takes is left out
		layers, inner["num_hidden_layers"] = m.layers, m.layers
	}
	require.Positive(t, layers, m.config)
	for name, v := range inner {
		if list, ok := v.([]any); ok && len(list) == layers { // of the layers
			inner[name] = list[:m.layers]
		}
	}
	inner["vocab_size"] = m.vocabulary
	text, err = json.Marshal(fields)
	require.NoError(t, err)
	return text
}

// sizesAlone is a config that has the sizes of a model, and what its class takes where nothing is said.
func sizesAlone(t *testing.T, m published) []byte {
	outer, text, nested := strings.Cut(m.family, "/")
	fields := map[string]any{"model_type": cmp.Or(text, outer),
		"hidden_size": m.hidden, "intermediate_size": m.intermediate, "num_hidden_layers": m.layers,
		"num_attention_heads": m.heads,
		"num_key_value_heads": m.kvHeads, "head_dim": m.headDim, "vocab_size": m.vocabulary,
		"max_position_embeddings": 4096, "torch_dtype": "bfloat16"}
	for llamas, own := range publishedFields[m.family] {
		if own != "" {
			fields[own] = fields[llamas]
		}
		delete(fields, llamas)
	}
	if m.family == "falcon" {
		fields["new_decoder_architecture"] = m.kvHeads > 1
	}
	if nested {
		fields = map[string]any{"model_type": outer, "torch_dtype": "bfloat16", "text_config": fields}
	}
	config, err := json.Marshal(fields)
	require.NoError(t, err)
	return config
}

func publishedTable(models []published, columns [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| model | hidden | intermediate | heads | kv heads | head size | %s "+
		"|\n|---|---|---|---|---|---|%s\n",
		strings.Join(publishedTargets, " | "), strings.Repeat("---|", len(publishedTargets)))
	var reasons []string
	for i, m := range models {
		name := m.name
		if m.config == "-" {
			name += " \\*"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |", name, m.hidden, m.intermediate, m.heads, m.kvHeads,
			m.headDim)
		for _, refused := range columns {
			cell := "yes"
			if reason := refused[i]; reason != "" {
				n := 0
				for n < len(reasons) && reasons[n] != reason {
					n++
				}
				if n == len(reasons) {
					reasons = append(reasons, reason)
				}
				cell = fmt.Sprintf("no (%d)", n+1)
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for n, reason := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", n+1, reason)
	}
	b.WriteString("\n")
	return b.String()
}

// Mixtures of experts have the parameters of the published models, of which all matrices can be left out of random
// weights. Of gpt-oss the experts are MXFP4.
func TestPublishedExperts(t *testing.T) {
	for name, want := range map[string]int{"gpt-oss-20b": 20_914_757_184, "gpt-oss-120b": 116_829_156_672,
		"mixtral-8x7b": 46_702_792_704, "qwen3-30b-a3b": 30_532_122_624} {
		seed := uint64(1)
		l, err := RunPasses(Options{Model: filepath.Join(root, "configs", name), Name: "m",
			Target: ir.FindTarget("h200"), RandomSeed: &seed, LeaveOut: true})
		require.NoError(t, err, name)
		parameters, read := 0, map[string]bool{} // a norm before a router and experts is there for each
		places, _ := ir.WeightArena(l.Program)
		invented := l.invented()
		for _, pl := range places {
			b := &l.Program.Buffers[pl.Buffer]
			if b.Kind != ir.Weight {
				continue
			}
			require.Equal(t, len(b.Shape) > 1, invented.Find(int64(pl.Offset)) != nil, "%s %s", name, pl.Name)
			if len(b.Shape) == 3 { // of experts
				require.Equal(t, strings.HasPrefix(name, "gpt-oss"), b.DType == ir.F4E2M1, "%s %s", name, pl.Name)
			}
			if of := fmt.Sprint(b.Pieces, pl.Index); !read[of] {
				read[of], parameters = true, parameters+b.Numel()
			}
		}
		require.Equal(t, want, parameters, name)
		require.NoError(t, l.Close())
	}
}
