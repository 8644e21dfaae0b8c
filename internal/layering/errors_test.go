package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownErrors lists the files whose diagnostics quote an error as it is, and whose words those are. Any other error may
// be one of Go's, with the name of a call or a type in it: infile.Reason and infile.InJSON say the same to a user.
var ownErrors = map[string]string{
	"codegen/find.go":         "package ir, for a name",
	"codegen/cuda.go":         "the name of an architecture, read by this package",
	"codegen/conventional.go": "package ir, for a name",
	"codegen/launcher.go":     "sources of amkc's own that are not valid Go: for who mends amkc",
	"interchange/export.go":   "the grammar of names, in package ir",
	"passes/loop.go":          "the grammar of names, in package ir",
	"compiler/pipeline.go":    "the grammar of names, in package ir",
	"cost/plan.go":            "package ir",
	"importers/tensors.go":    "package checkpoint",
	"passes/pack.go":          "package calibration",
	"refvm/memory.go":         "the supplier of the weights",
}

// quoted returns the calls of diag.Errorf and diag.Warningf that quote an error: a variable called err as it is, or
// its text.
func quoted(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if pkg, named := nameOf(f); !ok || !named || pkg != "diag" || f.Sel.Name != "Errorf" &&
			f.Sel.Name != "Warningf" {
			return true
		}
		for _, arg := range call.Args {
			if method, ok := arg.(*ast.CallExpr); ok && len(method.Args) == 0 {
				if sel, ok := method.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" {
					arg = sel.X
				}
			}
			if id, ok := arg.(*ast.Ident); ok && id.Name == "err" {
				found = append(found, call.Pos())
			}
		}
		return true
	})
	return found
}

func nameOf(f *ast.SelectorExpr) (string, bool) {
	if f == nil {
		return "", false
	}
	id, ok := f.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return id.Name, true
}

func TestDiagnosticsDoNotQuoteGo(t *testing.T) {
	seen := map[string]bool{}
	eachSource(t, func(name string, file *ast.File) {
		if len(quoted(file)) > 0 {
			seen[name] = true
			require.Contains(t, ownErrors, name,
				"a diagnostic of %s quotes err as it is: use infile.Reason, or say in the table whose words it has",
				name)
		}
	})
	for name := range ownErrors {
		require.True(t, seen[name], "%s of the table quotes nothing", name)
	}
}

func TestQuoted(t *testing.T) {
	const source = `package p
		func f() {
			diag.Errorf(code, pos, "no: %v", err)
			diag.Warningf(code, pos, "no: %s", err.Error())
			diag.Errorf(code, pos, "yes: %s", infile.Reason(err)).With(err2)
			fmt.Errorf("%w", err)
		}`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	require.NoError(t, err)
	require.Len(t, quoted(file), 2)
}
