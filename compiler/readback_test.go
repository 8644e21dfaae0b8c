package compiler

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/readback"
	"amkc/validate"
)

// shapes are the models of testdata that compile, and the directories that hold a config.json alone.
func shapes(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"models/*/config.json", "models/zoo/*/config.json", "configs/*/config.json",
		"configs/sizes/*/config.json"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			if config, err := checkpoint.OpenConfig(filepath.Dir(path)); err == nil && config != nil {
				out = append(out, filepath.Dir(path))
			}
		}
	}
	return out
}

// readBackOf renders the headers of a program and reads them back.
func readBackOf(t testing.TB, p *ir.Program) *ir.Program {
	t.Helper()
	files, err := codegen.CUDA(p)
	require.NoError(t, err)
	read, diags := readback.Program(files)
	require.Empty(t, diags)
	require.Empty(t, readback.Compare(read, p))
	return read
}

// Whatever amkc compiles, its headers say what its program says, and what they say can be proved. AMKC_LONG compiles
// each model in every dtype and with every configuration. Else it is one dtype and one target by default, and every
// 24th of the other configurations, each model with others; all of them for models whose layers differ in size.
func TestEveryBuildReadsBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	knobs := func(groups map[string]map[string]int) ir.ScheduleConfig { return ir.ScheduleConfig{Tiling: groups} }
	configs := []struct {
		name   string
		config ir.ScheduleConfig
	}{
		{"default", ir.ScheduleConfig{}},
		{"in no loop", knobs(map[string]map[string]int{"loop": {"roll": 0}})},
		{"in no loop, with barriers", knobs(map[string]map[string]int{"loop": {"roll": 0, "barrier": 1},
			"exchange": {"flagged": 0}})},
		{"barriers", knobs(map[string]map[string]int{"loop": {"barrier": 1}})},
		{"barriers and counters", knobs(map[string]map[string]int{"loop": {"barrier": 1}, "exchange": {"flagged": 0}})},
		{"counters", knobs(map[string]map[string]int{"exchange": {"flagged": 0, "copies": 1}})},
		{"always split", knobs(map[string]map[string]int{"attention": {"split_from": 0, "max_splits": 4},
			"gemv": {"rows": 16}})},
		{"early split", knobs(map[string]map[string]int{"attention": {"split_from": 7, "max_splits": 32},
			"exchange": {"flagged": 0, "copies": 4}})},
		{"few splits, and more", knobs(map[string]map[string]int{"attention": {"split_from": 16, "middle_splits": 2,
			"middle_until": 40, "max_splits": 4}})},
		{"never split", knobs(map[string]map[string]int{"attention": {"max_splits": 1}, "ring": {"run_ahead": 0},
			"warps": {"down": 4, "qkv": 4}})},
		{"round robin", ir.ScheduleConfig{SMAssignment: ir.Assignment{Policy: "round_robin"}, PageAllocation: "none",
			PipeliningDepth: 2}},
		{"stock", knobs(map[string]map[string]int{"ring": {"stock": 1, "in_flight": 4, "in_flight_stocked": 2,
			"pace": 0}})},
		{"explicit", ir.ScheduleConfig{SMAssignment: ir.Assignment{Rotations: map[string]int{"gate_up": 3, "attn": 5}},
			PageAllocation: "linear"}},
	}
	compiled := map[string]bool{}
	for _, dir := range shapes(t) {
		n := int(crc32.ChecksumIEEE([]byte(filepath.Base(dir))) >> 16) // another model leaves the others' as they are
		for at, target := range []string{"t4", "h200"} {
			for d, dtype := range []ir.DType{ir.F32, ir.BF16, ir.F16} {
				for i, c := range configs {
					if i > 1 && i%3 != d {
						continue // one dtype is enough for the others
					}
					differ := strings.HasPrefix(filepath.Base(dir), "llama-layer-") // layers, in sizes
					if !long() && !differ && (i == 0 && ((n+at+d)%3 != 0 || (n+at)%2 == 0) || i > 0 && (n+i)%24 != 0) {
						continue
					}
					name := fmt.Sprintf("%s/%s/%v/%s", filepath.Base(dir), target, dtype, c.name)
					l, err := RunPasses(Options{Model: dir, Name: "m", Target: ir.FindTarget(target), DType: &dtype,
						MaxSeq: 64, Config: c.config, ConfigOnly: true})
					if err != nil {
						continue // architectures that are not supported, and too few splits
					}
					if err = Lacking("m", l.Program); err == nil {
						_, err = codegen.CUDA(l.Program)
					}
					if err != nil {
						row := refusedFor(filepath.Base(dir), target)
						if row >= 0 {
							require.ErrorContains(t, err, withoutBody[row].refusal, name)
							continue
						}
						require.Contains(t, err.Error(), "AMK4005", name) // too large for a stage body
						continue
					}
					compiled[filepath.Base(dir)] = true
					read := readBackOf(t, l.Program)
					if c.name == "default" && dtype == ir.BF16 {
						proof := validate.Program(read)
						require.True(t, proof.OK, "%s: %v", name, proof.Diags)
					}
				}
			}
		}
	}
	for _, want := range []string{"pycoder-5m", "llama-gqa", "llama-mha-tied-bf16", "llama-odd-dims", "llama-3.1-8b",
		"llama-3.2-1b", "smollm2-135m",
		"hidden-70", "gqa-heads-of-256", "mqa-32-heads-of-16"} {
		require.True(t, compiled[want], want)
	}
}

// A forged build has a manifest that fits its edited files. It is found all the same: headers by what they say,
// everything else by what the program gives.
func TestForgedBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	model := filepath.Join(root, "models", "zoo", "llama-gqa")
	dir := filepath.Join(t.TempDir(), "build")
	config := ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 16, "max_splits": 4}}}
	_, err := Compile(t.Context(), BuildOptions{Options: Options{Model: model, Name: "llama-gqa",
		Target: ir.FindTarget("t4"), MaxSeq: 128, Config: config},
		OutDir: dir, NoBuild: true})
	require.NoError(t, err)
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	require.True(t, v.Proof.OK)
	require.Equal(t, 25, v.Stages)

	for _, c := range []struct{ name, file, old, text, code, want string }{
		{"descriptor", "schedule.h", "kRotationStep = 3;", "kRotationStep = 4;", "AMK4913",
			"rotation from layer to layer: the headers say 4, and program.json says 3"},
		{"tasks", "schedule.h", "kTasks = 16;", "kTasks = 15;", "AMK4912", "want 16, the tasks of the distribution"},
		{"variant", "model_config.h", "kShortEnd = 16;", "kShortEnd = 17;", "AMK4913",
			"positions: the headers say 0..16, and program.json says 0..15"},
		{"page", "pages.h", "kXchg1{1024, 1024, 1}", "kXchg1{512, 1024, 1}", "AMK4912",
			"where the page before it ends"},
		{"vector", "pages.h", "kH = kXchg0;", "kH = kXchg1;", "AMK4913", "buffer L{i}.h: error: pages"},
		{"weight", "model_config.h", "kQkvWeight = 256;", "kQkvWeight = 512;", "AMK4912",
			"as the tensors lie in weights.safetensors"},
		{"order", "schedule.h", "kStageQkv, kStageShortAttn, kStageO", "kStageQkv, kStageO, kStageShortAttn", "AMK4915",
			"in each layer turns.cache<ShortAttn>(layer, position) in variant short; want in each layer " +
				"turns.weights<O>(base + kOWeight, layer)"},
		{"op comment", "schedule.h", "//   %y = GEMV_TILE(%n, L{i}.qkv.weight", "//   %y = GEMV_TILE(%n, L{i}.o.weight",
			"AMK4912", "the body of Qkv computes"},
		{"program", "program.json", `"rot": 3`, `"rot": 4`, "AMK4913",
			"rotation: the headers say 3, and program.json says 4"},
		{"realisation", "program.json", `"L{i}.qkv", "first": 0, "count": 3, "realisation": "flagged"`,
			`"L{i}.qkv", "first": 0, "count": 3, "realisation": "counter"`, "AMK3118",
			"the kernel realises all exchanges alike"},
		{"call", "megakernel.cu", "o_stage(c, kAttn, kH);", "o_stage(c, kH, kAttn);", "AMK3010",
			"variant short: stage L00.o: error: counter L00.h is not defined"},
		{"norm of a call", "megakernel.cu", "base + kInputNormWeight", "base + kPostNormWeight", "AMK4912",
			"the body of Qkv computes %n = RMSNORM(L{i}.x[0:64], L{i}.post_norm.weight[0:64])"},
		{"member of a call", "megakernel.cu", "layer < kLayers &&", "layer < kVocab &&", "AMK4915",
			`"kVocab"; want kLayers`},
		{"template line", "megakernel.cu", "  p.drain();\n", "", "AMK4903", "differs from what program.json gives"},
		{"finisher", "stages.h", "rope<96>", "rope<64>", "AMK4912", "limit=64"},
		{"reader", "stages.h", "RmsNorm n{in, gain, 0x1.", "RmsNorm n{in, gain, 0x1.8", "AMK4912",
			"the body of Qkv computes %n = RMSNORM"},
		{"place", "stages.h", "publish_pair(c, r, out, act)", "publish_row(c, r, out, act)", "AMK4912",
			"of a row or of a pair as it is"},
		{"after the literals", "schedule.h", "kAttentionHeads * 20", "kAttentionHeads * 8", "AMK4903",
			"differs from what program.json gives"},
		{"runtime", "amk/exchange.cuh", "page.copies", "1", "AMK4903", "differs from what program.json gives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			manifest, err := os.ReadFile(filepath.Join(dir, "amkc.manifest.json"))
			require.NoError(t, err)
			defer func() {
				require.NoError(t, os.WriteFile(path, good, 0o644))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "amkc.manifest.json"), manifest, 0o644))
			}()
			forge(t, dir, c.file, c.old, c.text)
			v, err := Verify(dir, nil)
			require.NoError(t, err)
			said := v.Findings.Errors().Error()
			require.NotContains(t, said, "AMK4902", "the manifest fits")
			require.Contains(t, said, c.code)
			require.Contains(t, said, c.want)
		})
	}
}

// A schedule that is unsafe in all files alike is rejected for what it is: here down leaves the SMs that own the
// residual.
func TestForgedScheduleIsProvedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	b, err := Compile(t.Context(), emitted(filepath.Join(root, "models", "zoo", "llama-gqa"), dir))
	require.NoError(t, err)
	for i := range b.Program.Variants {
		for _, n := range b.Program.Variants[i].Body {
			if l, ok := n.(*ir.Loop); ok {
				l.Body[len(l.Body)-1].Dist.Rot++
			}
		}
	}
	m, err := readManifest(dir)
	require.NoError(t, err)
	again, _, err := compileAgain(dir, m, b.Program, nil)
	require.NoError(t, err)
	files, err := codegen.Project(b.Program, again.Graph, "zoo")
	require.NoError(t, err)
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), content, 0o644))
		m.Files[name] = codegen.Digest(content)
	}
	forged, err := m.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "amkc.manifest.json"), forged, 0o644))
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.False(t, v.Proof.OK)
	require.NotEmpty(t, v.Findings)
	for _, d := range v.Findings {
		require.True(t, strings.HasPrefix(d.Code, "AMK3"), d.Error())
		require.Contains(t, d.Related, "of the schedule that was read back out of the headers")
	}
}

// A program that cannot be emitted is a finding like any other, alongside what else was found.
func TestForgedProgramThatCannotBeEmitted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), emitted(filepath.Join(root, "models", "zoo", "llama-gqa"), dir))
	require.NoError(t, err)
	forge(t, dir, "program.json", `"chunk_bytes":16384`, `"chunk_bytes":0`)
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	found := v.Findings.Error()
	require.Contains(t, found, "program.json: error: gives no build at all: config: tiling.ring.chunk_bytes: "+
		"error: 0; want a multiple of 256")
	require.Contains(t, found, "schedule.h: machine")
}

// The plain kernels and the program are compared with config.json: a change of the model shows in both.
func TestForgedModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), emitted(filepath.Join(root, "models", "zoo", "llama-gqa"), dir))
	require.NoError(t, err)
	forge(t, dir, "config.json", `"rms_norm_eps": 1e-06`, `"rms_norm_eps": 0.25`)
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.Len(t, v.Findings, 2, v.Findings.Error())
	require.ErrorContains(t, v.Findings, "program.json: error: differs from what config.json and its knobs give "+
		"[AMK4906]")
	require.ErrorContains(t, v.Findings, "L{i}.gate_up: has ")
	require.ErrorContains(t, v.Findings, "reference.cu: error: differs from what")

	forge(t, dir, "config.json", `"vocab_size": 512`, `"vocab_size": 511`)
	v, err = Verify(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, v.Findings, "want one model [AMK4007]")

	forge(t, dir, "config.json", `"llama"`, `"other"`)
	v, err = Verify(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, v.Findings, "config.json: error: gives no model")
}

// forge edits a file of a build and gives the manifest its new digest.
func forge(t *testing.T, dir, file, old, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(file))
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(good), old, file)
	bad := []byte(strings.Replace(string(good), old, text, 1))
	require.NoError(t, os.WriteFile(path, bad, 0o644))
	m, err := readManifest(dir)
	require.NoError(t, err)
	m.Files[file] = codegen.Digest(bad)
	forged, err := m.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "amkc.manifest.json"), forged, 0o644))
}

// What nvcc and go have made has its digests too.
func TestVerifyLooksAtWhatToolsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	_, err := Compile(t.Context(), emitted(filepath.Join(root, "models", "zoo", "llama-gqa"), dir))
	require.NoError(t, err)
	m, err := readManifest(dir)
	require.NoError(t, err)
	require.Empty(t, m.Built, "no tool has run")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "megakernel.fatbin"), []byte("code"), 0o644))
	m.Built, err = madeByTools(dir, builddir.Products("zoo", []string{"megakernel.cu", "reference.cu", "schedule.h"}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"megakernel.fatbin": codegen.Digest([]byte("code"))}, m.Built)
	text, err := m.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "amkc.manifest.json"), text, 0o644))
	v, err := Verify(dir, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "megakernel.fatbin"), []byte("edoc"), 0o644))
	v, err = Verify(dir, nil)
	require.NoError(t, err)
	require.Len(t, v.Findings, 1)
	require.Contains(t, v.Findings.Error(), "megakernel.fatbin: error: has SHA-256 ")
}

// A compile refuses to write headers that say anything else than the proved program.
func TestEmittedIsWhatWasProved(t *testing.T) {
	l, err := RunPasses(Options{Model: filepath.Join(root, "models/pycoder-5m"), Name: "m",
		Target:     ir.FindTarget("h200"),
		ConfigOnly: true})
	require.NoError(t, err)
	files, err := codegen.CUDA(l.Program)
	require.NoError(t, err)
	require.NoError(t, checkEmitted(files, l.Program))
	for name, edit := range map[string][2]string{
		"schedule.h":     {"kTasks = ", "kTasks = 1"},
		"pages.h":        {"constexpr Page", "constexpr Pages"},
		"model_config.h": {"kHeads = ", "kHeads = 1"},
		"megakernel.cu":  {"o_stage(c, kAttn, kH);", "o_stage(c, kH, kAttn);"},
	} {
		edited := maps.Clone(files)
		edited[name] = bytes.Replace(files[name], []byte(edit[0]), []byte(edit[1]), 1)
		require.NotEqual(t, files[name], edited[name], name)
		require.ErrorContains(t, checkEmitted(edited, l.Program), "AMK5106", name)
	}
}
