package transform

import (
	"fmt"
	"math"
	"strings"
)

// A Spec is the declaration of a transform.
type Spec struct {
	Name     string
	Ints     []string // names of its integers
	Optional int      // how many of the last ones may be left out
	Real     string   // the name of its number with a fraction, or "" if it has none
	Doc      string   // what it makes of a tensor, in plain text

	Legal func(ints []int) string // what the integers must be, if they are not; nil: any
	// Shape returns the size of the result for that of its operand, or why there is none. nil: the same.
	Shape func(ints []int, rows, cols Count) (Count, Count, string)
	// What it means is one of the following.
	Row        func(ints []int, row int) int      // the operand's row that a row of the result is; rows stay whole
	Transposes bool                               // columns become rows
	Values     func(by float32, values []float32) // changes each element in place, in float32
	Interleave bool                               // it says where the buffer has the rows, and stands last
}

// Usage is the transform with the names of its arguments, as documents print it: rows:LO:HI[:EVERY].
func (s *Spec) Usage() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for i, n := range s.Ints {
		if i < len(s.Ints)-s.Optional {
			b.WriteString(":" + n)
		} else {
			b.WriteString("[:" + n + "]")
		}
	}
	if s.Real != "" {
		b.WriteString(":" + s.Real)
	}
	return b.String()
}

// table has every transform at its kind.
var table = [...]Spec{
	Rows: {
		Name: "rows", Ints: []string{"LO", "HI", "EVERY"}, Optional: 1,
		Doc: "Rows LO to HI, HI excluded, of a fused tensor; with EVERY, those of each block of EVERY rows. Without " +
			"arguments, where no other transform stands around or inside it, all rows as they are.",
		Legal: func(n []int) string {
			if n[0] >= n[1] {
				return "wants LO below HI"
			}
			if len(n) == 3 && n[1] > n[2] {
				return "wants an EVERY of at least HI"
			}
			return ""
		},
		Shape: func(n []int, rows, cols Count) (Count, Count, string) {
			if len(n) == 2 {
				if !rows.Unknown && rows.N < n[1] {
					return rows, cols, fmt.Sprintf("takes rows %d to %d of %d", n[0], n[1], rows.N)
				}
				return Count{N: n[1] - n[0]}, cols, ""
			}
			rows, why := rows.in(n[2])
			rows.N = rows.N / n[2] * (n[1] - n[0])
			return rows, cols, why
		},
		Row: func(n []int, row int) int {
			if len(n) == 2 {
				return n[0] + row
			}
			taken := n[1] - n[0]
			return row/taken*n[2] + n[0] + row%taken
		},
	},
	Pairs: {
		Name: "pairs", Ints: []string{"HEAD", "ROTATED"}, Optional: 1,
		Doc: "Makes rows j and j+HEAD/2 of each HEAD rows adjacent: the two rows of a rotation. HEAD is even. With " +
			"ROTATED, which is even and less than HEAD, the first ROTATED rows are paired, j and j+ROTATED/2, and " +
			"the others stay in place.",
		Legal: func(n []int) string {
			if len(n) == 2 && (n[1] < 2 || n[1]%2 != 0 || n[1] >= n[0]) {
				return "wants a positive even ROTATED below HEAD"
			}
			return evenHead(n)
		},
		Shape: wholeHeads,
		Row: func(n []int, row int) int {
			head, k, rotated := row/n[0], row%n[0], n[len(n)-1]
			if k >= rotated {
				return row
			}
			return head*n[0] + k/2 + k%2*(rotated/2)
		},
	},
	Halves: {
		Name: "halves", Ints: []string{"HEAD"},
		Doc: "Of each HEAD rows, first the even ones and then the odd ones: a rotary embedding of adjacent " +
			"elements becomes one of halves. It undoes pairs:HEAD. HEAD is even.",
		Legal: evenHead,
		Shape: wholeHeads,
		Row: func(n []int, row int) int {
			head, k := row/n[0], row%n[0]
			return head*n[0] + k%(n[0]/2)*2 + k/(n[0]/2)
		},
	},
	Even: {
		Name: "even", Interleave: true,
		Doc: "Rows 0, 2, 4 and so on of the buffer, from where the piece begins. The next piece is odd and has as " +
			"many rows. It is the outermost transform.",
	},
	Odd: {
		Name: "odd", Interleave: true,
		Doc: "The rows between those of the even piece before it. It is the outermost transform.",
	},
	Transpose: {
		Name: "transpose", Transposes: true,
		Doc:   "Swaps rows and columns, for checkpoints that store matrices transposed.",
		Shape: func(_ []int, rows, cols Count) (Count, Count, string) { return cols, rows, "" },
	},
	Plus: {
		Name: "plus", Real: "X",
		Doc: "X added to each element, in float32, before elements are rounded to the buffer's dtype.",
		Values: func(by float32, values []float32) {
			for i := range values {
				values[i] += by
			}
		},
	},
	Times: {
		Name: "times", Real: "X",
		Doc: "Each element times X, in float32, before elements are rounded to the buffer's dtype.",
		Values: func(by float32, values []float32) {
			for i := range values {
				values[i] *= by
			}
		},
	},
	Share: {
		Name: "share", Ints: []string{"ROWS", "RANKS"}, Optional: 1,
		Doc: "ROWS rows that are a rank's: those from rank·ROWS on; with RANKS, as many ranks one after another have " +
			"the same. Between two of transpose, a share of columns.",
		Legal: func(n []int) string {
			if n[0] < 1 || n[len(n)-1] < 1 {
				return "wants positive ROWS and RANKS"
			}
			return ""
		},
		Shape: func(n []int, rows, cols Count) (Count, Count, string) {
			_, why := rows.in(n[0])
			return Count{N: n[0]}, cols, why
		},
		Row: func(_ []int, row int) int { return row }, // of rank 0; OfRank makes rows of the others' shares
	},
}

func evenHead(n []int) string {
	if n[0] < 2 || n[0]%2 != 0 {
		return "wants a positive even HEAD"
	}
	return ""
}

func wholeHeads(n []int, rows, cols Count) (Count, Count, string) {
	rows, why := rows.in(n[0])
	return rows, cols, why
}

// usable reports whether a number is one that float32 holds as a normal number. 0 is not: it would add nothing, or
// leave nothing.
func usable(v float64) bool {
	const minSingle = 0x1p-126
	abs := math.Abs(float64(float32(v)))
	return abs >= minSingle && abs <= math.MaxFloat32
}
