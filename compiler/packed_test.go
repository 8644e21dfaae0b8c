package compiler

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime/host"
)

// What was packed comes back, for every layout, dtype and size that needs padding.
func TestOpenBuild(t *testing.T) {
	for _, model := range []string{"llama-odd-dims", "llama-gqa", "llama-sharded-fp16"} {
		t.Run(model, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "build")
			o := Options{Model: "../testdata/models/zoo/" + model, Name: model, Target: ir.FindTarget("t4")}
			_, err := Compile(context.Background(), BuildOptions{Options: o, OutDir: dir, NoBuild: true})
			require.NoError(t, err)
			l, err := RunPasses(o)
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

// Weights that another amkc has packed may have other bytes of the same format: nothing is computed with them.
func TestOpenBuildRefusesWeightsOfAnotherAmkc(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	o := Options{Model: "../testdata/models/zoo/llama-gqa", Name: "m", Target: ir.FindTarget("h200")}
	_, err := Compile(t.Context(), BuildOptions{Options: o, OutDir: dir, NoBuild: true})
	require.NoError(t, err)
	path := filepath.Join(dir, host.WeightsFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	other := strings.Replace(string(text), packedFormat, "amkc packed 3", 1)
	require.NotEqual(t, string(text), other)
	require.NoError(t, os.WriteFile(path, []byte(other), 0o644))
	_, err = OpenBuild(dir)
	require.ErrorContains(t, err, `has weights as "amkc packed 3"; want "amkc packed 4"`)
	require.ErrorContains(t, err, "AMK4902")
}

// A program that was changed after it was emitted is not run: a larger cache would be memory that the model does not
// have.
func TestOpenBuildProvesTheProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "build")
	o := Options{Model: "../testdata/models/zoo/llama-gqa", Name: "m", Target: ir.FindTarget("h200")}
	_, err := Compile(context.Background(), BuildOptions{Options: o, OutDir: dir, NoBuild: true})
	require.NoError(t, err)
	path := filepath.Join(dir, ProgramFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, change := range [][2]string{{"[2,512,2,16]", "[2,51200000,2,16]"},
		{`"max_seq": 512`, `"max_seq": 51200000`}} {
		require.Contains(t, string(text), change[0])
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o644))
		_, err = OpenBuild(dir)
		require.ErrorContains(t, err, "[AMK3", change[1])
	}
}
