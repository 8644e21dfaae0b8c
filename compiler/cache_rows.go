package compiler

import "amkc/runtime/host"

// cacheRows are the rows of a cache as the kernels have it, of one sequence.
type cacheRows struct {
	bytes     []byte
	facts     *host.Facts
	fragments bool // its blocks are in the order of fragments (amk/cache.cuh)
}

// blockRows are those of a block: of K, and then of V; or of a convolution.
const blockRows = 16

func (c *cacheRows) integers(layer int) bool { return c.facts.ModelOf(layer).Cache != "" }

func (c *cacheRows) elementBytes(layer int) int {
	switch m := c.facts.ModelOf(layer); {
	case m.Cache != "":
		return 1
	case m.DType == "F32":
		return 4
	}
	return 2
}

// block is where the block of a row begins, of a head of a layer, and how many elements a row has there.
func (c *cacheRows) block(layer, head, row int) (at, padded int) {
	m := c.facts.ModelOf(layer)
	blocks := (m.MaxSeq + blockRows - 1) / blockRows
	return c.facts.CacheAt(layer) + (head*blocks+row/blockRows)*m.CacheBlock, (m.HeadDim + 15) / 16 * 16
}

// at is where an element is stored: of K, or of V.
func (c *cacheRows) at(layer, head, row, dim int, value bool) int {
	base, padded := c.block(layer, head, row)
	size := c.elementBytes(layer)
	if value {
		base += blockRows * padded * size
	}
	r, d := row%blockRows, dim%16
	if !c.fragments || c.facts.RowsOf(layer) == 1 {
		return base + (r*padded+dim)*size
	}
	lane, reg, half := r%8*4+d/4, r/8+d%4/2*2, d%2
	if value {
		lane, reg, half = d%8*4+r%8/2, d/8+r/8*2, r%2
	}
	return base + dim/16*256*size + (lane*8+reg*2+half)*size
}

// scaleAt is where the scale of a row of integers is stored.
func (c *cacheRows) scaleAt(layer, head, row int, value bool) int {
	at, padded := c.block(layer, head, row)
	at += 2*blockRows*padded + row%blockRows*4
	if value {
		at += 2
	}
	return at
}

func (c *cacheRows) scaleOf(layer, head, row int, value bool) float32 {
	return host.DecodeElements(c.bytes[c.scaleAt(layer, head, row, value):][:2], "BF16")[0]
}

// element is what an element means.
func (c *cacheRows) element(layer, head, row, dim int, value bool) float64 {
	b := c.bytes[c.at(layer, head, row, dim, value):][:c.elementBytes(layer)]
	if c.integers(layer) {
		return float64(int8(b[0])) * float64(c.scaleOf(layer, head, row, value))
	}
	return float64(host.DecodeElements(b, c.facts.ModelOf(layer).DType)[0])
}

// of are the elements of a layer, and of integers their scales: [heads, positions, rows of each, elements of a row].
func (c *cacheRows) of(layer int, shape []int) (values, scales []float32) {
	heads, rows, hd := shape[0], shape[1], shape[3]
	for head := range heads {
		for row := range rows {
			for _, value := range []bool{false, true}[:shape[2]] {
				for d := range hd {
					v := c.element(layer, head, row, d, value)
					if c.integers(layer) {
						v = float64(int8(c.bytes[c.at(layer, head, row, d, value)]))
					}
					values = append(values, float32(v))
				}
				if c.integers(layer) {
					scales = append(scales, c.scaleOf(layer, head, row, value))
				}
			}
		}
	}
	return values, scales
}
