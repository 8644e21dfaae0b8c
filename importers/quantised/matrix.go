// Package quantised reads the matrices of checkpoints whose weights are integers or fp8 with scales: the scheme in
// config.json, the tensors of a matrix, and its rows as groups of quantised elements. Nothing is rounded: elements,
// scales and zero points are those of the files. Only the bytes of the requested rows are read.
//
// Files are untrusted. Faults of a config or of tensors are coded diagnostics. The package does not depend on model
// families, or on the layouts of a compiled model.
package quantised

import (
	"bytes"
	"fmt"

	"amkc/importers/checkpoint"
	"amkc/ir/diag"
	"amkc/ir/format"
)

// An Element is the type of the elements of a quantised matrix.
type Element struct {
	Type  string           // I4, I5, I6, I8, F8E4M3 or F4E2M1, as weight formats name them
	Group int              // columns that share a scale, as format.Groups has them: 16, 32, 64 or 128
	Scale checkpoint.DType // of the scales in the file: F16, BF16, F32 or E8M0
	Zeros bool             // whether groups have zero points
	Mins  bool             // whether groups have minima
	Steps bool             // whether scales and minima are integers times one that groups share
}

// String describes the element for messages. nil means that the matrix is not quantised.
func (e *Element) String() string {
	if e == nil {
		return "not quantised"
	}
	return fmt.Sprintf("%s in groups of %d with scales of %s", e.Type, e.Group, e.Scale)
}

// StreamsWith reports whether matrices of two elements can be streamed as one: it is allowed that only one has zero
// points. nil means that a matrix is not quantised.
func (e *Element) StreamsWith(f *Element) bool {
	if e == nil || f == nil {
		return e == f
	}
	a, b := *e, *f
	a.Zeros, b.Zeros = false, false
	return a == b
}

// A Matrix is a quantised matrix of a checkpoint. It may be used from several goroutines at once.
type Matrix struct {
	Element
	Name  string   // MODULE.weight
	Parts []string // the tensors that it is stored in

	recipe     *recipe
	rows, cols int
	codes      codes
	scales     grid
	zeros      zeros      // nil where the file has none
	blocks     *blockRows // instead of these: of a GGUF file
}

// Rows and Cols are the size of the matrix.
func (m *Matrix) Rows() int { return m.rows }
func (m *Matrix) Cols() int { return m.cols }

// Reading describes the interpretation of the matrix's tensors: two matrices with the same tensors and the same reading
// have the same rows.
func (m *Matrix) Reading() string {
	r := m.recipe
	return fmt.Sprintf("%s %v form %d, %d bits, %d columns, %d rows, float %t, symmetric %t", m.Name, m.Parts, r.form,
		r.bits, r.group, r.rows, r.float, r.symmetric)
}

// ReadRows returns rows [row0, row1) of the matrix. Errors: AMK1122 for rows that do not exist, AMK1123 for invalid
// elements, scales and zero points, AMK1006 if a file fails.
func (m *Matrix) ReadRows(row0, row1 int) (*format.Groups, error) {
	if row0 < 0 || row1 < row0 || row1 > m.rows {
		return nil, diag.Errorf(codeParts, "tensor "+m.Name, "rows [%d, %d) of %d", row0, row1, m.rows)
	}
	n := row1 - row0
	if m.blocks != nil {
		return m.blocks.read(m, row0, n)
	}
	g := &format.Groups{Cols: m.cols, Group: m.Group, Q: make([]byte, n*m.cols)}
	if err := m.codes.read(g.Q, row0, n); err != nil {
		return nil, err
	}
	if m.recipe.float && m.recipe.bits == 8 {
		for _, nan := range []byte{0x7f, 0xff} {
			if i := bytes.IndexByte(g.Q, nan); i >= 0 {
				return nil, diag.Errorf(codeValues, "tensor "+m.Name, "the element of row %d, column %d is %#x, which "+
					"is not a number in e4m3; want numbers", row0+i/m.cols, i%m.cols, nan)
			}
		}
	}
	scale := make([]float32, n*m.scales.cols)
	if err := m.scales.read(scale, row0, n); err != nil {
		return nil, err
	}
	for i, v := range scale {
		if v == 0 && m.recipe.form != nvfp4 || !finite(v) {
			return nil, diag.Errorf(codeValues, "tensor "+m.scales.t.Name, "the scale of row %d, group %d is %g; want "+
				"a finite number other than 0", row0+i/m.scales.cols, i%m.scales.cols, v)
		}
	}
	zero := make([]int8, len(scale))
	if m.zeros != nil {
		if err := m.zeros.read(zero, row0, n); err != nil {
			return nil, err
		}
	}
	for i, z := range zero {
		if z != 0 && !m.Zeros {
			return nil, diag.Errorf(codeValues, "tensor "+m.Name, "the zero point of row %d, group %d is %d off the "+
				"middle, and quantization_config says that the matrix is symmetric; want none",
				row0+i/m.scales.cols, i%m.scales.cols, z)
		}
	}
	for i, z := range zero {
		if m.recipe.bits == 4 && (z < -8 || z > 8) {
			return nil, diag.Errorf(codeValues, "tensor "+m.Name, "the zero point of row %d, group %d is %d; want "+
				"one of the values of 4 bits, -8 to 7, or 8", row0+i/m.scales.cols, i%m.scales.cols, z)
		}
	}
	g.Scale = spread(scale, n, m)
	if m.Zeros {
		g.Zero = spread(zero, n, m)
	}
	return g, nil
}

// spread gives each group of a row, as it is streamed, what the group has that it is in as stored.
func spread[T any](stored []T, rows int, m *Matrix) []T {
	per := (m.cols + m.Group - 1) / m.Group
	if per == m.scales.cols {
		return stored
	}
	out := make([]T, 0, rows*per)
	for row := range rows {
		for k := range per {
			out = append(out, stored[row*m.scales.cols+k*m.Group/m.scales.colsEach])
		}
	}
	return out
}

// A Reader reads rows of a matrix in any order, a few rows at a time, and caches the last ones, because transposed
// files have several rows in each word. Only one goroutine may use it at a time. It implements the tensor of package
// transform.
type Reader struct {
	*Matrix
	slabs [2]slab // the last one used first
}

// A slab is some rows that follow one another.
type slab struct {
	row    int
	groups *format.Groups
}

const slabRows = 8

// NewReader returns a reader of the matrix.
func (m *Matrix) NewReader() *Reader { return &Reader{Matrix: m} }

// RowLen is the number of columns.
func (r *Reader) RowLen() int { return r.cols }

// Row returns a row as groups, valid until the next call. Errors: those of ReadRows.
func (r *Reader) Row(row int) (format.Groups, error) {
	first := row / slabRows * slabRows
	switch {
	case r.slabs[0].groups != nil && r.slabs[0].row == first:
	case r.slabs[1].groups != nil && r.slabs[1].row == first:
		r.slabs[0], r.slabs[1] = r.slabs[1], r.slabs[0]
	default:
		groups, err := r.ReadRows(first, min(first+slabRows, r.rows))
		if err != nil {
			return format.Groups{}, err
		}
		r.slabs[1] = r.slabs[0]
		r.slabs[0] = slab{first, groups}
	}
	g, k := r.slabs[0].groups, row-first
	return g.Slice(k, k+1), nil
}

// ReadF32 fills dst with the values of elements [first, first+len(dst)) of the row-major order, as format.Groups has
// them.
func (r *Reader) ReadF32(dst []float32, first int) error {
	for len(dst) > 0 {
		g, err := r.Row(first / r.cols)
		if err != nil {
			return err
		}
		col := first % r.cols
		n := min(len(dst), r.cols-col)
		for i := range n {
			dst[i] = g.Value(r.Type, col+i, (col+i)/g.Group)
		}
		dst, first = dst[n:], first+n
	}
	return nil
}
