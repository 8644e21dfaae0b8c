package format

// Groups are rows of quantised elements with a scale, and perhaps a zero point or a minimum, for each group of columns:
// w = scale · (q − zero) or w = scale · u + min for integers, where u is q without a sign, and w = scale · q for fp8.
// With steps, the scale is Step · Scale and the minimum MinStep · Min, and Scale and Min are the same for all groups of
// 128 columns.
type Groups struct {
	Cols    int       // of a row
	Group   int       // columns of a group; the last group of a row may have fewer
	Q       []byte    // rows × Cols: int8 (of n bits less than 8 sign-extended, u − 2ⁿ⁻¹), or the bits of e4m3
	Scale   []float32 // rows × ⌈Cols/Group⌉
	Zero    []int8    // like Scale (minus 8 for unsigned nibbles too), or nil for none
	Min     []float32 // like Scale, or nil for none
	Step    []int8    // like Scale, or nil for none
	MinStep []int8    // like Scale, or nil for none
}

// newGroups has room for whole rows.
func (b blocks) newGroups(rows, cols int) Groups {
	g := Groups{Cols: cols, Group: b.group, Q: make([]byte, rows*cols)}
	n := rows * g.PerRow()
	g.Scale = make([]float32, n)
	if b.zeros {
		g.Zero = make([]int8, n)
	}
	if b.mins {
		g.Min = make([]float32, n)
	}
	if b.steps {
		g.Step = make([]int8, n)
	}
	if b.steps && b.mins {
		g.MinStep = make([]int8, n)
	}
	return g
}

// Rows is the number of rows.
func (g *Groups) Rows() int { return len(g.Q) / g.Cols }

// PerRow is the number of groups of a row.
func (g *Groups) PerRow() int { return (g.Cols + g.Group - 1) / g.Group }

// Slice returns rows [row0, row1), which share the elements of g.
func (g *Groups) Slice(row0, row1 int) Groups {
	a, z := row0*g.PerRow(), row1*g.PerRow()
	return Groups{Cols: g.Cols, Group: g.Group, Q: g.Q[row0*g.Cols : row1*g.Cols], Scale: g.Scale[a:z],
		Zero: sliced(g.Zero, a, z), Min: sliced(g.Min, a, z), Step: sliced(g.Step, a, z),
		MinStep: sliced(g.MinStep, a, z)}
}

func sliced[T any](of []T, a, z int) []T {
	if of == nil {
		return nil
	}
	return of[a:z]
}

// Append adds rows of the same kind.
func (g *Groups) Append(rows *Groups) {
	g.Q, g.Scale = append(g.Q, rows.Q...), append(g.Scale, rows.Scale...)
	g.Zero, g.Min = append(g.Zero, rows.Zero...), append(g.Min, rows.Min...)
	g.Step, g.MinStep = append(g.Step, rows.Step...), append(g.MinStep, rows.MinStep...)
}

// ScaleOf and MinOf are the scale and the minimum of a group. Numbers of 16 bits times steps are exact.
func (g *Groups) ScaleOf(of int) float32 {
	if g.Step != nil {
		return g.Scale[of] * float32(g.Step[of])
	}
	return g.Scale[of]
}

func (g *Groups) MinOf(of int) float32 {
	switch {
	case g.Min == nil:
		return 0
	case g.MinStep != nil:
		return g.Min[of] * float32(g.MinStep[of])
	}
	return g.Min[of]
}

// Value is the value of element i, whose group is `of` and whose type is one of blocks. The product is exact for scales
// of 16 bits, and otherwise rounded once; a sum with a minimum is rounded.
func (g *Groups) Value(dtype string, i, of int) float32 {
	if float := floatsOf(dtype); float != nil {
		return g.Scale[of] * float.values[g.Q[i]]
	}
	q := int(int8(g.Q[i]))
	if g.Zero != nil {
		q -= int(g.Zero[of])
	}
	if g.Min != nil {
		return float32(g.ScaleOf(of)*float32(q+middles[dtype])) + g.MinOf(of)
	}
	return g.ScaleOf(of) * float32(q)
}

// middles are half the range of integers.
var middles = map[string]int{"I4": 8, "I5": 16, "I6": 32, "I8": 128}
