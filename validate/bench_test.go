package validate_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	published "amkc/internal/population"
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

// BenchmarkLlama8BProfile proves the same model lowered in the AMK way: thousands of tasks without an SM. The second
// program has the smallest tiles, and attention in eight parts.
func BenchmarkLlama8BProfile(b *testing.B) {
	models := published.Models()
	for _, name := range []string{"llama-3.1-8b", "llama-3.1-8b-split"} {
		f, diags := models[name].Flatten()
		require.NoError(b, diags.Err())
		b.Run(name, func(b *testing.B) { benchmarkFlat(b, f) })
	}
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
