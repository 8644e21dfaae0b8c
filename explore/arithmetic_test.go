package explore_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/compiler/objects"
	"amkc/ir/diag"
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

// program compiles sources with flags, and links them to path, with others.
func program(t *testing.T, path string, flags, link []string, sources ...string) {
	t.Helper()
	common := strings.Fields("-std=c++17 -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Werror -Wno-psabi")
	var all []source
	for _, name := range sources {
		of := source{name, common}
		if filepath.Base(name) != "no_sanitizer.cc" {
			of.flags = slices.Concat(common, flags)
		}
		all = append(all, of)
	}
	linked(t, path, compileAll(t, all), link...)
}

// A source is compiled with flags.
type source struct {
	name  string
	flags []string
}

// cxx is the C++ compiler.
func cxx(t *testing.T) string {
	t.Helper()
	named := os.Getenv("CXX")
	if named == "" {
		var err error
		if named, err = exec.LookPath("c++"); err != nil {
			t.Skip("no C++ compiler")
		}
	}
	return named
}

// compileAll returns the objects of sources. They are in amkc's cache, by a digest of the source, of all headers, of
// flags and compiler.
func compileAll(t *testing.T, sources []source) (paths []string) {
	t.Helper()
	tool, refused := cxx(t), diag.Lookup("AMK5117")
	version, err := exec.Command(tool, "--version").Output()
	require.NoError(t, err)
	cache, err := compiler.CacheDir()
	require.NoError(t, err)
	cache = filepath.Join(cache, "explore", "tests")
	require.NoError(t, os.MkdirAll(cache, 0o777))
	headers := map[string][]byte{}
	for _, root := range []string{"cpu", "../runtime/cuda/amk"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || e.IsDir() || ext != ".h" && ext != ".cuh" {
				return err
			}
			headers[path], err = os.ReadFile(path)
			return err
		}))
	}
	require.NotEmpty(t, headers)
	common := objects.Digest(headers, tool, string(version), objects.Environment())
	var missing []objects.Object
	for _, s := range sources {
		text, err := os.ReadFile(s.name)
		require.NoError(t, err)
		key := objects.Digest(map[string][]byte{s.name: text}, slices.Concat(s.flags, []string{common})...)
		at := filepath.Join(cache, key[:32]+".o")
		paths = append(paths, at)
		missing = append(missing, objects.Object{Name: s.name, Path: at,
			Make: func(ctx context.Context, _, out string) error {
				args := slices.Concat(s.flags, []string{"-c", s.name, "-o", out})
				said, err := exec.CommandContext(ctx, tool, args...).CombinedOutput()
				if err != nil {
					return diag.Errorf(refused, s.name, "%v: %s", err, said)
				}
				return nil
			}})
	}
	_, err = objects.Provide(t.Context(), refused, "compiling", missing, nil)
	require.NoError(t, err)
	return paths
}

// linked links objects to an executable or a library.
func linked(t *testing.T, path string, objects []string, flags ...string) {
	t.Helper()
	args := append(append(slices.Clone(objects), "-o", path), append(flags, "-ldl", "-lpthread", "-lm")...)
	out, err := exec.Command(cxx(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
