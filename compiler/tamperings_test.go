package compiler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/importers/checkpoint"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/text/chat"
)

// A tampering changes a good build. With a matching manifest, it is given the manifest after the digests of what
// it has changed have been put into it.
type tampering struct {
	name     string
	change   func(t *testing.T, dir string)
	manifest func(m *codegen.Manifest) // instead of a file, or after the digests have been updated
}

// Where modules of the launcher lie; that of a third party without the extensions of its files.
const (
	purego     = "launcher/modules/github.com/ebitengine/purego/@v/v0.11.3"
	runtimeZip = "launcher/modules/amkc.local/runtime/@v/v0.0.0.zip"
)

// tamperings are those of each row of the table in docs/verify.md, by its first cell.
var tamperings = map[string][]tampering{
	"a constant of a descriptor, page, variant or weight": {
		replace("rotation", "schedule.h", `kRotation = \d+;`, "kRotation = 1;"),
		replace("tasks", "schedule.h", `kTasks = \d+;`, "kTasks = 1;"),
		replace("page", "pages.h", `constexpr Page kXchg1\{\d+, `, "constexpr Page kXchg1{0, "),
		replace("variant", "model_config.h", `End = \d+;`, "End = 3;"),
		replace("weight", "model_config.h", `kQkvWeight = \d+;`, "kQkvWeight = 0;"),
	},
	"`program.json`, alone or with the headers": {
		replace("an unsafe schedule", ProgramFile, `"threshold": ?\d+`, `"threshold":1`),
		replace("another architecture", ProgramFile, `"architecture": ?"LlamaForCausalLM"`, `"architecture":"Other"`),
		{name: "rotation in both", change: func(t *testing.T, dir string) {
			edit(t, dir, "schedule.h", `(?s)(struct GateUp .*?kRotation = )0`, "${1}1")
			edit(t, dir, ProgramFile, `(?s)(stage": "L\{i\}\.gate_up".*?"rot": )0`, "${1}1")
		}},
	},
	"an invalid name in `program.json`": {
		replace("a line", ProgramFile, `"architecture": ?"LlamaForCausalLM"`,
			`"architecture":"L\n#include \"amk/evil.cuh\""`),
		replace("an expansion", ProgramFile, `"arch": ?"sm_90a"`, `"arch":"sm_90a$(shell touch evil)"`),
		replace("an expansion that is a name", ProgramFile, `"arch": ?"sm_90a"`, `"arch":"sm_90a,code=sm_80"`),
	},
	"the order of stages, the page of a vector": {
		{name: "order", change: func(t *testing.T, dir string) {
			edit(t, dir, "schedule.h", `(?s)Stages\[\]\{[^\n]*\n    k(\w+), k(\w+),`, "Stages[]{\n    k$2, k$1,")
		}},
		replace("page", "pages.h", `Page (kH|kQkv|kAttn|kX\w*) = kXchg\d;`, "Page $1 = kXchg4;"),
	},
	"a call between the marks of `megakernel.cu`": {
		replace("page", "megakernel.cu", `\bo_stage\(c, (\w+), (\w+)\);`, "o_stage(c, $2, $1);"),
		replace("matrix", "megakernel.cu", `base \+ kOWeight`, "base + kDownWeight"),
		replace("loop", "megakernel.cu", `\+\+layer`, "layer += 2"),
	},
	"the comment of an op": {
		replace("op", "schedule.h", `//   (.*)EMBED`, "//   ${1}EMBED2"),
		replace("stage", "schedule.h", `// stage Qkv   ir: `, "// stage Qkv   ir: x"),
	},
	"a macro, an expression, an include, a second namespace among the literals": {
		replace("macro", "schedule.h", `namespace amk \{\n`, "namespace amk {\n#define int long\n"),
		replace("expression", "schedule.h", `kSMs = 4;`, "kSMs = 2 * 2;"),
		replace("include", "schedule.h", `#pragma once\n`, "#pragma once\n#include \"amk/ring.cuh\"\n"),
		replace("include next to another", "pages.h", `(#include "amk/exchange.cuh"\n)`,
			"$1#include \"amk/evil.cuh\"\n"),
		replace("namespace", "pages.h", `\}  // namespace amk\n// amkc:end`,
			"}  // namespace amk\nnamespace evil {}\n// amkc:end"),
	},
	"any other generated file, or a line after the literals of a header": {
		replace("megakernel.cu", "megakernel.cu", `\z`, "// mine\n"),
		replace("prompt.cu", "prompt.cu", `kPromptTokens, `, "kPromptTokens - 64, "),
		replace("after the literals", "schedule.h", `\z`, "// mine\n"),
		replace("runtime", "amk/ring.cuh", `\z`, "// mine\n"),
		replace("primitives", "amk/hw/memory.cuh", `\z`, "// mine\n"),
		replace("a package of the launcher", runtimeZip, "package host\n", "package most\n"),
		replace("a module of the launcher", purego+".zip", `\z`, "x"),
		replace("Makefile", "Makefile", `\z`, "evil:\n"),
		replace("licenses", "THIRD_PARTY_NOTICES", `\z`, "x"),
	},
	"a generated file that is missing": {
		remove(ProgramFile), remove("launcher/main.go"), remove("README.md"), remove(purego + ".mod"),
		remove("schedule.h"),
	},
	"a generated file that is larger than amkc reads": {
		grow(ProgramFile, infile.Program), grow("megakernel.cu", infile.Source), grow("schedule.h", infile.Source),
		grow("Makefile", infile.Source), grow(runtimeZip, infile.Source),
	},
	"an extra file": {
		add("python/__pycache__/pack.cpython-312.pyc"), add("launcher/evil.go"), add("GNUmakefile"),
		add(purego + ".ziphash"), add("launcher/vendor/modules.txt"),
		{name: "a link", change: func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink("/dev/null", filepath.Join(dir, "cuda_runtime.h")))
		}},
	},
	"a note or a measurement": {
		add("notes.md"),
	},
	"a link to a directory, a pipe": {
		{name: "launcher elsewhere", change: func(t *testing.T, dir string) {
			elsewhere := t.TempDir()
			require.NoError(t, os.Rename(filepath.Join(dir, "launcher"), filepath.Join(elsewhere, "launcher")))
			put(t, elsewhere, "launcher/evil.go", "package main")
			require.NoError(t, os.Symlink(filepath.Join(elsewhere, "launcher"), filepath.Join(dir, "launcher")))
		}},
		{name: "link", change: func(t *testing.T,
			dir string) {
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "sys")))
		}},
		{name: "pipe", change: func(t *testing.T, dir string) {
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o600))
		}},
	},
	"a link in place of a file, whatever it leads to": {
		linkAway("megakernel.cu"), linkAway("launcher/main.go"), linkAway("schedule.h"), linkAway(host.WeightsFile),
		linkAway(host.FatbinFile),
	},
	"a kernel or launcher that has no digest": {
		{name: "kernel", change: func(t *testing.T, dir string) { rewrite(t, dir, host.MeasureFile, fatbin) },
			manifest: func(m *codegen.Manifest) { delete(m.Built, host.MeasureFile) }},
	},
	"something else under its name": {
		{name: "script", change: func(t *testing.T, dir string) { rewrite(t, dir, host.MeasureFile, "x") },
			manifest: func(m *codegen.Manifest) { delete(m.Built, host.MeasureFile) }},
		{name: "directory", change: func(t *testing.T,
			dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "demo"), 0o755))
		}},
	},
	"what `weights.safetensors` says of itself, and the frequencies of rotations in it": {
		replace("name", host.WeightsFile, `"L00\.qkv\.weight"`, `"L00.qkv.weighs"`),
		replace("type", host.WeightsFile, `"F32"`, `"I32"`),
		{name: "frequency", change: func(t *testing.T, dir string) {
			file := filepath.Join(dir, host.WeightsFile)
			f, err := checkpoint.OpenFile(file)
			require.NoError(t, err)
			tensors := f.Tensors()
			k := slices.IndexFunc(tensors, func(of checkpoint.Tensor) bool { return of.Name == "rope.inv_freq" })
			raw, err := tensors[k].Raw()
			require.NoError(t, err)
			frequencies := string(raw)
			require.NoError(t, f.Close())
			whole := text(t, dir, host.WeightsFile)
			require.Equal(t, 1, strings.Count(whole, frequencies))
			rewrite(t, dir, host.WeightsFile, strings.Replace(whole, frequencies,
				strings.Repeat("?", len(frequencies)), 1))
		}},
	},
	"`weights.safetensors`": {replace("weights", host.WeightsFile, `(?s).\z`, "\x55")},
	"`tokenizer.json` and the files of chat templates": {replace("tokenizer", host.TokenizerFile, `\z`, " "),
		replace("template", chat.TemplateFile, `\z`, " ")},
	"a value of `config.json` that the model depends on": {
		replace("eps", host.ConfigFile, `"rms_norm_eps": ?1e-06`, `"rms_norm_eps": 1e-05`),
		replace("theta", host.ConfigFile, `"rope_theta": ?\d+`, `"rope_theta": 1`),
		replace("vocabulary", host.ConfigFile, `"vocab_size": ?512`, `"vocab_size": 511`),
	},
	"what else is in `config.json`, and `generation_config.json`": {replace("config", host.ConfigFile, `\z`, " "),
		replace("generation", host.GenConfigFile, `"eos_token_id": ?\d+`, `"eos_token_id": 7`)},
	"a kernel or launcher that amkc has built": {replace("kernel", host.FatbinFile, `\z`, "x")},
	"the manifest's facts": {
		manifest("name", func(m *codegen.Manifest) { m.Facts.Model.Name = "other" }),
		manifest("SMs", func(m *codegen.Manifest) { m.Facts.Target.SMs++ }),
		manifest("stages", func(m *codegen.Manifest) { m.Facts.Stages[0] = "x" }),
		manifest("traffic", func(m *codegen.Manifest) { m.Facts.Traffic.Weights++ }),
		manifest("layers", func(m *codegen.Manifest) { // as a build has them whose layers differ
			of := m.Facts.Model
			for i := range of.Layers {
				m.Facts.Layers = append(m.Facts.Layers, host.Layer{Heads: of.Heads, KVHeads: of.KVHeads,
					HeadDim: of.HeadDim, CacheAt: m.Facts.CacheAt(i), CacheBlock: of.CacheBlock})
			}
		}),
	},
	"where the build comes from: the manifest's amkc, model, checkpoint, options": {
		manifest("version", func(m *codegen.Manifest) { m.Compiler.Version = "other" }),
		manifest("commit", func(m *codegen.Manifest) { m.Compiler.Commit = "other" }),
		manifest("ir", func(m *codegen.Manifest) { m.Compiler.IR = "other" }),
		manifest("abi", func(m *codegen.Manifest) { m.Compiler.RuntimeABI++ }),
		manifest("model", func(m *codegen.Manifest) { m.Source.Model = "other" }),
		manifest("revision", func(m *codegen.Manifest) { m.Source.Revision = "other" }),
		manifest("checkpoint", func(m *codegen.Manifest) { m.Source.Checkpoint = "other" }),
		manifest("options", func(m *codegen.Manifest) { m.Source.Options = []string{"--other"} }),
	},
	"what else the manifest says: versions of tools, weights key, seed, fields assumed inert": {
		manifest("key", func(m *codegen.Manifest) { m.Weights.Key = "0" }),
		manifest("seed", func(m *codegen.Manifest) { seed := uint64(1); m.Source.RandomSeed = &seed }),
		manifest("inert", func(m *codegen.Manifest) { m.Source.AssumeInert = []string{"x"} }),
		manifest("tools", func(m *codegen.Manifest) { m.Toolchain.NVCC = "other" }),
		manifest("CUDA", func(m *codegen.Manifest) { m.Facts.CUDA = 11000 }),
	},
	"another format, or text in the manifest that is not printable": {
		manifest("format", func(m *codegen.Manifest) { m.Format++ }),
		manifest("text", func(m *codegen.Manifest) { m.Compiler.Version = "\x1b[2J" }),
		manifest("path", func(m *codegen.Manifest) { m.Files["x\nname"] = "" }),
	},
	"a path in the manifest that leads out of the build": {
		manifest("file", func(m *codegen.Manifest) { m.Files["../evil.go"] = "0" }),
		manifest("built", func(m *codegen.Manifest) { m.Built["/bin/sh"] = "0" }),
	},
	"another build, complete and consistent": {{name: "another", change: func(t *testing.T, dir string) {
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.CopyFS(dir, os.DirFS(anotherBuild(t))))
	}}},
}

func replace(name, file, pattern, with string) tampering {
	return tampering{name: name, change: func(t *testing.T, dir string) { edit(t, dir, file, pattern, with) }}
}

func remove(file string) tampering {
	return tampering{name: file, change: func(t *testing.T,
		dir string) {
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
	}}
}

// grow makes a file one byte larger than its kind may be.
func grow(file string, kind infile.Kind) tampering {
	return tampering{name: file, change: func(t *testing.T, dir string) {
		rewrite(t, dir, file, text(t, dir, file))
		require.NoError(t, os.Truncate(filepath.Join(dir, file), kind.Max+1))
	}}
}

// linkAway moves a file out of the build and leaves a link to it.
func linkAway(file string) tampering {
	return tampering{name: file, change: func(t *testing.T, dir string) {
		away := filepath.Join(t.TempDir(), "away")
		require.NoError(t, os.Rename(filepath.Join(dir, file), away))
		require.NoError(t, os.Symlink(away, filepath.Join(dir, file)))
	}}
}

func add(file string) tampering {
	return tampering{name: file, change: func(t *testing.T, dir string) { put(t, dir, file, "mine") }}
}

func manifest(name string, f func(*codegen.Manifest)) tampering {
	return tampering{name: name, manifest: f}
}
