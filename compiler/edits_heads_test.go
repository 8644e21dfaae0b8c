package compiler

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
	"amkc/validate/kernel"
)

// What a program says of the norms of heads that have weights of their own, and take the mean off, is what the kernel
// computes, or it is refused.
func TestEditsOfLayerNormedHeads(t *testing.T) {
	l := lowerModel(t, "zoo/stablelm-head-norms", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	const (
		contract = "the kernel's attend would compute"
		own      = "L{i}.q_norm.weight[a*32:(a+1)*32])"
	)
	testEditsOf(t, ir.Print(l.Program), l.Graph, map[string]edited{
		"one that keeps the mean": {"%qn = LAYERNORM(", "%qn = RMSNORM(", "runs the ops RMSNORM LAYERNORM"},
		"weights of all heads":    {own, "L{i}.q_norm.weight[0:16])", contract},
		"weights of other heads":  {own, "L{i}.q_norm.weight[(1-a)*32:(2-a)*32])", contract},
		"weights of some heads":   {own, "L{i}.q_norm.weight[a*32:a*32+24])", "has 24 elements, want head_dim = 16"},
		"weights of k for q":      {own, "L{i}.k_norm.weight[0:32])", "by the model's facts it is 16"},
		"a bias of q":             {own, own[:len(own)-1] + ", " + own, contract},
		"no weight":               {", " + own, ")", "LAYERNORM"},
		"eps of q":                {own + " eps=1e-05", own + " eps=0.25", "by the model's facts it is"},
		"unit offset of q":        {own + " eps=1e-05", own + " eps=1e-05 unit_offset=1", contract},
		"heads of half the size":  {own + " eps=1e-05 head_dim=16", own + " eps=1e-05 head_dim=8", contract},
	})
}

// What a program says of the norms of attention is what the kernel computes, or it is refused, by the proof, by the
// contract of attention or by the reader of what was emitted: norms of each head before a rotation and after it, and
// norms of all queries and of all keys.
func TestEditsOfNormedHeads(t *testing.T) {
	const (
		contract = "the kernel's attend would compute"
		facts    = "by the model's facts it is"
	)
	type edit struct {
		edit   func(string) string
		proved bool
		want   string // of the refusal; "" where the code follows
	}
	one := func(old, text string) func(string) string {
		return func(program string) string {
			require.Contains(t, program, old)
			return strings.Replace(program, old, text, 1)
		}
	}
	every := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	for model, edits := range map[string]map[string]edit{
		"qwen3-qknorm": {
			"every eps": {every("eps=1e-06", "eps=0.25"), true, ""},
			"eps of k":  {one("k_norm.weight[0:64]) eps=1e-06", "k_norm.weight[0:64]) eps=0.25"), false, contract},
			"weights in each other's place": {every("L{i}.q_norm.weight[", "L{i}.k_norm.weight[",
				"L{i}.k_norm.weight[", "L{i}.q_norm.weight["), true, ""},
			"one weight for both": {one("L{i}.k_norm.weight[0:64])", "L{i}.q_norm.weight[0:64])"), true, ""},
			"a norm of rows": {one("q_norm.weight[0:64]) eps=1e-06 head_dim=64", "q_norm.weight[0:64]) eps=1e-06"),
				true, contract},
			"a head's norm of all": {one("q_norm.weight[0:64]) eps=1e-06 head_dim=64",
				"q_norm.weight[0:64], L{i}.qkv[0:256]) eps=1e-06"), false, contract},
			"k is not rotated": {one("L{i}.kv[a,0:pos,1,0:64], %k,", "L{i}.kv[a,0:pos,1,0:64], %kn,"), true,
				contract},
			"k is appended unrotated": {one("KV_APPEND(%k)", "KV_APPEND(%kn)"), true, contract},
			"q of another kv head": {one("RMSNORM(L{i}.qkv[a*128:(a+1)*128]", "RMSNORM(L{i}.qkv[(1-a)*128:(2-a)*128]"),
				true, contract},
			"another position": {one("%q = ROPE(%qn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=pos",
				"%q = ROPE(%qn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=0"), true, contract},
			"no rotation": {every("  %q = ROPE(%qn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=pos\n", "",
				"  %k = ROPE(%kn, rope.inv_freq[0:32]) head_dim=64 order=1 pos=pos\n", "",
				"(%q,", "(%qn,", "%k,", "%kn,", "(%k)", "(%kn)"), true, "needs rows(@inv_freq)"},
		},
		"olmo2-plain": {
			"every eps":                    {every("eps=1e-05", "eps=0.25"), true, ""},
			"eps of k":                     {one("[48:72]) eps=1e-05", "[48:72]) eps=0.25"), false, contract},
			"the mean of k for q":          {one("L{i}.qkv[0:48]) eps", "L{i}.qkv[48:72]) eps"), false, facts},
			"the mean of other rows":       {one("L{i}.qkv[48:72]) eps", "L{i}.qkv[72:96]) eps"), true, contract},
			"the mean of a part":           {one("L{i}.qkv[0:48]) eps", "L{i}.qkv[0:36]) eps"), false, facts},
			"the mean of the task's heads": {one("L{i}.qkv[0:48]) eps", "L{i}.qkv[a*24:(a+1)*24]) eps"), false, facts},
			"weights of another kv head": {one("L{i}.q_norm.weight[a*24:(a+1)*24]",
				"L{i}.q_norm.weight[(1-a)*24:(2-a)*24]"), true, contract},
			"weights of the first heads": {one("L{i}.k_norm.weight[a*12:(a+1)*12]", "L{i}.k_norm.weight[0:12]"), true,
				contract},
			"k of another kv head": {one("RMSNORM(L{i}.qkv[48+a*12:48+(a+1)*12]",
				"RMSNORM(L{i}.qkv[48+(1-a)*12:48+(2-a)*12]"), true, contract},
			"k is not rotated": {one("L{i}.kv[a,0:pos,1,0:12], %k,", "L{i}.kv[a,0:pos,1,0:12], %kn,"), true,
				contract},
			"unit offset": {every(", L{i}.qkv[0:48]) eps=1e-05", ", L{i}.qkv[0:48]) eps=1e-05 unit_offset=1",
				", L{i}.qkv[48:72]) eps=1e-05", ", L{i}.qkv[48:72]) eps=1e-05 unit_offset=1"), true, ""},
			"unit offset of q": {one(", L{i}.qkv[0:48]) eps=1e-05", ", L{i}.qkv[0:48]) eps=1e-05 unit_offset=1"), true,
				contract},
		},
		"hunyuan-alpha": {
			"every eps":           {every("eps=1e-05", "eps=0.25"), true, ""},
			"one weight for both": {one("L{i}.k_norm.weight[0:20])", "L{i}.q_norm.weight[0:20])"), true, ""},
			"k is not normalised": {one("L{i}.kv[a,0:pos,1,0:20], %kn,",
				"L{i}.kv[a,0:pos,1,0:20], L{i}.qkv[80+a*20:80+(a+1)*20],"), true, contract},
			"k is appended as it came": {one("KV_APPEND(%kn)", "KV_APPEND(L{i}.qkv[80+a*20:80+(a+1)*20])"), true,
				contract},
			"the norm of k for q": {one("ATTENTION_TILE(%qn", "ATTENTION_TILE(%kn"), false, contract},
		},
	} {
		raw, err := os.ReadFile(root + "/golden/" + model + "_h200_bf16/schedule.amk")
		require.NoError(t, err)
		original, err := ir.Parse(raw, "schedule.amk")
		require.NoError(t, err)
		g := lowerModel(t, "zoo/"+model, "h200", ir.BF16, 64, ir.ScheduleConfig{}).Graph
		before, err := sourcesOf(original, g)
		require.NoError(t, err)
		for name, c := range edits {
			t.Run(model+", "+name, func(t *testing.T) {
				text := c.edit(string(raw))
				require.NotEqual(t, string(raw), text)
				p, err := ir.Parse([]byte(text), "edited.amk")
				require.NoError(t, err)
				proof := validate.ProgramFor(kernel.Backend, p)
				require.Equal(t, c.proved, proof.OK, "%v", proof.Diags)
				if c.want == facts {
					require.Contains(t, fmt.Sprint(proof.Diags), facts)
					return
				}
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
				refusal := err.Error()
				if d, ok := err.(*diag.Diagnostic); ok {
					refusal += strings.Join(d.Related, "\n")
				}
				require.Contains(t, refusal, c.want)
			})
		}
	}
}
