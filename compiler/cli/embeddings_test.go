package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/refvm"
)

// Embeddings instead of tokens come to the logits and the hidden states of transformers, of families that multiply
// rows of their table, that add rows of positions, and that do neither: token by token, and in passes of several rows.
func TestEmbeddingsAgreeWithTransformers(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const rows = 5
	folders, err := os.ReadDir(models + "embeddings")
	require.NoError(t, err)
	require.Greater(t, len(folders), 8)
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			from := models + "embeddings/" + f.Name()
			ids, _ := readNPY[int32](t, from+"/ids.npy")
			given, shape := readNPY[float32](t, from+"/given.npy")
			wantLogits, _ := readNPY[float32](t, from+"/logits.npy")
			wantHidden, _ := readNPY[float32](t, from+"/hidden.npy")
			for _, n := range []int{1, rows} {
				logits, hidden := decodeMixed(t, models+"zoo/"+f.Name(), ids, given, shape[1], n)
				require.LessOrEqual(t, maxError(t, logits, wantLogits), maxLogitError)
				require.LessOrEqual(t, maxError(t, hidden, wantHidden), maxLogitError)
			}
		})
	}
}

// decodeMixed runs a model on the reference VM, in passes of n rows. Ids below 0 are embeddings, the next of
// those that are given.
func decodeMixed(t *testing.T, model string, ids []int32, given []float32, size, rows int) (logits, hidden []float32) {
	t.Helper()
	l, err := builder.RunPasses(builder.Options{Model: model, Target: ir.FindTarget("h200"),
		Pass: ir.PassOf(1, rows)})
	require.NoError(t, err)
	defer l.Close()
	vm, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{})
	require.NoError(t, err)
	for at := 0; at < len(ids); at += rows {
		tokens := make([]int, rows)
		for i := range tokens {
			if tokens[i] = int(ids[at+i]); tokens[i] < 0 {
				tokens[i] = l.Program.Model.Vocab
				require.NoError(t, vm.SetEmbedding(i, given[:size]))
				given = given[size:]
			}
		}
		step, _, err := vm.Pass([]int{at}, tokens)
		require.NoError(t, err)
		logits, hidden = append(logits, step...), append(hidden, vm.Hidden()...)
	}
	require.Error(t, vm.SetEmbedding(rows, make([]float32, size)))
	require.Error(t, vm.SetEmbedding(0, make([]float32, size+1)))
	return logits, hidden
}
