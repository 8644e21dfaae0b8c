package compiler

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/passes"
)

// Every edit of how a stage says that its matrix is stored contradicts the program, also where the bytes stay as many.
func TestStorageOfEveryStageIsReadBack(t *testing.T) {
	const declares = `static constexpr WeightFormat kWeights`
	for _, c := range []struct {
		model, element, scale string
		stages                int
	}{
		{"llama-ct-int8-embedding", "kInt8", "kBf16", 6}, // embed, qkv, o, gate_up, down, lm_head
		{"llama-fp8-blocks", "kE4m3", "kFp32", 4},        // no embed, no lm_head
	} {
		l := lowerModel(t, "quantised/models/"+c.model, "h200", ir.BF16, 48, ir.ScheduleConfig{})
		files, err := codegen.Project(l.Program, l.Graph, "m")
		require.NoError(t, err)
		require.NoError(t, checkEmitted(files, l.Program))
		original := string(files["schedule.h"])
		stages := regexp.MustCompile(`(?m)^  `+declares+`\{.*$`).FindAllStringIndex(original, -1)
		require.Len(t, stages, c.stages, c.model)
		otherScale, otherElement := "kFp16", "kInt8"
		if c.element == otherElement {
			otherElement = "kE4m3"
		}
		for _, s := range stages {
			line := original[s[0]:s[1]]
			for _, edited := range []string{"",
				swap(line, c.scale, otherScale), swap(line, c.scale, "kInt8"), swap(line, c.scale+", ", ""),
				swap(line, c.element, otherElement), swap(line, c.element, "kInt4"),
				swap(line, "128", "64"), swap(line, "128", "0"), zeros.Replace(line), swap(line, "}", ", 1}")} {
				require.NotEqual(t, line, edited)
				files["schedule.h"] = []byte(original[:s[0]] + edited + original[s[1]:])
				require.Error(t, checkEmitted(files, l.Program), "%s -> %s", line, edited)
			}
		}
		added := "  " + declares + "{" + c.element + ", 128, " + c.scale + ", false};\n"
		beside := regexp.MustCompile(`struct (Short)?Attn \{\n`).ReplaceAllString(original, "$0"+added)
		require.NotEqual(t, original, beside)
		files["schedule.h"] = []byte(beside)
		require.Error(t, checkEmitted(files, l.Program), "attention has no matrix")
	}
}

// Where matrices of layers lie that are stored in several formats is listed, and read back like all else.
func TestOffsetsOfLayersAreReadBack(t *testing.T) {
	l := lowerModel(t, "quantised/models/llama-ct-int4-layers", "h200", ir.BF16, 48, ir.ScheduleConfig{})
	files, err := codegen.Project(l.Program, l.Graph, "m")
	require.NoError(t, err)
	require.NoError(t, checkEmitted(files, l.Program))
	refused := func(file, from, to string) {
		t.Helper()
		original := files[file]
		require.Contains(t, string(original), from)
		files[file] = []byte(strings.Replace(string(original), from, to, 1))
		require.Error(t, checkEmitted(files, l.Program), "%s -> %s", from, to)
		files[file] = original
	}
	config := string(files["model_config.h"])
	lists := regexp.MustCompile(`__device__ constexpr size_t (k\w+At)\[\]\{.*\n +([\d, ]+),\n\};\n`).
		FindAllStringSubmatch(config, -1)
	require.Len(t, lists, 3) // qkv, o and down: gate_up is in one format
	for _, list := range lists {
		offsets := strings.Split(list[2], ", ")
		require.Len(t, offsets, 4)
		for _, at := range offsets {
			refused("model_config.h", at, at+"0")
		}
		refused("model_config.h", ", "+offsets[3], "")
		refused("model_config.h", list[2], strings.Join([]string{offsets[1], offsets[0], offsets[2], offsets[3]}, ", "))
		refused("model_config.h", list[0], "")
		refused("model_config.h", list[0], strings.Replace(list[0], "At[]", "[]", 1))
		refused("model_config.h", list[0], strings.Replace(list[0], "size_t", "int", 1))
		call := "weights + " + list[1] + "[layer]"
		for _, other := range []string{"base + " + list[1], "weights + " + list[1], "weights + " + list[1] + "[step]",
			"weights + " + strings.TrimSuffix(list[1], "At"), "base + kGateUpWeight"} {
			refused("megakernel.cu", call, other)
		}
	}
	refused("megakernel.cu", "kDownWeightAt", "kOWeightAt")
	refused("megakernel.cu", "base + kGateUpWeight", "weights + kGateUpWeight[layer]")
	refused("schedule.h", "kLayerKinds[]{\n    1, 2, 1, 3,", "kLayerKinds[]{\n    1, 2, 3, 1,")
}

// Of a mix, each matrix has the numbers that it has in a model of its format alone.
func TestMatricesOfAMix(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seed := uint64(1)
	load := func(spec string) *Scheduled {
		formats, err := passes.ParseWeightFormats(spec)
		require.NoError(t, err)
		l, err := RunPasses(Options{Model: filepath.Join(root, "models/pycoder-5m"), Name: "m",
			Target: ir.FindTarget("h200"), MaxSeq: 16, Formats: formats, RandomSeed: &seed, Check: true})
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	floats := func(l *Scheduled) map[string][]float32 {
		out := map[string][]float32{}
		places, _ := ir.WeightArena(l.Program)
		for _, pl := range places {
			var err error
			out[pl.Name], err = l.Weights.Floats(&l.Program.Buffers[pl.Buffer], pl.Index)
			require.NoError(t, err)
		}
		return out
	}
	mixed := floats(load("int4,layers.0.*=none,layers.1.mlp.down_proj=int8"))
	int4, int8, plain := floats(load("int4")), floats(load("int8")), floats(load("none"))
	require.Len(t, mixed, len(int4))
	for name, got := range mixed {
		want := int4[name]
		switch {
		case strings.HasPrefix(name, "L00."):
			want = plain[name]
		case name == "L01.down.weight":
			want = int8[name]
		}
		require.Equal(t, want, got, name)
	}
	require.NotEqual(t, int8["L01.down.weight"], int4["L01.down.weight"])
}

// As many kinds as there may be are emitted and read back: all sets of two formats for the four products of a layer.
func TestManyKindsAreReadBack(t *testing.T) {
	dir, seed := t.TempDir(), uint64(1)
	config, err := os.ReadFile(filepath.Join(root, "models/pycoder-5m/config.json"))
	require.NoError(t, err)
	deep := strings.Replace(string(config), `"num_hidden_layers": 6`, `"num_hidden_layers": 16`, 1)
	require.NotEqual(t, string(config), deep)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(deep), 0o600))
	items := []string{"int4"}
	for layer := range 16 {
		for k, of := range []string{"[qkv]_proj", "o_proj", "[gu]*_proj", "down_proj"} {
			if layer>>k&1 == 1 {
				items = append(items, fmt.Sprintf("layers.%d.*.%s=int8", layer, of))
			}
		}
	}
	formats, err := passes.ParseWeightFormats(strings.Join(items, ","))
	require.NoError(t, err)
	l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget("h200"), Formats: formats,
		RandomSeed: &seed, Check: true})
	require.NoError(t, err)
	defer l.Close()
	require.Len(t, l.Graph.Kinds, 16)
	files, err := codegen.Project(l.Program, l.Graph, "m")
	require.NoError(t, err)
	require.NoError(t, checkEmitted(files, l.Program))
}

var zeros = strings.NewReplacer("true", "false", "false", "true")

// swap replaces the first word of a line that is one.
func swap(line, word, by string) string { return strings.Replace(line, word, by, 1) }
