package compiler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/knobs"
)

// configured is a directory with the config of a Llama model with one layer of these sizes.
func configured(t *testing.T, hidden, heads, kvHeads, headDim, vocab int) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
		"hidden_act":  "silu",
		"hidden_size": hidden, "intermediate_size": 3 * hidden, "num_hidden_layers": 1, "num_attention_heads": heads,
		"num_key_value_heads": kvHeads,
		"head_dim":            headDim, "vocab_size": vocab, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
		"rope_theta":          1e4,
		"tie_word_embeddings": true, "torch_dtype": "bfloat16"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644))
	return dir
}

// Chunks that amkc chooses on its own are refused by codegen only where all others would be. The last model fits
// neither a half nor a quarter of the usual. AMKC_LONG compiles all combinations, and else a sixth.
func TestDefaultChunksAreAccepted(t *testing.T) {
	smaller := 0
	for k, m := range []struct{ hidden, heads, kvHeads, headDim, vocab int }{
		{512, 8, 8, 64, 4096}, {1024, 16, 8, 128, 8192}, {2048, 32, 8, 64, 8192}, {2400, 16, 16, 64, 8192},
		{4096, 32, 8, 128, 8192}, {401, 16, 1, 72, 5000}, {1200, 10, 5, 160, 5000},
	} {
		dir := configured(t, m.hidden, m.heads, m.kvHeads, m.headDim, m.vocab)
		for i, target := range []string{"h200", "l4", "t4"} {
			for d, dtype := range []ir.DType{ir.F32, ir.F16} {
				for s, smem := range []int{0, 40960, 65536} {
					if (2*k+i+d+s)%6 != 0 && !long() {
						continue
					}
					emits := func(chunk int) (int, error) {
						c := ir.ScheduleConfig{SMemBytesPerBlock: smem}
						if chunk > 0 {
							c.Tiling = map[string]map[string]int{"ring": {"chunk_bytes": chunk}}
						}
						l, err := RunPasses(Options{Model: dir, Target: ir.FindTarget(target), DType: &dtype, Config: c,
							ConfigOnly: true})
						if err != nil {
							return 0, err
						}
						_, err = codegen.CUDA(l.Program)
						return knobs.ChunkBytes.Of(&l.Program.Config), err
					}
					got, refused := emits(0)
					for _, chunk := range []int{16384, 14336, 12288, 10240, 8192, 6144, 4096} {
						if refused == nil {
							break
						}
						if _, err := emits(chunk); err == nil {
							require.NoError(t, refused, "%+v for %s in %v, smem_bytes_per_block %d: chunks of %d fit",
								m, target, dtype, smem, chunk)
						}
					}
					if refused == nil && got < 16384 {
						smaller++
					}
				}
			}
		}
	}
	require.Positive(t, smaller)
}

// What amkc chooses on its own never makes codegen refuse a program that it accepts with 8 warps per tile. AMKC_LONG
// compiles all combinations, and else a twelfth.
func TestDefaultWarpsAreAccepted(t *testing.T) {
	emits := func(dir string, target *ir.Target, c ir.ScheduleConfig) (warps int, err error) {
		l, err := RunPasses(Options{Model: dir, Target: target, Config: c, ConfigOnly: true})
		if err != nil {
			return 0, err
		}
		_, err = codegen.CUDA(l.Program)
		return knobs.Warps.Of(&l.Program.Config, "gate_up"), err
	}
	fewer := 0
	for k, m := range []struct{ hidden, heads, kvHeads, headDim, vocab int }{
		{512, 8, 8, 64, 4096}, {1024, 16, 8, 128, 8192}, {400, 64, 1, 128, 5000},
	} {
		dir := configured(t, m.hidden, m.heads, m.kvHeads, m.headDim, m.vocab)
		for i, target := range []string{"h200", "a100", "l4"} {
			for n, chunk := range []int{4096, 6144, 16384, 18432} {
				for d, depth := range []int{1, 3, 16} {
					for s, smem := range []int{0, 40960, 65536} {
						if (k+3*i+n+d+5*s)%12 != 0 && !long() {
							continue
						}
						c := ir.ScheduleConfig{PipeliningDepth: depth, SMemBytesPerBlock: smem,
							Tiling: map[string]map[string]int{"ring": {"chunk_bytes": chunk}}}
						warps, refused := emits(dir, ir.FindTarget(target), c)
						if refused == nil {
							if warps == 4 {
								fewer++
							}
							continue
						}
						c.Tiling["warps"] = map[string]int{"qkv": 8, "gate_up": 8, "lm_head": 8}
						if _, err := emits(dir, ir.FindTarget(target), c); err == nil {
							require.NoError(t, refused, "%+v for %s: chunk_bytes %d, pipelining_depth %d, "+
								"smem_bytes_per_block %d", m, target, chunk, depth, smem)
						}
					}
				}
			}
		}
	}
	require.Positive(t, fewer)
}
