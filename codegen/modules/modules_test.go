package modules

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// expected returns the files of all modules, from wherever they are.
func expected(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Files()
	require.NoError(t, err)
	require.Len(t, files, 2*len(All))
	return files
}

// write puts files below dir.
func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
}

// What is carried is the complete public module: go itself compares the zip and the go.mod with the sums of go.sum,
// which are those that amkc's own go.sum has from the public checksum database. It takes a module of ours in the same
// way.
func TestGoTakesTheModules(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	ours, files := packed(t)
	maps.Copy(files, expected(t))
	needed := append([]Module{ours}, All...)
	write(t, filepath.Join(cache, "cache", "download"), files)
	program := "package main\n"
	for _, m := range needed {
		imported := m.Path
		if imported == "golang.org/x/sys" { // which has no package at its root
			imported += "/unix"
		}
		program += fmt.Sprintf("\nimport _ %q\n", imported)
	}
	write(t, dir, map[string][]byte{"main.go": []byte(program), "go.sum": []byte(GoSum(needed...)),
		"go.mod": GoMod("launcher", "1.26.0", []Module{ours}, All)})
	verify := func() (string, error) {
		cmd := exec.Command("go", "list", "-deps", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local",
			"GOFLAGS=-modcacherw", "GOMODCACHE="+cache)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := verify()
	require.NoError(t, err, out)
	for _, m := range needed {
		require.DirExists(t, filepath.Join(cache, filepath.FromSlash(m.Path)+"@"+m.Version))
	}

	for _, m := range needed {
		require.NoError(t, os.RemoveAll(cache))
		write(t, filepath.Join(cache, "cache", "download"), files)
		changed := strings.Replace(GoSum(needed...), m.Sum, m.GoModSum, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), []byte(changed), 0o644))
		out, err = verify()
		require.Error(t, err)
		require.Contains(t, out, "checksum mismatch")
	}
}

func packed(t *testing.T) (Module, map[string][]byte) {
	t.Helper()
	const name, version = "amkc.local/example", "v0.0.0"
	module, files, err := Pack(name, version, map[string][]byte{"go.mod": GoMod(name, "1.26.0", nil, nil),
		"b/b.go": []byte("package b\n"), "a.go": []byte("package example\n\nimport _ \"" + name + "/b\"\n")})
	require.NoError(t, err)
	require.Len(t, files, 2)
	return module, files
}

// The bytes of a zip do not depend on when and by what it is made: not on the clock, nor on how a release of Go
// compresses.
func TestPackedIsTheSameAlways(t *testing.T) {
	module, files := packed(t)
	again, same := packed(t)
	require.Equal(t, module, again)
	require.Equal(t, files, same)
	text := files["amkc.local/example/@v/v0.0.0.zip"]
	require.Equal(t, "39e943b77ba57c6dabac23c337b37e8cf99ca3cf91752d5a3103b0eb018360ae",
		fmt.Sprintf("%x", sha256.Sum256(text)))
	r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	var names []string
	for _, f := range r.File {
		names = append(names, strings.TrimPrefix(f.Name, "amkc.local/example@v0.0.0/"))
		require.Equal(t, zip.Store, f.Method)
		require.Zero(t, f.ModifiedDate)
		require.Empty(t, f.Extra)
	}
	require.Equal(t, []string{"a.go", "b/b.go", "go.mod"}, names)
}

func TestModulesAreThoseOfGoMod(t *testing.T) {
	goMod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	goSum, err := os.ReadFile("../../go.sum")
	require.NoError(t, err)
	for _, m := range All {
		require.Regexp(t, `(?m)^\t`+regexp.QuoteMeta(m.Path+" "+m.Version)+`( // indirect)?$`, string(goMod))
		require.Equal(t, strings.ToLower(m.Path), m.Path, "file names would write capital letters specially")
	}
	for line := range strings.Lines(GoSum(All...)) {
		require.Contains(t, string(goSum), line)
	}
	require.Equal(t, 2*len(All), strings.Count(GoSum(All...), "\n"))
}

func TestEmbedded(t *testing.T) {
	fsys := fstest.MapFS{"files/README.md": {}}
	files, err := embeddedIn(fsys)
	require.NoError(t, err)
	require.Nil(t, files, "go generate has not been run")

	want := expected(t)
	for name, data := range want {
		fsys[path.Join(Folder, name)] = &fstest.MapFile{Data: data}
	}
	files, err = embeddedIn(fsys)
	require.NoError(t, err)
	require.Equal(t, want, files)

	for name, data := range want {
		fsys[path.Join(Folder, name)] = &fstest.MapFile{Data: data[:len(data)-1]}
		_, err = embeddedIn(fsys)
		requireCode(t, CodeChanged, err)
		require.ErrorContains(t, err, name+" is not the file that amkc was made for (SHA-256 ")
		require.ErrorContains(t, err, "; run `go generate ./codegen/modules` and build amkc again")
		fsys[path.Join(Folder, name)] = &fstest.MapFile{Mode: fs.ModeDir}
		_, err = embeddedIn(fsys)
		requireCode(t, CodeChanged, err)
		fsys[path.Join(Folder, name)] = &fstest.MapFile{Data: data}
	}
}

func TestCached(t *testing.T) {
	want, root := expected(t), t.TempDir()
	write(t, filepath.Join(root, "cache", "download"), want)
	t.Setenv("GOMODCACHE", root)
	files, err := Cached()
	require.NoError(t, err)
	require.Equal(t, want, files)

	for name := range want {
		file := filepath.Join(root, "cache", "download", filepath.FromSlash(name))
		require.NoError(t, os.WriteFile(file, []byte("other"), 0o644))
		_, err = Cached()
		requireCode(t, CodeChanged, err)
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Mkdir(file, 0o755))
		_, err = Cached()
		requireCode(t, CodeChanged, err)
		require.ErrorContains(t, err, name+" cannot be read: it is a directory")
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.WriteFile(file, want[name], 0o644))
	}
}

func TestMissingEverywhere(t *testing.T) {
	for _, name := range []string{"GOMODCACHE", "GOPATH", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("GOFLAGS", "-modcacherw")
	quietGo(t)
	_, err := Cached()
	requireCode(t, CodeMissing, err)
	require.ErrorContains(t, err, "run `go mod download "+All[0].Path+"@"+All[0].Version)
	t.Setenv("PATH", "")
	_, err = Cached()
	requireCode(t, CodeMissing, err)
}

// quietGo turns the go command's telemetry off under the test's own home: it leaves a process behind that writes its
// counters there while the folder is being removed.
func quietGo(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config, err := os.UserConfigDir()
	require.NoError(t, err)
	telemetry := filepath.Join(config, "go", "telemetry")
	require.NoError(t, os.MkdirAll(telemetry, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644))
}

func requireCode(t *testing.T, code *diag.Code, err error) {
	t.Helper()
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, code.ID, d.Code)
}
