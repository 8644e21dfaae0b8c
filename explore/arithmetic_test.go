package explore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The arithmetic of the CPU side agrees with slow statements of it, within documented errors where it is approximate.
// With AMKC_LONG it compares 10^6 outputs of each distribution of products, and 10^4 otherwise.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	outputs := "10000"
	if os.Getenv("AMKC_LONG") != "" {
		outputs = "1000000"
	}
	program := arithmetic(t, "-O2")
	out, err := exec.Command(program, outputs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "FAIL")
	t.Logf("%s", regexp.MustCompile(`(?m)^ .*$`).FindAll(out, -1))

	// Results are the same however it is compiled, as kernels are among others.
	ways := [][]string{{"-O1", "-fsanitize=thread"}}
	if !testing.Short() {
		ways = append(ways, []string{"-O0"}, []string{"-O1"}, []string{"-O3", "-march=native"})
	}
	want := digest(t, program)
	for _, flags := range ways {
		require.Equal(t, want, digest(t, arithmetic(t, flags...)), "%q", flags)
	}
}

// Products work on the machine: as collectives of a warp, and as wgmma, which is asynchronous and reads shared memory
// by the async proxy. What a kernel may get wrong about it is found.
func TestProductsOnMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	t.Parallel()
	library, err := machineLibrary()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "wide_test")
	program(t, path, []string{"-O1"}, []string{library}, "cpu/test/wide_test.cc")
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(library))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "ok\n", string(out))
}

// digest is of what an executable of arithmetic computes.
func digest(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "digest").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, "^digest [0-9a-f]{16}\n$", string(out))
	return string(out)
}

// arithmetic compiles the test of the arithmetic and returns the executable. Code that asks for the thread sanitizer is
// compiled as kernels are, and linked with hooks that do nothing.
func arithmetic(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arithmetic_test")
	program(t, path, flags, nil, "cpu/test/arithmetic_test.cc", "cpu/test/math_test.cc", "cpu/test/no_sanitizer.cc",
		"cpu/machine/mma.cc")
	return path
}

// program compiles sources, two at a time, with flags, and links them to path, with others.
func program(t *testing.T, path string, flags, link []string, sources ...string) {
	t.Helper()
	compiler := os.Getenv("CXX")
	if compiler == "" {
		var err error
		if compiler, err = exec.LookPath("c++"); err != nil {
			t.Skip("no C++ compiler")
		}
	}
	// What a compiler reads, go test does not see: without this it would show results of other sources again.
	files, err := filepath.Glob("cpu/*/*")
	require.NoError(t, err)
	for _, file := range files {
		_, err := os.ReadFile(file)
		require.NoError(t, err)
	}
	dir := t.TempDir()
	objects := make([]string, len(sources))
	done := make(chan error, len(sources))
	turns := make(chan bool, 2)
	for i, source := range sources {
		objects[i] = filepath.Join(dir, filepath.Base(source)+".o")
		args := []string{"-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror",
			"-Wno-psabi"}
		if filepath.Base(source) != "no_sanitizer.cc" {
			args = append(args, flags...)
		}
		args = append(args, "-c", source, "-o", objects[i])
		go func() {
			turns <- true
			defer func() { <-turns }()
			out, err := exec.Command(compiler, args...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s", source, err, out)
			}
			done <- err
		}()
	}
	for range sources {
		require.NoError(t, <-done)
	}
	args := append(append(objects, "-o", path), append(link, "-ldl", "-lpthread", "-lm")...)
	out, err := exec.Command(compiler, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
