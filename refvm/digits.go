package refvm

import (
	"math"

	"amkc/ir"
)

// A matrix of integers is multiplied by activations in fixed point, where the kernel rounds (Device) and values of 16
// bits are published; those of 32 bits are taken as they are. Of each 128 columns the largest magnitude becomes
// 127·256, and each activation an integer n, which the kernel holds as two signed bytes. Sums over a quarter of these
// columns are exact; they are scaled and added up in float32.
const (
	digitColumns = 128
	quarter      = digitColumns / 4
	mostDigits   = 127 * 256
	leastLargest = 0x1p-100   // what the largest magnitude is taken for, if it is less
	tooLarge     = 0x7e800000 // bits of 2^126, from which on the kernel divides by no magnitude
)

// roundsFor reports whether a product with a matrix rounds the vector first: the matrix is quantised.
func (w *worker) roundsFor(matrix *operand) bool {
	return w.vm.opts.Round == Device && w.vm.activations.Bits() == 16 && matrix.st != nil &&
		matrix.st.buf.Layout.Kind == ir.Tile8x128
}

// magnitude returns the bits of the largest magnitude of a vector, and of leastLargest at least. Floats of one sign are
// in the order of their bits, and NaN is last.
func magnitude(x []float32) uint32 {
	most := math.Float32bits(leastLargest)
	for _, f := range x {
		most = max(most, math.Float32bits(f)&^(1<<31))
	}
	return most
}

// digits are a vector in fixed point.
type digits struct {
	first  int       // column of the matrix that the vector begins at
	n      []float64 // integers
	scales []float32 // of each 128 columns of the matrix
}

// digitsOf converts a vector that is for the columns of a matrix from first on.
func digitsOf(x []float32, first int) digits {
	d := digits{first: first, n: make([]float64, len(x))}
	for lo := 0; lo < len(x); {
		hi := min(len(x), lo+digitColumns-(first+lo)%digitColumns)
		most := magnitude(x[lo:hi])
		if most >= tooLarge {
			most = math.MaxInt32 // NaN, as what is infinite becomes
		}
		largest := math.Float32frombits(most)
		inverse := float64(float32(mostDigits / largest))
		for i, f := range x[lo:hi] {
			d.n[lo+i] = math.RoundToEven(float64(f) * inverse)
		}
		d.scales = append(d.scales, largest*float32(1.0/mostDigits))
		lo = hi
	}
	return d
}

// dot multiplies with a row of weights, each an integer times the scale of its group. Products have up to 40 bits, of
// which 32 are added: float64 is exact.
func (d *digits) dot(row []float32) float32 {
	var y float32
	for lo, k := 0, 0; lo < len(row); k++ {
		end := min(len(row), lo+digitColumns-(d.first+lo)%digitColumns)
		for lo < end {
			hi := min(end, lo+quarter-(d.first+lo)%quarter)
			var sum float64
			for i, f := range row[lo:hi] {
				sum += float64(f) * d.n[lo+i]
			}
			y += float32(sum * float64(d.scales[k]))
			lo = hi
		}
	}
	return y
}
