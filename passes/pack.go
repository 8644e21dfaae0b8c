package passes

import (
	"io"
	"maps"
	"runtime"
	"slices"

	"amkc/importers/checkpoint"
	"amkc/importers/quantised"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/passes/calibration"
)

// Weights supplies the contents of a program's WEIGHT and CONST buffers from a checkpoint: as float32 rows in the order
// of the buffer, or packed in its format. Both forms have the rounded values of the format. It reads blocks of rows,
// and holds at most two blocks per processor. Several goroutines may use it concurrently.
type Weights struct {
	checkpoint *checkpoint.Checkpoint
	matrices   map[string]*quantised.Matrix // instead of tensors, by key
	computed   map[string]numbers           // vectors that come from no tensor, by key
	calibrated map[string]*calibration.Gram // of what matrices are multiplied with, by the first key of each
}

// NewWeights returns the weights of a checkpoint, which must stay open, and of its quantised matrices, as pass import
// found them. The rotary frequencies are those of the graph.
func NewWeights(c *checkpoint.Checkpoint, g *ir.Graph, matrices map[string]*quantised.Matrix) *Weights {
	computed := map[string]numbers{invFreqKey: g.Rope.InvFreq}
	for k := range g.Kinds {
		if owner := g.RopeOwner(k); owner >= 0 {
			computed[invFreqOfKind(owner)] = g.RopeOf(k).InvFreq
		}
	}
	return &Weights{checkpoint: c, matrices: matrices, computed: computed}
}

// Readings describe how the tensors of quantised matrices are interpreted, in the order of keys: two checkpoints with
// the same tensors may differ only in that.
func (w *Weights) Readings() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(w.matrices)) {
		out = append(out, w.matrices[key].Reading())
	}
	return out
}

// Calibrate rounds the matrices that their format quantises, and the checkpoint does not, for the vectors that they are
// multiplied with. The key of a sum is that of the first tensor of a buffer. A buffer without a sum is rounded without
// inputs.
func (w *Weights) Calibrate(sums map[string]*calibration.Gram) { w.calibrated = sums }

// Calibratable returns the key under which Calibrate finds the sums for a buffer (member i, if it is a family), or ""
// for one that is stored as in the checkpoint.
func (w *Weights) Calibratable(b *ir.Buffer, i int) (string, error) {
	r, err := w.open(b, i)
	if err != nil || !r.quantises() {
		return "", err
	}
	return r.keys[0], nil
}

// Floats returns all elements of a buffer (member i, if it is a family) in row-major order, as its format holds them.
func (w *Weights) Floats(b *ir.Buffer, i int) ([]float32, error) {
	r, err := w.open(b, i)
	if err != nil {
		return nil, err
	}
	out := make([]float32, b.Numel())
	step, cols := r.step(), r.stack.Cols
	if r.quantises() { // which takes long enough for all processors
		return out, w.Pack(&unpacker{r.format, cols, out}, b, i)
	}
	var packed []byte
	for row := 0; row < r.stack.Rows; row += step {
		n := min(step, r.stack.Rows-row)
		values := out[row*cols : (row+n)*cols]
		if err := r.read(values, row, row+n); err != nil {
			return nil, err
		}
		if !r.exact && r.matrices == nil { // what matrices store means their values
			packed = r.format.Pack(packed, values, cols)
			r.format.Unpack(values, packed, cols)
		}
	}
	return out, nil
}

// quantises reports whether values are quantised, rather than stored as the checkpoint has them.
func (r *rowReader) quantises() bool {
	_, quantised := r.format.(format.Quantised)
	return quantised && r.matrices == nil
}

// An unpacker takes packed rows, whole tiles at a time, and fills elements with what they mean.
type unpacker struct {
	format format.Format
	cols   int
	to     []float32
}

func (u *unpacker) Write(packed []byte) (int, error) {
	g := u.format.Geometry()
	n := min(len(u.to), len(packed)/g.TileBytes(u.cols)*g.Rows*u.cols)
	u.format.Unpack(u.to[:n], packed, u.cols)
	u.to = u.to[n:]
	return len(packed), nil
}

// Pack writes a buffer (member i, if it is a family) in its format: Bytes bytes, with zeros for padding. All processors
// pack blocks of rows, which are written in order.
func (w *Weights) Pack(out io.Writer, b *ir.Buffer, i int) error {
	first, err := w.open(b, i)
	if err != nil {
		return err
	}
	inputs, err := w.inputs(first)
	if err != nil {
		return err
	}
	step, cols := first.step(), first.stack.Cols
	return inOrder(out, first.stack.Rows, step, func() (func(dst []byte, row, n int) ([]byte, error), error) {
		r, err := w.open(b, i)
		if err != nil {
			return nil, err
		}
		if r.matrices != nil {
			as := r.format.(format.Quantised)
			return func(dst []byte, row, n int) ([]byte, error) {
				groups, err := r.readGroups(row, row+n)
				if err != nil {
					return nil, err
				}
				return as.PackGroups(dst, groups), nil
			}, nil
		}
		values := make([]float32, step*cols)
		return func(dst []byte, row, n int) ([]byte, error) {
			if err := r.read(values[:n*cols], row, row+n); err != nil {
				return nil, err
			}
			if inputs != nil {
				return r.format.(format.Quantised).PackFor(dst, values[:n*cols], cols, inputs), nil
			}
			return r.format.Pack(dst, values[:n*cols], cols), nil
		}, nil
	})
}

// inputs is what a buffer is calibrated with, or nil.
func (w *Weights) inputs(r *rowReader) (*format.Inputs, error) {
	sums := w.calibrated[r.keys[0]]
	if sums == nil || !r.quantises() {
		return nil, nil
	}
	in, err := sums.Inputs()
	if err != nil {
		return nil, diag.Errorf(codeCalibration, "tensor "+r.keys[0], "cannot be calibrated: %v; want another text, "+
			"or no --calibrate", err)
	}
	return in, nil
}

// step is how many rows are packed together: whole tiles of about blockElements.
func (r *rowReader) step() int {
	rows := r.format.Geometry().Rows
	return max(rows, blockElements/r.stack.Cols/rows*rows)
}

const blockElements = 1 << 15 // what one worker holds, about

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
