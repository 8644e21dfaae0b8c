package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/validate"
)

func benchmark(b *testing.B, s shape) {
	p := program(b, s)
	for v, name := range []string{"short", "long"} {
		f := flat(b, p, v)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if rep := validate.Flat(f); !rep.OK {
					require.NoError(b, rep.Diags.Err())
				}
			}
			b.ReportMetric(float64(len(f.Tasks)), "tasks")
		})
	}
}

func BenchmarkToy(b *testing.B)            { benchmark(b, toy) }
func BenchmarkLlama8B(b *testing.B)        { benchmark(b, llama8) }
func BenchmarkLlama8BCounted(b *testing.B) { benchmark(b, llama8.with("counter")) }
