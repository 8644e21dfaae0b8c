package interchange_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
)

// examples returns the directories of the programs that AutoMegaKernel itself wrote.
func examples(t testing.TB) []string {
	files, err := filepath.Glob("../testdata/amk_ir/*/program.json")
	require.NoError(t, err)
	require.Len(t, files, 7)
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

func read(t testing.TB, parts ...string) []byte {
	data, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return data
}

func TestRoundTrip(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			data := read(t, dir, "program.json")
			p, diags := interchange.Parse(data, "program.json")
			require.Empty(t, diags)
			require.Equal(t, string(data), string(p.Marshal()))
		})
	}
}
