package costcheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constantsTable reads the constants off their source, each with what it is and where it is from.
func constantsTable(t testing.TB) string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, root+"cost/constants.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("\n| constant | value | what, and where from |\n|---|---|---|\n")
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || !g.Lparen.IsValid() {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			doc := strings.Join(strings.Fields(v.Doc.Text()), " ")
			require.NotEmpty(t, doc, "%s has no provenance", v.Names[0].Name)
			names, values := make([]string, len(v.Names)), make([]string, len(v.Names))
			for i := range v.Names {
				names[i], values[i] = v.Names[i].Name, v.Values[i].(*ast.BasicLit).Value
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), strings.Join(values, ", "), doc)
		}
	}
	b.WriteByte('\n')
	return b.String()
}
