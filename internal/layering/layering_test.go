// Package layering tests rules about the source of all packages, first of all that imports point one way. It has tests
// only, and imports nothing of amkc.
package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed lists what the non-test files of a package may import: packages of amkc, and modules from elsewhere. A
// package that is not listed is a mistake: say here where it belongs, and in ARCHITECTURE.md if it is a new folder.
var allowed = map[string][]string{
	"bench/dequantised": {"compiler", "ir", "ir/transform", "passes", "runtime/infile"},
	"bench/clients":     {"runtime/infile"},
	"bench/device": {"bench/clients", "text/chat", "text/draft", "runtime/driver", "runtime/host",
		"app/cli", "app/engine", "runtime/infile", "text/jinja", "app/library",
		"text/sampling", "app/serve", "search/turns"},
	"cmd/amkc":      {"compiler/cli"},
	"cmd/libamkref": {"compiler", "ir", "refvm", "runtime/host", "app/library", "app/library/capi"},
	"codegen": {"codegen/modules", "codegen/notices", "ir", "ir/diag", "ir/format", "ir/transform", "kernel", "knobs",
		"runtime", "runtime/host", "runtime/shape", "templates", "github.com/dave/jennifer/jen"},
	"codegen/modules":     {"ir/diag", "runtime/infile"},
	"codegen/modules/gen": {"codegen/modules"},
	"codegen/notices":     {},
	"codegen/notices/gen": {"codegen/modules"},
	"compiler": {"codegen", "compiler/builddir", "compiler/diff", "compiler/version", "importers",
		"importers/checkpoint", "ir", "ir/diag", "ir/format", "kernel", "passes", "passes/calibration", "readback",
		"refvm", "runtime", "runtime/host", "runtime/infile", "runtime/printable", "runtime/progress", "runtime/shape",
		"text/chat",
		"text/sampling", "text/tokenizer", "validate", "validate/kernel"},
	"compiler/agent": {"docs", "ir", "ir/diag", "knobs", "runtime/infile", "search",
		"github.com/modelcontextprotocol/go-sdk/mcp"},
	"compiler/builddir": {"codegen", "ir/diag", "runtime/host", "runtime/infile", "runtime/outfile"},
	"compiler/diff":     {"runtime/infile"},
	"compiler/formats":  {"compiler/quality"},
	"compiler/objects":  {"ir/diag", "runtime/infile", "runtime/outfile", "runtime/progress"},
	"compiler/quality":  {"ir/diag", "runtime/progress"},
	"compiler/version":  {},
	"cost":              {"ir", "ir/diag", "ir/format", "ir/op", "kernel", "knobs"},
	"docs":              {},
	// the kernels of a build on the CPU; nothing below it knows that there is no GPU
	"explore": {"compiler", "compiler/objects", "explore/mutant", "ir/diag", "text/draft", "runtime/driver",
		"runtime/host", "runtime/infile", "runtime/outfile", "runtime/progress", "runtime/shape", "text/sampling"},
	// a foreign format: what the compiler is made of knows nothing of it
	"interchange":         {"ir", "ir/diag", "ir/transform", "runtime/infile"},
	"interchange/judge":   {"interchange", "ir", "simulate"},
	"internal/browser":    {"github.com/stretchr/testify/require"},
	"internal/injection":  {},
	"internal/pty":        {"github.com/stretchr/testify/require"},
	"internal/population": {"interchange", "ir", "ir/diag"},
	"internal/watch":      {},
	"internal/soundness": {"interchange", "interchange/judge", "internal/population", "ir", "ir/diag", "simulate",
		"validate", "validate/kernel"},
	"ir":           {"ir/diag", "ir/format", "ir/op", "ir/transform", "runtime/shape"},
	"ir/diag":      {"runtime/printable"},
	"ir/format":    {"ir/half"},
	"ir/half":      {},
	"ir/op":        {},
	"ir/transform": {},
	"kernel":       {"ir", "ir/format"},
	"knobs":        {"ir", "ir/diag", "ir/format", "kernel"},
	// A graph is made of a checkpoint without passes, and rolling knows no pass: both are used from passes.
	"importers": {"importers/checkpoint", "importers/quantised", "ir", "ir/diag", "ir/format", "ir/half",
		"ir/transform"},
	"importers/checkpoint": {"importers/gguf", "ir/diag", "ir/half", "runtime/infile", "runtime/outfile"},
	"importers/gguf":       {"ir/diag", "ir/half"},
	"importers/modeltest":  {"importers/checkpoint", "ir", "ir/diag", "knobs", "github.com/stretchr/testify/require"},
	"importers/quantised":  {"importers/checkpoint", "importers/gguf", "ir/diag", "ir/format", "ir/half"},
	"passes": {"importers", "importers/checkpoint", "importers/quantised", "ir", "ir/diag", "ir/format", "ir/half",
		"ir/op", "ir/transform", "kernel", "knobs", "passes/calibration", "passes/loops", "passes/rewrite"},
	"passes/calibration": {"ir/format"},
	"passes/loops":       {"ir", "knobs", "passes/rewrite"},
	"passes/rewrite":     {"ir"},
	// text back to a program: shares no code with codegen, which prints it
	"readback":  {"ir", "ir/diag", "ir/format", "ir/op", "kernel", "knobs"},
	"refvm":     {"ir", "ir/diag", "ir/format", "ir/half", "ir/op"},
	"runtime":   {"app", "text"},
	"app":       {},
	"text":      {},
	"text/chat": {"runtime/infile", "text/jinja"},
	"app/dialogue": {"text/chat", "runtime/host", "text/jinja", "runtime/printable", "runtime/progress",
		"text/reply", "text/sampling", "text/tokenizer"},
	"runtime/driver": {"github.com/ebitengine/purego"},
	"runtime/host": {"text/chat", "text/draft", "runtime/driver", "runtime/infile", "runtime/printable",
		"runtime/shape", "text/sampling"},
	"app/chrometrace": {},
	// what amkc and launchers share of the verbs that decode
	"app/front": {"app/dialogue", "app/editor", "app/prompts", "app/serve", "runtime/host", "runtime/printable",
		"runtime/progress", "text/chat", "text/draft", "text/jinja", "text/sampling"},
	// the one package that knows the line editor
	"app/editor": {"runtime/printable", "runtime/progress", "github.com/reeflective/readline"},
	"app/engine": {"runtime/driver", "runtime/host", "text/sampling", "app/serve"},
	"app/cli": {"text/chat", "app/dialogue", "app/front", "text/draft", "runtime/driver", "runtime/host",
		"app/chrometrace", "app/engine", "app/report", "runtime/infile", "app/library",
		"runtime/outfile", "runtime/printable", "runtime/progress", "app/prompts", "text/sampling",
		"app/serve",
		"text/tokenizer"},
	"runtime/host/hosttest": {"runtime/driver", "runtime/host", "runtime/shape", "github.com/stretchr/testify/require"},
	"app/report":            {"runtime/driver", "runtime/host"},
	"runtime/infile":        {},
	"text/jinja":            {"runtime/infile"},
	"app/library": {"text/chat", "text/grammar", "runtime/host", "runtime/infile", "runtime/outfile",
		"text/sampling", "text/stopping", "text/tokenizer"},
	"app/library/capi": {"text/chat", "runtime/host", "app/library", "text/sampling",
		"text/tokenizer"},
	"app/library/shared": {"app/library/capi"},
	"runtime/outfile":    {"runtime/infile"},
	"runtime/printable":  {},
	"runtime/progress":   {"runtime/printable"},
	"runtime/shape":      {},
	"text/reply":         {"text/chat", "runtime/infile", "text/jinja", "text/stopping"},
	"app/serve": {"text/chat", "text/grammar", "runtime/infile", "text/jinja", "text/reply",
		"text/sampling", "text/stopping", "text/tokenizer"},
	"text/grammar":  {"runtime/infile"},
	"app/prompts":   {"runtime/infile", "text/sampling", "text/stopping", "app/serve", "text/tokenizer"},
	"text/stopping": {},
	"text/draft":    {},
	"text/sampling": {"text/draft", "runtime/infile"},
	"text/tokenizer": {"runtime/infile", "text/tokenizer/chars", "text/tokenizer/regex",
		"golang.org/x/text/unicode/norm"},
	"text/tokenizer/chars": {},
	"text/tokenizer/regex": {"text/tokenizer/chars"},
	"search":               {"ir/diag", "knobs", "runtime/infile", "runtime/outfile", "runtime/printable"},
	"search/evaluate": {"codegen", "compiler", "cost", "ir", "ir/diag", "knobs", "refvm", "runtime/host",
		"runtime/infile", "runtime/progress", "search", "search/turns"},
	"search/turns": {"runtime/host"},
	"simulate":     {"ir", "ir/diag", "ir/op", "refvm"},
	"templates":    {},
	"validate":     {"ir", "ir/diag", "ir/format", "ir/op", "validate/views"},
	// The contract asks the prover, never the other way round: a proof is true for any backend. Neither sees codegen.
	"validate/kernel": {"ir", "ir/diag", "ir/op", "validate", "validate/views"},
	"validate/views":  {"ir"},
}

// free packages may import anything of amkc but cmd.
var free = []string{"compiler/cli"}

func TestImportsPointOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	for _, name := range sources(t, root) {
		path := filepath.Join(root, name)
		pkg := filepath.ToSlash(filepath.Dir(name))
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			ours, isOurs := strings.CutPrefix(imported, "amkc/")
			switch {
			case !isOurs && !strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
				continue // standard library
			case slices.Contains(free, pkg):
				require.NotContains(t, ours, "cmd/", "%s imports %s", path, imported)
			default:
				list, known := allowed[pkg]
				require.True(t, known, "package %s is not in the table", pkg)
				require.Contains(t, list, ours, "%s imports %s", path, imported)
			}
		}
	}
	for pkg := range allowed {
		require.True(t, seen[pkg], "package %s of the table does not exist", pkg)
	}
}

// What is between a text and tokens knows nothing of compilers, GPUs and servers, and could be used without them.
func TestTextStandsAlone(t *testing.T) {
	n := 0
	for pkg, list := range allowed {
		if pkg != "text" && !strings.HasPrefix(pkg, "text/") {
			continue
		}
		n++
		for _, imported := range list {
			require.True(t, strings.HasPrefix(imported, "text/") || imported == "runtime/infile" ||
				imported == "golang.org/x/text/unicode/norm", "%s imports %s", pkg, imported)
		}
	}
	require.Greater(t, n, 8)
}

// TestKnobsAreReadThroughTheirTable: what a configuration holds under tiling is the business of ir, which reads and
// prints it, and of knobs. Code that looks there by name ends up repeating a default.
func TestKnobsAreReadThroughTheirTable(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, name := range sources(t, root) {
		if dir := filepath.ToSlash(filepath.Dir(name)); dir == "ir" || dir == "knobs" {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				require.NotEqual(t, "Tiling", id.Name, "%s: want a key of package knobs", files.Position(id.Pos()))
			}
			return true
		})
	}
}

// sources returns the Go files below root that are not tests, by their paths from there.
func sources(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name == "testdata" || name == "build" || name == "dist" ||
			strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		names = append(names, rel)
		return err
	})
	require.NoError(t, err)
	return names
}
