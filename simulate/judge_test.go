package simulate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func unrolled(t *testing.T, p *ir.Program) *ir.Flat {
	f, diags := ir.Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	return f
}

// No step is run twice, and a step that the caller names is run with the very pass after it that it had without.
func TestRuns(t *testing.T) {
	for _, sequences := range []int{1, 2, 3} {
		for _, hi := range []int{0, 1, 2, 900} {
			for _, most := range []int{1, 2, 3, 6} {
				f := &ir.Flat{Lo: 0, Hi: hi, Pass: ir.Pass{Sequences: sequences, Rows: 2}}
				after := func(r Run) string {
					next, ok := r.after(func(int) *ir.Flat { return f }, hi)
					return fmt.Sprint(next.at(), ok)
				}
				met := map[string]bool{}
				for _, r := range runsOf(f, Effort{Positions: most, Seed: 3}) {
					key := fmt.Sprint(r.at())
					require.False(t, met[key], "%d sequences up to %d: %s twice", sequences, hi, key)
					met[key] = true
					named := runsOf(f, Effort{Positions: most, At: [][]int{r.at(), r.at()}})
					require.Len(t, named, 1)
					require.Equal(t, r.at(), named[0].at())
					require.Equal(t, after(r), after(named[0]))
				}
			}
		}
	}
	f := &ir.Flat{Lo: 4, Hi: 9, Pass: ir.Pass{Sequences: 2, Rows: 1}}
	runs := runsOf(f, Effort{At: [][]int{{5}, {5, 9}, {5, 5}, {3}, {5, 10}}})
	require.Len(t, runs, 2, "one position is for all sequences, and others are of no variant or of another")
	require.Equal(t, []int{5, 5}, runs[0].at())
	require.Equal(t, []int{5, 9}, runs[1].at())
}

// The positions of all sequences are told, of what was run and of what goes wrong.
func TestPositionsOfSequences(t *testing.T) {
	p := sequences(t)
	v := Program(p, NewFootprints(), Effort{States: 1000, Positions: 2})
	require.Equal(t, [][]int{{0, 0}, {0, 3}}, v.At)
	require.Equal(t, [][]int{{0, 3}}, v.Hazard.At())
	again := Program(p, NewFootprints(), Effort{States: 1000, At: v.Hazard.At()})
	require.Equal(t, v.Hazard.String(), again.Hazard.String())
	require.Nil(t, Program(p, NewFootprints(), Effort{States: 1000, At: [][]int{{0}, {3}}}).Hazard)
}

// sequences is wrong where one sequence is at its first position and the other is not.
func sequences(t *testing.T) *ir.Program {
	p, err := ir.Parse([]byte(`amk 2.0
pass sequences=2 rows=1
buffer token IO_INPUT I32 [2] HBM rowmajor
buffer in IO_INPUT F32 [2] HBM rowmajor
buffer x ACTIVATION F32 [2] HBM rowmajor
buffer out IO_OUTPUT F32 [2,2] HBM rowmajor
variant only pos 0..3
counter step counter gpu
`+on("0", "a", " x[min(pos[0],1):min(pos[0],1)+1] = COPY(in[0:1])\n signal step")+
		on("1", "b", " x[1-min(pos[1],1):2-min(pos[1],1)] = COPY(in[0:1])\n signal step")+
		on("0", "o", " out[0,0:2] = COPY(in[0:2])\n out[1,0:2] = COPY(in[0:2])\n signal step")), "test.amk")
	require.NoError(t, err)
	return p
}
