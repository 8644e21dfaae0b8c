package builddir

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
)

// What a killed run has left may be damaged: the machine lost power, or somebody else wrote the directory. Whatever
// is wrong with a manifest in it, after every step, the next run either writes its build or says why it cannot and
// what to do. It says the same the next time, and the files of the user's stay.
func TestDamagedLeftovers(t *testing.T) {
	damages := map[string]func(path string) error{
		"empty":  func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"zeros":  func(path string) error { return os.WriteFile(path, make([]byte, 512), 0o644) },
		"a list": func(path string) error { return os.WriteFile(path, []byte(`{"files":{"../x":"0"}}`), 0o644) },
		"a link": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory": func(path string) error {
			return os.MkdirAll(filepath.Join(path, "x"), 0o755)
		},
	}
	written, refused, turn := 0, 0, 0
	for steps := 20; steps < 60; steps++ {
		for _, what := range slices.Sorted(maps.Keys(damages)) {
			if turn++; turn%4 != 0 && os.Getenv("AMKC_LONG") == "" {
				continue
			}
			for _, name := range []string{readyDir + "/" + host.ManifestFile, earlierFile} {
				dir := filepath.Join(inMemory(t), "out")
				_, err := first.write(dir, same)
				require.NoError(t, err)
				put(t, dir, mine)
				require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty", "empty"), 0o755))
				second.killed(t, dir, steps, map[string]bool{})
				at := filepath.Join(dir, filepath.FromSlash(name))
				if !exists(at) {
					continue
				}
				require.NoError(t, os.Remove(at))
				require.NoError(t, damages[what](at))
				_, err = second.write(dir, same)
				if err == nil {
					require.Equal(t, second.files["a.h"], contents(t, dir)["a.h"])
					written++
				} else {
					requireCode(t, err, CodeUnusable)
					require.ErrorContains(t, err, "is damaged: "+name, "%s after %d steps", what, steps)
					require.ErrorContains(t, err, "name another directory")
					_, again := second.write(dir, same)
					require.Equal(t, err.Error(), again.Error())
					refused++
				}
				theirs(t, dir)
			}
		}
	}
	require.NotZero(t, written)
	require.NotZero(t, refused)
}

// Where no directory can be made, that is said at once: in a working directory that was removed, and below what takes
// none.
func TestNoDirectoryCanBeMade(t *testing.T) {
	for _, dir := range []string{".", "./", "out", "a/b/c/d/e/f", "./out/"} {
		gone := filepath.Join(t.TempDir(), "gone")
		require.NoError(t, os.Mkdir(gone, 0o755))
		t.Chdir(gone)
		require.NoError(t, os.Remove(gone))
		_, err := first.write(dir, same)
		require.Error(t, err)
		require.Regexp(t, "has been removed|cannot make the directory: no such file", err.Error(), dir)
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		_, err := first.write("/proc/amkc/out", same)
		requireCode(t, err, CodeWrite)
	}
}

// A manifest of somebody else's can list any name. What no build can have is refused before anything is touched.
func TestNamesOfEarlierManifest(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, name := range []string{long, strings.Repeat("a/", 200) + "x", "../x", "/x", "", ".", Work, Work + "/lock",
		"a//b", "a/../b", "./a"} {
		dir := filepath.Join(t.TempDir(), "out")
		_, err := first.write(dir, same)
		require.NoError(t, err)
		m := first.manifest()
		m.Files[name] = "0"
		text, err := m.Marshal()
		require.NoError(t, err)
		put(t, dir, map[string]string{host.ManifestFile: string(text)})
		before := contents(t, dir)
		_, err = second.write(dir, same)
		requireCode(t, err, CodeUnusable)
		require.ErrorContains(t, err, "lists a file that no build has")
		require.Equal(t, before, contents(t, dir))
	}
}
