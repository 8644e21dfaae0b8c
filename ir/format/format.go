// Package format declares how weights are laid out in memory: one value of type Format for each weight format. Only
// this value knows the bytes. Packing, unpacking, the sizes of arenas, the cost model, the limits of stage bodies and
// the emitted code use it. A format is a layout of the IR with an element type. Scales of a quantised format are in its
// blocks, next to their elements, so that code that streams blocks streams their scales.
//
// docs/adding.md has the steps to add one. The package imports only ir/half.
package format

import (
	"fmt"
	"slices"
	"strings"
)

// A Format is how the rows of a weight are laid out in memory. Values are the logical elements, in float32.
type Format interface {
	// Layout and DType are what a buffer of the format says in the IR.
	Layout() string
	DType() string

	// Geometry is how tiles are cut. Everything about sizes on the way to the kernel follows from it.
	Geometry() Geometry
	// Bytes is the size of a matrix, padding included.
	Bytes(rows, cols int) int
	// At is the byte that an element of a matrix with n columns begins in.
	At(row, col, cols int) int
	// Tensor is how a safetensors file declares the bytes of a matrix, padding included.
	Tensor(rows, cols int) (dtype string, shape []int)

	// Pack lays whole rows out, in dst if it is large enough, and returns them: whole tiles, of which missing rows and
	// columns are zeros. Values are rounded to nearest, ties to even.
	Pack(dst []byte, values []float32, cols int) []byte
	// Unpack fills dst, whole rows, with what packed bytes mean. They begin with a tile.
	Unpack(dst []float32, packed []byte, cols int)
	// Largest is the largest magnitude that stays finite when it is packed.
	Largest() float32

	// Loader is the type of runtime/cuda/amk that device code loads the format with.
	Loader() string
}

// A Geometry is the size of the tiles of a format. Stages are distributed in rows of tiles. A chunk of the ring holds a
// whole number of blocks, and a row is padded to whole blocks.
type Geometry struct {
	Rows       int // of a tile
	Columns    int // of a block
	BlockBytes int // of Rows by Columns elements and of all that travels with them
}

// Blocks is the number of blocks of a tile with n columns.
func (g Geometry) Blocks(cols int) int { return (cols + g.Columns - 1) / g.Columns }

// TileBytes is the size of a tile with n columns.
func (g Geometry) TileBytes(cols int) int { return g.Blocks(cols) * g.BlockBytes }

// QuadColumns is the number of columns that a warp multiplies at once: those of four unquantised blocks, or of a
// quantised one.
const QuadColumns = 128

// QuadBytes is the size of a tile's QuadColumns columns.
func (g Geometry) QuadBytes() int { return QuadColumns / g.Columns * g.BlockBytes }

// Tiles is the number of tiles of n rows.
func (g Geometry) Tiles(rows int) int { return (rows + g.Rows - 1) / g.Rows }

// all has every format.
var all = func() []Format {
	out := slices.Concat([]Format{plain{f32}, plain{f16}, plain{bf16}, tiles{f32}, tiles{f16}, tiles{bf16}},
		quantised("I4", 4), quantised("I8", 8), stored)
	for _, f := range numbers {
		out = append(out, quantised(f.dtype, f.bits)...)
	}
	return out
}()

// Find returns the format of a layout and an element type, or nil if there is none.
func Find(layout, dtype string) Format {
	for _, f := range all {
		if f.Layout() == layout && f.DType() == dtype {
			return f
		}
	}
	return nil
}

// Names lists the formats, for messages, with the values of the parameters of quantised ones.
func Names() string {
	names := "rowmajor of F32, F16, BF16; tile8x32 of F32, F16, BF16; tile8x128.gN.S or tile8x128.gN.S.zeros of I4, " +
		"I8 with N of 32, 64, 128 and S of F32, F16, BF16"
	for _, f := range numbers {
		groups := strings.Trim(fmt.Sprint(f.groups), "[]")
		scale := "S"
		if len(f.scales) == 1 {
			scale = f.scales[0].name
		}
		names += fmt.Sprintf("; tile8x128.g%s.%s of %s", strings.ReplaceAll(groups, " ", "|"), scale, f.dtype)
	}
	return names + "; and those of NVFP4 and of the blocks of GGUF files"
}

// sized returns n bytes, those of b if it has as many.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
