package compiler

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/cost"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/format"
	"amkc/passes"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

// scheduleTypes schedules zoo/llama-gqa with element types of its own for weights, activations and the cache.
func scheduleTypes(t *testing.T, types ir.DTypes) *ir.Program {
	t.Helper()
	config, err := checkpoint.OpenConfig(root + "/models/zoo/llama-gqa")
	require.NoError(t, err)
	s := newState(Options{Target: ir.FindTarget("h200"), Name: "llama-gqa", DType: &types.Weights, MaxSeq: 64})
	s.Source.Config = config
	for i := range Passes {
		require.NoError(t, runPass(Options{Check: true}, i, s))
		if i == 0 {
			s.Graph.Model.DTypes = types
		}
	}
	return s.Program
}

// rounded supplies weights as a format holds them, whatever the buffer is.
type rounded struct {
	refvm.Weights
	dtype string
}

func (r rounded) Floats(b *ir.Buffer, i int) ([]float32, error) {
	values, err := r.Weights.Floats(b, i)
	if b.Kind == ir.Weight && err == nil {
		f := format.Find("rowmajor", r.dtype)
		f.Unpack(values, f.Pack(nil, values, 1), 1)
	}
	return values, err
}

// A program may have a type for its weights, one for its activations and one for its cache. Each is that of what it
// names: the forms keep it, the proof holds, the reference VM rounds there, and the kernel's contract refuses it.
func TestMixedTypes(t *testing.T) {
	c, err := checkpoint.Open(root + "/models/zoo/llama-gqa")
	require.NoError(t, err)
	defer c.Close()
	run := func(p *ir.Program, dtype string) (logits [][]float32) {
		l := lowerModel(t, "zoo/llama-gqa", "h200", ir.F32, 64, ir.ScheduleConfig{})
		var w refvm.Weights = passes.NewWeights(c, l.Graph, nil)
		if dtype != "" {
			w = rounded{w, dtype}
		}
		s, err := refvm.NewSession(p, w, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		for token := range 20 {
			step, _, err := s.Step(token)
			require.NoError(t, err)
			logits = append(logits, append([]float32(nil), step...))
		}
		return logits
	}
	for header, types := range map[string]ir.DTypes{
		" dtype=BF16 cache=F32 layers":             {Weights: ir.BF16, Activations: ir.BF16, Cache: ir.F32},
		" dtype=BF16 activations=F32 cache=F32 ":   {Weights: ir.BF16, Activations: ir.F32, Cache: ir.F32},
		" dtype=F32 activations=F16 cache=BF16 la": {Weights: ir.F32, Activations: ir.F16, Cache: ir.BF16},
	} {
		p := scheduleTypes(t, types)
		text := ir.Print(p)
		require.Contains(t, string(text), header)
		again, err := ir.Load(text, "mixed.amk")
		require.NoError(t, err)
		require.Equal(t, p.Model, again.Model)
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		again, diags := ir.ParseJSON(data, "mixed.json")
		require.NoError(t, diags.Err())
		require.Equal(t, p.Model, again.Model)
		for i := range p.Buffers {
			switch b := &p.Buffers[i]; {
			case b.Kind == ir.Weight:
				require.Equal(t, types.Weights, b.DType, b.Name)
			case b.Kind == ir.KVCache:
				require.Equal(t, types.Cache, b.DType, b.Name)
			case strings.HasSuffix(b.Name, ".qkv"), strings.HasSuffix(b.Name, ".act"):
				require.Equal(t, types.Activations, b.DType, b.Name)
			}
		}
		require.True(t, validate.Program(p).OK, "any backend")
		proof := validate.ProgramFor(kernel.Backend, p)
		require.False(t, proof.OK)
		require.ErrorContains(t, proof.Diags.Err(), "the model has "+types.String()+"; give all three the type")
		require.ErrorContains(t, proof.Diags.Err(), "[AMK3121]")
		_, err = codegen.CUDA(p)
		require.ErrorContains(t, err, "the same for weights, activations and the cache, which may also be I8")
		_, err = cost.New(p)
		require.NoError(t, err)
	}

	// 16-bit weights under float32 everywhere else are a float32 model whose weights have been rounded.
	wide := ir.DTypes{Weights: ir.BF16, Activations: ir.F32, Cache: ir.F32}
	require.Equal(t, run(scheduleTypes(t, ir.Uniform(ir.F32)), "BF16"), run(scheduleTypes(t, wide), ""))

	// A float32 cache of 16-bit rows differs from a 16-bit one in the probabilities that weigh them, and in nothing
	// before there is a row: they are what the type of the cache rounds.
	cached := ir.DTypes{Weights: ir.BF16, Activations: ir.BF16, Cache: ir.F32}
	want, got := run(scheduleTypes(t, ir.Uniform(ir.BF16)), ""), run(scheduleTypes(t, cached), "")
	require.Equal(t, want[0], got[0])
	differ, largest := false, 0.0
	for step := range want {
		for i := range want[step] {
			d := math.Abs(float64(want[step][i] - got[step][i]))
			differ, largest = differ || d > 0, max(largest, d)
		}
	}
	require.True(t, differ)
	require.Less(t, largest, 0.02)
	_, narrow := ir.CacheArena(scheduleTypes(t, ir.Uniform(ir.BF16)))
	_, double := ir.CacheArena(scheduleTypes(t, cached))
	require.Equal(t, 2*narrow, double)
}
