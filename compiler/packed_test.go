package compiler

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What was packed comes back, for every layout, dtype and size that needs padding.
func TestOpenBuild(t *testing.T) {
	for _, model := range []string{"llama-odd-dims", "llama-gqa", "llama-sharded-fp16"} {
		t.Run(model, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "build")
			o := Options{Model: "../testdata/models/zoo/" + model, Name: model, Target: ir.FindTarget("t4")}
			_, err := Compile(context.Background(), BuildOptions{Options: o, OutDir: dir, NoBuild: true})
			require.NoError(t, err)
			l, err := Lower(o)
			require.NoError(t, err)
			defer l.Close()
			b, err := OpenBuild(dir)
			require.NoError(t, err)
			defer b.Close()
			require.Equal(t, string(ir.Print(l.Program)), string(ir.Print(b.Program)))
			places, _ := ir.WeightArena(l.Program)
			require.NotEmpty(t, places)
			for _, pl := range places {
				buf := &l.Program.Buffers[pl.Buffer]
				want, err := l.Weights.Floats(buf, pl.Index)
				require.NoError(t, err)
				got, err := b.Floats(buf, pl.Index)
				require.NoError(t, err)
				require.Equal(t, want, got, pl.Name)
			}
		})
	}
	_, err := OpenBuild(t.TempDir())
	require.ErrorContains(t, err, "AMK4901")
}
