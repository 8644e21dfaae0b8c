package loops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// pairs is a program of n runs of two calls each, of buffers whose names begin alike.
func pairs(t testing.TB, n int) *ir.Program {
	var buffers, counters, stages strings.Builder
	for k := range 2 * n {
		fmt.Fprintf(&buffers, "buffer x%d IO_OUTPUT F32 [65536] HBM rowmajor\n", k)
		fmt.Fprintf(&counters, "counter c%d counter gpu\n", k)
		fmt.Fprintf(&stages, "stage s%d explicit\n task sm=0 a=0 b=%d\n x%d[a:b] = MUL(i[a:b]) scale=2.0\n "+
			"signal c%d\n", k, 1+k/2, k, k)
	}
	p, err := ir.Parse([]byte("amk 2.0\nbuffer i IO_INPUT F32 [65536] HBM rowmajor\n"+buffers.String()+
		"variant v pos 0..0\n"+counters.String()+stages.String()), "pairs")
	require.NoError(t, err)
	return p
}

// Many loops have names all the same, none of them too long.
func TestManyLoops(t *testing.T) {
	p := pairs(t, 400)
	rollAll(t, p)
	require.Len(t, outline(&p.Variants[0]), 400)
	require.NoError(t, ir.Check(p).Err())
}

func BenchmarkManyLoops(b *testing.B) {
	for _, n := range []int{250, 500, 1000, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := pairs(b, n)
				b.StartTimer()
				rollAll(b, p)
			}
		})
	}
}
