package passes

import (
	"io"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/half"
	"amkc/passes/checkpoint"
)

// Weights supplies the contents of a program's WEIGHT and CONST buffers from a checkpoint: as float32 rows in the order
// of the buffer, or packed in its layout. Values are rounded to the dtype of the buffer, to nearest, ties to even, in both
// forms. It reads by blocks of rows, so that no more than a block is held; it may be used from several goroutines at once.
type Weights struct {
	checkpoint *checkpoint.Checkpoint
	rope       ir.Rope
}

// NewWeights supplies from a checkpoint, which must stay open. The rotary frequencies are those of the graph.
func NewWeights(c *checkpoint.Checkpoint, rope ir.Rope) *Weights {
	return &Weights{checkpoint: c, rope: rope}
}

// Floats returns all elements of a buffer (member i, if it is a family) in row-major order.
func (w *Weights) Floats(b *ir.Buffer, i int) ([]float32, error) {
	r, err := w.open(b, i)
	if err != nil {
		return nil, err
	}
	out := make([]float32, b.Numel())
	return out, r.read(out, 0, r.rows)
}

// Pack writes a buffer (member i, if it is a family) in its dtype and layout: Bytes of it, padding included, as zeros.
func (w *Weights) Pack(out io.Writer, b *ir.Buffer, i int) error {
	r, err := w.open(b, i)
	if err != nil {
		return err
	}
	block := packBlock{buf: b, cols: r.cols, size: b.DType.Bits() / 8}
	step := blockRows
	switch b.Layout.Kind {
	case ir.Tile8x32:
		block.pad = (r.cols + 31) / 32 * 32
	case ir.RowMajor:
		block.pad = r.cols
		step = max(blockRows, plainBlock/r.cols/blockRows*blockRows)
	default:
		return diag.Errorf(codeWeights, "buffer "+b.Name, "layout %s; weights are packed as rowmajor or tile8x32", b.Layout.Kind)
	}
	values := make([]float32, step*r.cols)
	bytes := make([]byte, step*block.pad*block.size)
	for row := 0; row < r.rows; row += step {
		n := min(step, r.rows-row)
		if err := r.read(values[:n*r.cols], row, row+n); err != nil {
			return err
		}
		if _, err := out.Write(block.pack(bytes, values[:n*r.cols], n)); err != nil {
			return err
		}
	}
	return nil
}

const (
	blockRows  = 8       // rows of a tile
	plainBlock = 1 << 16 // elements of a row-major block, about
)

// A packBlock lays blocks of rows out.
type packBlock struct {
	buf       *ir.Buffer
	cols, pad int // elements of a row, without and with padding
	size      int // bytes of an element
}

// pack fills dst with n rows and returns the part of it that they take.
func (p *packBlock) pack(dst []byte, values []float32, n int) []byte {
	if p.buf.Layout.Kind == ir.RowMajor {
		dst = dst[:len(values)*p.size]
		encode(p.buf.DType, dst, values)
		return dst
	}
	dst = dst[:blockRows*p.pad*p.size]
	clear(dst)
	const group = 8 // elements that a lane holds side by side
	for row := range n {
		for col := 0; col < p.cols; col += group {
			lane := row*4 + col%32/group
			at := ((col/32*32 + lane) * group) * p.size
			encode(p.buf.DType, dst[at:], values[row*p.cols+col:row*p.cols+min(p.cols, col+group)])
		}
	}
	return dst
}

func encode(d ir.DType, dst []byte, src []float32) {
	switch d {
	case ir.F16:
		half.EncodeF16(dst, src)
	case ir.BF16:
		half.EncodeBF16(dst, src)
	default:
		half.EncodeF32(dst, src)
	}
}
