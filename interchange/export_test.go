package interchange_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
)

var update = flag.Bool("update", false, "write the goldens")

// lowered is a one-layer program as pass lower leaves it.
func lowered(t *testing.T) string {
	return string(read(t, "testdata/lowered.amk"))
}

func native(t *testing.T, text string) *ir.Program {
	p, err := ir.Parse([]byte(text), "lowered.amk")
	require.NoError(t, err)
	return p
}

func TestExportGolden(t *testing.T) {
	p, diags := interchange.ToAMK(native(t, lowered(t)), 5, 10000)
	require.Empty(t, diags)
	got := p.Marshal()
	if *update {
		require.NoError(t, os.WriteFile("testdata/lowered.json", got, 0o644))
	}
	require.Equal(t, string(read(t, "testdata/lowered.json")), string(got))
	again, diags := interchange.Parse(got, "lowered.json")
	require.Empty(t, diags)
	require.Equal(t, string(got), string(again.Marshal()))
	flat := flatten(t, again)
	require.Equal(t, 5, flat.Lo)
	for _, w := range []struct{ task, want string }{
		{"embed", "residual[0,0:16] = EMBED(token[0], model.embed_tokens.weight[0:12,0:16])"},
		{"embed.L00.x", "L00.x[0,0:16] = COPY(residual[0,0:16])"},
		{"L00.q_rope", "L00.q_rope[0:4,0:4] = ROPE(L00.q_rope.heads[0:4,0:4], pos[0])"},
		{"L00.k_append", "L00.kv.k[5,0:2,0:4] = KV_APPEND(L00.k_rope[0,0:2,0:4])"},
		{"L00.attention", "L00.attn[0,0:16] = ATTENTION_TILE(L00.q_rope[0:4,0:4], L00.kv.k[0:6,0:2,0:4], " +
			"L00.kv.v[0:6,0:2,0:4])"},
		{"L00.attn_add", "residual.L00.attn_add[0,0:16] = ADD(residual[0,0:16], L00.o_proj[0,0:16])"},
		{"argmax", "next[0] = SAMPLE_ARGMAX(logits[0,0:12])"},
	} {
		require.Equal(t, w.want, text(&task(t, flat, w.task).Ops[0]))
	}
}

func TestExportRefusals(t *testing.T) {
	for _, c := range []struct {
		name, from, to, want string
	}{
		{"partial wait", "wait L00.attn >= 2", "wait L00.attn >= 1",
			"stage L00.o_proj: error: waits for 1 of the 2 tasks"},
		{"distributed", "stage L00.silu_mul whole extent=20",
			"stage L00.silu_mul spread extent=20 grain=8 sms=4 rot=0 step=0",
			"stage L00.silu_mul: error: is distributed over SMs"},
		{"tiled", "stage L00.silu_mul whole extent=20", "stage L00.silu_mul tiled extent=20 grain=20",
			"stage L00.silu_mul: error: is cut into 1 tasks"},
		{"part", "L00.gate_proj[a:b], L00.up", "L00.gate_proj[a:b-1], L00.up",
			"stage L00.silu_mul: error: touches a part of L00.gate_proj"},
		{"layout", "buffer L00.act ACTIVATION F32 [20] GLOBAL_SCRATCH rowmajor",
			"buffer L00.act ACTIVATION F32 [20] GLOBAL_SCRATCH word64", "buffer L00.act: error: has layout word64"},
		{"flagged", "counter L00.act undecided", "counter L00.act flagged", "counter L00.act: error: is flagged"},
		{"temporary", "L00.act[a:b] = SILU_MUL", "%y = SILU_MUL", "stage L00.silu_mul: error: uses the temporary %y"},
		{"fused", "  L00.act[a:b] = SILU_MUL(L00.gate_proj[a:b], L00.up_proj[a:b])",
			"  L00.act[a:b] = SILU_MUL(L00.gate_proj[a:b], L00.up_proj[a:b])\n  NOP()",
			"stage L00.silu_mul: error: runs 2 ops"},
		{"packed", "from rows(model.layers.0.mlp.up_proj.weight)",
			"from even(model.layers.0.mlp.up_proj.weight) odd(x)",
			"buffer L00.up_proj.weight: error: is packed from [even("},
		{"unknown op", "SILU_MUL(L00.gate_proj[a:b], L00.up_proj[a:b])",
			"ALLREDUCE_SHARD(L00.gate_proj[a:b], L00.up_proj[a:b])", "ALLREDUCE_SHARD has no export"},
		{"interleaved", "SILU_MUL(L00.gate_proj[a:b], L00.up_proj[a:b])", "SILU_MUL(L00.gate_proj[a:b])",
			"SILU_MUL has one operand"},
		{"pairs read as plain", "[16,16] HBM rowmajor from rows(model.layers.0.self_attn.o_proj.weight)",
			"[16,16] HBM rowmajor from pairs:4(model.layers.0.self_attn.o_proj.weight)",
			"stage L00.attn_add: error: ADD reads L00.o_proj, whose rows are in rotation pairs"},
		{"plain rotated", "from pairs:4(model.layers.0.self_attn.q_proj.weight)",
			"from rows(model.layers.0.self_attn.q_proj.weight)", "stage L00.q_rope: error: rotates L00.q_proj"},
		{"scaled", "pos=pos\n", "pos=pos scale=1.5\n", "stage L00.q_rope: error: multiplies what it rotates by 1.5"},
		{"capped scores", "scale=0.5 row=pos", "scale=0.5 row=pos cap=50.0",
			"stage L00.attention: error: caps scores at 50"},
		{"pairs of a part", "from pairs:4(model.layers.0.self_attn.q_proj.weight)",
			"from pairs:4:2(model.layers.0.self_attn.q_proj.weight)",
			"buffer L00.q_proj.weight: error: is packed from [pairs:4:2("},
		{"scaled rows", "embed.weight[0:12,a:b])", "embed.weight[0:12,a:b]) scale=2.0",
			"stage embed: error: multiplies rows of its table"},
		{"offset", "L00.input_norm.weight[0:16])", "L00.input_norm.weight[0:16]) unit_offset=1",
			"stage L00.input_norm: error: normalises heads one by one, or by 1 + w"},
		{"some rotated", "first=a limit=16", "first=a limit=8", "stage L00.q_rope: error: rotates a part"},
		{"v in pairs", "from rows(model.layers.0.self_attn.v_proj.weight)",
			"from pairs:4(model.layers.0.self_attn.v_proj.weight)",
			"stage L00.v_append: error: appends L00.v_proj with heads of 4"},
		{"other rows", "L00.kv[a,0:pos,0,0:4]", "L00.kv[a,1:pos,0,0:4]",
			"stage L00.attention: error: task 0 touches another part"},
		{"other heads", "KV_APPEND(L00.v_proj[a*4:(a+1)*4])", "KV_APPEND(L00.v_proj[(1-a)*4:(2-a)*4])",
			"stage L00.v_append: error: task 0 touches another part"},
		{"no append", "L00.kv[a,pos,1,0:4] = KV_APPEND", "L00.kv[a,pos,1,0:4] = COPY",
			"stage L00.attention: error: reads cache L00.kv, to which no stage appends k and v"},
		{"k appended as v", "L00.kv[a,pos,1,0:4] = KV_APPEND(L00.v_proj[a*4:(a+1)*4])",
			"L00.kv[a,pos,0,0:4] = KV_APPEND(L00.v_proj[a*4:(a+1)*4])",
			"stage L00.attention: error: takes the row of this step from L00.k_rope, and L00.v_proj is appended"},
		{"rounded append", "buffer L00.kv KV_CACHE F32", "buffer L00.kv KV_CACHE BF16",
			"stage L00.attention: error: takes the row of this step as F32, and the cache holds BF16"},
		{"split", "row=pos\n", "row=pos flags=2\n", "stage L00.attention: error: is a part of attention"},
		{"read first", "L00.h[0:16], L00.post_norm.weight", "L01.x[0:16], L00.post_norm.weight",
			"stage L00.post_norm: error: reads L01.x before a stage writes it"},
		{"malformed", "[a:b] = SILU_MUL(L00.gate_proj[a:b], L00.up_proj[a:b])",
			"[a:b] = SILU_MUL(nowhere[a:b], L00.up_proj[a:b])", "buffer nowhere is not defined"},
		{"another counter waits for an append", "wait L00.attn >= 2", "wait L00.attn >= 2\n  wait step >= 5",
			"stage L00.k_append: error: signals step, which stages wait on"},
		{"part of an argmax", "next[0] = SAMPLE_ARGMAX(logits[0:12])",
			"next[0] = SAMPLE_ARGMAX(logits[0:12]) partial=1", "stage argmax: error: is a part of an argmax"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := lowered(t)
			require.Contains(t, text, c.from)
			p, diags := interchange.ToAMK(native(t, strings.Replace(text, c.from, c.to, 1)), 5, 10000)
			require.Nil(t, p)
			require.Contains(t, diags.Error(), c.want)
		})
	}
	inPart := strings.NewReplacer("inv_freq CONST F32 [2]", "inv_freq CONST F32 [1]", "inv_freq[0:2]",
		"inv_freq[0:1]")
	_, diags := interchange.ToAMK(native(t, inPart.Replace(lowered(t))), 5, 10000)
	require.Contains(t, diags.Error(), "stage L00.q_rope: error: rotates a part of each head of 4, by 1 frequencies; "+
		"2 are accepted [AMK3929]")
	_, diags = interchange.ToAMK(native(t, lowered(t)), 16, 10000)
	require.Contains(t, diags.Error(), "program: error: has no variant for position 16; positions 0 to 15 are "+
		"accepted [AMK3929]")
	_, diags = interchange.ToAMK(native(t, "amk 2.0\npass rows=2\nbuffer token IO_INPUT I32 [2] HBM rowmajor\n"+
		"buffer next IO_OUTPUT I32 [2] HBM rowmajor\nvariant all pos 0..5\ncounter step undecided gpu\n"+
		"stage copy whole extent=1\n next[0:2] = COPY(token[0:2])\n signal step\n"), 5, 10000)
	require.Contains(t, diags.Error(), "program: error: takes 2 rows of 1 sequences in a pass; one row of one is "+
		"accepted")
	_, diags = interchange.ToAMK(native(t, lowered(t)), 5, 0)
	require.Contains(t, diags.Error(), "stage L00.q_rope: error: rotates by frequencies that the program does not hold")
	_, diags = interchange.ToAMK(native(t, string(read(t, "../testdata/ir/tiny.amk"))), 5, 10000)
	require.Contains(t, diags.Error(), "stage embed: error: is distributed over SMs")
}
