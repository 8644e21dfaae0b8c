package passes

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// A refusal is an input that must be refused; what is said about it is in a golden.
type refusal struct {
	name  string
	input any
}

var codeInText = regexp.MustCompile(`AMK\d{4}`)

func checkRefusals(t *testing.T, golden string, refusals []refusal, run func(any) error) {
	var b strings.Builder
	for _, r := range refusals {
		err := run(r.input)
		require.Error(t, err, r.name)
		b.WriteString("== " + r.name + "\n" + err.Error() + "\n")
		for _, code := range codeInText.FindAllString(err.Error(), -1) {
			c := diag.Lookup(code)
			require.NotNil(t, c, code)
			require.NotEmpty(t, c.Doc, code)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./passes -update rewrites the goldens")
}
