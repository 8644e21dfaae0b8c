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
	// Scales says what groups have.
	Scales() Scales
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
	return quantised && InFixedPoint(f) && (q.Scales().Zeros || q.DType() != "I8")
}

// InHalves reports whether groups of a format, which may be nil, are half of the columns whose products a lane adds up.
func InHalves(f Format) bool {
	q, quantised := f.(Quantised)
	return quantised && q.Scales().Group < 32
}

// Scales are what the groups of a quantised format have besides their elements.
type Scales struct {
	Group int    // columns that share a scale: 16, 32, 64 or 128
	Type  string // of scales, and of minima
	Zeros bool   // a zero point each, which is taken off the elements
	Mins  bool   // a minimum each, which is added: elements are unsigned
	Steps bool   // a scale and a minimum are an integer of 8 bits times one that the groups of a row's block share
}

// Layout is that of quantised blocks: tile8x128.g64.BF16.zeros has scales in bf16 and zero points for groups of 64
// columns.
func (s Scales) Layout() string {
	name := fmt.Sprintf("tile8x128.g%d.%s", s.Group, s.Type)
	for _, has := range []struct {
		it   bool
		word string
	}{{s.Steps, ".steps"}, {s.Mins, ".mins"}, {s.Zeros, ".zeros"}} {
		if has.it {
			name += has.word
		}
	}
	return name
}

// blocks is what quantised matrices are streamed in: tiles of 8 rows, in them blocks of 128 columns. A block is its
// elements, then what the groups of each row share, then a scale (and a minimum) for each row and group, then a zero
// point of one byte for each, then zeros up to a multiple of 16 bytes, the unit of bulk copies and of what lanes load.
//
// The elements lie as mma.m16n8k32 takes them (PTX ISA, matrix fragments of .s8): lane 4*row + part of a warp holds
// columns 4*part to 4*part+3, and the same 16 columns on, of each of the block's four quarters of 32 columns. Bytes of
// quarters 0 and 1 are one 16-byte load, and those of 2 and 3 another. Of int4 it is a single load: the low nibbles are
// quarters 0 and 1, the high ones 2 and 3. They hold q + 8, and zero points z + 8, so that a mask makes an operand of
// unsigned bytes of them; int8 is two's complement. Of e2m1, nibbles are in the same quarters, and the second and the
// third of four bytes change places. Integers of 5 and 6 bits are stored with half their range added
// too: the low four bits as those of int4, then of each lane their fifth bits in a word, or their fifth and sixth ones
// in two. Bit 8*i + k is of element i of word k of its operands.
//
// In groups of 16 columns a lane's sum is of half a quarter, so that the operand of one mma is the first half of each
// quarter, and that of the other one the second: these are what low and high nibbles are.
type blocks struct {
	dtype string // I4, I5, I6, I8, or one of numbers
	bits  int
	float *number // what the elements are; nil: integers
	group int
	scale element
	zeros bool
	mins  bool
	steps bool
}

const (
	quantColumns = QuadColumns // of a block
	quarters     = 4
	unit         = 16 // bytes: blocks are a whole number of them
)

// quantised lists the formats of one element type.
func quantised(dtype string, bits int) []Format {
	var out []Format
	for _, zeros := range []bool{false, true} {
		for _, group := range []int{32, 64, 128} {
			for _, scale := range []element{f32, f16, bf16, e8m0} {
				float := floatsOf(dtype)
				has := scale != e8m0
				if float != nil {
					has = slices.Contains(float.groups, group) && slices.Contains(float.scales, scale) && !zeros
				}
				if has {
					out = append(out, blocks{dtype: dtype, bits: bits, float: float, group: group, scale: scale,
						zeros: zeros})
				}
			}
		}
	}
	return out
}

// stored are formats of files, which no weights are rounded to by choice: NVFP4, the blocks of GGUF, and where matrices
// of several types are streamed as one, what has the values of all.
var stored = []Format{
	blocks{dtype: "I4", bits: 4, group: 32, scale: f16, mins: true},              // Q4_1
	blocks{dtype: "I5", bits: 5, group: 32, scale: f16},                          // Q5_0
	blocks{dtype: "I5", bits: 5, group: 32, scale: f16, mins: true},              // Q5_1
	blocks{dtype: "I5", bits: 5, group: 32, scale: bf16},                         // MXFP4
	blocks{dtype: "I5", bits: 5, group: 16, scale: f32},                          // NVFP4 of safetensors
	blocks{dtype: "I4", bits: 4, group: 16, scale: f16, mins: true, steps: true}, // Q2_K
	blocks{dtype: "I4", bits: 4, group: 16, scale: f16, steps: true},             // Q3_K
	blocks{dtype: "I4", bits: 4, group: 32, scale: f16, mins: true, steps: true}, // Q4_K
	blocks{dtype: "I5", bits: 5, group: 32, scale: f16, mins: true, steps: true}, // Q5_K
	blocks{dtype: "I6", bits: 6, group: 16, scale: f16, steps: true},             // Q6_K
	blocks{dtype: "I8", bits: 8, group: 32, scale: f16, steps: true},             // IQ4_XS
	blocks{dtype: "I5", bits: 5, group: 16, scale: f16, mins: true, steps: true}, // Q5_K with Q3_K
	blocks{dtype: "I6", bits: 6, group: 16, scale: f16, mins: true, steps: true}, // Q6_K with Q4_K
	blocks{dtype: "I8", bits: 8, group: 16, scale: f16, steps: true},             // IQ4_XS with Q6_K
}

func (b blocks) Layout() string { return b.Scales().Layout() }
func (b blocks) DType() string  { return b.dtype }
func (b blocks) Scales() Scales {
	return Scales{Group: b.group, Type: b.scale.name, Zeros: b.zeros, Mins: b.mins, Steps: b.steps}
}

// Largest is the product of the largest scale and the largest element, reduced so that it is finite if a scale is
// rounded up, or the largest minimum.
func (b blocks) Largest() float32 {
	if b.mins {
		return b.scale.largest
	}
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

// numbers are those of a group: a scale, and perhaps a minimum.
func (b blocks) numbers() int {
	if b.mins {
		return 2
	}
	return 1
}

// sharedBytes is the size of what the groups of a row share, and groupBytes that of a group's own numbers.
func (b blocks) sharedBytes() int {
	if b.steps {
		return b.numbers() * b.scale.size
	}
	return 0
}
func (b blocks) groupBytes() int {
	if b.steps {
		return b.numbers()
	}
	return b.numbers() * b.scale.size
}

// Where the parts of a block begin, and where it ends.
func (b blocks) sharedAt() int { return tileRows * quantColumns * b.bits / 8 }
func (b blocks) scalesAt() int { return b.sharedAt() + tileRows*b.sharedBytes() }
func (b blocks) groups() int   { return tileRows * quantColumns / b.group }
func (b blocks) zerosAt() int  { return b.scalesAt() + b.groups()*b.groupBytes() }
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
	if b.bits < 8 && b.float == nil {
		return 1 << (b.bits - 1)
	}
	return 0
}

// block is the byte where the block of an element begins.
func (b blocks) block(row, col, cols int) int {
	return row/tileRows*b.Geometry().TileBytes(cols) + col/quantColumns*b.size()
}

// operand is where columns of a block are multiplied: by the first mma or the second, and in which word of its operand.
func (b blocks) operand(col int) (second, word int) {
	quarter, half := col%quantColumns/32, col%32/16
	if b.group == 16 {
		return half, quarter
	}
	return quarter / 2, quarter%2*2 + half
}

// column is the way back: the first of four columns of a lane.
func (b blocks) column(second, word, part int) int {
	if b.group == 16 {
		return word*32 + second*16 + part*4
	}
	return (second*2+word/2)*32 + word%2*16 + part*4
}

// within is the byte of a block that an element begins in; of less than 8 bits those of the second mma are its high
// nibble.
func (b blocks) within(row, col int) int {
	second, word := b.operand(col)
	at := (row%tileRows*4+col%16/4)*unit + word*4 + b.inWord(col%4)
	if b.bits < 8 {
		return at
	}
	return at + second*lanes*unit
}

func (b blocks) At(row, col, cols int) int {
	return b.block(row, col, cols) + b.within(row, col)
}

// inWord is the byte of a word that element i of four is in. Of e2m1 the second and the third change places: so those
// of a pair of fp16 are each in its half of the word.
func (b blocks) inWord(i int) int {
	if b.swaps() {
		return i%2*2 + i/2
	}
	return i
}

func (b blocks) swaps() bool { return b.bits == 4 && b.float != nil }

// word is four elements side by side as the word that stores them, and the way back.
func (b blocks) word(four uint32) uint32 {
	if b.swaps() {
		return four&0xff0000ff | four>>8&0xff00 | four<<8&0xff0000
	}
	return four
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
			if b.steps {
				b.putNumbers(block[b.sharedAt()+row%tileRows*b.sharedBytes():], g, row*perRow+col/g.Group)
			}
			for first := col; first < min(g.Cols, col+quantColumns); first += b.group {
				in, of := b.groupOf(row, first), row*perRow+first/g.Group
				at := block[b.scalesAt()+in*b.groupBytes():]
				switch {
				case b.steps && b.mins:
					at[0], at[1] = byte(g.Step[of]), byte(g.MinStep[of])
				case b.steps:
					at[0] = byte(g.Step[of])
				default:
					b.putNumbers(at, g, of)
				}
				if b.zeros && g.Zero != nil {
					block[b.zerosAt()+in] = byte(g.Zero[of]) + b.offset()
				}
			}
		}
	}
	return dst
}

// putNumbers stores the scale of a group, and its minimum if groups have minima.
func (b blocks) putNumbers(at []byte, g *Groups, of int) {
	b.scale.encode(at, g.Scale[of:of+1])
	if b.mins {
		b.scale.encode(at[b.scale.size:], g.Min[of:of+1])
	}
}

// getNumbers is the way back.
func (b blocks) getNumbers(at []byte, g *Groups, of int) {
	b.scale.decode(g.Scale[of:of+1], at[:b.scale.size])
	if b.mins {
		b.scale.decode(g.Min[of:of+1], at[b.scale.size:2*b.scale.size])
	}
}

const everyByte = 0x01010101

// elements places those of a row in its block, four at a time, which are side by side.
func (b blocks) elements(block []byte, row int, q []byte) {
	offset, mask := everyByte*uint32(b.offset()), everyByte*(uint32(1)<<b.bits-1)
	for part := range 4 {
		lane := row%tileRows*4 + part
		own := block[lane*unit:]
		for word := range 4 {
			low := b.word(binary.LittleEndian.Uint32(q[b.column(0, word, part):]))
			high := b.word(binary.LittleEndian.Uint32(q[b.column(1, word, part):]))
			if b.bits == 8 {
				binary.LittleEndian.PutUint32(own[word*4:], low)
				binary.LittleEndian.PutUint32(own[word*4+lanes*unit:], high)
				continue
			}
			low, high = (low^offset)&mask, (high^offset)&mask // the offset is added without a carry
			const nibbles = 15 * everyByte
			binary.LittleEndian.PutUint32(own[word*4:], low&nibbles|(high&nibbles)<<4)
			for second, above := range [2]uint32{low >> 4 & nibbles, high >> 4 & nibbles} {
				if b.bits > 4 {
					at, bit := b.above(lane, second, word)
					binary.LittleEndian.PutUint32(block[at:], binary.LittleEndian.Uint32(block[at:])|above<<bit)
				}
			}
		}
	}
}

// above is where the bits above the fourth of four elements are, each in a byte of its own: a word of a block, and a
// bit of each of its bytes.
func (b blocks) above(lane, second, word int) (at, bit int) {
	at = lanes * unit
	if b.bits == 5 {
		return at + lane*4, second*4 + word
	}
	return at + lane*8 + second*4, word * 2
}

// elementsOf is the way back: it takes those of a row from its block.
func (b blocks) elementsOf(block []byte, row int, q []byte) {
	const nibbles = 15 * everyByte
	over := everyByte * (uint32(1)<<max(0, b.bits-4) - 1) // the bits above the fourth
	for part := range 4 {
		lane := row%tileRows*4 + part
		own := block[lane*unit:]
		for word := range 4 {
			first := binary.LittleEndian.Uint32(own[word*4:])
			for second := range 2 {
				four := first >> (4 * second) & nibbles
				switch {
				case b.bits == 8:
					four = binary.LittleEndian.Uint32(own[word*4+second*lanes*unit:])
				case b.bits > 4:
					at, bit := b.above(lane, second, word)
					four |= binary.LittleEndian.Uint32(block[at:]) >> bit & over << 4
				}
				if b.bits < 8 && b.float == nil {
					four = less(four, b.offset())
				}
				binary.LittleEndian.PutUint32(q[b.column(second, word, part):], b.word(four))
			}
		}
	}
}

// less takes an offset off four bytes below 128. With its highest bit set no byte borrows.
func less(four uint32, offset byte) uint32 {
	const top = 0x80 * everyByte
	return (four | top) - everyByte*uint32(offset) ^ top
}

func (b blocks) UnpackGroups(packed []byte, rows, cols int) Groups {
	g := b.newGroups(rows, cols)
	var q [quantColumns]byte
	for row := range rows {
		for col := 0; col < cols; col += quantColumns {
			block := packed[b.block(row, col, cols):][:b.size()]
			b.elementsOf(block, row, q[:])
			copy(g.Q[row*cols+col:(row+1)*cols], q[:])
			for first := col; first < min(cols, col+quantColumns); first += b.group {
				in, of := b.groupOf(row, first), row*g.PerRow()+first/b.group
				at := block[b.scalesAt()+in*b.groupBytes():]
				if b.steps {
					g.Step[of] = int8(at[0])
					if b.mins {
						g.MinStep[of] = int8(at[1])
					}
					at = block[b.sharedAt()+row%tileRows*b.sharedBytes():]
				}
				b.getNumbers(at, &g, of)
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
