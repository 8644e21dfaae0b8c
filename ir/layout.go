package ir

import (
	"fmt"

	"amkc/ir/format"
)

// LayoutKind is an injective map from the logical elements of a buffer to bytes.
type LayoutKind int

const (
	RowMajor  LayoutKind = iota // packed, row-major
	Tile8x32                    // weights [N,K] in tiles of 8 rows and blocks of 32 columns, see package format
	KVBlock16                   // caches [heads, rows, 2, hd]: per 16 rows K, then V, each in mma fragment order
	KVRows16                    // the same blocks with plain rows inside; also of [heads, rows, 1, n], which are F32
	Word32                      // exchanged: {16-bit value, 16-bit epoch}
	Word64                      // exchanged: {32-bit value, 32-bit epoch}
	Tile8x128                   // weights [N,K] in tiles of 8 rows and quantised blocks of 128 columns with scales
)

var layoutNames = [...]string{"rowmajor", "tile8x32", "kvfrag16", "kvrows16", "word32", "word64", "tile8x128"}

func (k LayoutKind) String() string { return enumName(layoutNames[:], int(k)) }

// ParseLayoutKind returns the layout with the given name.
func ParseLayoutKind(s string) (LayoutKind, error) {
	i, err := enumCode(layoutNames[:], s, "layout")
	return LayoutKind(i), err
}

// Layout is a layout kind and the number of copies kept (0 and 1 both mean one; exchange words may have more).
type Layout struct {
	Kind   LayoutKind
	Copies int
	Scales Scales // of Tile8x128
}

// Scales are the values that a quantised matrix has for each row and group of columns.
type Scales struct {
	Group int   // columns
	DType DType // F32, F16 or BF16; F8E8M0 of F4E2M1
	Zeros bool  // whether there are zero points
	Mins  bool  // whether there are minima, which are added
	Steps bool  // whether scales and minima are integers times one that groups have in common
}

// blocks are the scales as package format names them.
func (s Scales) blocks() format.Scales {
	return format.Scales{Group: s.Group, Type: s.DType.String(), Zeros: s.Zeros, Mins: s.Mins, Steps: s.Steps}
}

// Words reports whether elements are exchanged as self-validating words.
func (l Layout) Words() bool { return l.Kind == Word32 || l.Kind == Word64 }

func (l Layout) String() string {
	if l.Kind == Tile8x128 {
		return l.Scales.blocks().Layout()
	}
	if l.Copies > 1 {
		return fmt.Sprintf("%sx%d", l.Kind, l.Copies)
	}
	return l.Kind.String()
}

// ValueType is the type of the elements' values: those of a quantised matrix or cache are real numbers, because the
// scales are in its blocks.
func (b *Buffer) ValueType() DType {
	if b.Layout.Kind == Tile8x128 || b.ScaledRows() {
		return F32
	}
	return b.DType
}

// ScaledRows reports whether each row of K and of V of a head consists of integers with a BF16 scale: a cache of I8 in
// blocks of rows. The scale depends on all elements of a row, so tasks read and write whole rows.
func (b *Buffer) ScaledRows() bool {
	return b.DType == I8 && (b.Layout.Kind == KVBlock16 || b.Layout.Kind == KVRows16)
}

// Format returns the weight format of the buffer's layout and element type, or nil if there is none.
func (b *Buffer) Format() format.Format {
	return format.Find(Layout{Kind: b.Layout.Kind, Scales: b.Layout.Scales}.String(), b.DType.String())
}

// Storage is the type in which a matrix is streamed: its element type, and its scales if it is quantised.
type Storage struct {
	DType  DType
	Scales Scales
}

// Quantised reports whether the elements have scales.
func (s Storage) Quantised() bool { return s.Scales != Scales{} }

// Layout is that of a matrix in tiles.
func (s Storage) Layout() Layout {
	if s.Quantised() {
		return Layout{Kind: Tile8x128, Scales: s.Scales}
	}
	return Layout{Kind: Tile8x32}
}

// Format returns the format of a matrix in tiles, or nil if there is none.
func (s Storage) Format() format.Format {
	return (&Buffer{DType: s.DType, Layout: s.Layout()}).Format()
}

// MatrixFormat returns the format of unquantised matrices whose weights have the given type, or nil if the kernel does
// not stream such weights.
func MatrixFormat(weights DType) format.Format { return Storage{DType: weights}.Format() }

// roundUp returns n rounded up to a multiple of m.
func roundUp(n, m int) int { return (n + m - 1) / m * m }

// Bytes returns the size of one copy of the buffer, padding included.
func (b *Buffer) Bytes() int {
	switch b.Layout.Kind {
	case Tile8x32, Tile8x128:
		rows, cols := b.Matrix()
		if f := b.Format(); f != nil && b.Numel() <= maxBytes {
			return f.Bytes(rows, cols)
		}
		return b.Numel() // Check refuses the buffer
	case KVBlock16, KVRows16:
		s, rows, ok := b.cache()
		if !ok {
			return 0
		}
		return s.Bytes(b.DType, rows)
	case Word32:
		return satMul(b.Numel(), 4)
	case Word64:
		return satMul(b.Numel(), 8)
	default:
		return b.DType.Bytes(b.Numel())
	}
}

// cache views the shape of a cache as a state for a number of positions: the heads of all sequences follow one another.
// It reports false for a shape, or a type, that the layouts of caches do not have.
func (b *Buffer) cache() (s State, positions int, ok bool) {
	n := len(b.Shape)
	if n != 4 && n != 5 {
		return s, 0, false
	}
	s = State{Heads: b.Shape[n-4], Elements: b.Shape[n-1], Inputs: b.Shape[n-2] == 1}
	if n == 5 {
		s.Heads = satMul(s.Heads, b.Shape[0])
	}
	return s, b.Shape[n-3], b.Shape[n-2] == 2 || s.Inputs && b.DType == F32 && b.Layout.Kind == KVRows16
}

// IsCache reports whether the buffer has the shape and the type that its layout, of caches, wants.
func (b *Buffer) IsCache() bool {
	_, _, ok := b.cache()
	return ok && b.DType.Bits() >= 8
}

// Offset returns the byte offset of the element with the given linear (row-major) index inside one copy. Sub-byte types
// are only defined for RowMajor, where the offset is that of the byte that holds the element.
func (b *Buffer) Offset(linear int) int {
	size := b.DType.Bits() / 8
	switch b.Layout.Kind {
	case Tile8x32, Tile8x128:
		_, cols := b.Matrix()
		if f := b.Format(); f != nil {
			return f.At(linear/cols, linear%cols, cols)
		}
		return linear * size // Check refuses the buffer
	case KVBlock16, KVRows16:
		return b.kvOffset(linear)
	case Word32:
		return linear * 4
	case Word64:
		return linear * 8
	default:
		return linear * b.DType.Bits() / 8
	}
}

// kvOffset maps a cache element [head, row, k or v, dim] to its byte. A block is 16 rows: first K, then V, each 16 x hd
// with hd padded to 16, then of I8 the scales: those of K and V of a row side by side. In fragment order a fragment is
// 16 rows by 16 dims of 256 elements, 8 a lane: the A operand of mma.m16n8k16 with rows as M and dims as K for K, and
// dims as M and rows as K for V (which is stored transposed so). The key's dims are permuted inside a fragment so that
// a lane's operand of the other side is contiguous.
func (b *Buffer) kvOffset(linear int) int {
	s, rows, _ := b.cache()
	hd, each := s.Elements, s.Rows()
	dim := linear % hd
	isV := linear / hd % each
	row := linear / hd / each % rows
	head := linear / hd / each / rows
	hdp, size := roundUp(hd, 16), b.DType.Bits()/8
	base := (head*(roundUp(rows, 16)/16)+row/16)*s.Block(b.DType) + isV*16*hdp*size
	if b.Layout.Kind == KVRows16 {
		return base + (row%16*hdp+dim)*size
	}
	base += dim / 16 * 256 * size
	r, d := row%16, dim%16
	if isV == 0 {
		lane := r%8*4 + d/4
		reg := r/8 + d%4/2*2
		return base + (lane*8+reg*2+d%2)*size
	}
	lane := d%8*4 + r%8/2
	reg := d/8 + r/8*2
	return base + (lane*8+reg*2+r%2)*size
}
