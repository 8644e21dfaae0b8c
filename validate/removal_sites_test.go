package validate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// site is a place in the source of packages validate and kernel that words a finding.
type site struct {
	at      string
	format  string
	message *regexp.Regexp
}

// wordings are the functions that take the wording of an error, and which argument it is.
var wordings = map[string]int{"report": 4, "disagree": 1, "Errorf": 2, "fail": 0, "Fail": 0}

// sites lists where prover and contract, and the declarations of ops that it goes by, word their errors. Formats that
// only pass on what they are given are left out.
func sites(t *testing.T) []site {
	var names []string
	for _, pattern := range []string{"*.go", "kernel/*.go", "../ir/op/*.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		names = append(names, found...)
	}
	var out []site
	fset := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			k, ok := wordings[called(call.Fun)]
			if !ok || len(call.Args) <= k {
				return true
			}
			if format := literal(call.Args[k]); len(verb.ReplaceAllString(format, "")) > 5 {
				out = append(out, site{fset.Position(call.Pos()).String(), format, asRegexp(format)})
			}
			return true
		})
	}
	return out
}

// Every code that validate can reject a program with has a removal; one that it does not use any more has none to have.
func TestEveryCodeHasARemoval(t *testing.T) {
	shown := map[string]bool{}
	for _, r := range removals() {
		shown[r.code.ID] = true
	}
	for _, e := range shownElsewhere {
		shown[e.code.ID] = true
	}
	own := 0
	for _, c := range diag.Codes() {
		if strings.HasPrefix(c.ID, "AMK31") && c != validate.CodeIdleWait { // which only warns
			require.True(t, shown[c.ID], "%s: %s", c.ID, c.Title)
			own++
		}
	}
	for _, c := range []*diag.Code{ir.CodeOperands, ir.CodeShape, ir.CodePage, ir.CodeVariants} {
		require.True(t, shown[c.ID], "%s: %s", c.ID, c.Title)
	}
	require.Len(t, shown, own+4)
}

func called(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// literal returns the string that an argument is, or begins with.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	}
	return ""
}

var verb = regexp.MustCompile(`%[a-z]`)

func asRegexp(format string) *regexp.Regexp {
	var out strings.Builder
	for i, part := range verb.Split(strings.ReplaceAll(format, "%%", "%"), -1) {
		if i > 0 {
			out.WriteString("(?s:.*)")
		}
		out.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(out.String())
}

// unshown are wordings that no program small enough for a test provokes together with a verdict of the oracle, and
// why the rule is needed all the same.
var unshown = map[string]string{
	"there is no program": "TestNoProgramIsRefusedFirst shows it",
	"the result has %d times %d elements, want at most %d": "the oracle, too, has no memory for 2^44 elements; " +
		"sizes beyond would overflow",
	"the proofs of the variants before it have needed more than %d%% of what one may need; it is not proved, and " +
		"what is not proved is refused": "variants that are not looked at may be anything; TestBudgetOfVariants " +
		"shows it",
	"%s, which the kernel does in passes of one row alone":                               inPasses,
	"has %d elements for each row; passes of several tokens read four of them at a time": inPasses,
	"is quantised, and matrices are not in passes of several tokens":                     inPasses,
	"is for positions %d to %d, and each of the %d sequences of a pass may be at any; want one variant: " +
		"tiling.attention.split_from=0, or tiling.attention.max_splits=1": inPasses,
	"the table has %d rows, want at most %d, so that an id can name what is given": "the oracle has no table of " +
		"that many rows; TestIndicesOfTheirType shows it",
	"the variants end at position %d, want at most %d: positions are of type I32": "the oracle has positions of any " +
		"size; TestPositionsOfTheirType shows it",
	"the proof of what steps append needs more than %d contiguous pieces of views; it stops here, and what is not " +
		"proved is refused": "what it stops short of is AMK3163, of a cache that the oracle has no " +
		"memory for",
}

const inPasses = "a program with a kernel for one token is not small; TestPassesThatTheKernelDoesNotTake of package " +
	"compiler shows it"

// Every wording of an error is that of some removal: no check inside a rule escapes.
func TestEveryCheckHasARemoval(t *testing.T) {
	said := map[string]bool{}
	for _, r := range removals() {
		rep, _ := r.subject(t).proveWithout()
		for _, d := range rep.Diags.Errors() {
			said[d.Msg] = true
		}
	}
	for _, e := range shownElsewhere {
		rep, _ := e.make(t).proveWithout()
		for _, d := range rep.Diags.Errors() {
			said[d.Msg] = true
		}
	}
	for _, s := range sites(t) {
		found := false
		for msg := range said {
			found = found || s.message.MatchString(msg)
		}
		why, excused := unshown[s.format]
		require.False(t, found && excused, "%q is shown", s.format)
		if !found && why == "" {
			t.Errorf("%s: no removal provokes %q", s.at, s.format)
		}
	}
}
