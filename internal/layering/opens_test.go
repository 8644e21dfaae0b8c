package layering

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// opening lists the functions that open a path, or read a stream to its end however long it is. What somebody else
// wrote is opened and read by runtime/infile alone.
var opening = map[string][]string{
	"os":        {"Open", "OpenFile", "OpenRoot", "OpenInRoot", "ReadFile", "ReadDir", "DirFS", "CopyFS"},
	"io":        {"ReadAll"},
	"io/ioutil": {"ReadAll", "ReadFile", "ReadDir"},
	"syscall":   {"Open", "Openat"},
}

// mayOpen lists the files that call one of them, and why they may.
var mayOpen = map[string]string{
	"runtime/infile/infile.go":         "the one place",
	"runtime/outfile/outfile.go":       "syncs directories",
	"runtime/outfile/claim.go":         "creates the files that it opens",
	"compiler/agent/agent.go":          "opens the root of everything that a client may name",
	"bench/device/drafts_texts.go":     "lists a directory whose files infile reads",
	"codegen/notices/gen/main.go":      "reads the module cache, to make files of this repository",
	"search/journal.go":                "appends to a file that it has just read by infile",
	"compiler/builddir/builddir.go":    "opens the output directory, which it writes to",
	"explore/pool.go":                  "reads the processor time of its own processes from /proc",
	"internal/population/committed.go": "reads test data of this repository",
	"internal/population/published.go": "reads test data of this repository",
	"compiler/toolchain.go":            "copies modules of a launcher that amkc has just written",
	"importers/modeltest/modeltest.go": "reads goldens of tests",
	"internal/pty/pty.go":              "opens terminals, for tests",
	"internal/browser/picture.go":      "reads pictures of this repository, for tests",
	"internal/browser/terminal.go":     "reads xterm.js, for tests",
}

func TestFilesOfOthersAreOpenedInOnePlace(t *testing.T) {
	seen := map[string]bool{}
	eachSource(t, func(name string, file *ast.File) {
		for _, call := range calls(file) {
			seen[name] = true
			require.Contains(t, mayOpen, name, "%s calls %s: call runtime/infile, or say in the table why not", name,
				call)
		}
	})
	for name := range mayOpen {
		require.True(t, seen[name], "%s of the table opens nothing", name)
	}
}

// The search finds what it is for, whatever the package is called in the file.
func TestCallsThatOpen(t *testing.T) {
	const source = `package p
		import ("io"; sys "os"; . "io/ioutil")
		var f = sys.Open
		func g() { _, _ = sys.ReadFile(""); io.ReadAll(nil); sys.Remove("") }`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"everything of io/ioutil", "os.Open", "os.ReadFile", "io.ReadAll"}, calls(file))
}

// calls returns what the file names of the functions that open.
func calls(file *ast.File) []string {
	var found []string
	packages := map[string]string{} // local name to path
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if opening[imported] == nil {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			found = append(found, "everything of "+imported)
		}
		packages[name] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(opening[packages[x.Name]], s.Sel.Name) {
			found = append(found, fmt.Sprintf("%s.%s", packages[x.Name], s.Sel.Name))
		}
		return true
	})
	return found
}

// eachSource calls f for every Go file of amkc that is not a test, by its path from the root.
func eachSource(t *testing.T, f func(name string, file *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, name := range sources(t, root) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		f(filepath.ToSlash(name), file)
	}
}
