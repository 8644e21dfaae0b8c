package compiler

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// What a program says of the norms of heads is what the kernel computes, or it is refused, by the contract of attention
// or by the reader of what was emitted.
func TestEditsOfNormedHeads(t *testing.T) {
	raw, err := os.ReadFile(root + "/golden/qwen3-qknorm_h200_bf16/schedule.amk")
	require.NoError(t, err)
	original, err := ir.Parse(raw, "schedule.amk")
	require.NoError(t, err)
	g := lowerModel(t, "zoo/qwen3-qknorm", "h200", ir.BF16, 64, ir.ScheduleConfig{}).Graph
	before, err := sourcesOf(original, g)
	require.NoError(t, err)
	swap := strings.NewReplacer("L{i}.q_norm.weight[", "L{i}.k_norm.weight[",
		"L{i}.k_norm.weight[", "L{i}.q_norm.weight[")
	one := func(old, text string) func(string) string {
		return func(program string) string {
			require.Contains(t, program, old)
			return strings.Replace(program, old, text, 1)
		}
	}
	const contract = "the kernel's attend would compute"
	for name, c := range map[string]struct {
		edit   func(string) string
		proved bool
		want   string // of the refusal; "" where the code follows
	}{
		"every eps": {func(p string) string {
			return strings.ReplaceAll(p, "eps=1e-06", "eps=0.25")
		}, true, ""},
		"eps of k": {one("k_norm.weight[0:64]) eps=1e-06",
			"k_norm.weight[0:64]) eps=0.25"), false, contract},
		"weights in each other's place": {swap.Replace, true, ""},
		"one weight for both":           {one("L{i}.k_norm.weight[0:64])", "L{i}.q_norm.weight[0:64])"), true, ""},
		"a norm of rows": {one("q_norm.weight[0:64]) eps=1e-06 head_dim=64", "q_norm.weight[0:64]) eps=1e-06"),
			true, contract},
		"k is not rotated": {one("L{i}.kv[a,0:pos,1,0:64], %k,", "L{i}.kv[a,0:pos,1,0:64], %kn,"), true,
			contract},
		"k is appended unrotated": {one("KV_APPEND(%k)", "KV_APPEND(%kn)"), true, contract},
		"q of another kv head": {one("RMSNORM(L{i}.qkv[a*128:(a+1)*128]", "RMSNORM(L{i}.qkv[(1-a)*128:(2-a)*128]"),
			true, contract},
		"another position": {one("%q = ROPE(%qn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=pos",
			"%q = ROPE(%qn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=0"), true, contract},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ir.Parse([]byte(c.edit(string(raw))), "edited.amk")
			require.NoError(t, err)
			proof := validate.ProgramFor(kernel.Backend, p)
			require.Equal(t, c.proved, proof.OK, "%v", proof.Diags)
			files, err := sourcesOf(p, g)
			if c.want == "" {
				require.NoError(t, err)
				require.NotEqual(t,
					string(before["schedule.h"])+string(before["megakernel.cu"])+string(before["model_config.h"]),
					string(files["schedule.h"])+string(files["megakernel.cu"])+string(files["model_config.h"]))
				require.Equal(t, plainOf(before), plainOf(files), "as the model says")
				return
			}
			require.Error(t, err)
			text := err.Error()
			if d, ok := err.(*diag.Diagnostic); ok {
				text += strings.Join(d.Related, "\n")
			}
			require.Contains(t, text, c.want)
		})
	}
}
