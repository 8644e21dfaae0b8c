package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsers are the functions that read a program without checking it, with the files outside their own package that may
// call them.
var parsers = map[string][]string{
	"ir.Parse":          {"internal/population/template.go"}, // whose programs may be malformed on purpose
	"ir.ParseText":      {},
	"ir.ParseJSON":      {},
	"interchange.Parse": {"compiler/cli/program.go"},
}

// Programs enter through ir.Load, which checks them, and files that a verb is given through the one file of package
// cli.
func TestProgramsAreCheckedWhereTheyEnter(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]int{}
	for _, name := range sources(t, root) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if allowed, listed := parsers[pkg.Name+"."+sel.Sel.Name]; listed {
				found[pkg.Name+"."+sel.Sel.Name]++
				require.Contains(t, allowed, filepath.ToSlash(name), "use ir.Load, or readProgram in package cli")
			}
			return true
		})
	}
	require.NotZero(t, found["interchange.Parse"], "the walk found nothing")
}
