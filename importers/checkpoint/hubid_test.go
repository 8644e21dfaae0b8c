package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// hubWith makes a cache of models--ORG--NAME directories, and the working directory an empty one alongside it.
func hubWith(t *testing.T, models map[string]map[string]string) string {
	t.Helper()
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	root := t.TempDir()
	for model, files := range models {
		for name, text := range files {
			path := filepath.Join(root, "hub", model, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "work"), 0o755))
	t.Chdir(filepath.Join(root, "work"))
	t.Setenv("HF_HUB_CACHE", filepath.Join(root, "hub"))
	return filepath.Join(root, "hub")
}

const commit1, commit2 = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

var twoCommits = map[string]string{"refs/main": commit2, "refs/v1.0": commit1, "refs/refs/pr/7": commit1,
	"refs/gone": "3333", "snapshots/" + commit1 + "/config.json": "{}", "snapshots/" + commit2 + "/config.json": "{}"}

func TestLocateID(t *testing.T) {
	hub := hubWith(t, map[string]map[string]string{"models--some-org--Tiny-1.1B": twoCommits,
		"models--gpt2": {"snapshots/aa/config.json": "{}"}})
	for id, want := range map[string]string{
		"some-org/Tiny-1.1B":            "models--some-org--Tiny-1.1B/snapshots/" + commit2,
		"some-org/Tiny-1.1B@main":       "models--some-org--Tiny-1.1B/snapshots/" + commit2,
		"some-org/Tiny-1.1B@v1.0":       "models--some-org--Tiny-1.1B/snapshots/" + commit1,
		"some-org/Tiny-1.1B@refs/pr/7":  "models--some-org--Tiny-1.1B/snapshots/" + commit1,
		"some-org/Tiny-1.1B@" + commit1: "models--some-org--Tiny-1.1B/snapshots/" + commit1,
		"gpt2":                          "models--gpt2/snapshots/aa",
	} {
		dir, name, err := Locate(id)
		require.NoError(t, err, id)
		require.Equal(t, filepath.Join(hub, want), dir)
		require.Equal(t, map[bool]string{true: "gpt2", false: "Tiny-1.1B"}[id == "gpt2"], name)
	}
	for id, c := range map[string]struct{ code, says string }{
		"some-org/Other": {"AMK1002",
			hub + "/models--some-org--Other); nothing is downloaded: run hf download some-org/Other"},
		"some-org/Other@v2":       {"AMK1002", "hf download some-org/Other --revision v2"},
		"some-org/Tiny-1.1B@no":   {"AMK1036", "2 snapshots, and there is no refs/no that chooses one"},
		"some-org/Tiny-1.1B@111":  {"AMK1036", "there is no refs/111"}, // a commit is spelled out
		"gpt2@main":               {"AMK1036", "there is no refs/main"},
		"some-org/Tiny-1.1B@gone": {"AMK1036", "refs/gone names one that is not there"},
	} {
		_, _, err := Locate(id)
		requireCode(t, err, c.code, c.says)
	}

	// A directory of that name is taken first, and below one that exists there is a typo rather than an id.
	require.NoError(t, os.MkdirAll("some-org/Tiny-1.1B", 0o755))
	dir, _, err := Locate("some-org/Tiny-1.1B")
	require.NoError(t, err)
	require.Equal(t, "some-org/Tiny-1.1B", dir)
	dir, _, err = Locate("some-org/Tiny")
	require.NoError(t, err)
	_, err = Open(dir)
	requireCode(t, err, "AMK1001", "no such directory")
}

// Whatever an id is, what it names lies below snapshots of one directory of the cache, or it is not an id.
func TestHostileIDs(t *testing.T) {
	hub := hubWith(t, map[string]map[string]string{"models--a--b": twoCommits, "models--a--b--c": twoCommits,
		"models--..": twoCommits})
	outside := filepath.Join(filepath.Dir(hub), "config.json")
	require.NoError(t, os.WriteFile(outside, []byte("{}"), 0o644))
	for _, ref := range []string{"../../..", "..", ".", "/", hub, commit1 + "/..", "", " ", "a\x00b"} {
		require.NoError(t, os.WriteFile(filepath.Join(hub, "models--a--b/refs/evil"), []byte(ref), 0o644))
		_, _, err := Locate("a/b@evil")
		requireCode(t, err, "AMK1036", "refs/evil names one that is not there")
	}
	for _, id := range []string{"a/b@../main", "a/b@..", "a/b@../../x", "a/b@/etc", "a/b@x/../../main",
		"a/b@.", "a/b@", "a/b@x//y", "a/b@x/", "a/b@-x", "a/b@@main", "a/b@main\x00", "a/b@main\n", "a--b/c",
		"a/b--c", "a/..", "../b", "..", "a/b/c", "/a/b", "a//b", "a/.b", ".a/b", "a/b\x00", "a\\b",
		"a/b\u202e", "a:b/c", "~/b", "a/b c", "a/b?x", "a/b@ä",
		strings.Repeat("a", 500) + "/b", strings.Repeat("../", 40) + "etc/passwd"} {
		dir, _, err := Locate(id)
		if err == nil {
			require.Equal(t, id, dir, "taken for a path, as before")
		}
		_, ok := parseHubID(id)
		require.False(t, ok, "%q", id)
	}
}

func TestHubCache(t *testing.T) {
	hubWith(t, nil)
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HOME", "/home/me")
	for _, c := range []struct{ name, value, want string }{
		{"", "", "/home/me/.cache/huggingface/hub"},
		{"XDG_CACHE_HOME", "/x", "/x/huggingface/hub"},
		{"HF_HOME", "/h", "/h/hub"},
		{"HF_HOME", "~/h", "/home/me/h/hub"},
		{"HUGGINGFACE_HUB_CACHE", "/old", "/old"},
		{"HF_HUB_CACHE", "~", "/home/me"},
		{"HF_HUB_CACHE", "here", "here"},
	} { // each is stronger than those before it
		if c.name != "" {
			t.Setenv(c.name, c.value)
		}
		require.Equal(t, c.want, hubCache())
	}
}

func FuzzHubID(f *testing.F) {
	for _, seed := range []string{"a/b", "a/b@main", "gpt2", "../a", "a/b@../..", "a--b/c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		defer watch.Execution()()
		m, ok := parseHubID(id)
		if !ok {
			return
		}
		require.Equal(t, m.directory(), filepath.Base(m.directory()))
		require.True(t, filepath.IsLocal(m.directory()))
		require.True(t, m.revision == "" || filepath.IsLocal(filepath.FromSlash(m.revision)))
		clean := filepath.ToSlash(filepath.Join(hubRefs, m.revision))
		require.Equal(t, clean, strings.TrimSuffix(hubRefs+"/"+m.revision, "/"))
	})
}
