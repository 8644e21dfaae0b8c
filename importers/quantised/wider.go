package quantised

import (
	"math"

	"amkc/ir/diag"
	"amkc/ir/format"
)

// Files of GGUF mix types in matrices that are streamed as one, as queries, keys and values are. Such matrices are
// stored in an element that has the values of all of them.

// bitsOf are those of integers.
var bitsOf = map[string]int{"I4": 4, "I5": 5, "I6": 6, "I8": 8}

// Wider is the element that has the values of two, or nil if there is none that has a format.
func (e *Element) Wider(f *Element) *Element {
	if e == nil || f == nil || e.Scale != f.Scale || e.Zeros || f.Zeros || e.Steps != f.Steps ||
		bitsOf[e.Type] == 0 || bitsOf[f.Type] == 0 {
		return nil
	}
	wider := *e
	if bitsOf[f.Type] > bitsOf[e.Type] {
		wider.Type = f.Type
	}
	wider.Group, wider.Mins = min(e.Group, f.Group), e.Mins || f.Mins
	if format.Find(wider.layout(), wider.Type) == nil {
		return nil
	}
	return &wider
}

// layout is that of the weight format which keeps an element.
func (e *Element) layout() string {
	return format.Scales{Group: e.Group, Type: string(e.Scale), Zeros: e.Zeros, Mins: e.Mins, Steps: e.Steps}.Layout()
}

// IsStoredIn reports whether what a matrix has is stored in an element as it is.
func (e *Element) IsStoredIn(f Element) bool {
	same := *e
	if same.Zeros = f.Zeros; same == f {
		return f.Zeros || !e.Zeros
	}
	wider := e.Wider(&f)
	return wider != nil && *wider == f
}

// RowIn is Row in an element that the matrix is stored in. Errors: those of ReadRows, and AMK1123.
func (r *Reader) RowIn(f Element, row int) (format.Groups, error) {
	g, err := r.Row(row)
	if err != nil {
		return g, err
	}
	return r.in(f, g)
}

// in returns groups of the matrix in an element that it is stored in.
func (m *Matrix) in(f Element, g format.Groups) (format.Groups, error) {
	e := m.Element
	if e.Type == f.Type && e.Group == f.Group && e.Mins == f.Mins {
		return g, nil
	}
	const largest = 65504 // in fp16
	n := g.Group / f.Group
	middle := 1 << (bitsOf[e.Type] - 1)
	out := format.Groups{Cols: g.Cols, Group: f.Group, Q: make([]byte, len(g.Q)), Scale: repeat(g.Scale, n),
		Min: repeat(g.Min, n), Step: repeat(g.Step, n), MinStep: repeat(g.MinStep, n)}
	less := 0 // of unsigned integers, half the range
	if f.Mins {
		less = 1<<(bitsOf[f.Type]-1) - middle
	}
	for i, q := range g.Q {
		out.Q[i] = byte(int(int8(q)) - less)
	}
	if f.Mins && !e.Mins {
		out.Min, out.MinStep = make([]float32, len(out.Scale)), out.Step
		for k, s := range out.Scale {
			if out.Min[k] = -float32(middle) * s; math.Abs(float64(out.Min[k])) > largest {
				return g, diag.Errorf(codeValues, "tensor "+m.Name, "group %d of a row has the scale %g; want at most "+
					"%g in a matrix that is streamed with one that has minima", k, s, largest/float32(middle))
			}
		}
	}
	return out, nil
}

// repeat has each element n times.
func repeat[T any](of []T, n int) []T {
	if n == 1 || of == nil {
		return of
	}
	out := make([]T, 0, len(of)*n)
	for _, v := range of {
		for range n {
			out = append(out, v)
		}
	}
	return out
}
