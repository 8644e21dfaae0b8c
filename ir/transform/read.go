package transform

import (
	"errors"
	"fmt"
)

// A Tensor is the source of a piece, as rows of elements: those of a vector have one element each.
type Tensor interface {
	Rows() int
	RowLen() int
	// ReadF32 widens elements [first, first+len(dst)) of the row-major order.
	ReadF32(dst []float32, first int) error
}

// A View is the result of a chain on a tensor. It reads on demand and holds at most a few rows. Only one goroutine may
// use it at a time.
type View struct {
	Rows, Cols int
	tensor     Tensor
	// Element (r, c) is element (row(r), column(c)) of the tensor, or with transposed, (column(c), row(r)). Each is the
	// transforms of that axis, the outermost first.
	row, column []*Transform
	transposed  bool
	values      []*Transform // the innermost first
	scratch     []float32
}

// Of returns the view of a tensor through the chain, or why the tensor does not fit it.
func (c Chain) Of(t Tensor) (*View, error) {
	rows, cols, err := c.Shape(Count{N: t.Rows()}, Count{N: t.RowLen()})
	if err != nil {
		return nil, err
	}
	v := &View{Rows: rows.N, Cols: cols.N, tensor: t}
	for i := len(c) - 1; i >= 0; i-- {
		switch s := c[i].Spec(); {
		case s.Transposes:
			v.transposed = !v.transposed
		case s.Row != nil && v.transposed:
			v.column = append(v.column, &c[i])
		case s.Row != nil:
			v.row = append(v.row, &c[i])
		}
	}
	for i := range c {
		if c[i].Spec().Values != nil {
			v.values = append(v.values, &c[i])
		}
	}
	return v, nil
}

// WholeRows reports whether each row is an unchanged row of the tensor.
func (v *View) WholeRows() bool { return v.Plain() && !v.transposed && len(v.column) == 0 }

// Plain reports whether the elements are those of the tensor, in any order.
func (v *View) Plain() bool { return len(v.values) == 0 }

func through(axis []*Transform, at int) int {
	for _, t := range axis {
		at = t.Spec().Row(t.Ints, at)
	}
	return at
}

// run returns how many of the places [from, to) of an axis follow one another in the tensor, and where they begin.
func run(axis []*Transform, from, to int) (at, n int) {
	at, n = through(axis, from), 1
	for from+n < to && through(axis, from+n) == at+n {
		n++
	}
	return at, n
}

// At returns the element of the tensor from which an element of the view is computed.
func (v *View) At(row, col int) (tensorRow, tensorCol int) {
	row, col = through(v.row, row), through(v.column, col)
	if v.transposed {
		return col, row
	}
	return row, col
}

// ReadRows fills dst with rows [row0, row1). Rows that follow one another in the tensor are read together.
func (v *View) ReadRows(dst []float32, row0, row1 int) error {
	for row := row0; row < row1; {
		at, n := run(v.row, row, row1)
		part := dst[(row-row0)*v.Cols : (row-row0+n)*v.Cols]
		var err error
		switch {
		case v.transposed:
			err = v.readColumns(part, at, n)
		case len(v.column) > 0:
			err = v.readSome(part, at)
		default:
			err = v.tensor.ReadF32(part, at*v.Cols)
		}
		if err != nil {
			return err
		}
		row += n
	}
	for _, t := range v.values {
		t.Spec().Values(float32(t.By), dst[:(row1-row0)*v.Cols])
	}
	return nil
}

// readSome fills dst with elements of whole rows of the tensor, from row at on.
func (v *View) readSome(dst []float32, at int) error {
	whole := v.room(v.tensor.RowLen())
	for ; len(dst) > 0; dst, at = dst[v.Cols:], at+1 {
		if err := v.tensor.ReadF32(whole, at*len(whole)); err != nil {
			return err
		}
		for c := range v.Cols {
			dst[c] = whole[through(v.column, c)]
		}
	}
	return nil
}

// readColumns fills dst with n rows that are columns of the tensor, from column at on.
func (v *View) readColumns(dst []float32, at, n int) error {
	part := v.room(n)
	for c := range v.Cols {
		if err := v.tensor.ReadF32(part, through(v.column, c)*v.tensor.RowLen()+at); err != nil {
			return err
		}
		for r, x := range part {
			dst[r*v.Cols+c] = x
		}
	}
	return nil
}

func (v *View) room(n int) []float32 {
	if cap(v.scratch) < n {
		v.scratch = make([]float32, n)
	}
	return v.scratch[:n]
}

// A Stack is the rows of a buffer: views one after another, with pairs that end in even and odd interleaved.
type Stack struct {
	Rows, Cols int
	Views      []*View
	first      []int
	step       []int
}

// Pack stacks views, made by the chains, into n rows and columns, or says what does not fit.
func Pack(views []*View, chains []Chain, rows, cols int) (*Stack, error) {
	if len(views) != len(chains) {
		return nil, errors.New("wants a chain for each view")
	}
	s := &Stack{Rows: rows, Cols: cols, Views: views}
	counts := make([]Count, len(views))
	for i, v := range views {
		if v.Cols != cols {
			return nil, fmt.Errorf("piece %d has rows of %d elements; want %d", i+1, v.Cols, cols)
		}
		counts[i] = Count{N: v.Rows}
		_, step := chains[i].interleaved()
		s.step = append(s.step, step)
	}
	var err error
	s.first, err = Fill(chains, counts, rows)
	return s, err
}

// Source returns the view that supplies a row of the stack, and its row there.
func (s *Stack) Source(row int) (view, at int) {
	for k, v := range s.Views {
		if at := row - s.first[k]; at >= 0 && at < v.Rows*s.step[k] && at%s.step[k] == 0 {
			return k, at / s.step[k]
		}
	}
	return -1, 0 // Pack has seen to it that every row is supplied
}

// ReadRows fills dst with rows [row0, row1).
func (s *Stack) ReadRows(dst []float32, row0, row1 int) error {
	for row := row0; row < row1; {
		k, at := s.Source(row)
		n := 1
		if s.step[k] == 1 {
			n = min(row1, s.first[k]+s.Views[k].Rows) - row
		}
		if err := s.Views[k].ReadRows(dst[(row-row0)*s.Cols:(row-row0+n)*s.Cols], at, at+n); err != nil {
			return err
		}
		row += n
	}
	return nil
}
