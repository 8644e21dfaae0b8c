package checkpoint

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"amkc/ir/diag"

	"github.com/stretchr/testify/require"
)

const models = "../../testdata/models"

// requireCode asserts that err is a diagnostic of that code whose text, notes included, contains each of says, and that
// the code is documented.
func requireCode(t *testing.T, err error, code string, says ...string) *diag.Diagnostic {
	t.Helper()
	require.Error(t, err)
	d, ok := err.(*diag.Diagnostic)
	require.True(t, ok, "%T: %v", err, err)
	require.NotNil(t, d, "a nil diagnostic inside an error")
	require.Equal(t, code, d.Code, "%v", err)
	for _, s := range says {
		require.Contains(t, d.Error(), s)
	}
	require.NotEmpty(t, d.Pos)
	require.NotEmpty(t, diag.Lookup(code).Doc)
	return d
}

// container is the bytes of a safetensors file with the given header and data.
func container(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

// modelDir writes a directory of the named files; a config.json is added if there is none.
func modelDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if _, ok := files["config.json"]; !ok {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "m"}`), 0o644))
	}
	for name, contents := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(contents), 0o644))
	}
	return dir
}

// bareDir writes a directory of empty files.
func bareDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	return dir
}

// pointer is what git leaves instead of a file when git-lfs is not installed.
const pointer = "version https://git-lfs.github.com/spec/v1\noid " +
	"sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func names(c *Checkpoint) []string {
	var out []string
	for _, t := range c.Tensors() {
		out = append(out, t.Name)
	}
	return out
}

// listing is the names of a directory, for tests that nothing is left behind.
func listing(t *testing.T, dir string) string {
	t.Helper()
	names, err := fileNames(dir)
	require.Nil(t, err)
	return strings.Join(names, " ")
}
