package amk_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
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
		var p *amk.Program
		requireLinear(t, data, func() {
			parsed, diags := amk.Parse(data, "fuzz.json")
			require.Equal(t, parsed == nil, diags.Err() != nil)
			p = parsed
		})
		if p == nil {
			return
		}
		flat, diags := p.Flatten()
		require.Equal(t, flat == nil, diags.Err() != nil)
		text := p.Marshal()
		again, diags := amk.Parse(text, "again.json")
		require.Empty(t, diags)
		require.Equal(t, string(text), string(again.Marshal()))
	})
}

// Reading a request never panics, its memory is linear, and what can be lowered becomes a program of the profile.
// Requests of many layers repeat themselves, and are left to TestLowerLargest: the fuzzer would do little else.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{` + shapeJSON + `, "scheme": "toy", "pos": 40, "dtype": "BF16", "batch": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		var q amk.Request
		requireLinear(t, data, func() {
			parsed, diags := amk.ParseRequest(data, "fuzz.json")
			if q = parsed; diags.Err() != nil {
				q.Shape.NLayers = 1 << 20
			}
		})
		if q.Shape.NLayers > 4 {
			return
		}
		p, err := amk.Lower(q)
		if err != nil {
			require.Nil(t, p)
			return
		}
		_, diags := amk.Parse(p.Marshal(), "lowered.json")
		require.Empty(t, diags)
	})
}

// The largest program that a request can ask for stays within what a prover can look at.
func TestLowerLargest(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	q, diags := amk.ParseRequest([]byte(`{"shape": {"vocab": 16777216, "hidden": 1048576, "n_layers": 256,
		"n_heads": 8, "n_kv_heads": 8,
		"head_dim": 131072, "intermediate": 1048576, "rms_eps": 1e-5, "rope_theta": 10000, "max_seq": 16777216},
		"scheme": "hf-llama", "pos": 16777215, "dtype": "F32",
		"config": {"tiling": {"gemv": {"N_tile": 1}, "attention": {"n_partitions": 8}}}}`), "q.json")
	require.Empty(t, diags)
	p, err := amk.Lower(q)
	require.NoError(t, err)
	require.Less(t, len(p.Tasks), 1<<17)
	flat, diags := p.Flatten()
	require.Empty(t, diags)
	require.Len(t, flat.Tasks, len(p.Tasks))
}
