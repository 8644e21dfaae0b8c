package format

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Quantised is a format of integers or of floats with scales. Pack and PackFor choose scales and zero points, and
// round to them; PackGroups takes them as they are.
type Quantised interface {
	Format
	// Group is how many columns share a scale: 32, 64 or 128.
	Group() int
	// Scale is the element type of scales.
	Scale() string
	// Zeros says whether groups have zero points.
	Zeros() bool
	// PackFor is Pack for rows that are multiplied with vectors of which something is known: it makes the error of the
	// products small, where Pack makes that of the weights small.
	PackFor(dst []byte, values []float32, cols int, in *Inputs) []byte
	// PackGroups lays whole rows out, as Pack does. Their groups have Group columns, or a multiple of 128. Their
	// scales are numbers of the type that the format keeps, and zero points are there only if it has some.
	PackGroups(dst []byte, g *Groups) []byte
	// UnpackGroups returns whole rows, in groups of Group columns. The bytes begin with a tile.
	UnpackGroups(packed []byte, rows, cols int) Groups
}

// InFixedPoint reports whether the kernel multiplies matrices of a format, which may be nil, by vectors in fixed point,
// as it does for integers.
func InFixedPoint(f Format) bool {
	q, quantised := f.(Quantised)
	return quantised && floatsOf(q.DType()) == nil
}

// HasOffset reports whether integers of a format, which may be nil, are multiplied with an offset that is subtracted
// from their sums: those with zero points, and those of int4, which are stored unsigned.
func HasOffset(f Format) bool {
	q, quantised := f.(Quantised)
	return quantised && InFixedPoint(f) && (q.Zeros() || q.DType() == "I4")
}

// blocks is what quantised matrices are streamed in: tiles of 8 rows, in them blocks of 128 columns. A block is its
// elements, then a scale for each row and group, then a zero point of one byte for each, then zeros up to a multiple of
// 16 bytes, the unit of bulk copies and of what a lane loads.
//
// The elements lie as mma.m16n8k32 takes them (PTX ISA, matrix fragments of .s8): lane 4*row + part of a warp holds
// columns 4*part to 4*part+3, and the same 16 columns on, of each of the block's four quarters of 32 columns. Bytes of
// quarters 0 and 1 are one 16-byte load, and those of 2 and 3 another. Of int4 it is a single load: the low nibbles are
// quarters 0 and 1, the high ones 2 and 3. They hold q + 8, and zero points z + 8, so that a mask makes an operand of
// unsigned bytes of them; int8 is two's complement.
type blocks struct {
	dtype string // I4, I8, or one of numbers
	bits  int
	float *number // what the elements are; nil: integers
	group int
	scale element
	zeros bool
}

const (
	quantColumns = QuadColumns // of a block
	quarters     = 4
	unit         = 16 // bytes: blocks are a whole number of them
	nibbleOffset = 8  // what is added to the elements and the zero points of int4
)

// quantised lists the formats of one element type.
func quantised(dtype string, bits int) []Format {
	var out []Format
	for _, zeros := range []bool{false, true} {
		for _, group := range []int{32, 64, 128} {
			for _, scale := range []element{f32, f16, bf16} {
				if float := floatsOf(dtype); float == nil || slices.Contains(float.groups, group) && !zeros {
					out = append(out, blocks{dtype, bits, float, group, scale, zeros})
				}
			}
		}
	}
	return out
}

// BlocksLayout is the layout of quantised blocks: tile8x128.g64.BF16.zeros has scales in bf16 and zero points for
// groups of 64 columns.
func BlocksLayout(group int, scale string, zeros bool) string {
	s := fmt.Sprintf("tile8x128.g%d.%s", group, scale)
	if zeros {
		s += ".zeros"
	}
	return s
}

func (b blocks) Layout() string { return BlocksLayout(b.group, b.scale.name, b.zeros) }
func (b blocks) DType() string  { return b.dtype }
func (b blocks) Group() int     { return b.group }
func (b blocks) Scale() string  { return b.scale.name }
func (b blocks) Zeros() bool    { return b.zeros }

// Largest is the product of the largest scale and the largest element, reduced so that it is finite if a scale is
// rounded up.
func (b blocks) Largest() float32 {
	return float32(min(0x1.fp127, float64(b.scale.largest)*float64(b.most())))
}

// most is the largest element, of either sign.
func (b blocks) most() float32 {
	if b.float != nil {
		return b.float.largest
	}
	return float32(int(1)<<(b.bits-1) - 1)
}

// Loader is that of scales; the rest is in the descriptors of stages.
func (b blocks) Loader() string { return b.scale.loader }

// Where the parts of a block begin, and where it ends.
func (b blocks) scalesAt() int { return tileRows * quantColumns * b.bits / 8 }
func (b blocks) groups() int   { return tileRows * quantColumns / b.group }
func (b blocks) zerosAt() int  { return b.scalesAt() + b.groups()*b.scale.size }
func (b blocks) size() int {
	end := b.zerosAt()
	if b.zeros {
		end += b.groups()
	}
	return (end + unit - 1) / unit * unit
}

func (b blocks) Geometry() Geometry {
	return Geometry{Rows: tileRows, Columns: quantColumns, BlockBytes: b.size()}
}

func (b blocks) Bytes(rows, cols int) int {
	g := b.Geometry()
	return g.Tiles(rows) * g.TileBytes(cols)
}

func (b blocks) Tensor(rows, cols int) (dtype string, shape []int) {
	g := b.Geometry()
	return "U8", []int{g.Tiles(rows), g.Blocks(cols), b.size()}
}

// offset is what is added to integers and zero points.
func (b blocks) offset() byte {
	if b.bits == 4 && b.float == nil {
		return nibbleOffset
	}
	return 0
}

// block is the byte where the block of an element begins.
func (b blocks) block(row, col, cols int) int {
	return row/tileRows*b.Geometry().TileBytes(cols) + col/quantColumns*b.size()
}

// within is the byte of a block that an element is in; of int4 those of quarters 2 and 3 are its high nibble.
func (b blocks) within(row, col int) int {
	quarter, in := col%quantColumns/32, col%32
	lane, word := row%tileRows*4+in%16/4, quarter%2*2+in/16
	at := lane*unit + word*4 + in%4
	if b.bits == 4 {
		return at
	}
	return at + quarter/2*lanes*unit
}

func (b blocks) At(row, col, cols int) int {
	return b.block(row, col, cols) + b.within(row, col)
}

// groupOf is the number of an element's group within its block.
func (b blocks) groupOf(row, col int) int {
	return row%tileRows*(quantColumns/b.group) + col%quantColumns/b.group
}

func (b blocks) PackGroups(dst []byte, g *Groups) []byte {
	rows, perRow := g.Rows(), g.PerRow()
	dst = sized(dst, b.Bytes(rows, g.Cols))
	clear(dst)
	for row := range rows {
		for col := 0; col < g.Cols; col += quantColumns {
			block, q := dst[b.block(row, col, g.Cols):][:b.size()], g.Q[row*g.Cols+col:(row+1)*g.Cols]
			if len(q) < quantColumns {
				q = append(make([]byte, 0, quantColumns), q...)[:quantColumns]
			}
			b.elements(block, row, q[:quantColumns])
			for first := col; first < min(g.Cols, col+quantColumns); first += b.group {
				in, of := b.groupOf(row, first), row*perRow+first/g.Group
				b.scale.encode(block[b.scalesAt()+in*b.scale.size:], g.Scale[of:of+1])
				if b.zeros && g.Zero != nil {
					block[b.zerosAt()+in] = byte(g.Zero[of]) + b.offset()
				}
			}
		}
	}
	return dst
}

// elements places those of a row in its block, four at a time, which are side by side.
func (b blocks) elements(block []byte, row int, q []byte) {
	for col := 0; col < quantColumns/2; col += 4 {
		at := b.within(row, col)
		low := binary.LittleEndian.Uint32(q[col:])
		high := binary.LittleEndian.Uint32(q[col+quantColumns/2:])
		if b.bits == 4 {
			const nibbles = 0x0f0f0f0f
			offset := 0x01010101 * uint32(b.offset()) // added without a carry
			binary.LittleEndian.PutUint32(block[at:], (low^offset)&nibbles|(high^offset)&nibbles<<4)
			continue
		}
		binary.LittleEndian.PutUint32(block[at:], low)
		binary.LittleEndian.PutUint32(block[at+lanes*unit:], high)
	}
}

// elementsOf is the way back: it takes those of a row from its block.
func (b blocks) elementsOf(block []byte, row int, q []byte) {
	for col := 0; col < quantColumns/2; col += 4 {
		at := b.within(row, col)
		low, high := binary.LittleEndian.Uint32(block[at:]), uint32(0)
		switch {
		case b.bits == 8:
			high = binary.LittleEndian.Uint32(block[at+lanes*unit:])
		case b.float != nil:
			low, high = low&0x0f0f0f0f, low>>4&0x0f0f0f0f
		default:
			low, high = signed(low), signed(low>>4)
		}
		binary.LittleEndian.PutUint32(q[col:], low)
		binary.LittleEndian.PutUint32(q[col+quantColumns/2:], high)
	}
}

// signed takes the offset of int4 off the low nibbles of four bytes. With its highest bit set no byte borrows.
func signed(nibbles uint32) uint32 {
	const top, offset = 0x80808080, 0x01010101 * nibbleOffset
	return (nibbles&0x0f0f0f0f | top) - offset ^ top
}

func (b blocks) UnpackGroups(packed []byte, rows, cols int) Groups {
	g := Groups{Cols: cols, Group: b.group, Q: make([]byte, rows*cols)}
	g.Scale = make([]float32, rows*g.PerRow())
	if b.zeros {
		g.Zero = make([]int8, len(g.Scale))
	}
	var q [quantColumns]byte
	for row := range rows {
		for col := 0; col < cols; col += quantColumns {
			block := packed[b.block(row, col, cols):][:b.size()]
			b.elementsOf(block, row, q[:])
			copy(g.Q[row*cols+col:(row+1)*cols], q[:])
			for first := col; first < min(cols, col+quantColumns); first += b.group {
				in, of := b.groupOf(row, first), row*g.PerRow()+first/b.group
				b.scale.decode(g.Scale[of:of+1], block[b.scalesAt()+in*b.scale.size:][:b.scale.size])
				if b.zeros {
					g.Zero[of] = int8(block[b.zerosAt()+in] - b.offset())
				}
			}
		}
	}
	return g
}

func (b blocks) Unpack(dst []float32, packed []byte, cols int) {
	g := b.UnpackGroups(packed, len(dst)/cols, cols)
	of := 0
	for row := 0; row < len(dst); row += cols {
		for first := 0; first < cols; first += g.Group {
			for i := row + first; i < row+min(cols, first+g.Group); i++ {
				dst[i] = g.Value(b.dtype, i, of)
			}
			of++
		}
	}
}

// Value is the value of element i, whose group is `of` and whose type is one of blocks. The product is exact for scales
// of 16 bits, and otherwise rounded once.
func (g *Groups) Value(dtype string, i, of int) float32 {
	if float := floatsOf(dtype); float != nil {
		return g.Scale[of] * float.values[g.Q[i]]
	}
	q := int(int8(g.Q[i]))
	if g.Zero != nil {
		q -= int(g.Zero[of])
	}
	return g.Scale[of] * float32(q)
}
