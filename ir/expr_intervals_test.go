package ir

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAffineIntervals(t *testing.T) {
	for s, want := range map[string][]Interval{
		"5":                           {{0, 99}},
		"pos*3-4":                     {{0, 99}},
		"max(0,pos-15)":               {{0, 15}, {16, 99}},
		"max(0,pos-200)":              {{0, 99}},
		"max(0,pos)":                  {{0, 99}},
		"min(40,pos)":                 {{0, 40}, {41, 99}},
		"max(7,min(pos,20))":          {{0, 7}, {8, 20}, {21, 99}},
		"max(0,pos-15)*2-min(pos,50)": {{0, 15}, {16, 50}, {51, 99}},
		"max(0,pos*2-15)":             {{0, 7}, {8, 99}}, // between two positions
		"pos%2":                       nil,
		"max(0,pos/2)":                nil,
		"max(a,pos)":                  nil,
		"pos*1152921504606846976":     nil,
	} {
		e, err := ParseExpr(s)
		require.NoError(t, err)
		got, ok := AffineIntervals(0, 99, e)
		require.Equal(t, want, got, s)
		require.Equal(t, want != nil, ok, s)
	}
	rows, err := ParseExpr("max(0,pos-15)")
	require.NoError(t, err)
	got, ok := AffineIntervals(10, 30, rows, Symbol(Pos).Min(Int(20)))
	require.True(t, ok)
	require.Equal(t, []Interval{{10, 15}, {16, 20}, {21, 30}}, got, "of two expressions")
}

// requireAffine checks that an expression is affine on each of its intervals, which follow one another, and reports
// how many there are.
func requireAffine(t *testing.T, e Expr, lo, hi int) int {
	intervals, ok := AffineIntervals(lo, hi, e)
	if !ok {
		return 0
	}
	next := lo
	for _, i := range intervals {
		require.Equal(t, next, i.From, e)
		require.LessOrEqual(t, i.From, i.To, e)
		next = i.To + 1
		first, slope := e.At(i.From), 0
		if i.To > i.From {
			slope = e.At(i.From+1) - first
		}
		for pos := i.From; pos <= i.To; pos++ {
			require.Equal(t, first+(pos-i.From)*slope, e.At(pos), "%s at %d", e, pos)
		}
	}
	require.Equal(t, hi+1, next, e)
	return len(intervals)
}

func TestIntervalsAreAffine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	bent := 0
	for range 5000 {
		e := randomExpr(r, 5).Bind(TaskSpan{SM: 3, A: 5, B: 9}).With(Row, Int(2))
		lo := r.IntN(30)
		if requireAffine(t, e, lo, lo+r.IntN(100)) > 1 {
			bent++
		}
	}
	require.Greater(t, bent, 50)
}
