package interchange_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/internal/watch"
	"amkc/ir"
	"amkc/ir/diag"
)

func gemv(params string) *interchange.Program {
	return one(ir.GEMV, params, []string{"act f32 1,8", "w f32 9,8"}, []string{"act f32 1,9"})
}

const gemvParams = `{"K":8,"N_tile":9,"n_off":0}`

func TestFlattenRefusals(t *testing.T) {
	change := func(f func(p *interchange.Program)) *interchange.Program {
		p := gemv(gemvParams)
		f(p)
		return p
	}
	recipe := func(steps string) *interchange.Program {
		return one(ir.FUSED, `{"recipe":{"steps":`+steps+`}}`, []string{"act f32 4"}, []string{"act f32 4 y"})
	}
	attention := func(params string, in ...string) *interchange.Program {
		return one(ir.ATTENTION, params, in, []string{"act f32 1,16"})
	}
	const attentionParams = `{"head_dim":4,"kv_start":0,"kv_len":6,"scale":0.5,"n_heads":4,"n_kv_heads":2}`
	minus := -1
	for _, c := range []struct {
		code, want string
		p          *interchange.Program
	}{
		{"AMK3920", "id 10 is that of two buffers", change(func(p *interchange.Program) { p.Buffers[1].ID = 10 })},
		{"AMK3920", "id 7 is that of two counters",
			change(func(p *interchange.Program) { p.Counters = append(p.Counters, p.Counters[0]) })},
		{"AMK3920", "id 3 is that of two tasks",
			change(func(p *interchange.Program) { p.Tasks = append(p.Tasks, p.Tasks[0]) })},
		{"AMK3920", "id 0 is that of two pages",
			change(func(p *interchange.Program) { p.Pages = &interchange.Pages{Pages: make([]interchange.Page, 2)} })},
		{"AMK3921", "reads buffer 99", change(func(p *interchange.Program) { p.Tasks[0].Inputs[1] = 99 })},
		{"AMK3921", "writes buffer -1", change(func(p *interchange.Program) { p.Tasks[0].Outputs[0] = -1 })},
		{"AMK3921", "signals counter 0", change(func(p *interchange.Program) { p.Tasks[0].OutCounter = 0 })},
		{"AMK3921", "waits on counter 999999",
			change(func(p *interchange.Program) { p.Tasks[0].Waits = []interchange.Wait{{999999, 1}} })},
		{"AMK3921", "runs on SM -1", change(func(p *interchange.Program) { p.Tasks[0].SM = &minus })},
		{"AMK3921", "buffer 10 is bound to page 4", change(func(p *interchange.Program) {
			p.Pages = &interchange.Pages{}
			p.Pages.BufferToPage = map[int]int{10: 4}
		})},
		{"AMK3922", "has 1 inputs; 2 to 3 are accepted",
			change(func(p *interchange.Program) { p.Tasks[0].Inputs = p.Tasks[0].Inputs[:1] })},
		{"AMK3922", "has 4 inputs; 2 to 3 are accepted",
			change(func(p *interchange.Program) { p.Tasks[0].Inputs = []int{10, 11, 11, 11} })},
		{"AMK3922", "has 0 outputs; 1 are accepted", change(func(p *interchange.Program) { p.Tasks[0].Outputs = nil })},
		{"AMK3922", "FUSED has 0 inputs; 1 to 8 are accepted", one(ir.FUSED, ``, nil, []string{"act f32 4"})},
		{"AMK3923", "has 9 inputs", change(func(p *interchange.Program) { p.Tasks[0].Inputs = make([]int, 9) })},
		{"AMK3923", "0 inputs, 5 outputs", change(func(p *interchange.Program) {
			p.Tasks[0].Inputs, p.Tasks[0].Outputs = nil,
				make([]int, 5)
		})},
		{"AMK3923", "9 waits", change(func(p *interchange.Program) { p.Tasks[0].Waits = make([]interchange.Wait, 9) })},
		{"AMK3923", "5 dimensions", change(func(p *interchange.Program) { p.Buffers[0].Shape = make([]int, 5) })},
		{"AMK3924", "lacks the parameter n_off", gemv(`{"K":8,"N_tile":9}`)},
		{"AMK3924", "has K=8.0; an integer of 32 bits", gemv(`{"K":8.0,"N_tile":9,"n_off":0}`)},
		{"AMK3924", `has K="8"`, gemv(`{"K":"8","N_tile":9,"n_off":0}`)},
		{"AMK3924", "has n_off=4294967296", gemv(`{"K":8,"N_tile":9,"n_off":4294967296}`)},
		{"AMK3924", "has eps=1e999; accepted is 0, or",
			one(ir.RMSNORM, `{"hidden":4,"eps":1e999}`, []string{"act f32 4", "w f32 4"}, []string{"act f32 4 y"})},
		{"AMK3924", "has eps=an array", one(ir.RMSNORM, `{"hidden":4,"eps":[]}`, []string{"act f32 4", "w f32 4"},
			[]string{"act f32 4 y"})},
		{"AMK3924", "lacks the parameter theta",
			one(ir.ROPE, `{"head_dim":4}`, []string{"act f32 1,4", "in i32 1"}, []string{"act f32 1,4 y"})},
		{"AMK3925", "has K=4 and an input of shape [1 8]", gemv(`{"K":4,"N_tile":9,"n_off":0}`)},
		{"AMK3925", "weight of shape [8]", change(func(p *interchange.Program) { p.Buffers[1].Shape = []int{8} })},
		{"AMK3925", "has qdtype=7 and a weight of I8",
			one(ir.GEMV, `{"K":8,"N_tile":9,"n_off":0,"qdtype":7,"group":8}`,
				[]string{"act f32 1,8", "w i8 9,8", "w f16 9,1"}, []string{"act f32 1,9"})},
		{"AMK3925", "has hidden=4 and an output of shape [1 8]",
			one(ir.EMBED, `{"hidden":4}`, []string{"in i32 1", "w f32 50,8"}, []string{"act f32 1,8"})},
		{"AMK3925", "has hidden=8 and a weight of shape [1]",
			one(ir.RMSNORM, `{"hidden":8,"eps":0}`, []string{"act f32 1,8", "w f32 1"}, []string{"act f32 1,8 y"})},
		{"AMK3925", "has n_kv_heads=2, head_dim=4 and a cache of shape [32 4 4]",
			attention(attentionParams, "act f32 4,4", "kv f32 32,4,4", "kv f32 32,4,4 v")},
		{"AMK3925", "queries of shape [2 4 4]",
			attention(attentionParams, "act f32 2,4,4", "kv f32 32,2,4", "kv f32 32,2,4 v")},
		{"AMK3925", "has a cache of shape [32 8]",
			one(ir.KVAppend, `{"pos":0}`, []string{"act f32 1,8", "kv f32 32,8"}, []string{"kv f32 32,8"})},
		{"AMK3925", "has head_dim=4 and an input of shape [1 1 1 4]",
			one(ir.ROPE, `{"head_dim":4,"theta":1}`, []string{"act f32 1,1,1,4", "in i32 1"},
				[]string{"act f32 1,4 y"})},
		{"AMK3926", "has a fourth input", attention(attentionParams, "act f32 4,4", "kv f32 32,2,4", "kv f32 32,2,4 v",
			"act f32 6")},
		{"AMK3926", "over dimension 0", one(ir.SOFTMAX, `{"dim":0}`, []string{"act f32 2,4"},
			[]string{"act f32 2,4 y"})},
		{"AMK3926", "has another cache as input",
			one(ir.KVAppend, `{"pos":0}`, []string{"act f32 1,8", "kv f32 32,2,4"}, []string{"kv f32 32,2,4 other"})},
		{"AMK3926", "is not an opcode", change(func(p *interchange.Program) { p.Tasks[0].Op = 77 })},
		{"AMK3927", "needs the parameter recipe",
			one(ir.FUSED, `{"recipe":3}`, []string{"act f32 4"}, []string{"act f32 4 y"})},
		{"AMK3927", "needs the parameter recipe", recipe(`[]`)},
		{"AMK3927", "step 0 is an array", recipe(`[[]]`)},
		{"AMK3927", "step 0 has op 19", recipe(`[{"op":19,"args":[{"in":0}],"out":"final"}]`)},
		{"AMK3927", "step 0 has an argument", recipe(`[{"op":10,"args":[{"in":1}],"out":"final"}]`)},
		{"AMK3927", "step 0 has an argument", recipe(`[{"op":10,"args":[{"s":0}],"out":"final"}]`)},
		{"AMK3927", "step 0 has out null", recipe(`[{"op":10,"args":[{"in":0}]}]`)},
		{"AMK3927", "out_dtype \"float64\"", recipe(`[{"op":10,"args":[{"in":0}],"out":0,"out_dtype":"float64"}]`)},
		{"AMK3927", "out_shape with null", recipe(`[{"op":10,"args":[{"in":0}],"out":0,"out_shape":[null]}]`)},
		{"AMK3927", "scratch of 0 dimensions", recipe(`[{"op":0,"out":0}]`)},
		{"AMK3927", "step 0 has params 3", recipe(`[{"op":10,"args":[{"in":0}],"out":0,"params":3}]`)},
		{"AMK3927", "writes no output", recipe(`[{"op":10,"args":[{"in":0}],"out":0}]`)},
		{"AMK3922", "ADD has 1 inputs", recipe(`[{"op":11,"args":[{"in":0}],"out":"final"}]`)},
	} {
		t.Run(c.code+" "+c.want, func(t *testing.T) {
			flat, diags := c.p.Flatten()
			require.Nil(t, flat)
			require.Equal(t, c.code, diags[0].Code, diags)
			require.Contains(t, diags[0].Msg, c.want)
			require.NotNil(t, diag.Lookup(c.code))
		})
	}
}

// A hostile program does not produce a diagnostic for every task.
func TestFlattenStops(t *testing.T) {
	p := gemv(gemvParams)
	for range 10000 {
		p.Tasks = append(p.Tasks, p.Tasks[0])
	}
	flat, diags := p.Flatten()
	require.Nil(t, flat)
	require.Len(t, diags, 50)
}

// Whatever loads is flattened or refused, and what is flattened has every index in range.
func FuzzFlatten(f *testing.F) {
	for _, p := range []*interchange.Program{
		gemv(gemvParams),
		one(ir.KVAppend, `{"pos":1}`, []string{"act f32 -4,9223372036854775807", "kv f32 0,2,4"},
			[]string{"kv f32 0,2,4"}),
		one(ir.FUSED, `{"recipe":{"steps":[{"op":1,"args":[{"in":0}],"out":2},{"op":10,"args":[{"s":2}],"out":-1}]}}`,
			[]string{"act f32 4"}, []string{"act f32 4 y"}),
	} {
		f.Add(p.Marshal())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		p, diags := interchange.Parse(data, "fuzz.json")
		if p == nil {
			require.Error(t, diags.Err())
			return
		}
		flat, diags := p.Flatten()
		require.Equal(t, flat == nil, diags.Err() != nil)
		if flat != nil {
			requireIndices(t, flat)
		}
	})
}

func requireIndices(t *testing.T, flat *ir.Flat) {
	for i := range flat.Tasks {
		task := &flat.Tasks[i]
		require.True(t, task.Signal >= 0 && task.Signal < len(flat.Counters))
		for _, w := range task.Waits {
			require.True(t, w.Counter >= 0 && w.Counter < len(flat.Counters))
		}
		for k := range task.Ops {
			op := &task.Ops[k]
			require.Equal(t, len(op.In), len(op.InBuf))
			require.Equal(t, len(op.Out), len(op.OutBuf))
			for i, b := range op.InBuf {
				require.Len(t, op.In[i].Dims, len(flat.Buffers[b].Shape))
			}
			for i, b := range op.OutBuf {
				require.Len(t, op.Out[i].Dims, len(flat.Buffers[b].Shape))
			}
		}
	}
}
