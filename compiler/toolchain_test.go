package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// TestGoCacheWithoutHome: go refuses to build without a cache, and finds none without HOME.
func TestGoCacheWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "GOCACHE"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", t.TempDir())
	env, remove := goCache()
	require.Len(t, env, 1)
	dir, ok := strings.CutPrefix(env[0], "GOCACHE=")
	require.True(t, ok)
	require.DirExists(t, dir)
	remove()
	require.NoDirExists(t, dir)

	t.Setenv("HOME", t.TempDir())
	env, remove = goCache()
	require.Empty(t, env)
	remove()
}
