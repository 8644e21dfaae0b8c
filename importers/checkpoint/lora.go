package checkpoint

import (
	"math"
	"slices"
	"sync"

	"amkc/ir/diag"
	"amkc/ir/half"
)

// A lora is a tensor with a product of two factors added to it, computed where it is read:
//
//	W + scale · left · right
//
// and with DoRA each output of the module multiplied by its magnitude over the norm of what it is then. Operations are
// PEFT's, in float32, in its order, and nothing is rounded to fewer bits.
type lora struct {
	from Tensor // with what earlier adapters have added
	base Tensor // without it: of this, DoRA takes the norm
	cols int

	a, b       Tensor  // [rank, inputs] and [outputs, rank]; a bias has b alone, of rank 1
	rank       int     //
	transposed bool    // the matrix has a row for each input, instead of each output
	scale      float32 //
	magnitude  *Tensor // of DoRA, or nil

	loaded *factors // shared by copies of the tensor
}

// factors are the numbers of an adapter's module, once they are read.
type factors struct {
	sync.Mutex
	*numbers
	of *recent
}

type numbers struct {
	left    []float32 // [rows, rank]
	right   []float64 // [rank, columns]
	outputs []float32 // what each output is multiplied with; nil: nothing
}

// recent are the factors that were used last. Others are dropped, and read again if they are wanted: matrices are
// packed one after the other, and all adapters of a model together may have the size of a layer.
type recent struct {
	sync.Mutex
	used []*factors
}

const mostLoaded = 16

func (r *recent) use(f *factors) {
	r.Lock()
	defer r.Unlock()
	if i := slices.Index(r.used, f); i >= 0 {
		r.used = slices.Delete(r.used, i, i+1)
	} else if len(r.used) == mostLoaded {
		oldest := r.used[0]
		r.used = r.used[1:]
		go oldest.drop() // who reads it may wait for us
	}
	r.used = append(r.used, f)
}

func (f *factors) drop() {
	f.Lock()
	defer f.Unlock()
	f.numbers = nil
}

// load returns the factors. Errors: AMK1006 if a file fails, AMK1039 for numbers that are not finite.
func (l *lora) load() (*numbers, *diag.Diagnostic) {
	l.loaded.of.use(l.loaded)
	l.loaded.Lock()
	defer l.loaded.Unlock()
	if l.loaded.numbers != nil {
		return l.loaded.numbers, nil
	}
	left, err := allFinite(l.b)
	right := []float32{1}
	if err == nil && l.a.data != nil {
		right, err = allFinite(l.a)
	}
	if err != nil {
		return nil, err
	}
	if l.transposed {
		left, right = transpose(right, l.rank), transpose(left, len(left)/l.rank)
	}
	n := &numbers{left: left, right: make([]float64, len(right))}
	for i, v := range right {
		n.right[i] = float64(v)
	}
	if l.magnitude != nil {
		if err := l.normalise(n); err != nil {
			return nil, err
		}
	}
	l.loaded.numbers = n
	return n, nil
}

// allFinite reads a tensor whole.
func allFinite(t Tensor) ([]float32, *diag.Diagnostic) {
	out := make([]float32, t.Rows()*t.RowLen())
	if err := t.data.floats(out, 0); err != nil {
		return nil, err
	}
	for i, v := range out {
		if v-v != 0 {
			return nil, diag.Errorf(NotFitting, "tensor "+t.Name, "element %d is %g; an adapter with that makes no "+
				"model", i, v)
		}
	}
	return out, nil
}

// transpose returns a matrix of that many rows with its columns as rows.
func transpose(m []float32, rows int) []float32 {
	cols := len(m) / rows
	out := make([]float32, len(m))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = m[i*cols+j]
		}
	}
	return out
}

// normalise computes what each output is multiplied with.
func (l *lora) normalise(n *numbers) *diag.Diagnostic {
	magnitude, err := allFinite(*l.magnitude)
	if err != nil {
		return err
	}
	squares := make([]float64, len(magnitude))
	row, delta := make([]float32, l.cols), make([]float32, l.cols)
	for i := range len(n.left) / l.rank {
		if err := l.base.data.floats(row, int64(i*l.cols)); err != nil {
			return err
		}
		l.product(delta, n, i, 0)
		for j, w := range row {
			v := float64(float32(w + delta[j]))
			out := i
			if l.transposed {
				out = j
			}
			squares[out] += float64(v * v)
		}
	}
	for i, sum := range squares {
		norm := float32(math.Sqrt(sum))
		if norm == 0 || norm-norm != 0 {
			return diag.Errorf(NotFitting, "tensor "+l.magnitude.Name, "output %d of the matrix has the norm %g, "+
				"which nothing can be divided by", i, norm)
		}
		magnitude[i] /= norm
	}
	n.outputs = magnitude
	return nil
}

// product fills dst with what is added to the elements of a row, from a column on.
func (l *lora) product(dst []float32, n *numbers, row, column int) {
	clear(dst)
	for k, of := range n.left[row*l.rank : (row+1)*l.rank] {
		factor := float64(of)
		for j, v := range n.right[k*l.cols+column:][:len(dst)] {
			// The product is exact, and rounded with its sum, as the libraries under PEFT do.
			dst[j] = float32(factor*v + float64(dst[j]))
		}
	}
	for j := range dst {
		dst[j] *= l.scale
	}
}

func (l *lora) floats(dst []float32, first int64) *diag.Diagnostic {
	n, err := l.load()
	if err != nil {
		return err
	}
	if err := l.from.data.floats(dst, first); err != nil {
		return err
	}
	delta := make([]float32, min(len(dst), l.cols))
	for len(dst) > 0 {
		row, column := int(first)/l.cols, int(first)%l.cols
		count := min(len(dst), l.cols-column)
		l.product(delta[:count], n, row, column)
		for j, d := range delta[:count] {
			dst[j] += d
			switch {
			case n.outputs == nil:
			case l.transposed:
				dst[j] *= n.outputs[column+j]
			default:
				dst[j] *= n.outputs[row]
			}
			if dst[j]-dst[j] != 0 {
				return diag.Errorf(NotFitting, "tensor "+l.from.Name, "element %d with what the adapter adds is %g; "+
					"an adapter with that makes no model", first+int64(j), dst[j])
			}
		}
		dst, first = dst[count:], first+int64(count)
	}
	return nil
}

func (l *lora) bytes(dst []byte, off int64) *diag.Diagnostic {
	first, end := off/4, (off+int64(len(dst))+3)/4
	values := make([]float32, end-first)
	if err := l.floats(values, first); err != nil {
		return err
	}
	encoded := make([]byte, 4*len(values))
	half.EncodeF32(encoded, values)
	copy(dst, encoded[off-4*first:])
	return nil
}

func (l *lora) pieces(dst []byte, off, size, stride int64) *diag.Diagnostic {
	for ; len(dst) > 0; dst, off = dst[size:], off+stride {
		if err := l.bytes(dst[:size], off); err != nil {
			return err
		}
	}
	return nil
}

func (l *lora) view(int64) []byte { return nil }
