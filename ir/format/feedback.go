package format

// Inputs are the correlations of the vectors that a matrix is multiplied with, by which its rows are rounded for the
// least error of the products.
//
// H is the sum of x·xᵀ over vectors x. An error e of a row causes a squared error of e·H·eᵀ in the products. H is
// Lᵀ·D·L, where L has ones on its diagonal and zeros above it, so the error is the sum over columns k of D_k ·
// (e·L_k)². Column after column, it is smallest if column k is rounded to the value that compensates the errors of the
// columns before it: the weight plus their errors times L_k. That is GPTQ (Frantar et al., 2022), in the form that QuIP
// (Chee et al., 2023) gives it.
type Inputs struct {
	Square []float32 // the mean square of what each column is multiplied with, in any unit
	Order  []int     // the columns, in the order that they are rounded in
	Carry  []float32 // the rows of L in that order without their ones, one after another: of row k the first k numbers
}

// carry is row k of L without its one.
func (in *Inputs) carry(k int) []float32 { return in.Carry[k*(k-1)/2 : k*(k+1)/2] }

// together are the rows that are rounded side by side: each row of L is read once for them all.
const together = 8

// PackFor quantises whole rows for vectors with the correlations of inputs. Scales and zero points are chosen as in
// Pack, with errors weighted by the magnitude of inputs.
func (b blocks) PackFor(dst []byte, values []float32, cols int, in *Inputs) []byte {
	g := b.quantise(values, cols, in.Square)
	errors := make([]float32, together*cols) // of rows, in the order of columns
	for row := 0; row < g.Rows(); row += together {
		b.feedBack(&g, values, row, min(together, g.Rows()-row), errors, in)
	}
	return b.PackGroups(dst, &g)
}

// feedBack rounds rows of groups again, column after column.
func (b blocks) feedBack(g *Groups, values []float32, first, rows int, errors []float32, in *Inputs) {
	for k, col := range in.Order {
		carry := in.carry(k)
		for r := range rows {
			i := (first+r)*g.Cols + col
			of := (first+r)*g.PerRow() + col/g.Group
			e := errors[r*g.Cols:][:k+1]
			g.Q[i] = b.round(values[i]+product(e[:k], carry), g, of)
			e[k] = values[i] - g.Value(b.dtype, i, of)
		}
	}
}

// product adds up products in an order that depends on their number alone.
func product(x, y []float32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x) && i+4 <= len(y); i += 4 {
		p, q := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += float32(p[0] * q[0])
		s1 += float32(p[1] * q[1])
		s2 += float32(p[2] * q[2])
		s3 += float32(p[3] * q[3])
	}
	for ; i < len(x); i++ {
		s0 += float32(x[i] * y[i])
	}
	return (s0 + s2) + (s1 + s3)
}

// round is the element of a group that is nearest to a value, which may be far outside the group's range.
func (b blocks) round(v float32, g *Groups, of int) byte {
	scale := g.ScaleOf(of)
	inverse := 1 / scale
	if !usable(scale, inverse) {
		return 0
	}
	if b.float != nil {
		return b.float.round(v * inverse)
	}
	zero := float32(0)
	if g.Zero != nil {
		zero = float32(g.Zero[of])
	}
	half := float32(int(1) << (b.bits - 1))
	if b.mins {
		v, zero = v-g.MinOf(of), -half
	}
	q := v*inverse + zero
	if !(q > -half) {
		q = -half
	} else if q > half-1 {
		q = half - 1
	}
	return byte(int8(integer(q)))
}
