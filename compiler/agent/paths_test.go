package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// rootWithLinks is a server whose root has links of every kind.
func rootWithLinks(t testing.TB) (s *Server, outside string) {
	t.Helper()
	outside = t.TempDir()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret\n"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a/b/c"), []byte("one\ntwo\nthree\n"), 0o644))
	for name, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "secret"), "in": "a",
		"up": "..", "loop": "loop", "a/b/up": "../../..", "none": filepath.Join(outside, "none")} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, name)))
	}
	s, err := New(Options{Exe: "amkc", Root: root})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, outside
}

// holds reports whether a path that was allowed is in the root, links resolved as far as there are any.
func holds(t *testing.T, s *Server, path string) {
	t.Helper()
	for at := filepath.Join(s.dir, path); ; at = filepath.Dir(at) {
		resolved, err := filepath.EvalSymlinks(at)
		if err == nil {
			inside := resolved == s.dir || strings.HasPrefix(resolved, s.dir+"/")
			require.True(t, inside, "%s leads to %s", path, resolved)
			return
		}
		require.ErrorIs(t, err, os.ErrNotExist, path)
	}
}

func TestPaths(t *testing.T) {
	s, outside := rootWithLinks(t)
	for _, name := range []string{"a/b/c", "./a/b/c", "in/b/c", s.dir + "/a/b/c"} {
		path, err := s.existing(name)
		require.NoError(t, err, name)
		require.True(t, strings.HasPrefix(path, "./"), "%s is not a flag and no hub id", path)
		text, err := s.read(name, 100)
		require.NoError(t, err)
		require.Equal(t, "one\ntwo\nthree\n", string(text))
	}
	text, err := s.read("a/b/c", 8)
	require.NoError(t, err)
	require.Equal(t, "three\n", string(text), "the end, from the beginning of a line")
	for name, want := range map[string]string{"out/secret": "AMK6202", "file": "AMK6202", "up": "AMK6202",
		"a/b": "AMK6202", "": "AMK6202", "..": "AMK6202", "a/../../x": "AMK6202", outside: "AMK6202",
		"nowhere": "is not there", "loop": "AMK620", "none": "AMK6202"} {
		_, err := s.existing(name)
		require.ErrorContains(t, err, want, name)
		_, err = s.read(name, 100)
		require.ErrorContains(t, err, "AMK620", name)
	}
	_, err = s.read("a", 100)
	require.Error(t, err)
	for _, name := range []string{"new", "a/new/deep", "in/new"} {
		_, err := s.writable(name)
		require.NoError(t, err, name)
	}
	for _, name := range []string{"out/new", "none", "none/new", "up/new", "a/b/up/new", "../new", "loop/new"} {
		_, err := s.writable(name)
		require.Error(t, err, name)
	}
}

// A directory is refused for what a link in it leads to, however many links are in between; links in a circle end.
func TestLinksToDirectoriesAreFollowed(t *testing.T) {
	s, _ := rootWithLinks(t)
	link := func(to, name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755))
		require.NoError(t, os.Symlink(to, filepath.Join(s.dir, name)))
	}
	link("../deep", "model/sub")
	link("../a/b", "deep/further") // in which up leads out
	for _, name := range []string{"model", "model/sub", "deep", "deep/further"} {
		_, err := s.existing(name)
		require.ErrorContains(t, err, "AMK6202", name)
		_, err = s.writable(name)
		require.ErrorContains(t, err, "AMK6202", name)
	}
	link("../other", "circle/other")
	link("../circle", "other/circle")
	link(".", "circle/self")
	_, err := s.existing("circle")
	require.NoError(t, err)
}

// A root may be named by a link, and paths in it by either name.
func TestRootNamedByALink(t *testing.T) {
	real, beside := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(filepath.Join(real, "file"), []byte("text"), 0o644))
	require.NoError(t, os.Symlink(real, beside))
	s, err := New(Options{Exe: "amkc", Root: beside})
	require.NoError(t, err)
	defer s.Close()
	for _, name := range []string{"file", filepath.Join(beside, "file"), filepath.Join(s.dir, "file")} {
		path, err := s.existing(name)
		require.NoError(t, err, name)
		require.Equal(t, "./file", path)
	}
	for _, name := range []string{filepath.Dir(beside), filepath.Join(beside, "..", "x"), "/"} {
		_, err := s.existing(name)
		require.ErrorContains(t, err, "AMK6202", name)
	}
}

func FuzzPaths(f *testing.F) {
	for _, name := range []string{"a/b/c", "out/secret", "../x", "in/../..", "a//b/./up", "/etc/passwd", "a\x00b"} {
		f.Add(name)
	}
	s, _ := rootWithLinks(f)
	f.Fuzz(func(t *testing.T, name string) {
		defer watch.Execution()()
		if path, err := s.existing(name); err == nil {
			holds(t, s, path)
		}
		if path, err := s.writable(name); err == nil {
			holds(t, s, path)
		}
		if text, err := s.read(name, 1<<10); err == nil {
			require.NotContains(t, string(text), "secret")
		}
	})
}

// A key that tools could name signs nothing that a campaign may believe.
func TestTheKeyIsOutsideOfTheRoot(t *testing.T) {
	root, beside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(root, filepath.Join(beside, "link")))
	for _, key := range []string{filepath.Join(root, "verdict.key"), filepath.Join(root, "a", "b", "verdict.key"),
		filepath.Join(beside, "link", "verdict.key")} {
		_, err := New(Options{Exe: "amkc", Root: root, Key: key})
		require.ErrorContains(t, err, "AMK6201", key)
	}
	s, err := New(Options{Exe: "amkc", Root: root, Key: filepath.Join(beside, "made", "verdict.key")})
	require.NoError(t, err)
	s.Close()
}

// What eval saves takes the place of nothing but what it has saved before.
func TestSavedResultsReplaceResults(t *testing.T) {
	root := t.TempDir()
	s, err := New(Options{Exe: "amkc", Root: root})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, os.WriteFile(filepath.Join(root, "weights"), []byte("1234"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "verdict.json"), []byte(`{"schema":"amkc.eval/1"}`), 0o600))
	for name, ok := range map[string]bool{"weights": false, "verdict.json": true, "new.json": true} {
		a := &arguments{s: s}
		a.save(name)
		require.Equal(t, ok, a.err == nil, name)
	}
}
