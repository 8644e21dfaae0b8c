package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// hubModel writes a model of a hub's cache: its snapshots, and what refs/main says unless that is empty.
func hubModel(t *testing.T, main string, snapshots ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "models--some-org--Tiny-1.1B")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "refs"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "snapshots"), 0o755))
	for _, name := range snapshots {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "snapshots", name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "snapshots", name, "config.json"), []byte("{}"), 0o644))
	}
	if main != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "refs", "main"), []byte(main), 0o644))
	}
	return dir
}

func TestLocateInAHubCache(t *testing.T) {
	for _, c := range []struct {
		name, main string
		snapshots  []string
		below      string // the path that is given, below the model's directory
		want       string // the snapshot
	}{
		{"refs/main decides", "b2", []string{"a1", "b2", "c3"}, "", "b2"},
		{"a newline at its end", "b2\n", []string{"a1", "b2"}, "", "b2"},
		{"the only one", "", []string{"a1"}, "", "a1"},
		{"snapshots itself", "a1", []string{"a1", "b2"}, "snapshots", "a1"},
		{"a snapshot by name", "b2", []string{"a1", "b2"}, "snapshots/a1", "a1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := hubModel(t, c.main, c.snapshots...)
			dir, name, err := Locate(filepath.Join(model, c.below))
			require.NoError(t, err)
			require.Equal(t, "Tiny-1.1B", name)
			require.Equal(t, filepath.Join(model, "snapshots", c.want), dir)
			_, err = OpenConfig(dir)
			require.NoError(t, err)
		})
	}
}

func TestLocateRefusals(t *testing.T) {
	for _, c := range []struct {
		name, main string
		snapshots  []string
		says       []string
	}{
		{"no snapshot", "", nil, []string{"no snapshot"}},
		{"several, none of main", "", []string{"a1", "b2"}, []string{"2 snapshots", "snapshots/a1", "snapshots/b2"}},
		{"main's is not there", "c3", []string{"a1"},
			[]string{"refs/main names one that is not there", "snapshots/a1"}},
		{"main is a path", "../../..", []string{"a1"}, []string{"snapshots/a1"}},
		{"main is empty", " ", []string{"a1"}, []string{"snapshots/a1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Locate(hubModel(t, c.main, c.snapshots...))
			requireCode(t, err, "AMK1036", c.says...)
		})
	}
}

// Any other path is what it is, and named after itself.
func TestLocateElsewhere(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	require.NoError(t, os.MkdirAll("models--not--a-cache", 0o755))
	for path, want := range map[string]string{
		"model": "model", "a/b/": "b", ".": filepath.Base(work), "models--not--a-cache": "models--not--a-cache",
		"a/snapshots/x": "x",
	} {
		dir, name, err := Locate(path)
		require.NoError(t, err)
		require.Equal(t, path, dir)
		require.Equal(t, want, name)
	}
	t.Chdir(filepath.Join(hubModel(t, "", "a1"), "snapshots", "a1"))
	_, name, err := Locate(".")
	require.NoError(t, err)
	require.Equal(t, "Tiny-1.1B", name)
}

// The cache as a whole is not a model, but holds some.
func TestHubCacheItself(t *testing.T) {
	model := hubModel(t, "a1", "a1")
	_, err := OpenConfig(filepath.Dir(model))
	requireCode(t, err, "AMK1003", "model of a hub's cache: "+model)
}
