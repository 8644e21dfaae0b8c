package explore_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/explore"
)

// machineLibrary is the machine as explore compiles it, which its cache has.
var machineLibrary = sync.OnceValues(func() (string, error) {
	cache, err := compiler.CacheDir()
	if err != nil {
		return "", err
	}
	m, err := explore.CompileMachine(context.Background(), cache, nil)
	if err != nil {
		return "", err
	}
	return m.Library, nil
})

// The machine runs fibers, warps, barriers, copies and polls under every strategy, and finds what is wrong with a
// kernel; and its library is a driver, of which kernels are shared objects.
func TestMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library, err := machineLibrary()
	require.NoError(t, err)

	run := func(t *testing.T, program string, args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(library))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "ok\n", string(out))
	}
	t.Run("unit", func(t *testing.T) {
		path := filepath.Join(dir, "machine_test")
		program(t, path, []string{"-O1"}, []string{library}, "cpu/test/machine_test.cc")
		run(t, path)
	})
	t.Run("driver", func(t *testing.T) {
		kernels := filepath.Join(dir, "kernels.so")
		program(t, kernels, strings.Fields("-x c++ -O1 -g1 -fPIC -fno-gnu-unique -fsanitize=thread -Icpu "+
			"--param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1"),
			[]string{"-shared", "-nostdlib", "-Wl,-Bsymbolic", "-Wl,-soname,kernels.so", library},
			"cpu/test/driver_test.cu")
		path := filepath.Join(dir, "driver_test")
		program(t, path, []string{"-O1"}, []string{library}, "cpu/test/driver_test.cc")
		run(t, path, kernels)
	})
}
