package amktest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/refvm"
)

// small is a program of the buffers below and the tasks given, one `OP inputs > outputs counter waits {params}` each,
// with waits as counter:threshold. Its ids are places in these lists.
func small(t testing.TB, tasks ...string) *interchange.Program {
	buffers := []string{
		"x IO_INPUT F32 1,8",       // 0
		"w WEIGHT F32 8,8",         // 1
		"norm WEIGHT F32 8",        // 2
		"y ACTIVATION F32 1,8",     // 3
		"z ACTIVATION F32 1,8",     // 4
		"out IO_OUTPUT F32 1,8",    // 5
		"cache KV_CACHE F32 4,2,4", // 6
		"q8 WEIGHT I8 8,8",         // 7
		"s8 WEIGHT F16 8,2",        // 8
		"z8 WEIGHT F16 8,2",        // 9
		"id IO_INPUT I32 1",        // 10
		"heads ACTIVATION F32 2,4", // 11
		"sum ACTIVATION F16 1,8",   // 12
	}
	var b strings.Builder
	b.WriteString(`{"target":null,"meta":{"pos":2},"counters":[`)
	for i := range 6 {
		fmt.Fprintf(&b, `%s{"id":%d}`, comma(i), i)
	}
	b.WriteString(`],"buffers":[`)
	for i, line := range buffers {
		f := strings.Fields(line)
		fmt.Fprintf(&b, `%s{"id":%d,"name":"%s","kind":"%s","dtype":"%s","shape":[%s],"space":"HBM"}`, comma(i), i,
			f[0], f[1], f[2], f[3])
	}
	b.WriteString(`],"tasks":[`)
	for i, line := range tasks {
		line, params, ok := strings.Cut(line, " {")
		if params = "{" + params; !ok {
			params = "{}"
		}
		f := strings.Fields(line)
		var waits []string
		for _, w := range f[5:] {
			c, n, _ := strings.Cut(w, ":")
			waits = append(waits, fmt.Sprintf(`{"counter":%s,"threshold":%s}`, c, n))
		}
		fmt.Fprintf(&b, `%s{"id":%d,"op":"%s","inputs":[%s],"outputs":[%s],"out_counter":%s,"waits":[%s],"params":%s}`,
			comma(i), i, f[0], f[1], f[3], f[4], strings.Join(waits, ","), params)
	}
	b.WriteString(`]}`)
	p, diags := interchange.Parse([]byte(b.String()), "small.json")
	require.Empty(t, diags)
	return p
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// What is wrong with a program is seen, by Flatten or by the proof, and what is fine is let through.
func TestSmallPrograms(t *testing.T) {
	const tile = `GEMV_TILE 0,1 > 3 0 {"K":8,"N_tile":4,"n_off":%d}`
	first, second := fmt.Sprintf(tile, 0), fmt.Sprintf(tile, 4)
	fused := func(first string) string {
		return `FUSED 0,1,2 > 5 0 {"recipe":{"steps":[` + first +
			`,{"op":3,"args":[{"s":0},{"in":2}],"out":"final","params":{"eps":1e-05,"hidden":8}}]}}`
	}
	for _, c := range []struct {
		name  string
		code  string // empty: accepted
		tasks []string
	}{
		{"tiles that share a counter", "", []string{first, second, "COPY 3 > 5 1 0:2"}},
		{"tiles that overlap", "AMK3132", []string{first, fmt.Sprintf(tile, 3), "COPY 3 > 5 1 0:2"}},
		{"a gap between tiles", "AMK3140", []string{first, "COPY 3 > 5 1 0:1"}},
		{"a tile outside", "AMK3103", []string{first, fmt.Sprintf(tile, 5), "COPY 3 > 5 1 0:2"}},
		{"a tile before the first column", "AMK3103", []string{fmt.Sprintf(tile, -1), second, "COPY 3 > 5 1 0:2"}},
		{"the first of two tiles is enough for nobody", "AMK3112", []string{first, second, "COPY 3 > 5 1 0:1"}},
		{"two writers in no order", "AMK3132", []string{"COPY 0 > 3 0", "COPY 0 > 3 1", "COPY 3 > 5 2 0:1 1:1"}},
		{"a read that nothing orders", "AMK3130", []string{"COPY 0 > 3 0", "COPY 0 > 4 1", "ADD 3,4 > 5 2 1:1"}},
		{"an output that nobody writes", "AMK3141", []string{"COPY 0 > 3 0"}},
		{"a write to the input", "AMK3107", []string{"COPY 2 > 0 0"}},
		{"an append at the end of the cache", "", []string{`KV_APPEND 0,6 > 6 0 {"pos":3}`, "COPY 0 > 5 1"}},
		{"an append past the cache", "AMK3103", []string{`KV_APPEND 0,6 > 6 0 {"pos":4}`, "COPY 0 > 5 1"}},
		{"rows that no step has written", "AMK3140",
			[]string{`EMBED 10,0 > 11 0 {"hidden":4}`,
				`ATTENTION_TILE 11,6,6 > 5 1 0:1 {"head_dim":4,"kv_start":0,"kv_len":3,"scale":0.5,"n_heads":2,` +
					`"n_kv_heads":2}`}},
		{"a fused norm", "", []string{fused(`{"op":11,"args":[{"in":0},{"in":0}],"out":0,"out_shape":[1,8],` +
			`"out_dtype":"float32"}`)}},
		{"a fused norm of half a vector", "AMK3140",
			[]string{fused(`{"op":5,"args":[{"in":0},{"in":1}],"out":0,"params":{"K":8,"N_tile":4,"n_off":0}}`)}},
		{"scales and zeros", "", []string{`GEMV_TILE 0,7,8,9 > 5 0 {"K":8,"N_tile":8,"n_off":0,"qdtype":6,"group":4}`}},
		{"too few scales", "AMK3103", []string{`GEMV_TILE 0,7,8 > 5 0 {"K":8,"N_tile":8,"n_off":0,"qdtype":6,` +
			`"group":2}`}},
		{"integers without scales", "AMK3105", []string{`GEMV_TILE 0,7 > 5 0 {"K":8,"N_tile":8,"n_off":0}`}},
		{"shapes that do not add up", "AMK3104", []string{"ADD 0,1 > 5 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			diags := verdict(small(t, c.tasks...))
			if c.code == "" {
				require.Empty(t, diags)
				return
			}
			require.NotEmpty(t, diags)
			require.Equal(t, c.code, diags[0].Code, diags)
		})
	}
}

// random supplies any weight, the same at each call.
type random struct{}

func (random) Floats(b *ir.Buffer, _ int) ([]float32, error) {
	r := rand.New(rand.NewPCG(uint64(len(b.Name)), 5))
	out := make([]float32, b.Numel())
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out, nil
}

// A FUSED task computes what its steps compute as tasks, scratch in float16 rounded like a float16 buffer.
func TestFusedRuns(t *testing.T) {
	run := func(p *interchange.Program) []float32 {
		require.Empty(t, verdict(p))
		flat, diags := p.Flatten()
		require.Empty(t, diags)
		vm, err := refvm.New(flat, random{}, refvm.Options{Round: refvm.Device, Record: true})
		require.NoError(t, err)
		require.NoError(t, vm.Write("x", []float32{1, -2, 3, -4, 5, -6, 7, -8}))
		require.NoError(t, vm.Step(flat.Lo, -1, refvm.Order{}))
		out, err := vm.Read("out")
		require.NoError(t, err)
		return out
	}
	fused := run(small(t, `FUSED 0,1,2 > 5 0 {"recipe":{"steps":[
		{"op":5,"args":[{"in":0},{"in":1}],"out":1,"params":{"K":8,"N_tile":8,"n_off":0}},
		{"op":11,"args":[{"in":0},{"s":1}],"out":0,"out_shape":[1,8],"out_dtype":"float16"},
		{"op":3,"args":[{"s":0},{"in":2}],"out":-1,"params":{"eps":1e-05,"hidden":8}}]}}`))
	separate := run(small(t,
		`GEMV_TILE 0,1 > 3 0 {"K":8,"N_tile":8,"n_off":0}`, `ADD 0,3 > 12 1 0:1`,
		`RMSNORM 12,2 > 5 2 1:1 {"eps":1e-05,"hidden":8}`))
	require.Equal(t, separate, fused)
	require.NotZero(t, fused[0])
}
