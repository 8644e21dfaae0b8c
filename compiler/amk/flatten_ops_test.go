package amk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
	"amkc/ir"
)

// one is a program of one task. Its buffers are written kind, dtype and shape first: "act f32 1,64".
func one(op amk.Op, params string, inputs, outputs []string) *amk.Program {
	p := &amk.Program{Counters: []amk.Counter{{ID: 7}}}
	kinds := map[string]amk.BufferKind{"act": amk.Activation, "w": amk.Weight, "kv": amk.KVCache, "in": amk.IOInput}
	dtypes := map[string]amk.DType{"f32": amk.F32, "f16": amk.F16, "i32": amk.I32, "i8": amk.I8, "i4": amk.I4}
	ids := map[string]int{}
	declare := func(spec string) int {
		if id, ok := ids[spec]; ok {
			return id
		}
		f := strings.Fields(spec)
		b := amk.Buffer{ID: 10 + len(p.Buffers), Kind: kinds[f[0]], DType: dtypes[f[1]]}
		for _, n := range strings.Split(f[2], ",") {
			num := amk.Number(n)
			v, _ := num.Int64()
			b.Shape = append(b.Shape, int(v))
		}
		ids[spec] = b.ID
		p.Buffers = append(p.Buffers, b)
		return b.ID
	}
	t := amk.Task{ID: 3, Op: op, OutCounter: 7}
	for _, s := range inputs {
		t.Inputs = append(t.Inputs, declare(s))
	}
	for _, s := range outputs {
		t.Outputs = append(t.Outputs, declare(s))
	}
	t.Params = parseObject(params)
	p.Tasks = []amk.Task{t}
	return p
}

// parseObject reads a JSON object, by way of the meta of a program.
func parseObject(text string) amk.Object {
	if text == "" {
		text = "{}"
	}
	p, diags := amk.Parse([]byte(`{"meta":`+text+`}`), "params")
	if diags.Err() != nil {
		panic(diags)
	}
	return p.Meta
}

func paramText(op *ir.FlatOp) string {
	var out []string
	for _, p := range op.Params {
		if p.IsFloat {
			out = append(out, p.Key+"="+string(amk.Float(p.Float)))
		} else {
			out = append(out, p.Key+"="+p.Int.String())
		}
	}
	return strings.Join(out, " ")
}

// Every opcode: the views and parameters of the flat form. Buffers are named after their ids, from 10 on, in operand
// order.
func TestFlattenOpcodes(t *testing.T) {
	type list = []string
	for _, c := range []struct {
		name    string
		op      amk.Op
		params  string
		in, out list
		want    string
		keys    string
	}{
		{"nop", amk.Nop, ``, nil, nil, " = NOP()", ""},
		{"copy", amk.Copy, ``, list{"act f32 4"}, list{"act f32 1,4"}, "buffer11[0,0:4] = COPY(buffer10[0:4])", ""},
		{"gather", amk.Embed, `{"hidden":8}`, list{"in i32 3", "w f32 50,8"}, list{"act f32 3,8"},
			"buffer12[0:3,0:8] = EMBED(buffer10[0:3], buffer11[0:50,0:8])", ""},
		{"rmsnorm", amk.RMSNorm, `{"eps":1e-6,"hidden":8}`, list{"act f32 2,8", "w f32 8"}, list{"act f16 2,8"},
			"buffer12[0:2,0:8] = RMSNORM(buffer10[0:2,0:8], buffer11[0:8])", "eps=1e-06"},
		{"layernorm", amk.LayerNorm, `{"eps":1,"hidden":8}`, list{"act f32 1,8", "w f32 8", "w f32 8 bias"},
			list{"act f32 8"}, "buffer13[0:8] = LAYERNORM(buffer10[0,0:8], buffer11[0:8], buffer12[0:8])", "eps=1.0"},
		{"gemv with bias", amk.GEMVTile, `{"K":8,"N_tile":3,"n_off":4,"qdtype":0}`,
			list{"act f32 1,8", "w f32 9,8", "w f32 9"}, list{"act f32 1,9"},
			"buffer13[0,4:7] = GEMV_TILE(buffer10[0,0:8], buffer11[4:7,0:8], buffer12[4:7])", ""},
		{"gemv int8", amk.GEMVTile, `{"K":9,"N_tile":3,"n_off":4,"qdtype":6,"group":4}`,
			list{"act f32 1,9", "w i8 9,9", "w f16 9,3"}, list{"act f32 1,9 y"},
			"buffer13[0,4:7] = GEMV_TILE(buffer10[0,0:9], buffer11[4:7,0:9], buffer12[4:7,0:3])", "qdtype=6 group=4"},
		{"gemv int4 with zeros", amk.GEMVTile, `{"K":8,"N_tile":9,"n_off":0,"qdtype":7}`,
			list{"act f32 1,8", "w i4 9,8", "w f16 9,1", "w f16 9,1 z"}, list{"act f32 1,9"},
			"buffer14[0,0:9] = GEMV_TILE(buffer10[0,0:8], buffer11[0:9,0:8], buffer12[0:9,0], buffer13[0:9,0])",
			"qdtype=7 group=8"},
		{"gemm tile of rows", amk.GEMMTile, `{"M_tile":2,"m_off":1,"K":8,"N_tile":3,"n_off":6}`,
			list{"act f32 4,8", "w f32 9,8"}, list{"act f32 4,9"},
			"buffer12[1:3,6:9] = GEMM_TILE(buffer10[1:3,0:8], buffer11[6:9,0:8])", ""},
		{"attention", amk.AttentionTile, `{"head_dim":4,"kv_start":5,"kv_len":6,"scale":0.5,"n_heads":4,` +
			`"n_kv_heads":2,"flags":1}`, list{"act f32 4,4", "kv f32 32,2,4", "kv f32 32,2,4 v"}, list{"act f32 1,16"},
			"buffer13[0,0:16] = ATTENTION_TILE(buffer10[0:4,0:4], buffer11[5:11,0:2,0:4], buffer12[5:11,0:2,0:4])",
			"head_dim=4 n_heads=4 n_kv_heads=2 scale=0.5"},
		{"attention shard", amk.AttentionTile,
			`{"head_dim":4,"kv_start":0,"kv_len":6,"scale":1,"n_heads":4,"n_kv_heads":2,"flags":2}`,
			list{"act f32 4,4", "kv f32 32,2,4", "kv f32 32,2,4 v"}, list{"act f32 4,6"},
			"buffer13[0:4,0:6] = ATTENTION_TILE(buffer10[0:4,0:4], buffer11[0:6,0:2,0:4], buffer12[0:6,0:2,0:4])",
			"head_dim=4 n_heads=4 n_kv_heads=2 scale=1.0 flags=2"},
		{"rope of one position", amk.RoPE, `{"head_dim":4,"theta":10000}`, list{"act f32 3,4", "in i32 2"},
			list{"act f32 3,4 y"}, "buffer12[0:3,0:4] = ROPE(buffer10[0:3,0:4], buffer11[0])",
			"head_dim=4 order=0 theta=10000.0"},
		{"rope of two", amk.RoPE, `{"head_dim":4,"theta":10000}`, list{"act f32 2,3,4", "in i32 2"},
			list{"act f32 2,3,4 y"}, "buffer12[0:2,0:3,0:4] = ROPE(buffer10[0:2,0:3,0:4], buffer11[0:2])",
			"head_dim=4 order=0 theta=10000.0"},
		{"silu_mul", amk.SiluMul, ``, list{"act f32 1,4", "act f32 1,4 u"}, list{"act f32 1,4 y"},
			"buffer12[0,0:4] = SILU_MUL(buffer10[0,0:4], buffer11[0,0:4])", ""},
		{"gelu", amk.GELU, ``, list{"act f32 4"}, list{"act f32 4 y"}, "buffer11[0:4] = GELU(buffer10[0:4])", ""},
		{"add in place", amk.Add, ``, list{"act f32 4", "act f32 4 y"}, list{"act f32 4"},
			"buffer10[0:4] = ADD(buffer10[0:4], buffer11[0:4])", ""},
		{"mul", amk.Mul, `{"scale":3.0}`, list{"act f32 4", "act f32 4 y"}, list{"act f32 4 z"},
			"buffer12[0:4] = MUL(buffer10[0:4], buffer11[0:4])", ""},
		{"scale", amk.Mul, `{"scale":3}`, list{"act f32 4"}, list{"act f32 4 z"}, "buffer11[0:4] = MUL(buffer10[0:4])",
			"scale=3.0"},
		{"dequant", amk.Dequant, `{"qdtype":6,"group":4}`, list{"w i8 3,8", "w f16 3,2"}, list{"act f32 3,8"},
			"buffer12[0:3,0:8] = DEQUANT(buffer10[0:3,0:8], buffer11[0:3,0:2])", "qdtype=6 group=4"},
		{"softmax", amk.Softmax, `{"dim":1}`, list{"act f32 2,4"}, list{"act f32 2,4 y"},
			"buffer11[0:2,0:4] = SOFTMAX(buffer10[0:2,0:4])", ""},
		{"allreduce", amk.AllReduceShard, ``, list{"act f32 4", "act f32 4 b", "act f32 4 c"}, list{"act f32 4 y"},
			"buffer13[0:4] = ALLREDUCE_SHARD(buffer10[0:4], buffer11[0:4], buffer12[0:4])", ""},
		{"append of two rows", amk.KVAppend, `{"pos":30}`, list{"act f32 2,2,4", "kv f32 32,2,4"},
			list{"kv f32 32,2,4"}, "buffer11[30:32,0:2,0:4] = KV_APPEND(buffer10[0:2,0:2,0:4])", ""},
		{"argmax", amk.SampleArgmax, ``, list{"act f32 1,9"}, list{"act i32 1"},
			"buffer11[0] = SAMPLE_ARGMAX(buffer10[0,0:9])", ""},
		{"combine", amk.AttentionCombine, `{"head_dim":4,"n_heads":2,"n_kv_heads":1}`,
			list{"act f32 2,6", "act f32 2,6 b"}, list{"act f32 1,8"},
			"buffer12[0,0:8] = ATTENTION_COMBINE(buffer10[0:2,0:6], buffer11[0:2,0:6])",
			"head_dim=4 n_heads=2 n_kv_heads=1"},
		{"combine by shape", amk.AttentionCombine, ``, list{"act f32 2,6", "act f32 2,6 b"}, list{"act f32 1,8"},
			"buffer12[0,0:8] = ATTENTION_COMBINE(buffer10[0:2,0:6], buffer11[0:2,0:6])", "head_dim=4 n_heads=2"},
		// Windows outside a buffer stay as they are: to reject them is for the proof.
		{"window below", amk.GEMVTile, `{"K":8,"N_tile":3,"n_off":-1}`, list{"act f32 1,8", "w f32 9,8"},
			list{"act f32 1,9"}, "buffer12[0,-1:2] = GEMV_TILE(buffer10[0,0:8], buffer11[-1:2,0:8])", ""},
		{"window above", amk.GEMVTile, `{"K":8,"N_tile":2147483647,"n_off":2147483647}`,
			list{"act f32 1,8", "w f32 9,8"}, list{"act f32 1,9"},
			"buffer12[0,2147483647:4294967294] = GEMV_TILE(buffer10[0,0:8], buffer11[2147483647:4294967294,0:8])", ""},
		{"row past the cache", amk.KVAppend, `{"pos":32}`, list{"act f32 1,8", "kv f32 32,2,4"}, list{"kv f32 32,2,4"},
			"buffer11[32,0:2,0:4] = KV_APPEND(buffer10[0,0:8])", ""},
		{"more scales than groups", amk.GEMVTile, `{"K":8,"N_tile":9,"n_off":0,"qdtype":6,"group":2}`,
			list{"act f32 1,8", "w i8 9,8", "w f16 9,1"}, list{"act f32 1,9"},
			"buffer13[0,0:9] = GEMV_TILE(buffer10[0,0:8], buffer11[0:9,0:8], buffer12[0:9,0:4])", "qdtype=6 group=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := flatten(t, one(c.op, c.params, c.in, c.out))
			require.Len(t, f.Tasks, 1)
			require.Equal(t, "task3", f.Tasks[0].Name)
			require.Len(t, f.Tasks[0].Ops, 1)
			op := &f.Tasks[0].Ops[0]
			require.Equal(t, c.want, text(op))
			require.Equal(t, c.keys, paramText(op))
			require.Len(t, op.InBuf, len(op.In))
			require.Len(t, op.OutBuf, len(op.Out))
			for i, b := range op.InBuf {
				require.Equal(t, op.In[i].Buf, f.Buffers[b].Name)
			}
		})
	}
}

func TestFlattenRecipe(t *testing.T) {
	p := one(amk.Fused, `{"recipe":{"steps":[
		{"op":11,"args":[{"in":0},{"in":1}],"out":4,"out_shape":[1,8],"out_dtype":"float32"},
		{"op":1,"args":[{"s":4}],"out":4,"out_dtype":"float16"},
		{"op":3,"args":[{"s":4},{"in":2}],"out":"final","params":{"eps":1e-05,"hidden":8}}]}}`,
		[]string{"act f16 1,8", "act f16 1,8 b", "w f16 8"}, []string{"act f16 1,8 y"})
	f := flatten(t, p)
	require.Len(t, f.Tasks[0].Ops, 3)
	require.Equal(t, "task3.step0[0,0:8] = ADD(buffer10[0,0:8], buffer11[0,0:8])", text(&f.Tasks[0].Ops[0]))
	require.Equal(t, "task3.step1[0,0:8] = COPY(task3.step0[0,0:8])", text(&f.Tasks[0].Ops[1]))
	require.Equal(t, "buffer13[0,0:8] = RMSNORM(task3.step1[0,0:8], buffer12[0:8])", text(&f.Tasks[0].Ops[2]))
	first, second := &f.Buffers[4], &f.Buffers[5]
	require.Equal(t, []any{ir.Activation, ir.F32, ir.Register}, []any{first.Kind, first.DType, first.Space})
	require.Equal(t, []any{ir.F16, []int{1, 8}}, []any{second.DType, second.Shape})
}

func TestFlattenPages(t *testing.T) {
	p := one(amk.Copy, ``, []string{"act f32 4"}, []string{"act f32 4 y"})
	p.Pages = &amk.Pages{Pages: []amk.Page{{ID: 5, Space: amk.GlobalScratch, NBytes: 64}}}
	p.Pages.BufferToPage.Set(10, 5)
	f := flatten(t, p)
	require.Equal(t, []ir.Page{{Name: "page5", Space: ir.GlobalScratch, Bytes: 64}}, f.Pages)
	require.Equal(t, []string{"page5"}, f.Buffers[0].Pages)
	require.Equal(t, ir.GlobalScratch, f.Buffers[0].Space)
	require.Equal(t, ir.HBM, f.Buffers[1].Space)
}

func TestFlattenNames(t *testing.T) {
	p := one(amk.Copy, ``, []string{"act f32 4"}, []string{"act f32 4 y"})
	p.Buffers[0].Name, p.Buffers[1].Name = "x", "x"
	p.Buffers = append(p.Buffers, amk.Buffer{ID: 90, Name: "%t", Shape: nil},
		amk.Buffer{ID: 91, Name: strings.Repeat("n", 300)})
	p.Tasks = append(p.Tasks, p.Tasks[0])
	p.Tasks[0].Label, p.Tasks[1].Label, p.Tasks[1].ID = "go", "go", 4
	f := flatten(t, p)
	require.Equal(t, []string{"x", "x#11", "buffer90", "buffer91"},
		[]string{f.Buffers[0].Name, f.Buffers[1].Name, f.Buffers[2].Name, f.Buffers[3].Name})
	require.Equal(t, []int{1}, f.Buffers[2].Shape)
	require.Equal(t, "go#4", f.Tasks[1].Name)
}

func TestFlattenPosition(t *testing.T) {
	p := one(amk.KVAppend, `{"pos":30}`, []string{"act f32 1,8", "kv f32 32,2,4"}, []string{"kv f32 32,2,4"})
	require.Equal(t, 30, flatten(t, p).Lo)
	p.Meta.Set("pos", amk.Int(12))
	f := flatten(t, p)
	require.Equal(t, []int{12, 12}, []int{f.Lo, f.Hi})
	require.Equal(t, 0, f.SMs)
	sm := 6
	p.Tasks[0].SM = &sm
	require.Equal(t, 7, flatten(t, p).SMs)
	p.Target = &amk.Target{NumSMs: 3} // too few: for the proof to say
	f = flatten(t, p)
	require.Equal(t, []int{3, 6}, []int{f.SMs, f.Tasks[0].SM})
}
