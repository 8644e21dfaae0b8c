// Package op declares the operations of the IR, one file per op: its operands and their roles, its parameters and
// their ranges, how shapes and element types must fit, and what it computes in words. Parsing, printing, the
// structural check, the proofs about operands and the tables of docs/ir.md come from these declarations.
//
// The implementations of ops are elsewhere on purpose: in refvm, in the emitted code, and in the test oracle. Tests
// compare them, which is meaningful because they share only names.
//
// The package imports no package of amkc. There is no other list of ops.
package op

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Limits of what a program may say, so that no product of sizes overflows.
const (
	MaxInt      = math.MaxInt32 // of a parameter, a block or a number of parts
	MaxElements = 1 << 44       // of a buffer or a temporary
	MaxIndex    = MaxInt - 1    // of an element or a row that an I32 names: the largest I32 names none
)

// A Spec is the declaration of an op.
type Spec struct {
	Code   int // its number in binary forms, which stays; the next op takes the next one
	Name   string
	Doc    string // what it computes, in full sentences of plain text
	Params []Param
	Forms  []Form // the first whose condition holds is the one that operands have to fit; the last has no condition

	// Pointwise: element i of each result depends only on element i of each operand, so a task may write the buffer
	// that it reads. An operand with another length than the result never has the same view.
	Pointwise bool
	// Kernel: a stage body of the device runtime computes it.
	Kernel bool
	// Finisher: how the device runtime computes the op on finished rows of a product, if it is a call that takes only
	// the row and the parameters. Ops that need more are emitted and read back individually.
	Finisher *Finisher
	// Recipe: it stands for ops of the AMK profile and cannot be run.
	Recipe bool

	In, Out Arity // of all forms together; declare sets them
	roles   []Role
}

// A Form is one of the ways in which an op takes its operands.
type Form struct {
	When    string                           // in words: "with order=1"; "" if it is the only form
	If      func(inputs int, args Args) bool // nil: otherwise
	In, Out []Operand
	// Shape returns the number of elements of the result and of its last dimension. It reports operands that do not fit
	// each other or the parameters with Call.Fail, and still returns sizes for later rules. nil: the op has no result,
	// or an unknown one.
	Shape func(*Call) (n, last int)

	NIn, NOut Arity // declare sets these
	Lengths   bool  // and this: rules look at the lengths of some input, a Table or a Cache
}

// An Operand is one input or output of a form, or several of the same kind.
type Operand struct {
	Name  string
	Shape string // as documents print it: "[B,n]". A size marked with * may be 0.
	Role  Role
	Elem  Elem
	// Optional: it may be omitted, together with all that follow.
	Optional bool
	// Most is the maximum number of operands: 0 means 1, and Unbounded any number. Only the last operand may be
	// several.
	Most int
}

// Unbounded is the Most of an operand without a maximum number.
const Unbounded = -1

// Role is the purpose of an operand. An operand has the same role in all forms of its op.
type Role uint8

const (
	Value    Role = iota // what the tasks of a step compute
	Matrix               // a weight of a product, which is streamed
	Gain                 // the weight or the bias of a norm, the bias of a choice
	Scale                // what belongs to a matrix: its bias, its scales, its zeros
	Table                // rows that are selected by number; the first dimension counts them
	Angle                // what a rotation takes its angles from
	Cache                // rows by position, of which there may be another number at each position
	Appended             // where rows of a cache go: a share of them, or one element or none of a dimension
	Number               // numbers of rows or of elements
	Kept                 // what the op keeps for the next step: outputs of the role are the inputs of it, in order
)

// Ahead reports whether the kernel may read the operand ahead of all waits, even before the previous step has ended: a
// producer streams matrices and tables, and small constants are read through the read-only path.
func (r Role) Ahead() bool { return r == Matrix || r == Gain || r == Table || r == Angle }

// Elem is what the elements of an operand may be.
type Elem uint8

const (
	Float     Elem = iota // F32, F16 or BF16
	Index                 // I32
	Quantised             // what the parameter qdtype names
	Any                   // anything
	AsInput               // of a result: I32 if and only if the first input is
)

func (e Elem) String() string {
	return [...]string{"F32, F16 or BF16", "I32", "qdtype", "any", "as x"}[e]
}

// Arity is an interval of numbers of operands. Max is Unbounded if there is no maximum.
type Arity struct{ Min, Max int }

// Has reports whether there may be n operands.
func (a Arity) Has(n int) bool { return a.Min <= n && (n <= a.Max || a.Max == Unbounded) }

func (a Arity) String() string {
	switch {
	case a.Max == Unbounded:
		return strconv.Itoa(a.Min) + " or more"
	case a.Min == a.Max:
		return strconv.Itoa(a.Min)
	}
	return strconv.Itoa(a.Min) + " to " + strconv.Itoa(a.Max)
}

// and returns the smallest interval that holds both.
func (a Arity) and(b Arity) Arity {
	if a.Min = min(a.Min, b.Min); a.Max != Unbounded && (b.Max == Unbounded || b.Max > a.Max) {
		a.Max = b.Max
	}
	return a
}

// declared are the ops, in no order that matters.
var declared []*Spec

// All returns every declaration at its code.
func All() []*Spec {
	all := slices.SortedFunc(slices.Values(declared), func(a, b *Spec) int { return a.Code - b.Code })
	for code, s := range all {
		if s.Code != code {
			panic(fmt.Sprintf("op: %s has the code %d, want codes from 0 on without a gap, each once", s.Name, s.Code))
		}
	}
	return all
}

// declare completes a declaration and lists it.
func declare(s Spec) *Spec {
	for i := range s.Forms {
		f := &s.Forms[i]
		f.NIn, f.NOut = count(f.In), count(f.Out)
		if i == 0 {
			s.In, s.Out = f.NIn, f.NOut
		}
		s.In, s.Out = s.In.and(f.NIn), s.Out.and(f.NOut)
		for k := range f.In {
			role := f.In[k].Role
			f.Lengths = f.Lengths || role == Table || role == Cache
			if k == len(s.roles) {
				s.roles = append(s.roles, role)
			}
		}
	}
	declared = append(declared, &s)
	return &s
}

func count(list []Operand) (a Arity) {
	for i := range list {
		if !list[i].Optional {
			a.Min++
		}
		switch most := list[i].Most; {
		case most == Unbounded || a.Max == Unbounded:
			a.Max = Unbounded
		default:
			a.Max += max(1, most)
		}
	}
	return a
}

// Form returns the form of an op with n inputs and with these parameters.
func (s *Spec) Form(inputs int, args Args) *Form {
	for i := range s.Forms {
		if f := &s.Forms[i]; f.If == nil || f.If(inputs, args) {
			return f
		}
	}
	panic("op: " + s.Name + " has no form without a condition") // TestDeclarations
}

// Role returns the role of input i.
func (s *Spec) Role(i int) Role {
	if len(s.roles) == 0 {
		return Value
	}
	return s.roles[min(i, len(s.roles)-1)]
}

// HasRole reports whether an input of the op has a role.
func (s *Spec) HasRole(r Role) bool {
	for _, have := range s.roles {
		if have == r {
			return true
		}
	}
	return false
}

// Input returns the declaration of input i. Inputs beyond those of the form are like the last one; one of a form
// without inputs has an empty declaration.
func (f *Form) Input(i int) *Operand { return operandOf(f.In, i) }

// Output returns the declaration of output i in the same way.
func (f *Form) Output(i int) *Operand { return operandOf(f.Out, i) }

func operandOf(list []Operand, i int) *Operand {
	if len(list) == 0 {
		return &undeclared
	}
	return &list[min(i, len(list)-1)]
}

var undeclared Operand

// results is the outputs of most ops: up to four of them get the same result, each rounded to its own element type.
func results(shape string) []Operand { return []Operand{{Name: "out", Shape: shape, Most: 4}} }
