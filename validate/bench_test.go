package validate_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
	"amkc/ir"
	"amkc/validate"
)

// BenchmarkSchedules proves toy schedules on all processors: the population of the soundness study, and each kind
// alone.
func BenchmarkSchedules(b *testing.B) {
	toys := toyLowerings(b)
	for _, c := range []struct {
		name  string
		flats []*ir.Flat
	}{{"population", population(b, 7160)}, {"lowerings", toys}, {"mutants", mutants(toys, 2800)},
		{"random", randoms(4000)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for i := int(next.Add(1)) * 1009; pb.Next(); i++ {
					validate.Flat(c.flats[i%len(c.flats)])
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}

// benchmark proves the variants of a program as ir.Unroll leaves them, then the whole program.
func benchmark(b *testing.B, s shape) {
	p := program(b, s)
	for v := range p.Variants {
		f, diags := ir.Unroll(p, &p.Variants[v])
		require.NoError(b, diags.Err())
		b.Run(p.Variants[v].Name, func(b *testing.B) { benchmarkFlat(b, f) })
	}
	b.Run("program", func(b *testing.B) { // both variants, unrolling included
		b.ReportAllocs()
		for b.Loop() {
			if rep := validate.Program(p); !rep.OK {
				require.NoError(b, rep.Diags.Err())
			}
		}
	})
}

func benchmarkFlat(b *testing.B, f *ir.Flat) {
	b.ReportAllocs()
	for b.Loop() {
		if rep := validate.Flat(f); !rep.OK {
			require.NoError(b, rep.Diags.Err())
		}
	}
	b.ReportMetric(float64(len(f.Tasks)), "tasks")
}

func BenchmarkToy(b *testing.B)            { benchmark(b, toy) }
func BenchmarkLlama8B(b *testing.B)        { benchmark(b, llama8) }
func BenchmarkLlama8BCounted(b *testing.B) { benchmark(b, llama8.with("counter")) }

// BenchmarkLlama8BProfile proves the same model lowered in the AMK way: thousands of tasks without an SM.
func BenchmarkLlama8BProfile(b *testing.B) {
	for _, c := range []struct {
		name  string
		tiles int // rows of one
		parts int
		batch int
	}{{"default", 32, 1, 1}, {"split", 16, 8, 1}} {
		b.Run(c.name, func(b *testing.B) { benchmarkFlat(b, lowered(b, c.tiles, c.parts, c.batch)) })
	}
}

// lowered is Llama-3.1-8B at position 1023 in the AMK profile.
func lowered(t testing.TB, rows, partitions, batch int) *ir.Flat {
	h100, ok := amk.LookupTarget("h100")
	require.True(t, ok)
	config := amk.DefaultConfig()
	gemv, attention := new(amk.Object), new(amk.Object)
	gemv.Set("N_tile", amk.Int(rows))
	attention.Set("n_partitions", amk.Int(partitions))
	config.Tiling.Set("gemv", gemv)
	config.Tiling.Set("attention", attention)
	p, err := amk.Lower(amk.Request{
		Shape: amk.Shape{Vocab: 128256, Hidden: 4096, NLayers: 32, NHeads: 32, NKVHeads: 8, HeadDim: 128,
			Intermediate: 14336,
			RMSEps:       1e-5, RopeTheta: 5e5, MaxSeq: 4096},
		Scheme: amk.SchemeHFLlama, Target: &h100, Config: config, Pos: 1023, DType: amk.BF16, Batch: batch,
	})
	require.NoError(t, err)
	f, diags := p.Flatten()
	require.NoError(t, diags.Err())
	return f
}

func mutants(flats []*ir.Flat, n int) []*ir.Flat {
	r := source(rand.New(rand.NewPCG(1, 2)).IntN)
	out := make([]*ir.Flat, n)
	for i := range out {
		out[i] = mutate(flats[r(len(flats))], r)
	}
	return out
}

func randoms(n int) []*ir.Flat {
	r := source(rand.New(rand.NewPCG(3, 4)).IntN)
	out := make([]*ir.Flat, n)
	for i := range out {
		out[i] = randomFlat(r)
	}
	return out
}
