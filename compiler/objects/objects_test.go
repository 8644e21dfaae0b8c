package objects

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

var code = &diag.Code{ID: "AMK5117", Title: "a compiler failed"}

func object(path, text string) Object {
	return Object{Name: filepath.Base(path), Path: path, Make: func(_ context.Context, _, out string) error {
		return os.WriteFile(out, []byte(text), 0o600)
	}}
}

// Objects are made once; one that fails leaves nothing behind, and is made the next time.
func TestProvide(t *testing.T) {
	dir := t.TempDir()
	provide := func(all ...Object) (int, error) { return Provide(t.Context(), code, "compiling", all, nil) }
	a, b := object(filepath.Join(dir, "a"), "A"), object(filepath.Join(dir, "b"), "B")
	made, err := provide(a, b)
	require.NoError(t, err)
	require.Equal(t, 2, made)
	c := object(filepath.Join(dir, "c"), "C")
	a.Make = func(context.Context, string, string) error { return errors.New("it is made again") }
	made, err = provide(a, c)
	require.NoError(t, err)
	require.Equal(t, 1, made)

	d := object(filepath.Join(dir, "d"), "D")
	works := d.Make
	d.Make = func(ctx context.Context, work, out string) error {
		require.NoError(t, works(ctx, work, out))
		return errors.New("disk full")
	}
	_, err = provide(d)
	require.ErrorContains(t, err, "want a cache that can be written to")
	d.Make = works
	made, err = provide(d)
	require.NoError(t, err)
	require.Equal(t, 1, made)
	for name, text := range map[string]string{"a": "A", "b": "B", "c": "C", "d": "D"} {
		have, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(have))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 4)
}

// A source depends on what it includes, directly or not, from its own directory on, whatever conditions say; and on
// nothing else.
func TestIncluded(t *testing.T) {
	files := map[string][]byte{
		"a.cu": []byte("#include \"b.h\"\n#include <c.h>\n"),
		"b.h":  []byte("#if 0\n #  include \"amk/d.cuh\"\n#endif\n"),
		"c.h":  []byte("// in angle brackets: of the system\n"),
		"amk/d.cuh": []byte("#include \"../b.h\"\n#include \"hw/e.cuh\"\n// #include \"f.cuh\"\n" +
			"#include \"gone.h\"\n"),
		"amk/f.cuh":    nil,
		"f.cuh":        []byte("x"),
		"amk/hw/e.cuh": {},
	}
	require.Equal(t, []string{"a.cu", "amk/d.cuh", "amk/hw/e.cuh", "b.h"},
		slices.Sorted(maps.Keys(Included(files, "a.cu"))))
	before := Digest(Included(files, "a.cu"), "flags")
	require.NotEqual(t, before, Digest(Included(files, "a.cu"), "other flags"))
	files["c.h"] = []byte("y")
	require.Equal(t, before, Digest(Included(files, "a.cu"), "flags"))
	files["amk/hw/e.cuh"] = []byte("y")
	require.NotEqual(t, before, Digest(Included(files, "a.cu"), "flags"))
}

// A variable that compilers read is an input, set to nothing too.
func TestEnvironment(t *testing.T) {
	before := Environment()
	t.Setenv("CPLUS_INCLUDE_PATH", "")
	empty := Environment()
	t.Setenv("CPLUS_INCLUDE_PATH", "/opt/include")
	require.NotEqual(t, before, empty)
	require.NotEqual(t, empty, Environment())
	require.Contains(t, Environment(), `CPLUS_INCLUDE_PATH="/opt/include"`)
}
