package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/runtime/host"
)

// A build that leaves random matrices out of its weights has the others in its file, and is verified. The reference VM
// has the matrices as the host that loads the build makes them, whatever their formats.
func TestInventedWeights(t *testing.T) {
	const layers = 3
	for _, weights := range []string{"none", "int8", "int4", "int4:g32:sym", "fp8"} {
		seed, dtype := uint64(5), ir.BF16
		o := zooOptions("mixtral-window")
		o.RandomSeed, o.LeaveOut, o.DType = &seed, true, &dtype
		var err error
		o.Formats, err = passes.ParseWeightFormats(weights)
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), "build")
		built, err := Compile(t.Context(), BuildOptions{Options: o, OutDir: dir, NoBuild: true, NoLauncher: true})
		require.NoError(t, err)
		m, err := readManifest(dir)
		require.NoError(t, err)
		places, size := ir.WeightArena(built.Program)
		file, err := os.Stat(filepath.Join(dir, host.WeightsFile))
		require.NoError(t, err)
		require.Equal(t, file.Size(), m.Weights.Bytes)
		require.Less(t, file.Size(), int64(size)-m.Facts.Invented.Bytes()+8192, "data and a header")

		b, err := OpenBuild(dir)
		require.NoError(t, err)
		matrices := 0
		for _, pl := range places {
			buf := &built.Program.Buffers[pl.Buffer]
			values, err := b.Floats(buf, pl.Index)
			require.NoError(t, err, pl.Name)
			made := m.Facts.Invented.Find(int64(pl.Offset))
			require.Equal(t, buf.Kind == ir.Weight && len(buf.Shape) > 1, made != nil, pl.Name)
			if made == nil {
				continue
			}
			matrices++
			packed := make([]byte, made.Bytes)
			m.Facts.Invented.Fill(packed, made, 0)
			want := make([]float32, len(values))
			_, cols := buf.Matrix()
			buf.Format().Unpack(want, packed, cols)
			require.Equal(t, want, values, pl.Name)
		}
		require.Equal(t, 2+5*layers, matrices, "embed, lm_head; qkv, o, router, experts_up and experts_down")
		require.NoError(t, b.Close())
		v, err := Verify(dir, nil)
		require.NoError(t, err)
		require.Empty(t, v.Findings, weights)

		// A matrix that is not one of the program is found.
		manifest := filepath.Join(dir, host.ManifestFile)
		text, err := os.ReadFile(manifest)
		require.NoError(t, err)
		forged := strings.Replace(string(text), `"pattern": 0`, `"pattern": -1`, 1)
		require.NoError(t, os.WriteFile(manifest, []byte(forged), 0o600))
		v, err = Verify(dir, nil)
		require.NoError(t, err)
		require.ErrorContains(t, v.Findings.Err(), "its facts differ")
		_, err = OpenBuild(dir)
		require.ErrorContains(t, err, "has other random matrices than this amkc makes")
	}
}

// A build with other random weights is not taken for one that has them.
func TestInventedWeightsHaveTheirKey(t *testing.T) {
	seed, keys := uint64(5), map[string]bool{}
	for _, out := range []bool{false, true} {
		o := zooOptions("mixtral-window")
		o.RandomSeed, o.LeaveOut = &seed, out
		l, err := RunPasses(o)
		require.NoError(t, err)
		digests, err := l.weightsKey(o.RandomSeed, nil)
		require.NoError(t, err)
		keys[digests.key] = true
		require.NoError(t, l.Close())
	}
	require.Len(t, keys, 2)
}
