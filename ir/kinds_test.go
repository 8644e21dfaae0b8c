package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// The iterations of a stage are those of its kind, counted and listed alike.
func TestIterationsOfKinds(t *testing.T) {
	for _, kinds := range [][]int{nil, {1, 2}, {1, 1, 2}, {2, 1, 3, 1, 1, 2, 3}} {
		for count := range 30 {
			l := &ir.Loop{Count: count, Kinds: kinds}
			total := 0
			for kind := range 4 {
				s := &ir.Stage{Kind: kind}
				var want []int
				for k := range count {
					if kind == 0 || len(kinds) > 0 && kinds[k%len(kinds)] == kind {
						want = append(want, k)
					}
				}
				if len(kinds) == 0 && kind > 0 {
					continue // ir.Check refuses it
				}
				require.ElementsMatch(t, want, l.Iterations(s), "%v of %v, %d", kind, kinds, count)
				require.Equal(t, len(want), l.NumIterations(s))
				if kind > 0 {
					total += len(want)
				}
			}
			if len(kinds) > 0 {
				require.Equal(t, count, total)
			}
		}
	}
}

const twoKinds = `amk 2.0
model "" arch="" dtype=F32 layers=0 hidden=0 intermediate=0 ` +
	`heads=0 kv_heads=0 head_dim=0 vocab=0 max_seq=0 tied=false eps=0
config {"tiling":{},"sm_assignment":"",` +
	`"page_allocation":"","smem_bytes_per_block":0}
buffer x IO_INPUT F32 [8] HBM rowmajor
buffer y{i} for 0..4 ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor
variant all pos 0..0
counter step counter gpu
loop layers for 0..4 kinds 1 1 2
stage s{i} whole extent=8 kind=1
  y{i}[a:b] = COPY(x[a:b])
  signal step
stage s{i} whole extent=8 kind=2
  y{i}[a:b] = MUL(x[a:b]) scale=2.0
  signal step
end
`

// Both forms hold kinds, and unrolling and expanding follow them.
func TestKindsOfIterations(t *testing.T) {
	p, err := ir.Parse([]byte(twoKinds), "two.amk")
	require.NoError(t, err)
	require.NoError(t, ir.Check(p).Err())
	require.Equal(t, twoKinds, string(ir.Print(p)))
	text, err := p.MarshalJSON()
	require.NoError(t, err)
	back, err := ir.Parse(text, "two.json")
	require.NoError(t, err)
	require.Equal(t, twoKinds, string(ir.Print(back)))
	flat, diags := ir.Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	var codes []ir.Opcode
	for _, task := range flat.Tasks {
		codes = append(codes, task.Ops[0].Code)
	}
	require.Equal(t, []ir.Opcode{ir.COPY, ir.COPY, ir.MUL, ir.COPY, ir.COPY}, codes)
	require.NoError(t, ir.Expand(p))
	require.NoError(t, ir.Check(p).Err())
	require.Len(t, p.Variants[0].Body, 5)
}

// A kind that no iteration has, or outside a loop, is refused.
func TestKindsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *ir.Loop)
		want   string
	}{
		"no such kind":    {func(l *ir.Loop) { l.Body[0].Kind = 3 }, "no iteration of it"},
		"no list":         {func(l *ir.Loop) { l.Kinds = nil }, "no iteration of it"},
		"kind 0":          {func(l *ir.Loop) { l.Kinds[1] = 0 }, "iterations of kind 0, want 1"},
		"longer than all": {func(l *ir.Loop) { l.Kinds = []int{1, 2, 1, 2, 1, 2} }, "lists kinds of 6 iterations"},
		"both the same":   {func(l *ir.Loop) { l.Body[1].Kind = 1 }, "is defined twice"},
		"one in all":      {func(l *ir.Loop) { l.Body[1].Kind = 0 }, "is defined twice"},
	} {
		p, err := ir.Parse([]byte(twoKinds), "two.amk")
		require.NoError(t, err)
		c.change(p.Variants[0].Body[0].(*ir.Loop))
		require.ErrorContains(t, ir.Check(p).Err(), c.want, name)
	}
}
