package transform

import "slices"

// Shares reports whether the chain takes a rank's share.
func (c Chain) Shares() bool {
	return slices.ContainsFunc(c, func(t Transform) bool { return t.Kind == Share })
}

// SharesColumns reports whether the chain takes a rank's share of the columns of a matrix.
func (c Chain) SharesColumns() bool {
	share := slices.IndexFunc(c, func(t Transform) bool { return t.Kind == Share })
	return share > 0 && c[share-1].Kind == Transpose
}

// OfRank returns the chain as it is for a rank: its shares are rows that are stated.
func (c Chain) OfRank(rank int) Chain {
	out := slices.Clone(c)
	for i, t := range out {
		if t.Kind != Share {
			continue
		}
		k := rank
		if len(t.Ints) == 2 {
			k /= t.Ints[1]
		}
		out[i] = Transform{Kind: Rows, Ints: []int{k * t.Ints[0], (k + 1) * t.Ints[0]}}
	}
	return out
}
