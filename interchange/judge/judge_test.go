package judge

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/simulate"
)

func toy(t *testing.T) *interchange.Program {
	const name = "../../testdata/amk_ir/toy_f32_rtx5090/program.json"
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	p, diags := interchange.Parse(data, name)
	require.NoError(t, diags.Err())
	return p
}

// What the flat form of a program cannot hold is judged by the program, as it was written.
func TestWrong(t *testing.T) {
	smem := toy(t).Target.SmemBytesPerBlockOptin
	pages := func(bytes ...int) func(p *interchange.Program) {
		return func(p *interchange.Program) {
			p.Pages = &interchange.Pages{}
			for i, n := range bytes {
				p.Pages.Pages = append(p.Pages.Pages, interchange.Page{ID: i, Space: ir.SMEM, NBytes: n})
			}
		}
	}
	const many, huge = 1 << 20, 1 << 53
	for _, c := range []struct {
		want   string // "": nothing is wrong
		change func(p *interchange.Program)
	}{
		{"", func(*interchange.Program) {}},
		{"", pages(smem/2, smem-smem/2)},
		{"page 1: capacity: takes ", pages(smem/2, smem-smem/2+1)},
		{"page 0: capacity: takes 9007199254740992 bytes", pages(slices.Repeat([]int{huge}, 1024)...)},
		{"buffer 2: malformed: is there twice", func(p *interchange.Program) { p.Buffers[3].ID = p.Buffers[2].ID }},
		{"buffer 0: malformed: has 9 dimensions; want at most", func(p *interchange.Program) {
			p.Buffers[0].Shape = make([]int, 9)
		}},
		{"counter 2: malformed: is there twice", func(p *interchange.Program) { p.Counters[3].ID = p.Counters[2].ID }},
		{"task 2: malformed: is there twice", func(p *interchange.Program) { p.Tasks[3].ID = p.Tasks[2].ID }},
		{" waits; want at most ", func(p *interchange.Program) { p.Tasks[2].Waits = make([]interchange.Wait, 99) }},
		{"names buffer 1048576; want one that there is",
			func(p *interchange.Program) { p.Tasks[2].Inputs = []int{many} }},
		{"signals counter 1048576; want", func(p *interchange.Program) { p.Tasks[2].OutCounter = many }},
		{"waits on counter 1048576; want",
			func(p *interchange.Program) { p.Tasks[2].Waits = []interchange.Wait{{Counter: many}} }},
	} {
		p := toy(t)
		f, diags := p.Flatten()
		require.NoError(t, diags.Err())
		c.change(p)
		v := Judge(p, f, simulate.NewFootprints(), simulate.Effort{States: 100, Orders: 1, Positions: 1})
		if c.want == "" {
			require.Nil(t, v.Hazard)
			continue
		}
		require.NotNil(t, v.Hazard, c.want)
		require.Contains(t, v.Hazard.String(), c.want)
		require.True(t, v.Complete)
	}
}

// A task on no SM is in nobody's queue, whatever number an SM has.
func TestQueuesAreApart(t *testing.T) {
	for _, sm := range []string{"0", "1048576", "1048577", "4000000000000"} {
		p, diags := interchange.Parse([]byte(`{"ir_version":"0.2.0","abi_version":"0.2","meta":{"pos":0},`+
			`"target":null,`+
			`"buffers":[`+
			`{"id":0,"name":"in","kind":"IO_INPUT","dtype":"F32","shape":[4],"space":"HBM"},`+
			`{"id":1,"name":"x","kind":"ACTIVATION","dtype":"F32","shape":[4],"space":"HBM"},`+
			`{"id":2,"name":"out","kind":"IO_OUTPUT","dtype":"F32","shape":[4],"space":"HBM"}],`+
			`"counters":[{"id":0},{"id":1},{"id":2}],"tasks":[`+
			`{"id":0,"op":"COPY","inputs":[0],"outputs":[1],"out_counter":0,"waits":[],"params":{}},`+
			`{"id":1,"op":"NOP","inputs":[],"outputs":[],"out_counter":1,"waits":[],"params":{},"sm":`+sm+`},`+
			`{"id":2,"op":"COPY","inputs":[1],"outputs":[2],"out_counter":2,"waits":[{"counter":1,"threshold":1}],`+
			`"params":{}}],"pages":null,"config":null}`), "queues.json")
		require.NoError(t, diags.Err())
		f, diags := p.Flatten()
		require.NoError(t, diags.Err())
		v := Judge(p, f, simulate.NewFootprints(), simulate.Effort{States: 100, Orders: 1, Positions: 1})
		require.NotNil(t, v.Hazard, sm)
	}
}
