package format

import "math"

// Pack quantises whole rows group by group.
func (b blocks) Pack(dst []byte, values []float32, cols int) []byte {
	rows := len(values) / cols
	g := Groups{Cols: cols, Group: b.group, Q: make([]byte, rows*cols)}
	g.Scale = make([]float32, rows*g.PerRow())
	if b.zeros {
		g.Zero = make([]int8, len(g.Scale))
	}
	for row := range rows {
		for k := range g.PerRow() {
			first, last := row*cols+k*b.group, row*cols+min(cols, (k+1)*b.group)
			b.quantise(&g, row*g.PerRow()+k, values[first:last], g.Q[first:last])
		}
	}
	return b.PackGroups(dst, &g)
}

// quantise chooses the scale and the zero point of a group, and rounds its values to them.
func (b blocks) quantise(g *Groups, of int, values []float32, q []byte) {
	low, high := float32(0), float32(0)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	largest := float32(int(1)<<(b.bits-1) - 1)
	zero := float32(0)
	scale := max(-low, high) / largest
	if b.zeros {
		scale = (high - low) / (2*largest + 1)
	}
	scale = b.rounded(scale)
	g.Scale[of] = scale
	if scale == 0 {
		return
	}
	if b.zeros {
		zero = float32(math.Round(float64(-low/scale))) - largest - 1
		zero = max(-largest-1, min(largest, zero))
		g.Zero[of] = int8(zero)
	}
	for i, v := range values {
		q[i] = byte(int8(max(-largest-1, min(largest, float32(math.RoundToEven(float64(v/scale)))+zero))))
	}
}

// rounded is a scale as the format keeps it.
func (b blocks) rounded(scale float32) float32 {
	bytes, out := make([]byte, 4), []float32{0}
	b.scale.encode(bytes, []float32{scale})
	b.scale.decode(out, bytes[:b.scale.size])
	return out[0]
}
