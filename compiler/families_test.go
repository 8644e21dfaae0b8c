package compiler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/importers"
	"amkc/ir"
)

// smallModels are the models of the tests by model type: directories below testdata/models.
func smallModels(t testing.TB) map[string][]string {
	out := map[string][]string{}
	dirs, err := filepath.Glob(filepath.Join(root, "models", "zoo", "*"))
	require.NoError(t, err)
	for _, dir := range append(dirs, filepath.Join(root, "models", "pycoder-5m")) {
		text, err := os.ReadFile(filepath.Join(dir, "config.json"))
		require.NoError(t, err)
		var config struct {
			ModelType string `json:"model_type"`
		}
		require.NoError(t, json.Unmarshal(text, &config), dir)
		out[config.ModelType] = append(out[config.ModelType], dir)
	}
	return out
}

// measuredOn are the GPUs, in order, with a row in docs/results that compares a model's logits with transformers', and
// passed: by model.
func measuredOn(t testing.TB) map[string][]string {
	out := map[string][]string{}
	for _, gpu := range []string{"h100", "h200"} {
		text, err := os.ReadFile("../docs/results/" + gpu + ".json")
		require.NoError(t, err)
		var file struct {
			Rows []struct {
				Section, Model string
				Passed         bool
			}
		}
		require.NoError(t, json.Unmarshal(text, &file))
		for _, r := range file.Rows {
			name := strings.ToUpper(gpu)
			if r.Passed && r.Section == "fixtures" && !slices.Contains(out[r.Model], name) {
				out[r.Model] = append(out[r.Model], name)
			}
		}
	}
	return out
}

// What amkc says of a family is so: each has a small model, the kernel has its stages or has not, and rows of GPUs are
// there or are not.
func TestFamilies(t *testing.T) {
	small, measured := smallModels(t), measuredOn(t)
	bf16 := ir.BF16
	for i, f := range importers.Families {
		require.True(t, i == 0 || importers.Families[i-1].ModelType < f.ModelType, "%s is in order", f.ModelType)
		require.NotEmpty(t, f.Models, f.ModelType)
		require.NotEmpty(t, small[f.ModelType], "%s is compared with transformers", f.ModelType)
		lowered, emitted, gpus := 0, 0, []string(nil)
		dirs := small[f.ModelType]
		if f.ModelType == "qwen3_moe" { // small ones have an MLP in some layers
			dirs = append(dirs, filepath.Join(root, "configs", "qwen3-30b-a3b"))
		}
		for _, dir := range dirs {
			l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget("h200"), DType: &bf16, MaxSeq: 64,
				ConfigOnly: true})
			if err != nil {
				continue // one that is there to be refused
			}
			lowered++
			if _, err = codegen.CUDA(l.Program); err == nil && Lacking("m", l.Program) == nil {
				emitted++
			}
			gpus = append(gpus, measured[filepath.Base(dir)]...)
		}
		require.Positive(t, lowered, "%s is lowered", f.ModelType)
		require.Equal(t, f.Emitted, emitted > 0, "%s has stages in the kernel", f.ModelType)
		slices.Sort(gpus)
		require.Equal(t, f.GPUs, slices.Compact(gpus), "%s has rows of these GPUs in docs/results", f.ModelType)
	}
}

// The table of README.md is what the importers say.
func TestFamiliesAreInTheReadme(t *testing.T) {
	const file, begin, end = "../README.md", "<!-- families: written by a test -->\n", "<!-- end of families -->"
	table := "\n| family | `model_type` | runs on | checked against |\n|---|---|---|---|\n"
	for _, f := range importers.Families {
		runs := "the reference VM alone; the kernel lacks stages of it"
		if f.Emitted {
			runs = "the kernel"
		}
		table += fmt.Sprintf("| %s | `%s` | %s | %s |\n", f.Models, f.ModelType, runs, f.CheckedAgainst())
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + table + "\n" + end + after
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./compiler -run Families -update")
}
