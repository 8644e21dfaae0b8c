package compiler

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/passes"
	"amkc/validate"
	"amkc/validate/kernel"
)

// passOf lowers a model of testdata for passes of n rows on an H200.
func passOf(t *testing.T, model string, rows int, edit func(o *Options)) *ir.Program {
	t.Helper()
	o := Options{Model: filepath.Join(root, "models", model), Name: "m", Target: ir.FindTarget("h200"),
		Pass: ir.PassOf(1, rows), ConfigOnly: true, Check: true}
	if edit != nil {
		edit(&o)
	}
	l, err := RunPasses(o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Program
}

// requireReadBack demands of a build with a pass of several tokens that its program is proved, says nothing that the
// program of one token and the numbers of the pass do not, and is read back out of what is emitted; and that edits of
// the pass's schedule.h, each an old and a new text by name, are found.
func requireReadBack(t *testing.T, l *Scheduled, p *ir.Program, edits map[string][2]string) {
	t.Helper()
	report := validate.ProgramFor(kernel.Backend, p)
	require.True(t, report.OK, "%v", report.Diags)
	one, err := ir.OneToken(p)
	require.NoError(t, err)
	require.Equal(t, 1, one.Pass.NumTokens())
	again, err := ir.ForTokens(one, p.Pass)
	require.NoError(t, err)
	require.Equal(t, string(ir.Print(p)), string(ir.Print(again)))
	files, err := codegen.Project(l.Program, l.Graph, "m", l.Passes...)
	require.NoError(t, err)
	require.NoError(t, checkEmitted(files, l.Program, l.Passes...))
	schedule := p.Pass.Dir() + "/schedule.h"
	for name, edit := range edits {
		require.Contains(t, string(files[schedule]), edit[0])
		edited := maps.Clone(files)
		edited[schedule] = []byte(strings.Replace(string(files[schedule]), edit[0], edit[1], 1))
		require.Error(t, checkEmitted(edited, l.Program, l.Passes...), name)
	}
}

// What is emitted for a pass of several rows is read back as the program that was proved, for every model whose passes
// the kernel takes; and such a program says nothing that the program of one token and the number of rows do not. The
// models take the numbers of rows in turn; AMKC_LONG asks for all of each.
func TestPassesOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	integers, half, full := ir.I8, ir.F16, ir.F32
	for i, c := range []struct {
		model, weights string
		cache, dtype   *ir.DType
	}{
		{model: "pycoder-5m"}, {model: "zoo/cohere-head-norms"}, {model: "zoo/cohere2-tied"},
		{model: "zoo/falcon-groups"}, {model: "zoo/gemma-tied"}, {model: "zoo/glm-half"},
		{model: "zoo/gpt-neox-parallel"}, {model: "zoo/gpt2"}, {model: "zoo/granite-scaled"},
		{model: "zoo/helium-plain"}, {model: "zoo/internlm3-biases"}, {model: "zoo/llama-rope-yarn"},
		{model: "zoo/mistral-nemo"}, {model: "zoo/mistral-wide-group"}, {model: "zoo/mistral-window"},
		{model: "zoo/phi-half"}, {model: "zoo/phi3-long"}, {model: "zoo/phi3-window"},
		{model: "zoo/qwen3-window-half"}, {model: "zoo/qwen3-tied"}, {model: "zoo/qwen3-attention-bias"},
		{model: "zoo/smollm3-tied"}, {model: "zoo/stablelm-head-norms"},
		{model: "pycoder-5m", weights: "int4"}, {model: "pycoder-5m", cache: &integers},
		{model: "zoo/phi3-long", weights: "fp8,down_proj=int8:g32:asym", cache: &integers},
		{model: "pycoder-5m", weights: "int8,model.layers.2.*=int4"},
		{model: "zoo/qwen3-tied", weights: "int4", cache: &integers}, {model: "zoo/gpt2", weights: "int8"},
		{model: "zoo/mistral-window", weights: "fp8", cache: &integers},
		{model: "zoo/mistral-wide-group", cache: &integers},
		{model: "zoo/gemma2-split-k"}, {model: "zoo/gemma2-split-k", weights: "int4", cache: &integers},
		{model: "zoo/gemma2-tied"}, {model: "zoo/gemma3-tied"}, {model: "zoo/glm4-half"}, {model: "zoo/olmo2-plain"},
		{model: "zoo/olmo3-windows", weights: "fp8", cache: &integers}, {model: "zoo/exaone4-windows"},
		{model: "zoo/hyperclovax-post", dtype: &half}, {model: "zoo/arcee-biases", dtype: &half},
		{model: "zoo/llama-gqa", dtype: &full}, {model: "zoo/gemma2-split-k", dtype: &full, cache: &integers},
		{model: "zoo/qwen3-odd-dims", weights: "int4,lm_head=none", dtype: &full}, {model: "zoo/gpt2", dtype: &full},
	} {
		sizes := []int{2, 5, 8}
		if !long() {
			sizes = sizes[i%len(sizes):][:1]
		}
		for _, rows := range sizes {
			t.Run(fmt.Sprint(c.model, " ", c.weights, " ", c.cache != nil, " ", rows), func(t *testing.T) {
				o := Options{Model: filepath.Join(root, "models", c.model), Name: "m", Target: ir.FindTarget("h200"),
					Passes: []ir.Pass{{Rows: rows}}, Cache: c.cache, DType: c.dtype, ConfigOnly: true, Check: true}
				if c.weights != "" {
					var err error
					o.Formats, err = passes.ParseWeightFormats(c.weights)
					require.NoError(t, err)
				}
				l, err := RunPasses(o)
				require.NoError(t, err)
				defer l.Close()
				p := l.Passes[0]
				requireReadBack(t, l, p, map[string][2]string{
					"tokens":    {fmt.Sprintf("kTokens = %d", rows), fmt.Sprintf("kTokens = %d", rows%8+1)},
					"too many":  {fmt.Sprintf("kTokens = %d", rows), "kTokens = 9"},
					"above":     {"namespace amk {", "#include <x>\nnamespace amk {"},
					"the pages": {"kTraceStride = ", "kTraceStride = 1"},
				})
			})
		}
	}
}

// A GPU whose blocks have no room for what a pass keeps is told so, and takes passes of fewer rows.
func TestPassesThatHaveNoRoom(t *testing.T) {
	emit := func(rows int) error {
		formats, err := passes.ParseWeightFormats("int4")
		require.NoError(t, err)
		l, err := RunPasses(Options{Model: filepath.Join(root, "configs", "llama-3.1-8b"), Name: "m",
			Target: ir.FindTarget("l4"), Formats: formats, Passes: []ir.Pass{{Rows: rows}}, ConfigOnly: true})
		require.NoError(t, err)
		defer l.Close()
		_, err = codegen.Project(l.Program, l.Graph, "m", l.Passes...)
		return err
	}
	err := emit(8)
	require.ErrorContains(t, err, "65536 for the sums that products with quantised matrices keep of 8 tokens from slab")
	require.ErrorContains(t, err, "; or passes of fewer rows [AMK4005]")
	require.NoError(t, emit(2))
}

// A program in which some row is treated otherwise than the others has no program of one token.
func TestOneTokenRefusesOtherRows(t *testing.T) {
	text := string(ir.Print(passOf(t, "pycoder-5m", 4, nil)))
	for name, edit := range map[string][2]string{
		"some rows":     {"EMBED(token[0:4]", "EMBED(token[0:3]"},
		"another place": {"pos=pos+t", "pos=pos"},
		"fewer rows":    {"[a,pos:pos+4,0,0:64] = KV_APPEND", "[a,pos:pos+3,0,0:64] = KV_APPEND"},
		"one vector":    {"GEMM_TILE(", "GEMV_TILE("},
		"a position":    {"variant short pos 0..508", "variant short pos 0..507"},
	} {
		require.Contains(t, text, edit[0], name)
		p, err := ir.Parse([]byte(strings.Replace(text, edit[0], edit[1], 1)), "edited.amk")
		require.NoError(t, err)
		one, err := ir.OneToken(p)
		if name == "a position" { // is the variant's to say
			require.NoError(t, err)
			require.Equal(t, 510, one.Variants[0].Hi)
			continue
		}
		require.Error(t, err, name)
	}
}

// What the kernel does for one row per pass alone is refused by name.
func TestPassesThatTheKernelDoesNotTake(t *testing.T) {
	for says, c := range map[string]struct {
		model string
		rows  int
		edit  func(o *Options)
	}{
		"takes at most 8 tokens": {model: "pycoder-5m", rows: 9},
		"may be at any": {model: "pycoder-5m", edit: func(o *Options) {
			o.Pass = ir.PassOf(2, 1) // in which a default would split no variant
			o.Config.Tiling = map[string]map[string]int{"attention": {"split_from": 512}}
		}},
	} {
		t.Run(says, func(t *testing.T) {
			p := passOf(t, c.model, cmp.Or(c.rows, 8), c.edit)
			require.True(t, validate.Program(p).OK, "it is proved for the reference VM")
			d := validate.ProgramFor(kernel.Backend, p).Diags.Err()
			require.ErrorContains(t, d, kernel.CodeTokens.ID)
			require.ErrorContains(t, d, says)
		})
	}
}
