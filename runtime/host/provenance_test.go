package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestReadProvenance(t *testing.T) {
	dir := t.TempDir()
	_, err := host.ReadProvenance(dir)
	var b *host.BuildError
	require.ErrorAs(t, err, &b)

	hosttest.Write(t, dir, host.ManifestFile,
		[]byte(`{"compiler": {"version": "1.2"}, "toolchain": {"nvcc": "13.0.88", "go": "go1.26"},
		"source": {"random_seed": 7}, "weights": {"sha256": "ab"}, "files": {"program.json": "cd", "x": "y"}}`))
	p, err := host.ReadProvenance(dir)
	require.NoError(t, err)
	seed := uint64(7)
	want := host.Provenance{AMKC: "1.2", NVCC: "13.0.88", Go: "go1.26", RandomSeed: &seed, Weights: "ab", Program: "cd"}
	require.Equal(t, &want, p, "without a program nothing is known of the knobs")

	hosttest.Write(t, dir, host.ProgramFile,
		[]byte(`{"ir_version": "2.0", "config": {"tiling": {"ring": {"run_ahead": 8, "chunk_bytes": 16384}},
		"sm_assignment": "load_balance", "fusion_grouping": [["a", "b"], ["c"]], "pipelining_depth": 3}}`))
	p, err = host.ReadProvenance(dir)
	require.NoError(t, err)
	want.Knobs = []host.Knob{{Name: "fusion_grouping", Value: `[["a","b"],["c"]]`},
		{Name: "pipelining_depth", Value: "3"},
		{Name: "sm_assignment", Value: "load_balance"}, {Name: "tiling.ring.chunk_bytes", Value: "16384"},
		{Name: "tiling.ring.run_ahead", Value: "8"}}
	require.Equal(t, &want, p)

	hosttest.Write(t, dir, host.ProgramFile, []byte(`{"config": 3}`))
	_, err = host.ReadProvenance(dir)
	require.ErrorAs(t, err, &b)
	require.ErrorContains(t, err, "program.json: malformed")
}
