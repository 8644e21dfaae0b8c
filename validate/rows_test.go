package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// A cache may have fewer rows than there are positions. Each program appends one row per step and reads some; a walk
// over the positions says whether every row was written before it is read.
func TestCachesWithFewerRowsThanPositions(t *testing.T) {
	accepted, refused := 0, 0
	for rows := 1; rows <= 4; rows++ {
		for last := range 9 {
			for _, write := range []string{"pos%R", "min(pos,R-1)", "pos/2%R", "(pos+1)%R", "min(pos*2,R-1)"} {
				for _, read := range []string{"0:min(pos+1,R)", "0:min(pos,R)", "0:pos%R", "max(pos+1,2)-2:pos"} {
					for _, cut := range []int{0, 1, rows} {
						text := ringProgram(rows, last, cut, write, read)
						p := parse(t, text)
						rep := validate.Program(p)
						defined, inside := walkRows(p, rows, last)
						if !defined || !inside {
							require.False(t, rep.OK, text)
							refused++
							continue
						}
						if write == "pos%R" {
							require.NoError(t, rep.Diags.Err(), text)
						}
						if rep.OK {
							accepted++
						}
					}
				}
			}
		}
	}
	require.Greater(t, accepted, 300)
	require.Greater(t, refused, 300)
}

func ringProgram(rows, last, cut int, write, read string) string {
	of := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "R-1", fmt.Sprint(rows-1)), "R", fmt.Sprint(rows))
	}
	text := fmt.Sprintf(`amk 2.0
buffer w WEIGHT F32 [2] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer kv KV_CACHE F32 [1,%d,2,1] HBM rowmajor
`, rows)
	for _, v := range [][2]int{{0, min(cut, last+1) - 1}, {min(cut, last+1), last}} {
		if v[0] <= v[1] {
			text += fmt.Sprintf("variant from%d pos %d..%d\ncounter step counter gpu\nstage t explicit\n task "+
				"sm=0 a=0 b=1\n", v[0], v[0], v[1]) + fmt.Sprintf(
				` kv[0,%[1]s,0,0:1] = KV_APPEND(w[0:1])
 kv[0,%[1]s,1,0:1] = KV_APPEND(w[1:2])
 %%o = ATTENTION_TILE(w[0:1], kv[0,%[2]s,0,0:1], kv[0,%[2]s,1,0:1]) head_dim=1 n_heads=1 n_kv_heads=1 scale=1.0
 next[0] = SAMPLE_ARGMAX(w[0:2])
 signal step
`, of(write), of(read))
		}
	}
	return text
}

// walkRows runs the positions: whether each row that is read was written by this step or one before, and all views
// are inside.
func walkRows(p *ir.Program, rows, last int) (defined, inside bool) {
	written := map[int]bool{}
	for pos := range last + 1 {
		ops := p.Variants[0].Body[0].(*ir.Stage).Ops
		w, r := &ops[0].Out[0].Dims[1], &ops[2].In[1].Dims[1]
		if w.Lo.At(pos) < 0 || w.Lo.At(pos) >= rows {
			return false, false
		}
		written[w.Lo.At(pos)] = true
		for row := r.Lo.At(pos); row < r.Hi.At(pos); row++ {
			if row >= rows {
				return false, false
			}
			if !written[row] {
				return false, true
			}
		}
	}
	return true, true
}

// Programs that earlier rules refused and that are right.
func TestAccepted(t *testing.T) {
	p := parse(t, read(t, "../testdata/accepted/ring_buffer.amk"))
	require.NoError(t, validate.Program(p).Diags.Err())
	require.Nil(t, subject{prog: p}.judge().Hazard)
}
