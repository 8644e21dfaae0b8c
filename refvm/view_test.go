package refvm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Boxes enumerate what ir.Range.Elements does, for random views, and run by run.
func TestBoxes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		b := ir.Buffer{Name: "x"}
		var dims []ir.Range
		for range 1 + r.IntN(4) {
			size := 1 + r.IntN(9)
			lo := r.IntN(size + 1)
			hi := lo + r.IntN(size+1-lo)
			if r.IntN(3) == 0 {
				lo, hi = 0, size
			}
			rng := ir.Span(ir.Int(lo), ir.Int(hi))
			if parts := 1 + r.IntN(4); r.IntN(3) == 0 {
				rng = ir.Share(ir.Int(lo), ir.Int(hi), 1+r.IntN(3), ir.Int(r.IntN(parts)), parts)
			}
			b.Shape, dims = append(b.Shape, size), append(dims, rng)
		}
		st := &store{buf: &b}
		for d, n := len(b.Shape)-1, 1; d >= 0; d-- {
			st.step[d] = n
			n *= b.Shape[d]
		}
		box, bad := newBox(st, dims, 0)
		require.Empty(t, bad)
		want := elements(&b, dims, 0)
		require.Equal(t, len(want), box.n)
		if box.n == 0 {
			continue
		}
		var got []int
		var idx [ir.MaxRank]int
		for more := true; more; more = box.next(&idx) {
			for i := range box.run {
				got = append(got, box.offset(&idx)+i)
			}
		}
		require.Equal(t, want, got, "%v of %v", dims, b.Shape)
		if off, ok := box.solid(); ok {
			require.Equal(t, want[0], off)
			require.Equal(t, want[len(want)-1], off+box.n-1)
		}
		i := r.IntN(box.dims[0].n)
		pinned := box.pin(i)
		one := append([]ir.Range{ir.Index(ir.Int(box.dims[0].at(i)))}, dims[1:]...)
		require.Equal(t, len(elements(&b, one, 0)), pinned.n)
		require.Equal(t, elements(&b, one, 0)[0], pinned.offset(&[ir.MaxRank]int{}))
	}
}

// A share that the text form could not say is refused, not divided by.
func TestMalformedShare(t *testing.T) {
	r := ir.Share(ir.Int(0), ir.Int(4), 0, ir.Int(0), 2)
	_, bad := newSpan(&r, 4, 0)
	require.Contains(t, bad, "blocks of 0")
}
