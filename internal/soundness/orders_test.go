package soundness

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/refvm"
)

// noise supplies weights that differ from element to element.
type noise struct{}

func (noise) Floats(b *ir.Buffer, _ int) ([]float32, error) {
	out := make([]float32, b.Numel())
	for i := range out {
		out[i] = float32((i*2654435761)%1021)/1021 - 0.5
	}
	return out, nil
}

// Programs that validate accepts compute the same bits in every order of their tasks. Memory holds NaN where the step
// has not written, so that a task that runs too early shows. AMKC_LONG runs more of them.
func TestAcceptedProgramsRunTheSameInEveryOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seeds := 150
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 1200
	}
	run, mixed := 0, 0
	for seed := range uint64(seeds) {
		for _, c := range []population.Case{population.DAG(seed), population.NativeFlat(seed), population.Looped(seed),
			population.Mutant(seed), population.Published(population.MutantClasses[seed%8], seed%350)} {
			if len(Validate(c)) > 0 {
				continue
			}
			f := c.Flat
			switch {
			case c.Profile != nil:
				f, _ = c.Profile.Flatten()
			case c.Program != nil:
				f, _ = ir.Unroll(c.Program, &c.Program.Variants[0])
			}
			if len(f.Tasks) > 400 {
				continue // a few large ones are run by other tests
			}
			var want [][]uint32
			for _, o := range []refvm.Order{{Kind: refvm.InOrder}, {Kind: refvm.Latest}, {Kind: refvm.Starve, SM: 0},
				{Kind: refvm.Starve, SM: 1},
				{Kind: refvm.Random, Seed: seed}, {Kind: refvm.Random, Seed: seed + 1}, {Kind: refvm.Parallel}} {
				got := runOnce(t, c, f, o)
				if got == nil {
					mixed++
					break
				}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, "%s in order %v", c.Name, o)
			}
			run++
		}
	}
	t.Log(run, "programs in seven orders each,", mixed, "of them not, for their pages")
	require.Greater(t, run-mixed, seeds*5/6)
	require.Less(t, mixed, run/50)
}

// runOnce runs one step and returns the bits of everything that a step can change.
func runOnce(t *testing.T, c population.Case, f *ir.Flat, o refvm.Order) [][]uint32 {
	vm, err := refvm.New(f, noise{}, refvm.Options{Workers: 2, Record: true})
	if d := (*diag.Diagnostic)(nil); errors.As(err, &d) && d.Code == refvm.CodeBuffer.ID {
		return nil // a page with elements of several widths: the VM moves whole elements
	}
	require.NoError(t, err, c.Name)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range f.Buffers {
		if b := &f.Buffers[i]; b.Kind == ir.KVCache || b.Kind == ir.Input {
			values := make([]float32, b.Numel())
			for k := range values {
				if b.DType == ir.I32 {
					continue
				}
				if values[k] = r.Float32(); b.Kind == ir.KVCache &&
					k/(b.Shape[len(b.Shape)-1]*b.Shape[len(b.Shape)-2])%b.Shape[len(b.Shape)-3] >= f.Hi {
					values[k] = float32(math.NaN())
				}
			}
			require.NoError(t, vm.Write(b.Name, values), c.Name)
		}
	}
	at, tokens := slices.Repeat([]int{f.Hi}, f.Pass.NumSequences()), make([]int, f.Pass.NumTokens())
	require.NoError(t, vm.Pass(at, tokens, o), "%s in order %v", c.Name, o)
	var out [][]uint32
	for i := range f.Buffers {
		if b := &f.Buffers[i]; !b.Kind.ReadOnly() {
			values, err := vm.Read(b.Name)
			require.NoError(t, err)
			bits := make([]uint32, len(values))
			for k, v := range values {
				bits[k] = math.Float32bits(v)
			}
			out = append(out, bits)
		}
	}
	return out
}
