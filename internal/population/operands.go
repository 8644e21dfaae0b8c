package population

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"amkc/ir"
)

// Operands is a program of one task that runs one op, or two of which the first makes a temporary for the second.
// Opcodes go round with the seed. The operands fit in a third of the programs. In the others one to three things
// about them are changed: the length, the rank or the type of a view, the number of operands, a parameter, or how any
// of these depends on the position.
//
// Everything the op reads is there before the step, and each view that it writes is of a buffer of its own: nothing
// but the op itself can be wrong.
func Operands(seed uint64) Case {
	code := ir.Opcode(seed % uint64(len(ir.Ops)))
	r := rand.New(rand.NewPCG(seed, 'o'))
	changes := 0
	if !chance(r, 3) {
		changes = 1 + r.IntN(3)/2 + r.IntN(5)/4
	}
	return Case{Name: "operands/" + code.String() + "/" + strconv.FormatUint(seed, 10), Class: "operands",
		Flat: operandsOf(r, code, changes)}
}

// operandsOf is a program of one task with an op of the given code, before so many changes.
func operandsOf(r *rand.Rand, code ir.Opcode, changes int) *ir.Flat {
	s := newSheet(r)
	op := s.fitting(code)
	for range changes {
		s.change(op)
	}
	if slices.ContainsFunc(s.flat.Buffers, func(b ir.Buffer) bool { return s.flat.Pass.Wants(&b) != "" }) {
		s.flat.Pass = ir.Pass{} // what comes from the host would have to have its tokens
	}
	s.flat.Tasks = []ir.Task{{Name: "only", SM: -1, Signal: 0, Ops: append(s.before, *op)}}
	return s.flat
}

// A sheet holds an op that is being made: its buffers, and the ops that make its temporaries.
type sheet struct {
	*rand.Rand
	flat   *ir.Flat
	before []ir.FlatOp
}

func newSheet(r *rand.Rand) *sheet {
	lo := r.IntN(3)
	return &sheet{Rand: r, flat: &ir.Flat{Name: "operands", Lo: lo, Hi: lo + r.IntN(5),
		Counters: []ir.Counter{{Name: "done", How: ir.ByCounter}}}}
}

// An arg is an operand with its buffer, -1 for a temporary.
type arg struct {
	ir.Operand
	buf int
}

// Roles by which the host sets the elements of an input: to the token, which is 0, and to the position. So an index
// lies inside whatever it is of.
const tokenInput, posInput = ir.RoleToken, ir.RolePosition

// view returns a view of a new buffer with the given lengths. The buffer may be larger, and ranges may be dealt out.
func (s *sheet) view(role string, kind ir.BufferKind, d ir.DType, lengths ...int) arg {
	b := ir.Buffer{Name: role, Role: role, Kind: kind, DType: d, Space: ir.HBM}
	if role == "" || slices.ContainsFunc(s.flat.Buffers, func(b ir.Buffer) bool { return b.Role == role }) {
		b.Name, b.Role = "b"+strconv.Itoa(len(s.flat.Buffers)), ""
	}
	var dims []ir.Range
	for _, n := range lengths {
		size, r := s.place(n)
		b.Shape, dims = append(b.Shape, size), append(dims, r)
	}
	s.flat.Buffers = append(s.flat.Buffers, b)
	return arg{ir.Operand{Buf: b.Name, Dims: dims}, len(s.flat.Buffers) - 1}
}

// place returns a range of n elements, and a dimension that it lies inside.
func (s *sheet) place(n int) (size int, r ir.Range) {
	switch s.IntN(12) {
	case 0: // somewhere in a larger dimension
		lo := s.IntN(3)
		return lo + n + 1, ir.Span(ir.Int(lo), ir.Int(lo+n))
	case 1: // every other element
		return 2*n + 1, ir.Share(ir.Int(0), ir.Int(2*n), 1, ir.Int(s.IntN(2)), 2)
	case 2: // at a place that moves
		return n + s.flat.Hi + 1, ir.Span(ir.Symbol(ir.Pos), ir.Symbol(ir.Pos).Add(ir.Int(n)))
	}
	return max(1, n), ir.Span(ir.Int(0), ir.Int(n))
}

// shape returns lengths of 1 to 4 dimensions that hold n elements.
func (s *sheet) shape(n int) []int {
	lengths := []int{n}
	for len(lengths) < 4 && chance(s.Rand, 3) {
		last := lengths[len(lengths)-1]
		by := 1
		for f := 2; f <= last; f++ {
			if last%f == 0 && chance(s.Rand, 2) {
				by = f
				break
			}
		}
		lengths = append(lengths[:len(lengths)-1], by, last/by)
	}
	return lengths
}

// in is an input of n elements, of whatever shape; sometimes a temporary that holds them.
func (s *sheet) in(d ir.DType, n int) arg { return s.input("", d, s.shape(n)...) }

// input is an input of given lengths.
func (s *sheet) input(role string, d ir.DType, lengths ...int) arg {
	kind := ir.Input
	if role == "" {
		kind = pick(s.Rand, []ir.BufferKind{ir.Weight, ir.Const})
	}
	a := s.view(role, kind, d, lengths...)
	if chance(s.Rand, 8) && (isFloat(d) || d == ir.I32) {
		return s.temporary(a)
	}
	return a
}

// temporary copies an operand to a temporary.
func (s *sheet) temporary(a arg) arg {
	t := arg{ir.Operand{Buf: "%t" + strconv.Itoa(len(s.before))}, -1}
	s.before = append(s.before, ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{a.Operand},
		Out: []ir.Operand{t.Operand}}, InBuf: []int{a.buf}, OutBuf: []int{-1}})
	return t
}

// outs are one to three outputs of n elements.
func (s *sheet) outs(d ir.DType, n int) []arg {
	list := []arg{s.out(d, n)}
	for len(list) < 3 && chance(s.Rand, 6) {
		list = append(list, s.out(d, n))
	}
	return list
}

func (s *sheet) out(d ir.DType, n int) arg {
	if chance(s.Rand, 8) {
		return arg{ir.Operand{Buf: "%r" + strconv.Itoa(s.IntN(3))}, -1}
	}
	return s.view("", ir.Activation, d, s.shape(n)...)
}

func (s *sheet) float() ir.DType { return pick(s.Rand, []ir.DType{ir.F32, ir.F16, ir.BF16}) }

func isFloat(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }

// some is a small number, now and then 0.
func (s *sheet) some() int {
	if chance(s.Rand, 16) {
		return 0
	}
	return 1 + s.IntN(4)
}

func (s *sheet) op(code ir.Opcode, in, out []arg, params ...ir.Param) *ir.FlatOp {
	op := &ir.FlatOp{Op: ir.Op{Code: code, Params: params}}
	for _, a := range in {
		op.In, op.InBuf = append(op.In, a.Operand), append(op.InBuf, a.buf)
	}
	for _, a := range out {
		op.Out, op.OutBuf = append(op.Out, a.Operand), append(op.OutBuf, a.buf)
	}
	return op
}
