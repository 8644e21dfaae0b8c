package interchange_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/internal/watch"
)

// requireLinear demands that f allocates at most 64 KiB and 256 bytes for each byte that it reads. The value of one
// byte is highest where an object has a single field.
func requireLinear(t *testing.T, input []byte, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10+256*len(input)))
}

// Parse never panics, its memory is linear, and what it accepts is printed in a form that reads and prints the same,
// without a warning. What it accepts has a flat form, or a clean reason why not.
func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(minimal))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		var p *interchange.Program
		requireLinear(t, data, func() {
			parsed, diags := interchange.Parse(data, "fuzz.json")
			require.Equal(t, parsed == nil, diags.Err() != nil)
			p = parsed
		})
		if p == nil {
			return
		}
		flat, diags := p.Flatten()
		require.Equal(t, flat == nil, diags.Err() != nil)
		text := p.Marshal()
		again, diags := interchange.Parse(text, "again.json")
		require.Empty(t, diags)
		require.Equal(t, string(text), string(again.Marshal()))
	})
}
