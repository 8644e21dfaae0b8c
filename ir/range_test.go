package ir

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRangeLenAndElements(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 20000 {
		lo := r.IntN(80) - 20
		g := Span(Symbol(Pos).Add(Int(lo)), Symbol(Pos).Add(Int(lo+r.IntN(90)-10)))
		if r.IntN(3) > 0 {
			parts := 1 + r.IntN(6)
			g = Share(g.Lo, g.Hi, 1+r.IntN(9), Int(r.IntN(parts)), parts)
		}
		pos := r.IntN(50)
		var want []int // by the definition
		for e := g.Lo.At(pos); e < g.Hi.At(pos); e++ {
			block := floorDiv(e, max(1, g.Block))
			if !g.Shared() || block-g.Parts*floorDiv(block, g.Parts) == g.Part.At(pos) {
				want = append(want, e)
			}
		}
		require.Equal(t, want, g.Elements(nil, pos), "%s at %d", g, pos)
		require.Equal(t, len(want), g.Len(pos), "%s at %d", g, pos)
	}
}

// TestSharesPartition deals a range out and puts it together again.
func TestSharesPartition(t *testing.T) {
	for _, parts := range []int{1, 2, 3, 7} {
		seen := map[int]int{}
		for part := range parts {
			for _, e := range Share(Int(3), Int(200), 16, Int(part), parts).Elements(nil, 0) {
				seen[e]++
			}
		}
		require.Len(t, seen, 197)
		for e, n := range seen {
			require.Equal(t, 1, n, e)
		}
	}
}

func TestRangesWithoutABlockAreEmpty(t *testing.T) {
	for _, g := range []Range{
		Share(Int(0), Int(1<<59), 0, Int(0), 2),
		Share(Int(0), Int(9), 4, Int(2), 2),
		Share(Int(0), Int(9), 4, Int(-1), 2),
		Span(Int(9), Int(3)),
	} {
		require.Empty(t, g.Elements(nil, 0), g)
		require.Zero(t, g.Len(0), g)
	}
	require.Equal(t, 1<<59, Span(Int(0), Int(1<<59)).Len(0))
	require.Equal(t, 1<<58, Share(Int(0), Int(1<<59), 1<<10, Int(1), 2).Len(0))
}

func TestOperandStrings(t *testing.T) {
	for _, s := range []string{"%y", "token[0]", "L{i+1}.x[a:b]", "L{i}.kv[a/2,0:pos block 16 part a%2 of 2,0,0:16]",
		"\"odd name\"[a:a+2,pos]", "x[]",
		"kv[a/2,a%2,max(0,pos[a/2]-3):pos[a/2],0,0:16]", "x[pos[1]]"} {
		o, err := ParseOperand(s)
		require.NoError(t, err)
		require.Equal(t, s, o.String())
	}
	for _, s := range []string{"", "x", "x[", "x[0,0,0,0,0,0]", "x[0] y", "x[0:1 block 2]", "%y[",
		"x[0:1 block 2 part 0 of]"} {
		_, err := ParseOperand(s)
		require.Error(t, err, s)
	}
}
