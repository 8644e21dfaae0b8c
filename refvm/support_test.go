package refvm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
)

// weightsFunc is a Weights that is a function.
type weightsFunc func(b *ir.Buffer, i int) ([]float32, error)

func (f weightsFunc) Floats(b *ir.Buffer, i int) ([]float32, error) { return f(b, i) }

// noise supplies random weights, small integers to buffers of integers.
func noise(seed uint64) weightsFunc {
	return func(b *ir.Buffer, i int) ([]float32, error) {
		r := rand.New(rand.NewPCG(seed, uint64(len(b.Name)+i)))
		out := make([]float32, b.Numel())
		for k := range out {
			out[k] = r.Float32()*2 - 1
			if b.DType == ir.I8 || b.DType == ir.I4 {
				out[k] = float32(r.IntN(16) - 8)
			}
		}
		return out, nil
	}
}

// parse reads a program in text form, without its first line.
func parse(t testing.TB, text string) *ir.Program { return parseFile(t, "amk 2.0\n"+text) }

func parseFile(t testing.TB, text string) *ir.Program {
	p, err := ir.Parse([]byte(text), "test.amk")
	require.NoError(t, err)
	return p
}

// unroll returns the only variant of a program in flat form.
func unroll(t testing.TB, p *ir.Program) *ir.Flat {
	flat, diags := ir.Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	return flat
}

// oneTask is a program whose only task runs the given ops.
func oneTask(buffers, ops string) string {
	return buffers + "\nvariant v pos 0..99\ncounter done counter gpu\nstage task whole extent=1\n" + ops +
		"\nsignal done\n"
}

// code returns the code of a diagnostic.
func code(t testing.TB, err error) string {
	require.Error(t, err)
	d, ok := err.(*diag.Diagnostic)
	require.True(t, ok, "%T: %v", err, err)
	return d.Code
}

// elements lists what a view covers at a position, as row-major indices of its buffer.
func elements(b *ir.Buffer, dims []ir.Range, pos int) []int {
	out := []int{0}
	for d, r := range dims {
		var next []int
		for _, at := range out {
			for _, e := range r.Elements(nil, pos) {
				next = append(next, at*b.Shape[d]+e)
			}
		}
		out = next
	}
	return out
}

// bitsOf makes float32 values comparable bit by bit.
func bitsOf(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, f := range x {
		out[i] = math.Float32bits(f)
	}
	return out
}

// requireFootprint demands that every task touched, in the last step of a recording VM, no more than the views of its
// ops say, and wrote exactly those.
func requireFootprint(t testing.TB, vm *VM, pos int) {
	type element struct{ buf, at int }
	for i := range vm.flat.Tasks {
		task := &vm.flat.Tasks[i]
		reads, writes := map[element]bool{}, map[element]bool{}
		for _, a := range task.Footprint(nil) {
			for _, at := range elements(&vm.flat.Buffers[a.Buf], a.Dims, pos) {
				if a.Write {
					writes[element{a.Buf, at}] = true
				} else {
					reads[element{a.Buf, at}] = true
				}
			}
		}
		written := map[element]bool{}
		for _, touch := range vm.Touched(i) {
			for at := touch.Lo; at < touch.Lo+touch.N; at++ {
				e := element{touch.Buf, at}
				if touch.Write {
					written[e] = true
				} else {
					require.True(t, reads[e], "%s read element %d of %s", task.Name, at,
						vm.flat.Buffers[touch.Buf].Name)
				}
			}
		}
		require.Equal(t, writes, written, "what %s writes", task.Name)
	}
}
