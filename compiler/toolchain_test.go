package compiler

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler/builddir"
	"amkc/ir"
	"amkc/runtime/host"
)

func TestExplainNVCC(t *testing.T) {
	notes := explainNVCC(strings.Join([]string{
		"",
		"In file included from megakernel.cu:8:",
		"amk/ring.cuh(12): error: identifier \"slots\" is undefined",
		"amk/ring.cuh(13): error: expected a \";\"",
		"schedule.h(40): error #20014: too few",
		"/opt/cuda/include/cuda_bf16.h(7): error: this declaration has no storage class",
		"/opt/cuda/include/cub/block.cuh(9): warning #1: extra",
		"remark: nothing to see",
		"4 errors detected in the compilation of \"megakernel.cu\".",
	}, "\n"))
	require.Equal(t, []string{
		"amk/ring.cuh(12): error: identifier \"slots\" is undefined",
		"amk/ring.cuh comes from runtime/cuda/amk/ring.cuh",
		"amk/ring.cuh(13): error: expected a \";\"",
		"schedule.h(40): error #20014: too few",
		"schedule.h comes from templates/schedule.h.tmpl",
		"/opt/cuda/include/cuda_bf16.h(7): error: this declaration has no storage class",
		"/opt/cuda/include/cub/block.cuh(9): warning #1: extra",
		"4 errors detected in the compilation of \"megakernel.cu\".",
	}, notes)
	require.LessOrEqual(t, len(explainNVCC(strings.Repeat("megakernel.cu(1): error: again\n", 100))), 13)
	require.Empty(t, explainNVCC("remark: fine\n"))
}

func TestCUDAVersion(t *testing.T) {
	for release, want := range map[string]int{"13.0": 13000, "12.8": 12080, "": 0} {
		require.Equal(t, want, cudaVersion(release), release)
	}
}

// A model or a build that somebody else made may be the working directory, or hold it: no tool in it is run.
func TestNoToolsOfTheWorkingDirectory(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("CUDA_HOME", "")
	dir := t.TempDir()
	for _, at := range []string{".cuda/nvidia/cu13/bin/nvcc", "bin/nvcc", "nvcc", "sub/readme"} {
		put(t, dir, at, "#!/bin/sh\n")
		require.NoError(t, os.Chmod(filepath.Join(dir, at), 0o755))
	}
	before := FindNVCC()
	for _, below := range []string{".", "sub"} {
		t.Chdir(filepath.Join(dir, below))
		for _, path := range []string{"", ".", ":", "..", "/nowhere"} {
			t.Setenv("PATH", path)
			require.Equal(t, before, FindNVCC(), "PATH=%q", path)
		}
	}
}

// TestGoCachesWithoutHome: go refuses to build without a cache, and finds none without HOME.
func TestGoCachesWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "GOCACHE"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", t.TempDir())
	launcher := t.TempDir()
	put(t, launcher, "modules/m/@v/v0.0.0.zip", "x")
	dir, env, err := goCaches(launcher)
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.Equal(t, "x", text(t, dir, "modules/cache/download/m/@v/v0.0.0.zip"))
	require.Contains(t, env, "GOCACHE="+filepath.Join(dir, "build"))
	require.Contains(t, env, "GOMODCACHE="+filepath.Join(dir, "modules"))

	t.Setenv("HOME", t.TempDir())
	dir, env, err = goCaches(launcher)
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NotContains(t, strings.Join(env, " "), "GOCACHE")

	t.Setenv("TMPDIR", "/nowhere")
	require.ErrorContains(t, buildLauncher(t.Context(), t.TempDir(), "x", true),
		"want a temporary directory to write to")
}

// The launcher builds wherever the build lies: in a directory of any name, for a user without a home, and with settings
// of go that would have it use other modules. Of the files that go made only the executable stays.
func TestLauncherBuildsAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a Go module")
	}
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 0, ir.ScheduleConfig{})
	files, err := codegen.Project(l.Program, l.Graph, l.Program.Model.Name)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "it's \"a\" $b, |c;%20#", "build")
	temporary := filepath.Join(t.TempDir(), "a temporary, one|%20")
	require.NoError(t, os.Mkdir(temporary, 0o755))
	for name, text := range files {
		put(t, dir, name, string(text))
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // compiling the standard library again takes a minute
	for name, value := range map[string]string{"HOME": "", "GOMODCACHE": "/nowhere", "GOPROXY": "off",
		"GOFLAGS": "-mod=vendor", "GO111MODULE": "off", "GOPRIVATE": "*", "TMPDIR": temporary} {
		t.Setenv(name, value)
	}
	before := names(t, dir)
	require.Nil(t, buildLauncher(t.Context(), dir, "product", true))
	require.NoError(t, exec.Command(filepath.Join(dir, "product"), "--help").Run())
	for _, name := range []string{"product", host.LibraryFile} {
		require.True(t, builddir.IsProduct(filepath.Join(dir, name), name), name)
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
	require.ElementsMatch(t, append(before, "product", host.LibraryFile), names(t, dir))

	if _, err := exec.LookPath("make"); err != nil {
		return
	}
	built := text(t, dir, host.LibraryFile)
	require.NoError(t, os.Remove(filepath.Join(dir, host.LibraryFile)))
	made := exec.Command("make", l.Program.Model.Name, host.LibraryFile)
	made.Dir, made.Env = dir, withoutMake(os.Environ())
	out, err := made.CombinedOutput()
	require.NoError(t, err, string(out))
	left, err = os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, text(t, dir, "product"), text(t, dir, l.Program.Model.Name), "make and amkc build the same bytes")
	require.True(t, built == text(t, dir, host.LibraryFile), "make and amkc build the same library")
}

// names lists the files below dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path[len(dir)+1:])
		}
		return err
	}))
	return out
}
