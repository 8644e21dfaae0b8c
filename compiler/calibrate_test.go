package compiler

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/passes/calibration"
)

// sumsOf runs a model over texts in passes of n tokens, if it can, on the given SMs, and returns the sums over what
// every matrix is multiplied with.
func sumsOf(t *testing.T, model string, rows, sms int, texts [][]int) map[string]*calibration.Gram {
	target := *ir.FindTarget("h200")
	target.SMs = sms
	l, err := RunPasses(Options{Model: filepath.Join("../testdata/models/zoo", model), Target: &target,
		Pass: ir.PassOf(1, rows)})
	require.NoError(t, err)
	defer l.Close()
	every := map[string]bool{}
	for i := range l.Program.Buffers {
		b := &l.Program.Buffers[i]
		for k := range max(1, b.Count) {
			if b.Kind == ir.Weight && len(b.Shape) == 2 {
				key, err := ir.ResolveKey(b.Pieces[0].Key, b.Index(k))
				require.NoError(t, err)
				every[key] = true
			}
		}
	}
	c, err := newCalibrator(l, every)
	require.NoError(t, err)
	c.allocate()
	require.NoError(t, c.run(context.Background(), texts, nil))
	require.Len(t, c.byKey, len(every))
	return c.byKey
}

// Sums are over every token of the texts once, whatever a pass takes and however products are cut up: by rows, and by
// columns too in gemma2-split-k. Tables that rows are only taken from have no sums.
func TestSumsOverATextAreOfItsTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	texts := [][]int{make([]int, 11), make([]int, 3), make([]int, 8)}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, text := range texts {
		for i := range text {
			text[i] = rng.IntN(64)
		}
	}
	for model, tables := range map[string]int{"llama-gqa": 1, "gemma2-split-k": 0, "gpt2": 1, "falcon-groups": 0,
		"qwen3-qknorm": 1, "cohere2-tied": 0} {
		t.Run(model, func(t *testing.T) {
			want := sumsOf(t, model, 1, 7, texts)
			got := sumsOf(t, model, 8, 3, texts)
			for key, g := range got {
				require.Equal(t, 22, g.Vectors, key)
				for i := range g.N {
					for j := range i + 1 {
						size := math.Sqrt(float64(g.At(i, i)) * float64(g.At(j, j)))
						require.InDelta(t, want[key].At(i, j), g.At(i, j), 1e-5*size, "%s: %d, %d", key, i, j)
					}
				}
				in, err := g.Inputs()
				require.NoError(t, err)
				if in == nil {
					tables--
				}
			}
			require.Zero(t, tables)
		})
	}
}

// The same text makes the same bytes, and another, or none, makes others, under another key. AMKC_LONG calibrates the
// matrices of MLPs too.
func TestCalibratedWeights(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	spec := "int4,gate_proj=none,up_proj=none,down_proj=none,lm_head=none"
	if os.Getenv("AMKC_LONG") != "" {
		spec = "int4"
	}
	formats, err := passes.ParseWeightFormats(spec)
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, ids := range [][]int{nil, {1, 2, 3}, {1, 2, 3}, {1, 2, 4}} {
		o := Options{Model: "../testdata/models/pycoder-5m", Target: ir.FindTarget("l4"), Formats: formats}
		if ids != nil {
			o.Calibration = &CalibrationText{Lead: []int{0}, IDs: ids}
		}
		l, err := RunPasses(o)
		require.NoError(t, err)
		defer l.Close()
		key, err := l.weightsKey(nil, nil)
		require.NoError(t, err)
		_, digest, err := Pack(context.Background(), l, filepath.Join(t.TempDir(), "w"), nil)
		require.NoError(t, err)
		keys[key.key+digest] = true
	}
	require.Len(t, keys, 3)
}

// What calibrating takes is compared with the memory that there is, before any is taken.
func TestCalibratingIsRefusedWhereItDoesNotFit(t *testing.T) {
	was := availableMemory
	defer func() { availableMemory = was }()
	formats, err := passes.ParseWeightFormats("int8")
	require.NoError(t, err)
	calibrate := func(available uint64, ids ...int) error {
		availableMemory = func() (uint64, bool) { return available, true }
		l, err := RunPasses(Options{Model: "../testdata/models/pycoder-5m", Target: ir.FindTarget("l4"),
			Formats: formats, Calibration: &CalibrationText{IDs: ids}})
		require.NoError(t, err)
		defer l.Close()
		return l.Calibrate(context.Background(), nil)
	}
	require.NoError(t, calibrate(40<<20, 1, 2))
	err = calibrate(25<<20, 1, 2)
	require.ErrorContains(t, err, codeCalibrate.ID)
	require.ErrorContains(t, err, "20.9 MiB for weights in fp32, ")
	require.ErrorContains(t, err, "25.0 MiB are available")
	require.ErrorContains(t, calibrate(40<<20, 1, 4096), "token id 4096; want ids from 0 to 4095")
}

// Sums of 1.6 GB for one matrix, and three times that to round for it, are refused before any of it is taken; where the
// model is large compared with them, by what running it takes.
func TestCalibratingTakesNothingBeforeItIsRefused(t *testing.T) {
	was := availableMemory
	defer func() { availableMemory = was }()
	formats, err := passes.ParseWeightFormats("int8")
	require.NoError(t, err)
	refused := func(hidden, intermediate, layers int, available uint64) string {
		availableMemory = func() (uint64, bool) { return available, true }
		model := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), fmt.Appendf(nil, `{"model_type": "llama",
			"hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": 4,
			"head_dim": 64, "vocab_size": 64, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`,
			hidden, intermediate, layers), 0o600))
		l, err := RunPasses(Options{Model: model, Target: ir.FindTarget("h200"), RandomSeed: new(uint64),
			Formats: formats, Calibration: &CalibrationText{IDs: []int{1, 2}}})
		require.NoError(t, err)
		defer l.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = l.Calibrate(t.Context(), nil)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
		require.ErrorContains(t, err, codeCalibrate.ID)
		return err.Error()
	}
	require.Contains(t, refused(256, 28672, 1, 6<<30),
		"packing takes 6.1 GiB of memory: 4.6 GiB for the factors of a matrix")
	require.Contains(t, refused(2048, 8192, 32, 5<<30), "running the model takes")
}

func TestMemInfo(t *testing.T) {
	bytes, known := parseMemInfo([]byte("MemTotal:  16384 kB\nMemAvailable:    2048 kB\n"))
	require.True(t, known)
	require.Equal(t, uint64(2<<20), bytes)
	for _, text := range []string{"", "MemAvailable: 2048\n", "MemAvailable: x kB\n", "MemFree: 1 kB\n"} {
		_, known := parseMemInfo([]byte(text))
		require.False(t, known, text)
	}
}
