package quantised

import (
	"encoding/binary"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
)

// word is the i-th of little-endian words.
func word(raw []byte, i int) uint32 { return binary.LittleEndian.Uint32(raw[4*i:]) }

// signed is the field of n bits, 4 or 8, that begins at a bit of a word, less the middle of its range.
func signed(word uint32, bit, bits int) int8 {
	return int8(int(word>>bit)&(1<<bits-1) - 1<<(bits-1))
}

// unpack fills dst with the fields of a word, from the lowest on, as signed does one of them.
func unpack(dst []byte, word uint32, bits int) {
	mask, middle := uint32(1)<<bits-1, byte(1)<<(bits-1)
	for i := range dst {
		dst[i] = byte(word&mask) - middle
		word >>= bits
	}
}

// codes are the elements of a matrix: read fills dst with n rows from row0 on, a byte for each.
type codes interface {
	read(dst []byte, row0, n int) error
}

// byteRows are elements of a byte, row by row.
type byteRows struct {
	t    checkpoint.Tensor
	cols int
}

func (b byteRows) read(dst []byte, row0, n int) error {
	return b.t.ReadPieces(dst, row0*b.cols, n*b.cols, 0)
}

// wordRows are rows of whole words, which hold columns from the low bits on.
type wordRows struct {
	t          checkpoint.Tensor
	bits, cols int
}

func (w wordRows) read(dst []byte, row0, n int) error {
	words, per := w.t.Shape[1], 32/w.bits
	raw := make([]byte, n*words*4)
	if err := w.t.ReadPieces(raw, row0*words*4, len(raw), 0); err != nil {
		return err
	}
	for row := range n {
		for col := 0; col < w.cols; col += per {
			unpack(dst[row*w.cols+col:row*w.cols+min(w.cols, col+per)], word(raw, row*words+col/per), w.bits)
		}
	}
	return nil
}

// wordColumns are words that hold columns of one row, and lie alongside those of the other rows: GPTQ.
type wordColumns struct {
	t                checkpoint.Tensor
	bits, rows, cols int
}

func (w wordColumns) read(dst []byte, row0, n int) error {
	per := 32 / w.bits
	raw := make([]byte, w.t.Shape[0]*n*4)
	if err := w.t.ReadPieces(raw, row0*4, n*4, w.rows*4); err != nil {
		return err
	}
	for col := 0; col < w.cols; col += per {
		for row := range n {
			unpack(dst[row*w.cols+col:row*w.cols+min(w.cols, col+per)], word(raw, col/per*n+row), w.bits)
		}
	}
	return nil
}

// awqRows is how many rows a word of AWQ holds, and awqField which of its fields each is in.
const awqRows = 8

var awqField = [awqRows]int{0, 4, 1, 5, 2, 6, 3, 7}

// awqColumns are words that hold rows of one column.
type awqColumns struct {
	t    checkpoint.Tensor
	cols int
}

func (a awqColumns) read(dst []byte, row0, n int) error {
	first, words := row0/awqRows, (row0+n+awqRows-1)/awqRows-row0/awqRows
	raw := make([]byte, a.cols*words*4)
	if err := a.t.ReadPieces(raw, first*4, words*4, a.t.Shape[1]*4); err != nil {
		return err
	}
	for i := range n {
		row, to := row0+i, dst[i*a.cols:(i+1)*a.cols]
		at, bit := row/awqRows-first, 4*awqField[row%awqRows]
		for col := range to {
			to[col] = byte(signed(word(raw, col*words+at), bit, 4))
		}
	}
	return nil
}

// A grid is the scales of a matrix: rows by cols of them, each for rowsEach rows (0: all of them) by colsEach columns.
type grid struct {
	t                  checkpoint.Tensor
	dtype              checkpoint.DType // of a scale
	rows, cols         int
	rowsEach, colsEach int
	transposed         bool    // the tensor has rows as columns
	ofMatrix           float32 // in NVFP4, what all of them are multiplied with
	divides            bool    // or what they are divided by
}

// sameShape reports whether a tensor of a shape has an element for each scale. Dimensions of 1 may be left out.
func (g *grid) sameShape(shape []int) bool {
	ones := func(n int) bool { return n == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(shape), ones),
		slices.DeleteFunc([]int{g.rows, g.cols}, ones))
}

// at is the row of scales that a row of the matrix has.
func (g *grid) at(row int) int {
	if g.rowsEach == 0 {
		return 0
	}
	return row / g.rowsEach
}

// read fills dst with the scales of n rows from row0 on.
func (g *grid) read(dst []float32, row0, n int) error {
	switch {
	case g.dtype == checkpoint.E8M0:
		return g.exponents(dst, row0)
	case g.ofMatrix != 0:
		return g.halvesOfE4M3(dst, row0)
	}
	if g.transposed {
		part := make([]float32, n)
		for k := range g.cols {
			if err := g.t.ReadF32(part, k*g.rows+row0); err != nil {
				return err
			}
			for row, v := range part {
				dst[row*g.cols+k] = v
			}
		}
		return nil
	}
	if g.rowsEach == 1 {
		return g.t.ReadF32(dst, row0*g.cols)
	}
	for row := range n {
		if err := g.t.ReadF32(dst[row*g.cols:(row+1)*g.cols], g.at(row0+row)*g.cols); err != nil {
			return err
		}
	}
	return nil
}

// zeros are the zero points of a matrix: read fills dst with those of n rows from row0 on, in the order of scales, less
// the middle of the range of an element.
type zeros interface {
	read(dst []int8, row0, n int) error
}

// byteZeros are signed bytes in the order of scales.
type byteZeros struct {
	t  checkpoint.Tensor
	of *grid
}

func (b *byteZeros) read(dst []int8, row0, n int) error {
	raw := make([]byte, b.of.cols)
	for row := range n {
		if err := b.t.ReadPieces(raw, b.of.at(row0+row)*b.of.cols, len(raw), 0); err != nil {
			return err
		}
		for k, z := range raw {
			dst[row*b.of.cols+k] = int8(z)
		}
	}
	return nil
}

// wordZeros are words that hold the zero points of rows for one group: compressed-tensors.
type wordZeros struct {
	t          checkpoint.Tensor
	bits, cols int
}

func (w *wordZeros) read(dst []int8, row0, n int) error {
	per := 32 / w.bits
	first := row0 / per
	raw := make([]byte, ((row0+n+per-1)/per-first)*w.cols*4)
	if err := w.t.ReadPieces(raw, first*w.cols*4, len(raw), 0); err != nil {
		return err
	}
	for i := range n {
		row := row0 + i
		for k := range w.cols {
			dst[i*w.cols+k] = signed(word(raw, (row/per-first)*w.cols+k), row%per*w.bits, w.bits)
		}
	}
	return nil
}

// columnZeros are words that hold the zero points of rows, and lie alongside each other for one group: GPTQ and AWQ.
type columnZeros struct {
	t    checkpoint.Tensor
	bits int
	awq  bool // its order of fields
	less bool // they are stored less one
}

func (c *columnZeros) read(dst []int8, row0, n int) error {
	per := 32 / c.bits
	groups, first := c.t.Shape[0], row0/per
	words := (row0+n+per-1)/per - first
	raw := make([]byte, groups*words*4)
	if err := c.t.ReadPieces(raw, first*4, words*4, c.t.Shape[1]*4); err != nil {
		return err
	}
	largest := int8(1<<(c.bits-1) - 1)
	for k := range groups {
		for i := range n {
			row := row0 + i
			field := row % per
			if c.awq {
				field = awqField[field]
			}
			z := signed(word(raw, k*words+row/per-first), field*c.bits, c.bits)
			if c.less {
				if z == largest {
					return diag.Errorf(codeValues, "tensor "+c.t.Name, "the zero point of row %d, group %d was stored "+
						"as -1, and its bits reach into others; want a model saved as gptq_v2", row, k)
				}
				z++
			}
			dst[i*groups+k] = z
		}
	}
	return nil
}
