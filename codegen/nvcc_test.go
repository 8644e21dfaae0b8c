package codegen

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime"
)

// compiles has nvcc compile the emitted sources of a program for its target, warnings as errors. It is for the long
// tests.
func compiles(t *testing.T, p *ir.Program) {
	t.Helper()
	if os.Getenv("AMKC_LONG") == "" {
		t.Log("not given to nvcc: AMKC_LONG is not set")
		return
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		nvcc, err = filepath.Abs("../.cuda/nvidia/cu13/bin/nvcc")
		require.NoError(t, err)
	}
	files, err := CUDA(p)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range runtime.DeviceSources() {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	for _, source := range []string{"measure.cu", "megakernel.cu"} {
		cmd := exec.Command(nvcc, append(NVCCFlags(), "-Werror", "all-warnings", "-gencode",
			Gencode(p.Target.Arch), "-fatbin", "-o", source+".fatbin", source)...)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", source, said)
	}
}

// Kernels are compiled alike wherever they are compiled: by amkc, by make in a project, and by what measures and
// checks.
func TestOneSetOfFlags(t *testing.T) {
	flags := NVCCFlags()
	require.Contains(t, flags, "-fmad=false")
	for path, quoted := range map[string]bool{"../templates/Makefile.tmpl": false, "../bench/workshop.py": true} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, flag := range flags {
			if quoted {
				flag = strconv.Quote(flag)
			}
			require.Contains(t, string(text), flag, path)
		}
	}
}
