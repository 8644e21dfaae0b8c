package interchange_test

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
)

// one is a program of one task. Its buffers are written kind, dtype and shape first: "act f32 1,64".
func one(op ir.Opcode, params string, inputs, outputs []string) *interchange.Program {
	p := &interchange.Program{Counters: []interchange.Counter{{ID: 7}}}
	kinds := map[string]ir.BufferKind{"act": ir.Activation, "w": ir.Weight, "kv": ir.KVCache, "in": ir.Input}
	dtypes := map[string]ir.DType{"f32": ir.F32, "f16": ir.F16, "i32": ir.I32, "i8": ir.I8, "i4": ir.I4}
	ids := map[string]int{}
	declare := func(spec string) int {
		if id, ok := ids[spec]; ok {
			return id
		}
		f := strings.Fields(spec)
		b := interchange.Buffer{ID: 10 + len(p.Buffers), Kind: kinds[f[0]], DType: dtypes[f[1]]}
		for _, n := range strings.Split(f[2], ",") {
			v, _ := strconv.Atoi(n)
			b.Shape = append(b.Shape, v)
		}
		ids[spec] = b.ID
		p.Buffers = append(p.Buffers, b)
		return b.ID
	}
	t := interchange.Task{ID: 3, Op: op, OutCounter: 7}
	for _, s := range inputs {
		t.Inputs = append(t.Inputs, declare(s))
	}
	for _, s := range outputs {
		t.Outputs = append(t.Outputs, declare(s))
	}
	t.Params = json.RawMessage(cmp.Or(params, "{}"))
	p.Tasks = []interchange.Task{t}
	return p
}

func paramText(op *ir.FlatOp) string {
	var out []string
	for _, p := range op.Params {
		if p.IsFloat {
			text := strconv.FormatFloat(p.Float, 'g', -1, 64)
			if !strings.ContainsAny(text, ".e") {
				text += ".0"
			}
			out = append(out, p.Key+"="+text)
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
		op      ir.Opcode
		params  string
		in, out list
		want    string
		keys    string
	}{
		{"nop", ir.NOP, ``, nil, nil, " = NOP()", ""},
		{"copy", ir.COPY, ``, list{"act f32 4"}, list{"act f32 1,4"}, "buffer11[0,0:4] = COPY(buffer10[0:4])", ""},
		{"gather", ir.EMBED, `{"hidden":8}`, list{"in i32 3", "w f32 50,8"}, list{"act f32 3,8"},
			"buffer12[0:3,0:8] = EMBED(buffer10[0:3], buffer11[0:50,0:8])", ""},
		{"rmsnorm", ir.RMSNORM, `{"eps":1e-6,"hidden":8}`, list{"act f32 2,8", "w f32 8"}, list{"act f16 2,8"},
			"buffer12[0:2,0:8] = RMSNORM(buffer10[0:2,0:8], buffer11[0:8])", "eps=1e-06"},
		{"layernorm", ir.LAYERNORM, `{"eps":1,"hidden":8}`, list{"act f32 1,8", "w f32 8", "w f32 8 bias"},
			list{"act f32 8"}, "buffer13[0:8] = LAYERNORM(buffer10[0,0:8], buffer11[0:8], buffer12[0:8])", "eps=1.0"},
		{"gemv with bias", ir.GEMV, `{"K":8,"N_tile":3,"n_off":4,"qdtype":0}`,
			list{"act f32 1,8", "w f32 9,8", "w f32 9"}, list{"act f32 1,9"},
			"buffer13[0,4:7] = GEMV_TILE(buffer10[0,0:8], buffer11[4:7,0:8], buffer12[4:7])", ""},
		{"gemv int8", ir.GEMV, `{"K":9,"N_tile":3,"n_off":4,"qdtype":6,"group":4}`,
			list{"act f32 1,9", "w i8 9,9", "w f16 9,3"}, list{"act f32 1,9 y"},
			"buffer13[0,4:7] = GEMV_TILE(buffer10[0,0:9], buffer11[4:7,0:9], buffer12[4:7,0:3])", "qdtype=6 group=4"},
		{"gemv int4 with zeros", ir.GEMV, `{"K":8,"N_tile":9,"n_off":0,"qdtype":7}`,
			list{"act f32 1,8", "w i4 9,8", "w f16 9,1", "w f16 9,1 z"}, list{"act f32 1,9"},
			"buffer14[0,0:9] = GEMV_TILE(buffer10[0,0:8], buffer11[0:9,0:8], buffer12[0:9,0], buffer13[0:9,0])",
			"qdtype=7 group=8"},
		{"gemm tile of rows", ir.GEMM, `{"M_tile":2,"m_off":1,"K":8,"N_tile":3,"n_off":6}`,
			list{"act f32 4,8", "w f32 9,8"}, list{"act f32 4,9"},
			"buffer12[1:3,6:9] = GEMM_TILE(buffer10[1:3,0:8], buffer11[6:9,0:8])", ""},
		{"attention", ir.ATTENTION, `{"head_dim":4,"kv_start":5,"kv_len":6,"scale":0.5,"n_heads":4,` +
			`"n_kv_heads":2,"flags":1}`, list{"act f32 4,4", "kv f32 32,2,4", "kv f32 32,2,4 v"}, list{"act f32 1,16"},
			"buffer13[0,0:16] = ATTENTION_TILE(buffer10[0:4,0:4], buffer11[5:11,0:2,0:4], buffer12[5:11,0:2,0:4])",
			"head_dim=4 n_heads=4 n_kv_heads=2 scale=0.5"},
		{"attention shard", ir.ATTENTION,
			`{"head_dim":4,"kv_start":0,"kv_len":6,"scale":1,"n_heads":4,"n_kv_heads":2,"flags":2}`,
			list{"act f32 4,4", "kv f32 32,2,4", "kv f32 32,2,4 v"}, list{"act f32 4,6"},
			"buffer13[0:4,0:6] = ATTENTION_TILE(buffer10[0:4,0:4], buffer11[0:6,0:2,0:4], buffer12[0:6,0:2,0:4])",
			"head_dim=4 n_heads=4 n_kv_heads=2 scale=1.0 flags=2"},
		{"rope of one position", ir.ROPE, `{"head_dim":4,"theta":10000}`, list{"act f32 3,4", "in i32 2"},
			list{"act f32 3,4 y"}, "buffer12[0:3,0:4] = ROPE(buffer10[0:3,0:4], buffer11[0])",
			"head_dim=4 order=0 theta=10000.0"},
		{"rope of two", ir.ROPE, `{"head_dim":4,"theta":10000}`, list{"act f32 2,3,4", "in i32 2"},
			list{"act f32 2,3,4 y"}, "buffer12[0:2,0:3,0:4] = ROPE(buffer10[0:2,0:3,0:4], buffer11[0:2])",
			"head_dim=4 order=0 theta=10000.0"},
		{"silu_mul", ir.SiluMul, ``, list{"act f32 1,4", "act f32 1,4 u"}, list{"act f32 1,4 y"},
			"buffer12[0,0:4] = SILU_MUL(buffer10[0,0:4], buffer11[0,0:4])", ""},
		{"gelu", ir.GELU, ``, list{"act f32 4"}, list{"act f32 4 y"}, "buffer11[0:4] = GELU(buffer10[0:4])", ""},
		{"add in place", ir.ADD, ``, list{"act f32 4", "act f32 4 y"}, list{"act f32 4"},
			"buffer10[0:4] = ADD(buffer10[0:4], buffer11[0:4])", ""},
		{"mul", ir.MUL, `{"scale":3.0}`, list{"act f32 4", "act f32 4 y"}, list{"act f32 4 z"},
			"buffer12[0:4] = MUL(buffer10[0:4], buffer11[0:4])", ""},
		{"scale", ir.MUL, `{"scale":3}`, list{"act f32 4"}, list{"act f32 4 z"}, "buffer11[0:4] = MUL(buffer10[0:4])",
			"scale=3.0"},
		{"dequant", ir.DEQUANT, `{"qdtype":6,"group":4}`, list{"w i8 3,8", "w f16 3,2"}, list{"act f32 3,8"},
			"buffer12[0:3,0:8] = DEQUANT(buffer10[0:3,0:8], buffer11[0:3,0:2])", "qdtype=6 group=4"},
		{"softmax", ir.SOFTMAX, `{"dim":1}`, list{"act f32 2,4"}, list{"act f32 2,4 y"},
			"buffer11[0:2,0:4] = SOFTMAX(buffer10[0:2,0:4])", ""},
		{"allreduce", ir.ALLREDUCE, ``, list{"act f32 4", "act f32 4 b", "act f32 4 c"}, list{"act f32 4 y"},
			"buffer13[0:4] = ALLREDUCE_SHARD(buffer10[0:4], buffer11[0:4], buffer12[0:4])", ""},
		{"append of two rows", ir.KVAppend, `{"pos":30}`, list{"act f32 2,2,4", "kv f32 32,2,4"},
			list{"kv f32 32,2,4"}, "buffer11[30:32,0:2,0:4] = KV_APPEND(buffer10[0:2,0:2,0:4])", ""},
		{"argmax", ir.ArgMax, ``, list{"act f32 1,9"}, list{"act i32 1"},
			"buffer11[0] = SAMPLE_ARGMAX(buffer10[0,0:9])", ""},
		{"combine", ir.AttentionCombine, `{"head_dim":4,"n_heads":2,"n_kv_heads":1}`,
			list{"act f32 2,6", "act f32 2,6 b"}, list{"act f32 1,8"},
			"buffer12[0,0:8] = ATTENTION_COMBINE(buffer10[0:2,0:6], buffer11[0:2,0:6])",
			"head_dim=4 n_heads=2 n_kv_heads=1"},
		{"combine by shape", ir.AttentionCombine, ``, list{"act f32 2,6", "act f32 2,6 b"}, list{"act f32 1,8"},
			"buffer12[0,0:8] = ATTENTION_COMBINE(buffer10[0:2,0:6], buffer11[0:2,0:6])", "head_dim=4 n_heads=2"},
		// Windows outside a buffer stay as they are: to reject them is for the proof.
		{"window below", ir.GEMV, `{"K":8,"N_tile":3,"n_off":-1}`, list{"act f32 1,8", "w f32 9,8"},
			list{"act f32 1,9"}, "buffer12[0,-1:2] = GEMV_TILE(buffer10[0,0:8], buffer11[-1:2,0:8])", ""},
		{"window above", ir.GEMV, `{"K":8,"N_tile":2147483647,"n_off":2147483647}`,
			list{"act f32 1,8", "w f32 9,8"}, list{"act f32 1,9"},
			"buffer12[0,2147483647:4294967294] = GEMV_TILE(buffer10[0,0:8], buffer11[2147483647:4294967294,0:8])", ""},
		{"row past the cache", ir.KVAppend, `{"pos":32}`, list{"act f32 1,8", "kv f32 32,2,4"}, list{"kv f32 32,2,4"},
			"buffer11[32,0:2,0:4] = KV_APPEND(buffer10[0,0:8])", ""},
		{"more scales than groups", ir.GEMV, `{"K":8,"N_tile":9,"n_off":0,"qdtype":6,"group":2}`,
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
	p := one(ir.FUSED, `{"recipe":{"steps":[
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
	p := one(ir.COPY, ``, []string{"act f32 4"}, []string{"act f32 4 y"})
	p.Pages = &interchange.Pages{Pages: []interchange.Page{{ID: 5, Space: ir.GlobalScratch, NBytes: 64}}}
	p.Pages.BufferToPage = map[int]int{10: 5}
	f := flatten(t, p)
	require.Equal(t, []ir.Page{{Name: "page5", Space: ir.GlobalScratch, Bytes: 64}}, f.Pages)
	require.Equal(t, []string{"page5"}, f.Buffers[0].Pages)
	require.Equal(t, ir.GlobalScratch, f.Buffers[0].Space)
	require.Equal(t, ir.HBM, f.Buffers[1].Space)
}

func TestFlattenNames(t *testing.T) {
	p := one(ir.COPY, ``, []string{"act f32 4"}, []string{"act f32 4 y"})
	p.Buffers[0].Name, p.Buffers[1].Name = "x", "x"
	p.Buffers = append(p.Buffers, interchange.Buffer{ID: 90, Name: "%t", Shape: nil},
		interchange.Buffer{ID: 91, Name: strings.Repeat("n", 300)})
	p.Tasks = append(p.Tasks, p.Tasks[0])
	p.Tasks[0].Label, p.Tasks[1].Label, p.Tasks[1].ID = "go", "go", 4
	f := flatten(t, p)
	require.Equal(t, []string{"x", "x#11", "buffer90", "buffer91"},
		[]string{f.Buffers[0].Name, f.Buffers[1].Name, f.Buffers[2].Name, f.Buffers[3].Name})
	require.Equal(t, []int{1}, f.Buffers[2].Shape)
	require.Equal(t, "go#4", f.Tasks[1].Name)
}

func TestFlattenPosition(t *testing.T) {
	p := one(ir.KVAppend, `{"pos":30}`, []string{"act f32 1,8", "kv f32 32,2,4"}, []string{"kv f32 32,2,4"})
	require.Equal(t, 30, flatten(t, p).Lo)
	p.Meta = json.RawMessage(`{"pos": 12}`)
	f := flatten(t, p)
	require.Equal(t, []int{12, 12}, []int{f.Lo, f.Hi})
	require.Equal(t, 0, f.SMs)
	sm := 6
	p.Tasks[0].SM = &sm
	require.Equal(t, 7, flatten(t, p).SMs)
	p.Target = &interchange.Target{NumSMs: 3} // too few: for the proof to say
	f = flatten(t, p)
	require.Equal(t, []int{3, 6}, []int{f.SMs, f.Tasks[0].SM})
}
