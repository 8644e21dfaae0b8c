package loops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

// BenchmarkLoop rolls models of the shape of Llama-3.1-8B for 132 SMs: time is to be linear in the layers.
func BenchmarkLoop(b *testing.B) {
	for _, layers := range []int{16, 80, 160} {
		b.Run(fmt.Sprintf("layers=%d", layers), func(b *testing.B) {
			flat := flattened(b, Assigned(b, fmt.Sprintf(`{"model_type": "llama",
				"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": %d, "num_attention_heads": 32,
				"num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
				"torch_dtype": "bfloat16"}`, layers), modeltest.ToyTarget(132), ir.ScheduleConfig{}))
			text := ir.Print(flat)
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				p, err := ir.Parse(text, "flat")
				require.NoError(b, err)
				b.StartTimer()
				rollAll(b, p)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(layers), "µs/layer")
		})
	}
}
