package transform

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A matrix is what the tests compute with: whole tensors, one transform after another, as a model's source would.
type matrix [][]float32

func (m matrix) Rows() int   { return len(m) }
func (m matrix) RowLen() int { return len(m[0]) }

func (m matrix) ReadF32(dst []float32, first int) error {
	all := slices.Concat(m...)
	if n := copy(dst, all[first:]); n != len(dst) {
		return fmt.Errorf("%d elements from %d on of %d", len(dst), first, len(all))
	}
	return nil
}

func randomMatrix(rng *rand.Rand, rows, cols int) matrix {
	m := make(matrix, rows)
	for r := range m {
		for range cols {
			m[r] = append(m[r], rng.Float32()*4-2)
		}
	}
	return m
}

// apply is a transform by the book: blocks of rows are taken apart and put together again.
func (m matrix) apply(t Transform) matrix {
	var out matrix
	switch t.Kind {
	case Rows:
		block := len(m)
		if len(t.Ints) == 3 {
			block = t.Ints[2]
		}
		for b := range slices.Chunk(m, block) {
			out = append(out, b[t.Ints[0]:t.Ints[1]]...)
		}
	case Pairs: // [heads, 2, half] to [heads, half, 2], of the first rows of each head
		rotated := t.Ints[len(t.Ints)-1]
		for head := range slices.Chunk(m, t.Ints[0]) {
			for j := range rotated / 2 {
				out = append(out, head[j], head[j+rotated/2])
			}
			out = append(out, head[rotated:]...)
		}
	case Halves: // [heads, half, 2] to [heads, 2, half]
		for head := range slices.Chunk(m, t.Ints[0]) {
			for second := range 2 {
				for j := range t.Ints[0] / 2 {
					out = append(out, head[2*j+second])
				}
			}
		}
	case Transpose:
		for c := range m[0] {
			var row []float32
			for r := range m {
				row = append(row, m[r][c])
			}
			out = append(out, row)
		}
	case Plus, Times:
		for _, row := range m {
			var next []float32
			for _, x := range row {
				if t.Kind == Plus {
					next = append(next, x+float32(t.By))
				} else {
					next = append(next, x*float32(t.By))
				}
			}
			out = append(out, next)
		}
	default:
		return m
	}
	return out
}

// randomTransform fits a matrix of n rows.
func randomTransform(rng *rand.Rand, rows int) Transform {
	divisor := func(n int, ok func(d int) bool) int {
		var all []int
		for d := 1; d <= n; d++ {
			if n%d == 0 && ok(d) {
				all = append(all, d)
			}
		}
		if len(all) == 0 {
			return 0
		}
		return all[rng.IntN(len(all))]
	}
	for {
		switch k := Kind(rng.IntN(len(table))); k {
		case Even, Odd:
		case Rows:
			every := rows
			if rng.IntN(2) == 0 {
				every = divisor(rows, func(int) bool { return true })
			}
			lo := rng.IntN(every)
			t := Transform{Kind: k, Ints: []int{lo, lo + 1 + rng.IntN(every-lo)}}
			if every != rows || rng.IntN(2) == 0 {
				t.Ints = append(t.Ints, every)
			}
			return t
		case Pairs, Halves:
			if head := divisor(rows, func(d int) bool { return d%2 == 0 }); head > 0 {
				t := Transform{Kind: k, Ints: []int{head}}
				if k == Pairs && head > 2 && rng.IntN(2) == 0 {
					t.Ints = append(t.Ints, 2+2*rng.IntN(head/2-1))
				}
				return t
			}
		case Transpose:
			return Transform{Kind: k}
		case Share:
			share := divisor(rows, func(int) bool { return true })
			return Chain{{Kind: k, Ints: []int{share, 2}}}.OfRank(rng.IntN(2 * rows / share))[0]
		default:
			return Transform{Kind: k, By: float64(rng.Float32()) + 0.5}
		}
	}
}

// What a view reads, by any blocks of rows, is what the transforms make of the whole tensor; and of a structure of
// which nothing is known, what can be said is true.
func TestViewsReadWhatTransformsMean(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		source := randomMatrix(rng, 1+rng.IntN(24), 1+rng.IntN(9))
		want := source
		var chain Chain
		for range rng.IntN(6) {
			chain = append(chain, randomTransform(rng, len(want)))
			want = want.apply(chain[len(chain)-1])
		}
		v, err := chain.Of(source)
		require.NoError(t, err, "seed %d: %v", seed, chain)
		require.Equal(t, []int{len(want), len(want[0])}, []int{v.Rows, v.Cols}, "seed %d: %v", seed, chain)
		for range 4 {
			lo := rng.IntN(v.Rows)
			hi := lo + 1 + rng.IntN(v.Rows-lo)
			got := make([]float32, (hi-lo)*v.Cols)
			require.NoError(t, v.ReadRows(got, lo, hi))
			require.Equal(t, slices.Concat(want[lo:hi]...), got, "seed %d: rows %d to %d of %v", seed, lo, hi, chain)
		}
		r, c := rng.IntN(v.Rows), rng.IntN(v.Cols)
		if sr, sc := v.At(r, c); v.Plain() {
			require.Equal(t, want[r][c], source[sr][sc])
		}
		rows, cols, err := chain.Shape(Any, Any)
		require.NoError(t, err)
		for count, n := range map[Count]int{rows: v.Rows, cols: v.Cols} {
			require.True(t, count.N == n || count.Unknown && n%count.N == 0, "%v of %v, and it is %d", count, chain, n)
		}
	}
}

// Pieces are one after another, and those that end in even and odd lie row by row.
func TestStacks(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		cols := 1 + rng.IntN(5)
		var views []*View
		var chains []Chain
		var want matrix
		add := func(m matrix, c Chain) {
			v, err := c.Of(m)
			require.NoError(t, err)
			views, chains = append(views, v), append(chains, c)
		}
		for range 1 + rng.IntN(4) {
			n := 1 + rng.IntN(6)
			if rng.IntN(2) == 0 {
				m := randomMatrix(rng, n, cols)
				add(m, nil)
				want = append(want, m...)
				continue
			}
			even, odd := randomMatrix(rng, n, cols), randomMatrix(rng, n, cols)
			add(even, Of(Even))
			add(odd, Of(Odd))
			for r := range n {
				want = append(want, even[r], odd[r])
			}
		}
		s, err := Pack(views, chains, len(want), cols)
		require.NoError(t, err)
		lo := rng.IntN(len(want))
		got := make([]float32, (len(want)-lo)*cols)
		require.NoError(t, s.ReadRows(got, lo, len(want)))
		require.Equal(t, slices.Concat(want[lo:]...), got, "seed %d", seed)
		_, err = Pack(views, chains, len(want)+1, cols)
		require.ErrorContains(t, err, fmt.Sprintf("have %d rows; want %d", len(want), len(want)+1))
		_, err = Pack(views, chains, len(want), cols+1)
		require.ErrorContains(t, err, "piece 1 has rows of")
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	ten := randomMatrix(rand.New(rand.NewPCG(1, 1)), 10, 3)
	for want, c := range map[string]Chain{
		"#9 is unknown, want one of rows, pairs":           Of(9),
		"rows:1 has 1 integers, want rows:LO:HI[:EVERY]":   Of(Rows, 1),
		"transpose:1 has 1 integers, want transpose":       Of(Transpose, 1),
		"pairs:4 has a number with a fraction":             {{Kind: Pairs, Ints: []int{4}, By: 1}},
		"plus:0 wants a magnitude that float32 holds":      {{Kind: Plus}},
		"times:1e-40 wants a magnitude":                    {{Kind: Times, By: 1e-40}},
		"rows:-1:3 wants integers from 0 to 268435456":     Of(Rows, -1, 3),
		"rows:3:3 wants LO below HI":                       Of(Rows, 3, 3),
		"rows:0:5:4 wants an EVERY of at least HI":         Of(Rows, 0, 5, 4),
		"rows:4:11 takes rows 4 to 11 of 10":               Of(Rows, 4, 11),
		"rows:0:2:4 wants blocks of 4 rows, and there are": Of(Rows, 0, 2, 4),
		"pairs:0 wants a positive even HEAD":               Of(Pairs, 0),
		"pairs:4:4 wants a positive even ROTATED below":    Of(Pairs, 4, 4),
		"pairs:4:1 wants a positive even ROTATED below":    Of(Pairs, 4, 1),
		"pairs:4:0 wants a positive even ROTATED below":    Of(Pairs, 4, 0),
		"pairs:5:2 wants a positive even HEAD":             Of(Pairs, 5, 2),
		"halves:4 wants blocks of 4 rows, and there are":   Of(Halves, 4),
		"even stands inside plus:1, want it outermost":     Of(Even).Then(Transform{Kind: Plus, By: 1}),
		"has 9 transforms, want at most 8":                 make(Chain, MaxChain+1),
	} {
		_, err := c.Of(ten)
		require.ErrorContains(t, err, want)
	}
	_, _, err := Of(Rows, 0, 1, 1<<27+1).Then(Transform{Kind: Halves, Ints: []int{1 << 27}},
		Transform{Kind: Pairs, Ints: []int{1<<27 + 2}}).Shape(Any, Any)
	require.ErrorContains(t, err, "more than the 268435456 that a tensor may have")
	for want, pieces := range map[string][]Chain{
		"piece 1 is even(KEY); each even piece is followed": {Of(Even)},
		"piece 1 is odd(KEY)":                               {Of(Odd), Of(Even)},
		"piece 2 is rows(KEY)":                              {Of(Even), nil},
	} {
		_, err := Fill(pieces, []Count{{N: 2}, {N: 2}}[:len(pieces)], 4)
		require.ErrorContains(t, err, want)
	}
	_, err = Fill([]Chain{Of(Even), Of(Odd)}, []Count{{N: 3}, {N: 1}}, 4)
	require.ErrorContains(t, err, "piece 2 has 1 odd rows; want 3")
	_, err = Fill([]Chain{Of(Rows, 0, 4), Of(Pairs, 8)}, []Count{{N: 4}, {N: 8, Unknown: true}}, 16)
	require.ErrorContains(t, err, "its pieces have 4 rows and multiples of 8; want 16 in all")
}

// Every transform is declared whole, and found by its name.
func TestDeclarations(t *testing.T) {
	for k, s := range All() {
		got, ok := ByName(s.Name)
		require.True(t, ok)
		require.Equal(t, Kind(k), got)
		require.NotEmpty(t, s.Doc)
		meanings := 0
		for _, has := range []bool{s.Row != nil, s.Transposes, s.Values != nil, s.Interleave} {
			if has {
				meanings++
			}
		}
		require.Equal(t, 1, meanings, s.Name)
		require.Equal(t, s.Real != "", s.Values != nil, s.Name)
	}
}
