package compiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What the kernel lacks of recurrent states is named, up to the largest that it has.
func TestWhatIsLackingOfStates(t *testing.T) {
	for _, c := range []struct {
		name, sizes string
		rows        int // of a pass
		want        string
	}{
		{"all that there is room for", `"linear_key_head_dim": 128, "linear_value_head_dim": 128,
			"linear_conv_kernel_dim": 8`, 0, ""},
		{"more keys than values", `"linear_key_head_dim": 192, "linear_value_head_dim": 64`, 0, ""},
		{"a column too long", `"linear_key_head_dim": 132, "linear_value_head_dim": 128`, 0,
			"RECURRENCE of states of 132 by 128"},
		{"too many columns", `"linear_key_head_dim": 4, "linear_value_head_dim": 260`, 0,
			"RECURRENCE of states of 4 by 260"},
		{"too much to convolve", `"linear_key_head_dim": 228, "linear_value_head_dim": 64`, 0,
			"RECURRENCE of states of 228 by 64"},
		{"too many positions", `"linear_conv_kernel_dim": 9`, 0, "STATE_CONV of more than 8 positions"},
		{"no other layers", `"layer_types": ["linear_attention", "linear_attention"]`, 0, "RECURRENCE in all layers"},
		{"rows", `"linear_key_head_dim": 16`, 2, "RECURRENCE in passes of several tokens"},
	} {
		model := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), []byte(`{"model_type": "qwen3_5_text",
			"full_attention_interval": 2, "hidden_size": 64, "intermediate_size": 64,
			"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
			"linear_num_key_heads": 1, "linear_num_value_heads": 2, "vocab_size": 64, "max_position_embeddings": 64,
			"dtype": "bfloat16", `+c.sizes+`}`), 0o600))
		o := Options{Model: model, Name: "m", Target: ir.FindTarget("h200"), ConfigOnly: true}
		if c.rows > 0 {
			o.Passes = []ir.Pass{{Rows: c.rows}}
		}
		l, err := RunPasses(o)
		require.NoError(t, err, c.name)
		err = Lacking("m", append(l.Passes, l.Program)...)
		l.Close()
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, c.want, c.name)
	}
}
