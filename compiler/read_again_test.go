package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
)

// A product of a pass that reads its vector again, after an SM has published rows, shares no page with what units of
// attention or a convolution make. 10,240 rows of q, k and v are more than 64 for each of 132 SMs, as 24,576 of a
// convolution are, and 8,192 columns are two slabs.
func TestVectorsThatAreReadAgain(t *testing.T) {
	for made, of := range map[string]string{
		"attn": `"model_type": "llama"`,
		"short_conv": `"model_type": "lfm2", "layer_types": ["conv", "full_attention"],
			"block_auto_adjust_ff_dim": false`,
	} {
		model := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{`+of+`,
			"hidden_size": 8192, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 64,
			"num_key_value_heads": 8, "vocab_size": 512, "max_position_embeddings": 64,
			"torch_dtype": "bfloat16"}`), 0o600))
		l, err := RunPasses(Options{Model: model, Name: "m", Target: ir.FindTarget("h200"),
			Passes: []ir.Pass{{Rows: 8}}, ConfigOnly: true})
		require.NoError(t, err)
		defer l.Close()
		p := l.Passes[0]
		_, err = codegen.CUDA(p)
		require.NoError(t, err)
		pages := map[string]*ir.Buffer{}
		for i := range p.Buffers {
			if b := &p.Buffers[i]; len(b.Pages) > 0 {
				_, role, _ := strings.Cut(b.Name, ".")
				pages[role] = b
			}
		}
		require.NotNil(t, pages["x"])
		require.NotNil(t, pages[made])
		require.NotEqual(t, pages["x"].Pages, pages[made].Pages)
		pages[made].Pages = pages["x"].Pages
		_, err = codegen.CUDA(p)
		require.ErrorContains(t, err, "which units of attention or a convolution may write before")
	}
}
