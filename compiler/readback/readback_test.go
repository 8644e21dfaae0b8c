package readback_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/readback"
	"amkc/ir"
	"amkc/validate"
)

const golden = "../../testdata/golden"

// headers are those of a golden build, in the order that Program takes them.
func headers(t testing.TB, dir string) [3][]byte {
	t.Helper()
	var out [3][]byte
	for i, name := range []string{"schedule.h", "pages.h", "model_config.h"} {
		text, err := os.ReadFile(filepath.Join(golden, dir, name))
		require.NoError(t, err)
		out[i] = text
	}
	return out
}

// builds are the golden builds.
func builds(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(golden)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.NotEmpty(t, names)
	return names
}

func programOf(t testing.TB, dir string) *ir.Program {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(golden, dir, "program.json"))
	require.NoError(t, err)
	p, diags := ir.ParseJSON(text, "program.json")
	require.NoError(t, diags.Err())
	return p
}

func TestGoldenBuildsReadBack(t *testing.T) {
	for _, dir := range builds(t) {
		t.Run(dir, func(t *testing.T) {
			h := headers(t, dir)
			p, diags := readback.Program(h[0], h[1], h[2])
			require.Empty(t, diags)
			require.Empty(t, readback.Compare(p, programOf(t, dir)))
			proof := validate.Program(p)
			require.True(t, proof.OK, "%v", proof.Diags)
			require.Equal(t, validate.Program(programOf(t, dir)).Stats.Tasks, proof.Stats.Tasks)
		})
	}
}
