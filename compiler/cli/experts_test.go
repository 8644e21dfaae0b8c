package cli

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
	"amkc/passes"
	"amkc/refvm"
	"amkc/validate"
)

// Routers choose the experts that those of transformers choose, in the same order, at all positions.
func TestRouters(t *testing.T) {
	files, err := filepath.Glob(models + "zoo/*/ref_experts.npy")
	require.NoError(t, err)
	require.Len(t, files, 23)
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want, shape := readNPY[int32](t, file)
			ids, _ := readNPY[int32](t, dir+"/ref_input_ids.npy")
			dtype := ir.F32
			l, err := builder.RunPasses(builder.Options{Model: dir, Target: ir.FindTarget("h200"), DType: &dtype,
				MaxSeq: 64,
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
		"phimoe-window": "TOPK with jitter",
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

// Builds have passes of several tokens too, which are what was proved, and a predicted time.
func TestPassesOfExperts(t *testing.T) {
	for model, flags := range map[string][]string{
		"mixtral-window":   {"--target", "h200", "--rows", "4"},
		"qwen2-moe-shared": {"--target", "t4", "--sequences", "4"},
		"glm4-moe-groups":  {"--target", "h200", "--sequences", "2", "--sequence-rows", "2"}} {
		build := filepath.Join(t.TempDir(), "build")
		args := append([]string{models + "zoo/" + model, "-o", build, "--no-build"}, flags...)
		code, _, stderr := amkc(args...)
		require.Equal(t, 0, code, stderr)
		code, stdout, stderr := amkc("verify", build)
		require.Equal(t, 0, code, stdout+stderr)
		code, _, stderr = amkc(append([]string{"cost", models + "zoo/" + model}, flags[:4]...)...)
		require.Equal(t, 0, code, stderr)
	}
}

// --weights quantises the matrices of experts like others, and leaves what decides about them as it is; logits are near
// those of the model that is not quantised.
func TestExpertsAreQuantised(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"architectures":
		["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_size": 256, "intermediate_size": 96,
		"moe_intermediate_size": 128, "shared_expert_intermediate_size": 128, "num_experts": 4,
		"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
		"vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "float32"}`), 0o644))
	logits := func(weights string) []float32 {
		seed := uint64(3)
		opts := builder.Options{Model: dir, Target: ir.FindTarget("h200"), RandomSeed: &seed}
		var err error
		if weights != "" {
			opts.Formats, err = passes.ParseWeightFormats(weights)
			require.NoError(t, err)
		}
		l, err := builder.RunPasses(opts)
		require.NoError(t, err)
		defer l.Close()
		require.Empty(t, validate.Program(l.Program).Diags)
		for _, b := range l.Program.Buffers {
			switch {
			case b.Kind != ir.Weight || len(b.Shape) < 2:
			case strings.Contains(b.Name, "router") || strings.Contains(b.Name, "shared_gate"):
				require.Equal(t, ir.F32, b.DType, b.Name)
			case strings.Contains(b.Name, "experts_"):
				require.Equal(t, weights != "", b.Layout.Kind == ir.Tile8x128, b.Name)
			}
		}
		s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
		require.NoError(t, err)
		var all []float32
		for _, id := range []int{1, 7, 33} {
			out, _, err := s.Step(id)
			require.NoError(t, err)
			all = append(all, out...)
		}
		return all
	}
	want := logits("")
	for weights, most := range map[string]float64{"int8": 0.05, "fp8": 0.1, "int4": 0.4,
		"experts_up=int4:g32,experts_down=int8": 0.4} {
		got, off, size := logits(weights), 0.0, 0.0
		for i := range want {
			off += float64(got[i]-want[i]) * float64(got[i]-want[i])
			size += float64(want[i]) * float64(want[i])
		}
		require.Less(t, math.Sqrt(off/size), most, weights)
		require.NotZero(t, off, weights)
	}
}

// The schedules of models with experts are proved safe, those of passes of several tokens too.
func TestExpertsAreProved(t *testing.T) {
	files, err := filepath.Glob(models + "zoo/*/ref_experts.npy")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		l, err := builder.RunPasses(builder.Options{Model: filepath.Dir(file), Target: ir.FindTarget("h200"),
			MaxSeq: 64, Passes: []ir.Pass{{Sequences: 1, Rows: 4}, {Sequences: 4, Rows: 1}}})
		require.NoError(t, err)
		for _, p := range append(l.Passes, l.Program) {
			require.Empty(t, validate.Program(p).Diags, file)
		}
		require.NoError(t, l.Close())
	}
}
