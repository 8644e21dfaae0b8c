package format

// Groups are rows of quantised elements with a scale, and perhaps a zero point, for every group of columns:
// w = scale · (q − zero) for integers, and w = scale · q for fp8.
type Groups struct {
	Cols  int       // of a row
	Group int       // columns of a group; the last group of a row may have fewer
	Q     []byte    // rows × Cols: int8 (int4 sign-extended, q − 8 of an unsigned nibble q), or the bits of e4m3
	Scale []float32 // rows × ⌈Cols/Group⌉
	Zero  []int8    // like Scale (minus 8 for unsigned nibbles too), or nil for none
}

// Rows is the number of rows.
func (g *Groups) Rows() int { return len(g.Q) / g.Cols }

// PerRow is the number of groups of a row.
func (g *Groups) PerRow() int { return (g.Cols + g.Group - 1) / g.Group }
