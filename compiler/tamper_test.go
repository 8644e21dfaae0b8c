package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// A tampering changes a good build. With the manifest made to fit, it is given the manifest after the digests of what
// it has changed have been put into it.
type tampering struct {
	name     string
	change   func(t *testing.T, dir string)
	manifest func(m *codegen.Manifest) // instead of a file, or after the digests have been made to fit
}

// purego is where a module of the launcher lies, without the extensions of its files.
const purego = "launcher/modules/github.com/ebitengine/purego/@v/v0.11.3"

// tamperings are those of each row of the table in docs/verify.md, by its first cell.
var tamperings = map[string][]tampering{
	"a constant of a descriptor, page, variant or weight": {
		replace("rotation", "schedule.h", `kRotation = \d+;`, "kRotation = 1;"),
		replace("tasks", "schedule.h", `kTasks = \d+;`, "kTasks = 1;"),
		replace("page", "pages.h", `constexpr Page kXchg1\{\d+, `, "constexpr Page kXchg1{0, "),
		replace("variant", "schedule.h", `End = \d+;`, "End = 3;"),
		replace("weight", "model_config.h", `kQkvWeight = \d+;`, "kQkvWeight = 0;"),
	},
	"`program.json`, alone or with the headers": {
		replace("an unsafe schedule", programFile, `"threshold": ?\d+`, `"threshold":1`),
		replace("another architecture", programFile, `"architecture": ?"LlamaForCausalLM"`, `"architecture":"Other"`),
		{name: "rotation in both", change: func(t *testing.T, dir string) {
			edit(t, dir, "schedule.h", `(?s)(struct GateUp .*?kRotation = )0`, "${1}1")
			edit(t, dir, programFile, `(?s)(stage": "L\{i\}\.gate_up".*?"rot": )0`, "${1}1")
		}},
	},
	"a name in `program.json` that is none": {
		replace("a line", programFile, `"architecture": ?"LlamaForCausalLM"`,
			`"architecture":"L\n#include \"amk/evil.cuh\""`),
		replace("an expansion", programFile, `"arch": ?"sm_90a"`, `"arch":"sm_90a$(shell touch evil)"`),
		replace("an expansion that is a name", programFile, `"arch": ?"sm_90a"`, `"arch":"sm_90a,code=sm_80"`),
	},
	"the order of stages, the page of a vector": {
		{name: "order", change: func(t *testing.T, dir string) {
			edit(t, dir, "schedule.h", `(?s)Stages\[\]\{\n    k(\w+), k(\w+),`, "Stages[]{\n    k$2, k$1,")
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
		replace("include beside another", "pages.h", `(#include "amk/exchange.cuh"\n)`,
			"$1#include \"amk/evil.cuh\"\n"),
		replace("namespace", "pages.h", `\}  // namespace amk\n// amkc:end`,
			"}  // namespace amk\nnamespace evil {}\n// amkc:end"),
	},
	"any other generated file, or a line after the literals of a header": {
		replace("megakernel.cu", "megakernel.cu", `\z`, "// mine\n"),
		replace("after the literals", "schedule.h", `\z`, "// mine\n"),
		replace("runtime", "amk/ring.cuh", `\z`, "// mine\n"),
		replace("a package of the launcher", "launcher/internal/host/session.go", `\z`, "// mine\n"),
		replace("a module of the launcher", purego+".zip", `\z`, "x"),
		replace("Makefile", "Makefile", `\z`, "evil:\n"),
	},
	"a generated file that is missing": {remove("launcher/main.go"), remove("README.md"), remove(purego + ".mod")},
	"an extra file that a build could pick up": {
		add("launcher/evil.go"), add("GNUmakefile"), add(purego + ".ziphash"), add("launcher/vendor/modules.txt"),
		{name: "a link", change: func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink("/dev/null", filepath.Join(dir, "cuda_runtime.h")))
		}},
	},
	"any other extra file": {
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
	"`weights.safetensors`": {replace("weights", host.WeightsFile, `(?s).\z`, "\x55")},
	"`tokenizer.json`":      {replace("tokenizer", host.TokenizerFile, `\z`, " ")},
	"`config.json` and `generation_config.json`": {replace("config", host.ConfigFile, `\z`, " "),
		replace("generation", host.GenConfigFile, `"eos_token_id": ?\d+`, `"eos_token_id": 7`)},
	"a kernel or launcher that amkc has built": {replace("kernel", host.FatbinFile, `\z`, "x")},
	"the manifest's facts": {
		manifest("name", func(m *codegen.Manifest) { m.Facts.Model.Name = "other" }),
		manifest("SMs", func(m *codegen.Manifest) { m.Facts.Target.SMs++ }),
		manifest("stages", func(m *codegen.Manifest) { m.Facts.Stages[0] = "x" }),
		manifest("traffic", func(m *codegen.Manifest) { m.Facts.Traffic.Weights++ }),
	},
	"what else the manifest says: versions of amkc and tools, weights key, seed, fields assumed inert": {
		manifest("key", func(m *codegen.Manifest) { m.Weights.Key = "0" }),
		manifest("seed", func(m *codegen.Manifest) { seed := uint64(1); m.Source.RandomSeed = &seed }),
		manifest("inert", func(m *codegen.Manifest) { m.Source.AssumeInert = []string{"x"} }),
		manifest("version", func(m *codegen.Manifest) { m.Compiler.Version = "other" }),
		manifest("ir", func(m *codegen.Manifest) { m.Compiler.IR = "other" }),
		manifest("abi", func(m *codegen.Manifest) { m.Compiler.RuntimeABI++ }),
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
	"another build, complete and made to fit": {{name: "another", change: func(t *testing.T, dir string) {
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.CopyFS(dir, os.DirFS(anotherBuild(t))))
	}}},
}

func replace(name, file, pattern, with string) tampering {
	return tampering{name: name, change: func(t *testing.T, dir string) { edit(t, dir, file, pattern, with) }}
}

func edit(t *testing.T, dir, file, pattern, with string) {
	t.Helper()
	before := text(t, dir, file)
	at := regexp.MustCompile(pattern).FindStringSubmatchIndex(before)
	require.NotNil(t, at, "%s has no %s", file, pattern)
	after := before[:at[0]] + string(regexp.MustCompile(pattern).
		ExpandString(nil, strings.ReplaceAll(with, "$(", "$$("), before, at)) + before[at[1]:]
	require.NotEqual(t, before, after, "%s: %s", file, pattern)
	rewrite(t, dir, file, after)
}

// rewrite replaces a file of a copy, which is a link to the original.
func rewrite(t *testing.T, dir, file, text string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(dir, file)))
	put(t, dir, file, text)
}

// linked is a copy of a build whose files are links.
func linked(t *testing.T, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "build")
	for _, name := range listFiles(t, from) {
		to := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.Link(filepath.Join(from, name), to))
	}
	return dir
}

// listFiles returns what is below a directory and is none, with forward slashes.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	}))
	return names
}

func remove(file string) tampering {
	return tampering{name: file, change: func(t *testing.T,
		dir string) {
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
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

// goodBuild makes a small build with fake kernels, and all that a model directory can give it.
func goodBuild(t *testing.T) string {
	t.Helper()
	fakeTools(t, goodNVCC)
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-gqa")))
	put(t, model, host.TokenizerFile, "{}")
	return buildOf(t, model, "demo")
}

// anotherBuild is one of another model.
func anotherBuild(t *testing.T) string {
	return buildOf(t, "../testdata/models/zoo/llama-odd-dims", "demo")
}

func buildOf(t *testing.T, model, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	_, err := Compile(t.Context(), BuildOptions{OutDir: dir, NoLauncher: true,
		Options: Options{Model: model, Name: name, MaxSeq: 64, Target: ir.ArchTarget(90, 4)}})
	require.NoError(t, err)
	return dir
}

// changeManifest rewrites the manifest of a build.
func changeManifest(t *testing.T, dir string, f func(*codegen.Manifest)) {
	t.Helper()
	var m codegen.Manifest
	require.NoError(t, json.Unmarshal([]byte(text(t, dir, host.ManifestFile)), &m))
	f(&m)
	out, err := m.Marshal()
	require.NoError(t, err)
	rewrite(t, dir, host.ManifestFile, string(out))
}

// makeFit puts the digests of what is there into the manifest, lists every file, and takes the facts from the program.
func makeFit(t *testing.T, dir string) {
	t.Helper()
	changeManifest(t, dir, func(m *codegen.Manifest) {
		if p, diags := ir.LoadJSON([]byte(text(t, dir, programFile)), programFile); diags.Err() == nil {
			if facts, err := codegen.Facts(p); err == nil {
				facts.CUDA = m.Facts.CUDA
				m.Facts = facts
			}
		}
		m.Files = map[string]string{}
		for _, name := range listFiles(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			_, digest, err := fileDigest(filepath.Join(dir, name), nil)
			require.NoError(t, err)
			switch {
			case name == host.WeightsFile:
				m.Weights.SHA256, m.Weights.Bytes = digest, info.Size()
			case m.Built[name] != "":
				m.Built[name] = digest
			case name != host.ManifestFile:
				m.Files[name] = digest
			}
		}
	})
}

// TestTableOfWhatIsCaught holds docs/verify.md and Verify to each other: every row of its table is done to a build,
// once with the manifest as it was and once with one made to fit, and the cells have the codes that are found, no
// more and no fewer. Of each row, all tamperings are tried with AMKC_LONG, and else the first.
func TestTableOfWhatIsCaught(t *testing.T) {
	rows := documentedVerdicts(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(tamperings)), slices.Collect(maps.Keys(rows)))
	good := goodBuild(t)
	v, err := Verify(good, nil)
	require.NoError(t, err)
	require.Empty(t, v.Findings)
	for _, row := range slices.Sorted(maps.Keys(tamperings)) {
		for column, fits := range []bool{false, true} {
			cell := rows[row][column]
			seen := map[string]bool{}
			tried := tamperings[row]
			if os.Getenv("AMKC_LONG") == "" {
				tried = tried[:1] // all of them take some seconds
			}
			for _, tampering := range tried {
				what := fmt.Sprintf("%s: %s, made to fit: %v", row, tampering.name, fits)
				dir := linked(t, good)
				if tampering.change != nil {
					tampering.change(t, dir)
				}
				if fits {
					makeFit(t, dir)
				}
				if tampering.manifest != nil {
					changeManifest(t, dir, tampering.manifest)
				}
				codes := verdict(t, dir)
				for _, code := range codes {
					seen[code] = true
				}
				require.Equal(t, cell.caught(), len(codes) > 0, "%s: %v", what, codes)
				require.Subset(t, cell.codes, codes, what)
			}
			if len(tried) == len(tamperings[row]) {
				require.ElementsMatch(t, cell.codes, slices.Collect(maps.Keys(seen)), "%s, made to fit: %v", row, fits)
			}
		}
	}
}

// verdict returns the codes of what verify finds; those of the rules are AMK3xxx, a warning is one.
func verdict(t *testing.T, dir string) []string {
	t.Helper()
	var findings diag.List
	v, err := Verify(dir, nil)
	if err != nil {
		var one *diag.Diagnostic
		require.ErrorAs(t, err, &one)
		findings.Add(one)
	} else {
		findings = v.Findings
	}
	codes := map[string]bool{}
	for _, d := range findings {
		code := d.Code
		if strings.HasPrefix(code, "AMK3") {
			code = "AMK3xxx"
		}
		if d.Severity == diag.Warning {
			code += " (warning)"
		}
		codes[code] = true
	}
	return slices.Sorted(maps.Keys(codes))
}

// A cell lists codes, or says that a tampering is not caught.
type cell struct{ codes []string }

func (c cell) caught() bool { return len(c.codes) > 0 }

var documentedCode = regexp.MustCompile(`AMK[0-9x]{4}( \(warning\))?`)

// documentedVerdicts reads the table of docs/verify.md: what is found with the old manifest, and with one made to fit.
func documentedVerdicts(t *testing.T) map[string][2]cell {
	t.Helper()
	doc, err := os.ReadFile("../docs/verify.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(doc),
		"| tampering | with the old manifest | with a manifest made to fit |\n|---|---|---|\n")
	require.True(t, found)
	rows := map[string][2]cell{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") {
			break
		}
		require.Len(t, cells, 3, line)
		var row [2]cell
		for i, text := range cells[1:] {
			row[i].codes = documentedCode.FindAllString(text, -1)
			require.Equal(t, !row[i].caught(), strings.HasPrefix(text, "not caught"), line)
		}
		rows[cells[0]] = row
	}
	return rows
}
