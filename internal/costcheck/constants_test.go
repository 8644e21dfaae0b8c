package costcheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/cost"
)

// constantsTable reads the constants off their sources, each with what it is and where it is from; calibrated ones
// come last.
func constantsTable(t testing.TB) string {
	var b strings.Builder
	b.WriteString("\n| constant | value | what, and where from |\n|---|---|---|\n")
	line := func(names, values []string, doc *ast.CommentGroup, source string) {
		text := strings.Join(strings.Fields(doc.Text()), " ")
		require.NotEmpty(t, text, "%s has no provenance", names[0])
		fmt.Fprintf(&b, "| %s | %s | %s%s |\n", strings.Join(names, ", "), strings.Join(values, ", "), text, source)
	}
	for _, file := range []string{"constants.go", "prompt_constants.go"} {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			g, ok := n.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST || !g.Lparen.IsValid() {
				return true
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if v.Doc == nil && v.Comment != nil {
					continue // a size, which says so alongside it
				}
				names, values := make([]string, len(v.Names)), make([]string, len(v.Names))
				for i := range v.Names {
					names[i], values[i] = v.Names[i].Name, v.Values[i].(*ast.BasicLit).Value
				}
				line(names, values, v.Doc, "")
			}
			return false
		})
	}
	calibrated := func(file string, fit reflect.Value, how string) {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Doc != nil {
				name := f.Names[0].Name
				line([]string{name}, []string{fmt.Sprintf("%g", fit.FieldByName(name).Float())}, f.Doc, how)
			}
			return true
		})
	}
	calibrated("calibration.go", reflect.ValueOf(cost.Calibrated()), " Calibrated.")
	calibrated("pass_calibration.go", reflect.ValueOf(cost.PassCalibrated()), " Calibrated, of passes.")
	b.WriteByte('\n')
	return b.String()
}

// parse reads a source of package cost.
func parse(t testing.TB, name string) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), root+"cost/"+name, nil, parser.ParseComments)
	require.NoError(t, err)
	return file
}
