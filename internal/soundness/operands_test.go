package soundness

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
	"amkc/simulate"
	"amkc/validate"
)

// ranAlone runs a program at every position, on weights that are zero, and returns what the reference VM says. A
// panic is an error that no diagnostic is.
func ranAlone(f *ir.Flat) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	vm, err := refvm.New(f, zeros{}, refvm.Options{Workers: 1})
	for pos := f.Lo; pos <= f.Hi && err == nil; pos++ {
		at := make([]int, f.Pass.NumSequences())
		for s := range at { // each sequence somewhere else
			at[s] = f.Lo + (pos-f.Lo+s)%(f.Hi-f.Lo+1)
		}
		err = vm.Pass(at, make([]int, f.Pass.NumTokens()), refvm.Order{Kind: refvm.InOrder})
	}
	return err
}

type zeros struct{}

func (zeros) Floats(b *ir.Buffer, _ int) ([]float32, error) { return make([]float32, b.Numel()), nil }

// What validate accepts the reference VM runs, and the operands that it refuses the VM refuses, whatever the opcode.
// The two share nothing that says what fits.
func TestOperandsAgree(t *testing.T) {
	n := uint64(20_000)
	if os.Getenv("AMKC_LONG") != "" {
		n = 1_000_000
	}
	accepted, refused := make([]int, len(ir.Ops)), make([]int, len(ir.Ops))
	wrong := 0
	for seed := range n {
		c := population.Operands(seed)
		ops := c.Flat.Tasks[0].Ops
		code := ops[len(ops)-1].Code
		diags, err := Validate(c), ranAlone(c.Flat)
		var d *diag.Diagnostic
		require.True(t, err == nil || errors.As(err, &d), "%s: %v", c.Name, err)
		fits := fitOf(diags) == simulate.Fits // other rules, of what is in memory, may refuse it all the same
		ran := err == nil || d.Code == refvm.CodeValue.ID
		if fits {
			accepted[code]++
		} else {
			refused[code]++
		}
		if fits != ran || len(diags) == 0 && err != nil {
			t.Errorf("%s:\n%s\nvalidate: %v\nrefvm: %v", c.Name, described(c.Flat), diags.Err(), err)
			if wrong++; wrong == 20 {
				t.Fatal("and so on")
			}
		}
	}
	for code := range ir.Ops {
		require.Greater(t, refused[code], int(n)/len(ir.Ops)/5, "%v is refused too rarely to say anything",
			ir.Opcode(code))
		if ir.Opcode(code) != ir.FUSED { // a recipe, which no backend implements
			require.Greater(t, accepted[code], int(n)/len(ir.Ops)/5, "%v is accepted too rarely to say anything",
				ir.Opcode(code))
		} else {
			require.Zero(t, accepted[code])
		}
	}
}

// differences are what the two judge differently on purpose, none of which is a matter of shape: what an op leaves in
// memory, and how much memory there is. Operands keeps clear of them.
var differences = []struct {
	why       string
	flat      *ir.Flat
	validates string // the code of validate's refusal; "": it accepts
	runs      string // the code of the reference VM's
}{
	{"elements of half a byte: two tasks could not write neighbours, and the VM keeps a slot for each",
		copying(ir.Weight, ir.F32, ir.Activation, ir.I4, 2), validate.CodeLayout.ID, ""},
	{"an activation that nobody has written: the VM finds what the step before has left",
		copying(ir.Activation, ir.F32, ir.Activation, ir.F32, 2), validate.CodeUndefined.ID, ""},
	{"more elements than the VM has memory for",
		copying(ir.Weight, ir.F32, ir.Activation, ir.F32, 1<<31+1), "", refvm.CodeBuffer.ID},
}

// copying is a program of one task that copies a buffer of n elements.
func copying(from ir.BufferKind, x ir.DType, to ir.BufferKind, y ir.DType, n int) *ir.Flat {
	all := []ir.Range{ir.Span(ir.Int(0), ir.Int(n))}
	op := ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{{Buf: "x", Dims: all}},
		Out: []ir.Operand{{Buf: "y", Dims: all}}}, InBuf: []int{0}, OutBuf: []int{1}}
	return &ir.Flat{
		Counters: []ir.Counter{{Name: "done", How: ir.ByCounter}},
		Buffers: []ir.Buffer{{Name: "x", Kind: from, DType: x, Shape: []int{n}},
			{Name: "y", Kind: to, DType: y, Shape: []int{n}}},
		Tasks: []ir.Task{{Name: "only", SM: -1, Ops: []ir.FlatOp{op}}},
	}
}

func TestDifferencesOfOperands(t *testing.T) {
	for _, d := range differences {
		refusal, err := "", ranAlone(d.flat)
		if l := validate.Flat(d.flat).Diags.Errors(); len(l) > 0 {
			refusal = l[0].Code
		}
		require.Equal(t, d.validates, refusal, d.why)
		if d.runs == "" {
			require.NoError(t, err, d.why)
			continue
		}
		var found *diag.Diagnostic
		require.ErrorAs(t, err, &found, d.why)
		require.Equal(t, d.runs, found.Code, d.why)
	}
}

// described prints a program of one task.
func described(f *ir.Flat) string {
	out := fmt.Sprintf("positions %d to %d\n", f.Lo, f.Hi)
	for _, b := range f.Buffers {
		out += fmt.Sprintf("%s %s %s %v\n", b.Name, b.Kind, b.DType, b.Shape)
	}
	for _, op := range f.Tasks[0].Ops {
		out += fmt.Sprintln(op.Code, op.Out, "=", op.In)
		for _, p := range op.Params {
			if p.IsFloat {
				out += fmt.Sprintf("  %s=%v\n", p.Key, p.Float)
			} else {
				out += fmt.Sprintf("  %s=%s\n", p.Key, p.Int)
			}
		}
	}
	return out
}
