package validate_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
	"amkc/validate/kernel"
)

// Programs that are refused, each for one reason, which its first line names: the backend, the code, and part of the
// message. A diff is a change of decoder.amk, which is accepted.
func TestRefused(t *testing.T) {
	const dir = "../testdata/refused/"
	whole, err := filepath.Glob(dir + "*.amk")
	require.NoError(t, err)
	diffs, err := filepath.Glob(dir + "*.diff")
	require.NoError(t, err)
	base := read(t, dir+"decoder.amk")
	require.NoError(t, validate.ProgramFor(kernel.Backend, parse(t, base)).Diags.Err())
	head := regexp.MustCompile(`^# (ref|kernel) (AMK\d{4}) (.*)\n`)
	for _, file := range append(whole, diffs...) {
		name := filepath.Base(file)
		if name == "decoder.amk" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text := read(t, file)
			want := head.FindStringSubmatch(text)
			require.NotNil(t, want, "the first line says why")
			if strings.HasSuffix(name, ".diff") {
				text = edited(t, base, text)
			}
			p := parse(t, text)
			require.NoError(t, ir.Check(p).Err(), "its form is right")
			backend := validate.Reference
			if want[1] == "kernel" {
				backend = kernel.Backend
				require.NotContains(t, validate.Program(p).Diags.Errors().Error(), want[2],
					"the reference VM does it in another way")
			}
			rep := validate.ProgramFor(backend, p)
			require.False(t, rep.OK)
			for _, d := range rep.Diags.Errors() {
				require.Equal(t, want[2], d.Code, d)
				require.Contains(t, d.Msg, d.Fix)
				require.NotEmpty(t, d.Fix, "it says what would be accepted: %v", d)
			}
			require.Contains(t, rep.Diags.Error(), want[3])
			if backend == validate.Reference {
				require.True(t, subject{prog: p}.judge().Unsafe(), "the oracle sees it go wrong")
			}
		})
	}
}

// edited applies the changes of a diff, which blank lines separate.
func edited(t *testing.T, text, diff string) string {
	for strings.HasPrefix(diff, "#") {
		_, diff, _ = strings.Cut(diff, "\n")
	}
	for _, change := range strings.Split(diff, "\n\n") {
		text = apply(t, text, change)
	}
	return text
}
