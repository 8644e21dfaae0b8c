package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// numericTypes are the types of flags that hold numbers, as pflag and flags.go call them.
var numericTypes = regexp.MustCompile(`(?i)int|float|number|count`)

// Every flag that takes a number refuses one that is out of range, whatever the verb, with a code and what it wants.
func TestNumbersOfFlags(t *testing.T) {
	model := filepath.Join("..", "..", "testdata", "models", "zoo", "llama-gqa")
	out := t.TempDir()
	given := map[string][]string{ // what a verb needs besides the flag
		"compile":     {model, "-o", filepath.Join(out, "build"), "--no-build", "--target", "h200"},
		"pack":        {model, "-o", filepath.Join(out, "packed"), "--target", "h200"},
		"run":         {model, "--ids", "1", "--device", "ref"},
		"chat":        {model, "--device", "ref", "--greedy"},
		"serve":       {model, "--device", "ref"},
		"logits":      {model, "--ids", "1", "-o", filepath.Join(out, "x.npy"), "--device", "ref"},
		"quality":     {model, "--against", model, "--ids", "1,2", "--device", "ref"},
		"formats":     {model, "--ids", "1,2", "--format", "int8", "--device", "ref"},
		"search":      {model, "-o", filepath.Join(out, "search"), "--trials", "1", "--key", filepath.Join(out, "key")},
		"search eval": {model, "--key", filepath.Join(out, "key")},
		"simulate":    {filepath.Join("..", "..", "testdata", "ir", "tiny.amk")},
		"cost":        {model}, "search space": {model}, "dump": {model}, "check": {model},
	}
	given["bench"] = []string{filepath.Join(out, "measured")}
	given["explore"] = given["bench"]
	code, _, stderr := amkc(model, "-o", given["bench"][0], "--no-build", "--target", "h200")
	require.Zero(t, code, stderr)
	tried := 0
	for _, v := range verbs() {
		c := &call{verb: v}
		c.defineFlags()
		c.flags.VisitAll(func(f *pflag.Flag) {
			if !numericTypes.MatchString(f.Value.Type()) {
				return
			}
			require.Contains(t, given, v.name, "--%s of %s is a number: say what else the verb needs", f.Name,
				v.name)
			for _, n := range []string{"-1", "4611686018427387904", "9223372036854775808", "1e400", "0x", "NaN"} {
				args := append([]string{}, given[v.name]...)
				if v.name != compileName {
					args = append(strings.Fields(v.name), args...)
				}
				var stdout, stderr bytes.Buffer
				code := Main(append(args, "--"+f.Name+"="+n), strings.NewReader(""), &stdout, &stderr)
				require.NotZero(t, code, "%s --%s=%s is accepted", v.name, f.Name, n)
				require.Regexp(t, `\[AMK\d{4}\]`, stderr.String())
				require.NotContains(t, stderr.String(), codeFailed.ID)
				require.Regexp(t, "want |has variants for positions", stderr.String(), "%s --%s=%s", v.name, f.Name, n)
				tried++
			}
		})
	}
	require.Greater(t, tried, 60)
}
