package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime/shape"
)

// What owners of the residual add of norms of branches in a pass of several tokens, compiled for the CPU, has the bits
// of what every SM adds of one token, and so has what they publish: of branches in parts, where each stage has a
// number of its own, and of some that are whole, whose SMs have more rows than a block has threads, or few tokens.
func TestBranchesOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const wide = `{"model_type": "olmo2", "hidden_size": 1344, "intermediate_size": 256, "num_hidden_layers": 1,
		"num_attention_heads": 42, "num_key_value_heads": 42, "vocab_size": 64, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-6, "tie_word_embeddings": false, "torch_dtype": "float16"}`
	model := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(wide), 0o600))
	for name, c := range map[string]struct {
		model string
		rows  int
		sms   int      // those of an H200, unless it says another number
		has   []string // what the headers have
	}{
		"parts":      {models + "zoo/gemma2-split-k", 8, 0, []string{"kParts = 2", "kParts = 3", "kUnitOffset = true"}},
		"whole":      {model, 8, 33, []string{"kBranchParts = 1", "kResidualRows = 48", "kUnitOffset = false"}},
		"few tokens": {models + "zoo/gemma2-split-k", 3, 0, []string{"kTokens = 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := builder.Options{Model: c.model, ConfigOnly: true, Passes: []ir.Pass{{Rows: c.rows}}}
			if c.sms > 0 {
				o.Target = ir.ArchTarget(90, c.sms)
			}
			dir := emittedForRows(t, o)
			of := filepath.Join(dir, shape.Pass{Rows: c.rows}.Dir())
			schedule, err := os.ReadFile(filepath.Join(of, "schedule.h"))
			require.NoError(t, err)
			for _, what := range c.has {
				require.Contains(t, string(schedule), what)
			}
			run := func(headers ...string) []string {
				out := runOnCPU(t, "branches.cc", headers, "-DAMK_TENSOR_CORES=1", "-DROWS="+strconv.Itoa(c.rows))
				return strings.Split(string(out), "\n")
			}
			// Each SM says of each token what it has added up, and all say the same.
			alone, together := distinct(run(dir)), distinct(run(of, dir))
			require.Greater(t, len(alone), 2*c.rows*64)
			require.Equal(t, len(alone), len(together))
			for i := range alone {
				require.Equal(t, alone[i], together[i])
			}
		})
	}
}

// distinct sorts lines, and drops those that are there already.
func distinct(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}
