package passes

import (
	"io"
	"runtime"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/half"
	"amkc/passes/checkpoint"
)

// Weights supplies the contents of a program's WEIGHT and CONST buffers from a checkpoint: as float32 rows in the
// order of the buffer, or packed in its layout. Values are rounded to the dtype of the buffer, to nearest, ties to
// even, in both forms. It reads by blocks of rows, so that no more than two blocks a processor are held; it may be
// used from several goroutines at once.
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
	return out, r.read(out, 0, r.stack.Rows)
}

// Pack writes a buffer (member i, if it is a family) in its dtype and layout: Bytes of it, padding included, as
// zeros. Blocks of rows are packed by all processors and written in order.
func (w *Weights) Pack(out io.Writer, b *ir.Buffer, i int) error {
	first, err := w.open(b, i)
	if err != nil {
		return err
	}
	rows, cols := first.stack.Rows, first.stack.Cols
	block := packBlock{buf: b, cols: cols, pad: cols, size: b.DType.Bits() / 8}
	switch b.Layout.Kind {
	case ir.Tile8x32:
		block.pad = (cols + 31) / 32 * 32
	case ir.RowMajor:
	default:
		return diag.Errorf(codeWeights, "buffer "+b.Name, "layout %s; weights are packed as rowmajor or tile8x32",
			b.Layout.Kind)
	}
	step := max(tileRows, blockElements/block.pad/tileRows*tileRows)
	return inOrder(out, rows, step, func() (func(dst []byte, row, n int) ([]byte, error), error) {
		r, err := w.open(b, i)
		if err != nil {
			return nil, err
		}
		values := make([]float32, step*cols)
		return func(dst []byte, row, n int) ([]byte, error) {
			if err := r.read(values[:n*cols], row, row+n); err != nil {
				return nil, err
			}
			return block.pack(dst, values[:n*cols], n), nil
		}, nil
	})
}

const (
	tileRows      = 8
	blockElements = 1 << 15 // of a block, about: what one worker holds
)

// inOrder packs rows [0, rows) in blocks of step, each worker with a packer of its own, and writes the blocks in
// order. At most two blocks a worker are held.
func inOrder(out io.Writer, rows, step int,
	newPacker func() (func(dst []byte, row, n int) ([]byte, error), error)) error {
	type result struct {
		bytes []byte
		err   error
	}
	type job struct {
		row  int
		done chan result
	}
	workers := min(runtime.GOMAXPROCS(0), (rows+step-1)/step)
	jobs := make(chan job)
	order := make(chan job, workers) // in the order of rows; its capacity bounds how far workers run ahead
	spare := make(chan []byte, 2*workers+1)
	stop := make(chan struct{})
	for range workers {
		go func() {
			pack, err := newPacker()
			for j := range jobs {
				r := result{err: err}
				if err == nil {
					var dst []byte
					select {
					case dst = <-spare:
					default:
					}
					r.bytes, r.err = pack(dst, j.row, min(step, rows-j.row))
				}
				j.done <- r
			}
		}()
	}
	go func() {
		defer close(jobs)
		defer close(order)
		for row := 0; row < rows; row += step {
			j := job{row, make(chan result, 1)}
			select {
			case order <- j:
				jobs <- j
			case <-stop:
				return
			}
		}
	}()
	defer close(stop)
	for j := range order {
		r := <-j.done
		if r.err != nil {
			return r.err
		}
		if _, err := out.Write(r.bytes); err != nil {
			return err
		}
		spare <- r.bytes
	}
	return nil
}

// A packBlock lays blocks of rows out.
type packBlock struct {
	buf       *ir.Buffer
	cols, pad int // elements of a row, without and with padding
	size      int // bytes of an element
}

// pack lays n rows out, in dst if it is large enough, and returns them. Tiles are whole: the rows that the last one
// lacks are zero.
func (p *packBlock) pack(dst []byte, values []float32, n int) []byte {
	if p.buf.Layout.Kind == ir.RowMajor {
		dst = sized(dst, len(values)*p.size)
		encode(p.buf.DType, dst, values)
		return dst
	}
	dst = sized(dst, (n+tileRows-1)/tileRows*tileRows*p.pad*p.size)
	clear(dst)
	const group = 8 // elements that a lane holds side by side
	for row := range n {
		tile := row / tileRows * tileRows * p.pad
		for col := 0; col < p.cols; col += group {
			lane := row%tileRows*4 + col%32/group
			at := (tile + (col/32*32+lane)*group) * p.size
			var places [group]float32
			for c, v := range values[row*p.cols+col : row*p.cols+min(p.cols, col+group)] {
				places[ir.TileColumn(c)] = v
			}
			encode(p.buf.DType, dst[at:], places[:])
		}
	}
	return dst
}

// sized returns n bytes, those of b if it has as many.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
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
