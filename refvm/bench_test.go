package refvm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// BenchmarkStep decodes with a program of 135M parameters for 132 SMs: the shape of SmolLM2-135M. Its weights are
// noise.
func BenchmarkStep(b *testing.B) {
	d := decoder{
		Layers: 30, Hidden: 576, Inter: 1536, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 49152,
		SMs: 132, Splits: 4, Block: 128, SplitFrom: 512, MaxSeq: 1024, DType: "BF16", Word: "word32",
	}
	base := d.tensors(1)["0.gate"]
	w := weightsFunc(func(buf *ir.Buffer, _ int) ([]float32, error) {
		out := make([]float32, buf.Numel())
		for at := 0; at < len(out); at += len(base) {
			copy(out[at:], base)
		}
		return out, nil
	})
	for _, round := range []Rounding{None, Device} {
		b.Run(map[Rounding]string{None: "exact", Device: "device"}[round], func(b *testing.B) {
			s := d.session(b, w, Options{Round: round})
			_, _, err := s.Step(0)
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if s.Pos() == 300 {
					s.Reset()
				}
				if _, _, err := s.Step(s.Pos()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
