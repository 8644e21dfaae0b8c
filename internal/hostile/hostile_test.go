package hostile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/validate"
)

// What a file may make amkc allocate from its bytes to the verdict, all allocations added up: so much whatever it asks
// for, because numbers in it are cheap to write, and so much for each of its bytes.
const (
	constantBytes = 768 << 20
	bytesPerByte  = 64
)

func requireLinear(t *testing.T, size int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(constantBytes+bytesPerByte*size))
}

// attackSize is that of the files: 250 KB, and 10 MB in the long tests.
func attackSize() int {
	if os.Getenv("AMKC_LONG") != "" {
		return hostileSize
	}
	return hostileSize / 40
}

// Every family is answered within its memory. How long it takes is for BenchmarkHostile to say. Many take as long
// whatever their size is: AMKC_LONG asks for all, and else it is every second one.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	size := attackSize()
	for n, a := range attacks() {
		if n%2 != 0 && size < hostileSize {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			data := a.make(size)
			require.LessOrEqual(t, len(data), size+size/5)
			requireLinear(t, len(data), func() { verdict(data, a.backend) })
		})
	}
}

// seeds are the smallest real programs in every form.
func seeds(t testing.TB) [][]byte {
	var all [][]byte
	for _, pattern := range []string{"../../testdata/ir/tiny.*", "../../testdata/golden/*/schedule.amk",
		"../../testdata/amk_ir/toy_f32_*/program.json"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			all = append(all, data)
		}
	}
	return all
}

// Real programs are proved: what refuses an attack must not refuse them.
func TestSeedsAreProved(t *testing.T) {
	for _, seed := range seeds(t) {
		require.Empty(t, verdict(seed, validate.Reference))
	}
}
