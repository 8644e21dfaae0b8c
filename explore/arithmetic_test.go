package explore_test

import (
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
	out, err := exec.Command(arithmetic(t, "-O2"), outputs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "FAIL")
	t.Logf("%s", regexp.MustCompile(`(?m)^ .*$`).FindAll(out, -1))
}

// Results are the same however the arithmetic is compiled, as kernels are among others.
func TestArithmeticIsReproducible(t *testing.T) {
	t.Parallel()
	ways := [][]string{{"-O0"}, {"-O1", "-fsanitize=thread"}}
	if !testing.Short() {
		ways = append(ways, []string{"-O1"}, []string{"-O3", "-march=native"})
	}
	want := digest(t, "-O2")
	for _, flags := range ways {
		require.Equal(t, want, digest(t, flags...), "%q", flags)
	}
}

func digest(t *testing.T, flags ...string) string {
	t.Helper()
	out, err := exec.Command(arithmetic(t, flags...), "digest").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, "^digest [0-9a-f]{16}\n$", string(out))
	return string(out)
}

// arithmetic compiles the test of the arithmetic and returns the executable. Code that asks for the thread sanitizer is
// compiled as kernels are, and linked with hooks that do nothing.
func arithmetic(t *testing.T, flags ...string) string {
	t.Helper()
	compiler := os.Getenv("CXX")
	if compiler == "" {
		var err error
		if compiler, err = exec.LookPath("c++"); err != nil {
			t.Skip("no C++ compiler")
		}
	}
	dir := t.TempDir()
	objects := []string{}
	compile := func(source string, flags ...string) {
		object := filepath.Join(dir, filepath.Base(source)+".o")
		args := append([]string{"-std=c++17", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-psabi",
			"-c", source, "-o", object}, flags...)
		out, err := exec.Command(compiler, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		objects = append(objects, object)
	}
	compile("cpu/test/arithmetic_test.cc", flags...)
	compile("cpu/test/math_test.cc", flags...)
	compile("cpu/machine/mma.cc", flags...)
	compile("cpu/test/no_sanitizer.cc")
	program := filepath.Join(dir, "arithmetic")
	out, err := exec.Command(compiler, append(objects, "-o", program, "-lm")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
