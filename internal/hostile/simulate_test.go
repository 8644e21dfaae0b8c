package hostile

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// wentWrong is the code of an error that simulate has seen happen, of a program that it could run.
var wentWrong = regexp.MustCompile(`"code":"AMK370[1-8]"`)

// simulate runs a program whatever is in the file, and in no order does anything go wrong that validate has proved
// does not. The seeds are small: what takes long to simulate takes a fuzzer nowhere.
func FuzzSimulate(f *testing.F) {
	for _, pattern := range []string{"../../testdata/ir/tiny.*", "../../testdata/amk_ir/toy_f32_*/program.json",
		"testdata/programs/*", "../../testdata/validator/*.amk"} {
		names, err := filepath.Glob(pattern)
		require.NoError(f, err)
		require.NotEmpty(f, names)
		for i, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(data, uint16(i))
		}
	}
	file := filepath.Join(f.TempDir(), "program")
	f.Fuzz(func(t *testing.T, data []byte, seed uint16) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(file, data, 0o600))
		code, text := amkc(t, "simulate", file, "--json", "--time", "0.2", "--orders", "2", "--seed", itoa(int(seed)))
		if code == 1 && wentWrong.MatchString(text) {
			proved, _ := amkc(t, "validate", file, "--backend", "ref")
			require.NotZero(t, proved, "validate has proved what goes wrong: %s", text)
		}
	})
}

// Every family is answered within the time that it is given, about, and the memory of watch. Of those that are not made
// for simulate, AMKC_LONG asks for all, and else it is every twelfth one.
func TestSimulateHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	size := attackSize()
	file := filepath.Join(t.TempDir(), "program")
	// Garbage is collected as in amkc itself: watch counts what the process has, and make test-all lets a heap grow to
	// nine times what lives in it.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	families := slices.Clone(simulateFamilies)
	for n, a := range attacks() {
		if n%12 == 0 || size >= hostileSize {
			families = append(families, a.family)
		}
	}
	for _, f := range families {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			debug.FreeOSMemory() // what the family before it has left
			require.NoError(t, os.WriteFile(file, f.make(size), 0o600))
			defer watch.Execution()()
			amkc(t, "simulate", file, "--time", "1", "--orders", "1")
		})
	}
}
