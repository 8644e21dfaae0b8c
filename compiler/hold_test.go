package compiler

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/refvm"
	"amkc/runtime/host"
)

// otherWeights are those of a build, some of which are changed.
type otherWeights struct {
	*PackedBuild
	change func(b *ir.Buffer, i int, values []float32)
}

func (w otherWeights) Floats(b *ir.Buffer, i int) ([]float32, error) {
	values, err := w.PackedBuild.Floats(b, i)
	if err == nil {
		w.change(b, i, values)
	}
	return values, err
}

// vmKernel is a kernel made of the reference VM, on weights of its own.
type vmKernel struct {
	*oracle
	after func(stage string, values []float32)
}

func (k *vmKernel) Trace(_ context.Context, ids []int) (*host.Trace, error) {
	for _, id := range ids {
		if _, _, err := k.session.Step(id); err != nil {
			return nil, err
		}
	}
	t := &host.Trace{Position: k.session.Pos() - 1, Hidden: slices.Clone(k.session.Hidden())}
	var err error
	t.Vectors, err = k.vectors(t.Position)
	t.Vectors = slices.DeleteFunc(t.Vectors, func(v host.StageVector) bool { return v.Stage == "hidden" })
	for i := range t.Vectors {
		v := &t.Vectors[i]
		if k.after != nil {
			k.after(v.Stage, v.Values)
		}
		if n := k.program.Model.Hidden; strings.HasSuffix(v.Stage, ".down") && len(v.Values) > n {
			v.Parts = slices.Clone(v.Values)
			v.Values = host.SumOfParts(v.Values, n)
		}
	}
	return t, err
}

// longBuild is of a model of one layer with 4,096 columns in down.
func longBuild(t *testing.T, dtype ir.DType, weights string) *PackedBuild {
	t.Helper()
	return modelBuild(t, 2, dtype, weights, map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
		"torch_dtype": "float32", "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
		"head_dim": 16, "hidden_size": 128, "intermediate_size": 4096, "vocab_size": 96, "max_position_embeddings": 64})
}

// modelBuild is of a model with a config.json.
func modelBuild(t *testing.T, sms int, dtype ir.DType, weights string, model map[string]any) *PackedBuild {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(model)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666))
	formats, err := passes.ParseWeightFormats(weights)
	require.NoError(t, err)
	o := Options{Model: dir, Name: "small", Target: ir.ArchTarget(80, sms), DType: &dtype, RandomSeed: new(uint64),
		Formats: formats}
	out := filepath.Join(dir, "build")
	_, err = Compile(t.Context(), BuildOptions{Options: o, OutDir: out, NoBuild: true, NoLauncher: true})
	require.NoError(t, err)
	b, err := OpenBuild(out)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// held holds a kernel on changed weights to the build.
func held(t *testing.T, b *PackedBuild, change func(b *ir.Buffer, i int, values []float32),
	after func(stage string, values []float32)) *HoldReport {
	t.Helper()
	kernel, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	kernel.session, err = refvm.NewSession(kernel.program, otherWeights{b, change}, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	r, err := Hold(t.Context(), b, &vmKernel{kernel, after}, 2)
	require.NoError(t, err)
	return r
}

// A small fault in a body is found, and named by its body and its stage.
func TestHoldFindsSmallFaults(t *testing.T) {
	// column changes one column of down.
	column := func(by func(w float32) float32) func(*ir.Buffer, int, []float32) {
		return func(b *ir.Buffer, _ int, values []float32) {
			if b.Name == "L{i}.down.weight" || b.Name == "L00.down.weight" {
				_, cols := b.Matrix()
				for i := 1234; i < len(values); i += cols {
					values[i] = by(values[i])
				}
			}
		}
	}
	leftOut := column(func(float32) float32 { return 0 })
	// ulp is one of the scale of each first group of a row of the logits.
	ulp := func(of float32) func(*ir.Buffer, int, []float32) {
		return func(b *ir.Buffer, _ int, values []float32) {
			if b.Name == "lm_head.weight" {
				_, cols := b.Matrix()
				for i := range values {
					if i%cols < 64 {
						values[i] *= 1 + of
					}
				}
			}
		}
	}
	nothing := func(*ir.Buffer, int, []float32) {}
	cases := []struct {
		name, weights, stage, body string
		dtype                      ir.DType
		change                     func(*ir.Buffer, int, []float32)
		after                      func(stage string, values []float32)
	}{
		{name: "one of 4,096 columns, fp32", weights: "none", dtype: ir.F32, change: leftOut, stage: "L00.down",
			body: "gemv_fma(F32, F32) ADD"},
		{name: "one of 4,096 columns, bf16", weights: "none", dtype: ir.BF16, change: leftOut, stage: "L00.down",
			body: "gemv_mma(BF16, BF16) ADD"},
		{name: "one of 4,096 columns, int4", weights: "int4", dtype: ir.F16, change: leftOut, stage: "L00.down",
			body: "gemv_mma(I4 by 64 with zeros, F16) ADD"},
		{name: "a scale in bf16", weights: "int4", dtype: ir.BF16, change: ulp(0x1p-8), stage: "lm_head",
			body: "RMSNORM gemv_mma(I8 by 128, BF16) SAMPLE"},
		{name: "a scale in fp16", weights: "int8", dtype: ir.F16, change: ulp(0x1p-11), stage: "lm_head",
			body: "RMSNORM gemv_mma(I8 by 128, F16) SAMPLE"},
		{name: "a probability", weights: "none", dtype: ir.F32, change: nothing, stage: "L00.attn", body: "attend",
			after: func(stage string, values []float32) {
				if stage == "L00.attn" {
					values[3] *= 1 + 0x1p-16
				}
			}},
		{name: "the last bit of what is published", weights: "none", dtype: ir.BF16, change: nothing, stage: "L00.o",
			body: "gemv_mma(BF16, BF16) ADD",
			after: func(stage string, values []float32) {
				if stage == "L00.o" {
					for i := range values {
						values[i] = math.Float32frombits(math.Float32bits(values[i]) ^ 1<<16)
					}
				}
			}},
		{name: "not a number", weights: "none", dtype: ir.F32, change: nothing, stage: "L00.gate_up",
			body: "RMSNORM gemv_fma(F32, F32) SILU_MUL",
			after: func(stage string, values []float32) {
				if stage == "L00.gate_up" {
					values[7] = float32(math.NaN())
				}
			}},
	}
	if testing.Short() {
		cases = cases[:2]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := longBuild(t, c.dtype, c.weights)
			r := held(t, b, nothing, nil)
			require.Empty(t, r.Beyond, "%v", r.Beyond)
			r = held(t, b, c.change, c.after)
			require.NotEmpty(t, r.Beyond)
			first := &r.Beyond[0]
			require.Equal(t, c.stage, first.Stage, "%v", first)
			require.Equal(t, c.body, first.Body, "%v", first)
			require.Contains(t, first.String(), "stage "+c.stage+", by "+c.body+": element ")
			if c.after == nil { // no later stage is blamed: its inputs are those of the kernel
				require.Len(t, r.Beyond, 1)
			}
		})
	}
}

// What is published in parts is compared part by part, and in a chain as its sum.
func TestHoldTakesParts(t *testing.T) {
	text, err := os.ReadFile("../testdata/models/zoo/olmo3-windows/config.json")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	maps.Copy(config, map[string]any{"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
		"head_dim": 16, "hidden_size": 64, "intermediate_size": 3072, "vocab_size": 96, "max_position_embeddings": 64,
		"layer_types": []string{"sliding_attention", "full_attention"}, "sliding_window": 4})
	b := modelBuild(t, 6, ir.F32, "none", config)
	nothing := func(*ir.Buffer, int, []float32) {}
	r := held(t, b, nothing, nil)
	require.Empty(t, r.Beyond, "%v", r.Beyond)
	parts := 0
	r = held(t, b, nothing, func(stage string, values []float32) {
		if stage == "L01.down" {
			parts = len(values) / 64
			values[64+5] *= 1 + 0x1p-10 // of the second part
		}
	})
	require.Greater(t, parts, 1)
	require.NotEmpty(t, r.Beyond)
	require.Equal(t, "L01.down", r.Beyond[0].Stage)
	require.Equal(t, 64+5, r.Beyond[0].Element)

	kernel, err := newOracle(b, b.Program, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	chain, err := Bisect(t.Context(), b, &vmKernel{kernel, nil}, nil)
	require.NoError(t, err)
	require.Nil(t, chain.First, "%v", chain.First)
}

// An output without a bound is not counted as compared. A number whose radius is NaN is a finding: a rule is wrong.
func TestHoldCountsWhatIsCompared(t *testing.T) {
	h := &holder{bodies: map[string]*BodyReport{}, seen: map[string]bool{}}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	h.compare(0, &publisher{name: "s", body: "b"}, []float32{1, 2, nan}, []refvm.Reach{
		{Value: 1, Lo: 1, Hi: 1}, {Value: 5, Radius: math.Inf(1), Lo: -inf, Hi: inf},
		{Value: nan, Radius: math.NaN(), Lo: nan, Hi: nan}})
	require.Equal(t, []*BodyReport{{Body: "b", Outputs: 2, Exact: 1, Unbounded: 1}}, h.report.Bodies)
	require.Empty(t, h.report.Beyond)
	h.compare(1, &publisher{name: "s", body: "b"}, []float32{1}, []refvm.Reach{
		{Value: nan, Radius: math.Inf(1), Lo: nan, Hi: nan}})
	require.Len(t, h.report.Beyond, 1)
	h.compare(2, &publisher{name: "t", body: "c"}, []float32{5}, []refvm.Reach{
		{Value: 5, Radius: math.NaN(), Lo: nan, Hi: nan}})
	require.Len(t, h.report.Beyond, 2)
}
