package format

import "slices"

// What is packed in a format of files is rounded plainly: a group's range, or its largest magnitude without a minimum,
// is that of the integers.

// asStored chooses scales and minima, and rounds to them.
func (b blocks) asStored(g *Groups, values []float32) {
	for row := range g.Rows() {
		for k := range g.PerRow() {
			group := values[row*g.Cols+k*b.group : row*g.Cols+min(g.Cols, (k+1)*b.group)]
			of := row*g.PerRow() + k
			if !b.mins {
				g.Scale[of] = largest(group) / b.most()
				continue
			}
			low, high := float32(0), float32(0)
			for _, v := range group {
				low, high = min(low, v), max(high, v)
			}
			g.Min[of], g.Scale[of] = low, high/(2*b.most()+1)-low/(2*b.most()+1)
		}
	}
	if b.steps {
		b.inSteps(g, g.Scale, g.Step)
		if b.mins {
			b.inSteps(g, g.Min, g.MinStep)
		}
	}
	for of := range g.Scale {
		if g.Scale[of] = b.rounded(g.Scale[of]); b.mins {
			g.Min[of] = b.rounded(g.Min[of])
		}
		row, k := of/g.PerRow(), of%g.PerRow()
		for i := row*g.Cols + k*b.group; i < row*g.Cols+min(g.Cols, (k+1)*b.group); i++ {
			g.Q[i] = b.round(values[i], g, of)
		}
	}
}

// inSteps makes the numbers of groups integers of at most 6 bits, times one for all groups of 128 columns.
func (b blocks) inSteps(g *Groups, numbers []float32, steps []int8) {
	const most = 63
	for row := range g.Rows() {
		for first := 0; first < g.PerRow(); first += quantColumns / b.group {
			own := numbers[row*g.PerRow()+first : row*g.PerRow()+min(g.PerRow(), first+quantColumns/b.group)]
			of := steps[row*g.PerRow()+first:]
			shared := b.rounded(largest(own) / most)
			if slices.Min(own) < 0 { // minima, of which none is above 0
				shared = -shared
			}
			inverse := 1 / shared
			for k, v := range own {
				if own[k] = 0; usable(shared, inverse) {
					own[k], of[k] = shared, int8(min(most, integer(v*inverse)))
				}
			}
		}
	}
}
