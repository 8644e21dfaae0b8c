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
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/text/chat"
)

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

// listFiles returns the files below a directory, with forward slashes.
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

// goodBuild makes a small build with fake kernels, and all that a model directory can give it.
func goodBuild(t *testing.T) string {
	t.Helper()
	fakeTools(t, goodNVCC)
	model := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(model, os.DirFS("../testdata/models/zoo/llama-gqa")))
	put(t, model, host.TokenizerFile, "{}")
	put(t, model, chat.TemplateFile, "{{ messages }}")
	return buildOf(t, model, "demo")
}

// anotherBuild is one of another model.
func anotherBuild(t *testing.T) string {
	return buildOf(t, "../testdata/models/zoo/llama-odd-dims", "demo")
}

func buildOf(t *testing.T, model, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	half := ir.F16 // with tensor cores there is a kernel for prompts too
	_, err := Compile(t.Context(), BuildOptions{OutDir: dir, NoLauncher: true,
		Options: Options{Model: model, Name: name, DType: &half, MaxSeq: 64, Target: ir.ArchTarget(90, 4)}})
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
		program, _ := os.ReadFile(filepath.Join(dir, ProgramFile)) // which a tampering may have removed
		if p, diags := ir.LoadJSON(program, ProgramFile); diags.Err() == nil {
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
// once with the old manifest and once with a matching one, and the cells have the codes that are found, no
// more and no fewer. Of each row, all tamperings are tried with AMKC_LONG, and else the first.
func TestTableOfWhatIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
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

// documentedVerdicts reads the table of docs/verify.md: what is found with the old manifest, and with a matching one.
func documentedVerdicts(t *testing.T) map[string][2]cell {
	t.Helper()
	doc, err := os.ReadFile("../docs/verify.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(doc),
		"| tampering | with the old manifest | with a matching manifest |\n|---|---|---|\n")
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
