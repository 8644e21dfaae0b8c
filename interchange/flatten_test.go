package interchange_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
)

func flatten(t *testing.T, p *interchange.Program) *ir.Flat {
	flat, diags := p.Flatten()
	require.Empty(t, diags)
	return flat
}

// task returns the flat task with the name.
func task(t *testing.T, f *ir.Flat, name string) *ir.Task {
	for i := range f.Tasks {
		if f.Tasks[i].Name == name {
			return &f.Tasks[i]
		}
	}
	require.Fail(t, "no task "+name)
	return nil
}

// text prints an op as programs have it.
func text(op *ir.FlatOp) string {
	s := ""
	for i, o := range op.Out {
		if i > 0 {
			s += ", "
		}
		s += o.String()
	}
	s += " = " + op.Code.String() + "("
	for i, o := range op.In {
		if i > 0 {
			s += ", "
		}
		s += o.String()
	}
	return s + ")"
}

func TestFlattenExamples(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			p, diags := interchange.Parse(read(t, dir, "program.json"), "program.json")
			require.Empty(t, diags)
			f := flatten(t, p)
			require.Len(t, f.Tasks, len(p.Tasks))
			require.Len(t, f.Buffers, len(p.Buffers))
			require.Len(t, f.Counters, len(p.Counters))
			var meta struct{ Pos int }
			require.NoError(t, json.Unmarshal(p.Meta, &meta))
			require.Equal(t, [2]int{meta.Pos, meta.Pos}, [2]int{f.Lo, f.Hi})
			names := map[string]bool{}
			for i := range f.Tasks {
				ft, pt := &f.Tasks[i], &p.Tasks[i]
				names[ft.Name] = true
				require.Equal(t, pt.OutCounter, ft.Signal) // ids are dense in these
				require.Equal(t, len(pt.Waits), len(ft.Waits))
				if pt.SM == nil {
					require.Equal(t, -1, ft.SM)
				} else {
					require.Equal(t, *pt.SM, ft.SM)
				}
				require.Len(t, ft.Ops, 1)
				require.Equal(t, pt.Op.String(), ft.Ops[0].Code.String())
			}
			require.Len(t, names, len(f.Tasks))
		})
	}
}

func TestFlattenViews(t *testing.T) {
	for _, c := range []struct{ program, task, want string }{
		{"toy_bf16_h100_ntile64", "embed", "h0[0,0:128] = EMBED(token_id[0], embed.weight[0:256,0:128])"},
		{"toy_bf16_h100_ntile64", "L0.gate_proj[t1]",
			"L0.gate[0,64:128] = GEMV_TILE(L0.mn[0,0:128], layers.0.mlp.gate_proj.weight[64:128,0:128])"},
		{"toy_bf16_h100_ntile64", "L0.rope_q.reshape", "L0.qr.hs[0:8,0:16] = EMBED(reshape_id0[0], L0.q[0,0:128])"},
		{"toy_bf16_h100_ntile64", "L0.rope_k", "L0.kr[0,0:2,0:16] = ROPE(L0.kr.hs[0,0:2,0:16], pos[0])"},
		{"toy_bf16_h100_batch4", "L1.up_proj[t1]",
			"L1.up[0:4,64:128] = GEMM_TILE(L1.mn[0:4,0:64], layers.1.mlp.up_proj.weight[64:128,0:64])"},
		{"toy_bf16_h100_batch4", "L0.rope_q", "L0.qr[0:4,0:4,0:16] = ROPE(L0.qr.hs[0:4,0:4,0:16], pos[0:4])"},
		{"toy_bf16_h100_batch4", "L0.k_append", "L0.kcache[0:4,3,0:2,0:16] = KV_APPEND(L0.kr[0:4,0:2,0:16])"},
		{"toy_bf16_h100_batch4", "L0.attention",
			"L0.attn[0:4,0:64] = ATTENTION_TILE(L0.qr[0:4,0:4,0:16], L0.kcache[0:4,0:4,0:2,0:16], " +
				"L0.vcache[0:4,0:4,0:2,0:16])"},
		{"hf_llama_f32_l4_pos1023", "L0.v_append", "L0.vcache[1023,0:2,0:16] = KV_APPEND(L0.v[0,0:32])"},
	} {
		t.Run(c.program+"/"+c.task, func(t *testing.T) {
			p, diags := interchange.Parse(read(t, "../testdata/amk_ir", c.program, "program.json"), "program.json")
			require.Empty(t, diags)
			f := flatten(t, p)
			require.Equal(t, c.want, text(&task(t, f, c.task).Ops[0]))
		})
	}
}
