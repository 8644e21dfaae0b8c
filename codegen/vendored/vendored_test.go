package vendored

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// launcher writes a small program that imports purego, with the vendored files, and returns its folder.
func launcher(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module launcher\n\ngo 1.26\n\nrequire "+Require()+"\n")
	write("go.sum", GoSum())
	write("main.go", `package main

import "github.com/ebitengine/purego"

func main() {
	if _, err := purego.Dlopen("libno.such.so", purego.RTLD_NOW); err == nil {
		panic("found")
	}
	println("linked")
}
`)
	for name, data := range files {
		write(name, string(data))
	}
	return dir
}

func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOPROXY=off", "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
	return string(out)
}

func TestLauncherBuildsWithoutNetwork(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	require.Contains(t, files, "vendor/github.com/ebitengine/purego/LICENSE")
	dir := launcher(t, files)
	// An empty module cache: nothing can come from anywhere else.
	env := []string{"GOFLAGS=-mod=vendor", "GOMODCACHE=" + t.TempDir(), "CGO_ENABLED=0"}
	goCommand(t, dir, env, "build", "-o", "launcher", ".")
	if runtime.GOOS == "linux" {
		out, err := exec.Command(filepath.Join(dir, "launcher")).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, "linked\n", string(out))
	}
	// The file lists of the other platforms and of cgo builds, without building the standard library for them.
	for _, platform := range [][]string{
		{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"}, {"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"},
		{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=1"},
	} {
		goCommand(t, dir, append(env, platform...), "list", "-deps", ".")
	}
}

// The selection is what the go command compiles on some platform of a launcher, byte for byte what `go mod vendor`
// copies.
func TestSelection(t *testing.T) {
	cache, err := moduleDir()
	if err != nil {
		t.Skip(err) // only the embedded archive is here
	}
	got, err := FromModule(cache)
	require.NoError(t, err)
	dir := launcher(t, nil)
	goCommand(t, dir, []string{"GOFLAGS=-mod=mod"}, "mod", "vendor")
	want := map[string]bool{"vendor/modules.txt": true, "vendor/" + Module + "/LICENSE": true}
	for _, c := range platforms {
		env := []string{"GOFLAGS=-mod=vendor", "GOOS=" + c.GOOS, "GOARCH=" + c.GOARCH, "CGO_ENABLED=0"}
		if c.CgoEnabled {
			env[3] = "CGO_ENABLED=1"
		}
		text := goCommand(t, dir, env, "list", "-deps", "-json=Dir,GoFiles,CgoFiles,CFiles,HFiles,SFiles,SysoFiles",
			".")
		decoder := json.NewDecoder(strings.NewReader(text))
		for decoder.More() {
			var p struct {
				Dir                                                  string
				GoFiles, CgoFiles, CFiles, HFiles, SFiles, SysoFiles []string
			}
			require.NoError(t, decoder.Decode(&p))
			for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.SysoFiles) {
				if path, err := filepath.Rel(dir, filepath.Join(p.Dir, name)); err == nil &&
					strings.HasPrefix(path, "vendor/") {
					want[path] = true
				}
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, text := range got {
		copied, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(copied), string(text), name)
	}
	require.Equal(t, filesDigest, digest(got), "after an update of the module, filesDigest follows")
}

func TestVersionIsThatOfGoMod(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "\t"+Require()+"\n")
	goSum, err := os.ReadFile("../../go.sum")
	require.NoError(t, err)
	require.Contains(t, string(goSum), GoSum())
	require.Equal(t, 2, strings.Count(GoSum(), "\n"))
}

func TestArchive(t *testing.T) {
	files := map[string][]byte{"vendor/b": []byte("two"), "vendor/a": nil,
		"vendor/modules.txt": bytes.Repeat([]byte("x"), 1<<16)}
	var first, second bytes.Buffer
	require.NoError(t, Pack(&first, files))
	require.NoError(t, Pack(&second, files))
	require.Equal(t, first.Bytes(), second.Bytes())
	back, err := fromArchive(fstest.MapFS{ArchiveName: {Data: first.Bytes()}})
	require.NoError(t, err)
	require.Equal(t, digest(files), digest(back))
	require.NotEqual(t, digest(files), digest(map[string][]byte{"vendor/b": []byte("two")}))

	back, err = fromArchive(fstest.MapFS{"files/README.md": {}})
	require.NoError(t, err)
	require.Nil(t, back)
	_, err = fromArchive(fstest.MapFS{ArchiveName: {Data: first.Bytes()[:100]}})
	requireCode(t, CodeChanged, err)
}

func TestMissingEverywhere(t *testing.T) {
	for _, name := range []string{"GOMODCACHE", "GOPATH", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("GOFLAGS", "-modcacherw")
	quietGo(t)
	_, err := moduleDir()
	requireCode(t, CodeMissing, err)
	require.ErrorContains(t, err, "run `go mod download "+Module+"@"+Version+"`")
	t.Setenv("PATH", "")
	_, err = moduleDir()
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

func TestVerified(t *testing.T) {
	_, err := verified(map[string][]byte{"vendor/a": nil}, "here", "do this")
	requireCode(t, CodeChanged, err)
	require.ErrorContains(t, err, "here: error: these are not the sources of "+Require())
	require.ErrorContains(t, err, "; do this")
}

func TestBrokenModule(t *testing.T) {
	_, err := FromModule(t.TempDir())
	requireCode(t, CodeChanged, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("pack"), 0o644))
	_, err = FromModule(dir)
	requireCode(t, CodeChanged, err)
}

func requireCode(t *testing.T, code *diag.Code, err error) {
	t.Helper()
	var d *diag.Diagnostic
	require.ErrorAs(t, err, &d)
	require.Equal(t, code.ID, d.Code)
}
