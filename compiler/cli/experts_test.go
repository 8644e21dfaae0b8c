package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
	"amkc/refvm"
	"amkc/validate"
)

// Routers choose the experts that those of transformers choose, in the same order, at all positions.
func TestRouters(t *testing.T) {
	files, err := filepath.Glob(models + "zoo/*/ref_experts.npy")
	require.NoError(t, err)
	require.Len(t, files, 8)
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want, shape := readNPY[int32](t, file)
			ids, _ := readNPY[int32](t, dir+"/ref_input_ids.npy")
			dtype := ir.F32
			l, err := builder.RunPasses(builder.Options{Model: dir, Target: ir.FindTarget("h200"), DType: &dtype,
				Config: ir.ScheduleConfig{PageAllocation: knobs.PagesApart}}) // so that layers do not overwrite others
			require.NoError(t, err)
			defer l.Close()
			s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
			require.NoError(t, err)
			routed, k := 0, shape[2]
			for layer := range l.Graph.Layers {
				if l.Graph.Model.Of(layer).Experts > 0 {
					require.Equal(t, k, l.Graph.Model.Of(layer).PerToken)
					routed++
				}
			}
			require.Equal(t, []int{routed, len(ids), k}, shape)
			for at, id := range ids {
				_, _, err := s.Step(int(id))
				require.NoError(t, err)
				vm, err := s.At(at)
				require.NoError(t, err)
				router := 0
				for layer := range l.Graph.Layers {
					if l.Graph.Model.Of(layer).Experts == 0 {
						continue
					}
					got, err := vm.Read("L0" + strconv.Itoa(layer) + ".route.ids")
					require.NoError(t, err)
					for r, id := range want[(router*len(ids)+at)*k:][:k] {
						require.Equal(t, id, int32(got[r]), "layer %d, position %d, rank %d", layer, at, r)
					}
					router++
				}
			}
		})
	}
}

// No kernel is emitted for a model with parts that the kernel has no form for: the message names them, and nothing is
// written.
func TestWhatTheKernelLacksIsNotEmitted(t *testing.T) {
	for model, missing := range map[string]string{
		"qwen3-moe-dense-layer": "the kernel has no body yet for stages experts_up, experts_down, which compute " +
			"SELECTED_TILE in some layers, and an MLP in others",
		"gpt-oss-sinks": "the kernel has no body yet for stages attn, experts_up, experts_down, which compute " +
			"ATTENTION_TILE with sinks, SELECTED_TILE with biases",
		"granite-moe-shared": "SILU_MUL of an expert that every token has",
	} {
		build := filepath.Join(t.TempDir(), "build")
		code, stdout, stderr := amkc(models+"zoo/"+model, "-o", build, "--target", "h200", "--no-build")
		require.Equal(t, 1, code, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "AMK5125")
		require.Contains(t, stderr, missing)
		_, err := os.Stat(build)
		require.ErrorIs(t, err, os.ErrNotExist)
		for _, flags := range [][]string{nil, {"--prompt", "32"}, {"--rows", "4"}} { // nor has it a time
			args := append([]string{"cost", models + "zoo/" + model, "--target", "h200"}, flags...)
			code, stdout, stderr = amkc(args...)
			require.Equal(t, 1, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, missing)
		}
	}
}

// Nor is one for passes of several tokens.
func TestPassesOfExpertsAreNotEmitted(t *testing.T) {
	const missing = "which compute SELECTED_TILE of several tokens, so nothing is emitted"
	for _, flags := range [][]string{{"--rows", "4"}, {"--sequences", "4"}} {
		build := filepath.Join(t.TempDir(), "build")
		args := append([]string{models + "zoo/mixtral-window", "-o", build, "--target", "h200", "--no-build"}, flags...)
		code, _, stderr := amkc(args...)
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stderr, missing)
		code, _, stderr = amkc(append([]string{"cost", models + "zoo/mixtral-window", "--target", "h200"}, flags...)...)
		require.Equal(t, 1, code, stderr)
		require.Contains(t, stderr, missing)
	}
}

// Matrices of experts are stored in the dtype of the model alone.
func TestExpertsAreNotQuantised(t *testing.T) {
	for _, weights := range []string{"int8", "down_proj=int4:g32"} {
		code, stdout, stderr := amkc("dump", models+"zoo/qwen2-moe-shared", "--weights", weights)
		require.Equal(t, 1, code, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "--weights "+weights+": error: the model has experts, whose matrices are stored "+
			"in the dtype of the model alone; want no --weights [AMK1127]")
	}
}

// The schedules of models with experts are proved safe, those of passes of several tokens too.
func TestExpertsAreProved(t *testing.T) {
	files, err := filepath.Glob(models + "zoo/*/ref_experts.npy")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		l, err := builder.RunPasses(builder.Options{Model: filepath.Dir(file), Target: ir.FindTarget("h200"),
			Passes: []ir.Pass{{Sequences: 1, Rows: 4}, {Sequences: 4, Rows: 1}}})
		require.NoError(t, err)
		for _, p := range append(l.Passes, l.Program) {
			require.Empty(t, validate.Program(p).Diags, file)
		}
		require.NoError(t, l.Close())
	}
}
