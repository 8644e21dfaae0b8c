package compiler

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

// shallow is a directory with the config of a published model, with fewer layers and a smaller vocabulary.
func shallow(t *testing.T, model string, layers int) string {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "configs", model, "config.json"))
	require.NoError(t, err)
	for field, n := range map[string]int{"num_hidden_layers": layers, "vocab_size": 700} {
		text = regexp.MustCompile(`"`+field+`": \d+`).ReplaceAll(text, fmt.Appendf(nil, `"%s": %d`, field, n))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644))
	return dir
}

// Layers of real shapes compute the same bits, looped or one by one, with the context in one piece and in splits. Both
// programs are proved for the kernel. A billion parameters take seconds to draw, for which AMKC_LONG asks.
func TestLoopedAndUnrolledComputeTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models := map[string]int{"smollm2-135m": 4}
	if long() {
		models["llama-3.2-1b"] = 2
	}
	for model, layers := range models {
		t.Run(model, func(t *testing.T) {
			var want [][]float32
			for _, roll := range []int{1, 0} {
				seed := uint64(5)
				tiling := map[string]map[string]int{"loop": {"roll": roll}, "attention": {"split_from": 2}}
				l, err := RunPasses(Options{Model: shallow(t, model, layers), RandomSeed: &seed, MaxSeq: 64,
					Target: ir.FindTarget("h200"),
					Config: ir.ScheduleConfig{Tiling: tiling}, Check: true})
				require.NoError(t, err)
				require.True(t, validate.ProgramFor(kernel.Backend, l.Program).OK)
				s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
				require.NoError(t, err)
				require.NoError(t, l.Close())
				for step, token := range []int{3, 699, 41, 7} {
					logits, _, err := s.Step(token)
					require.NoError(t, err)
					bits := make([]float32, len(logits))
					copy(bits, logits)
					if roll == 1 {
						want = append(want, bits)
						continue
					}
					for i := range bits {
						require.Equal(t, math.Float32bits(want[step][i]), math.Float32bits(bits[i]),
							"step %d, logit %d", step, i)
					}
				}
			}
			require.Len(t, want, 4)
			require.NotEqual(t, want[0], want[1])
		})
	}
}
