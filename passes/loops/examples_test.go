package loops

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/refvm"
	"amkc/validate"
)

// examples are those that the technique was published with: calls that are only grouped, a chain of something other
// than parameters, one that moves on chip, and one that needs two pages and is stored by every call.
var examples = []string{"independent", "chain_grouped", "chain_onchip", "chain_double"}

func example(t *testing.T, file string) *ir.Program {
	path := filepath.Join("testdata", file)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	p, err := ir.Parse(text, path)
	require.NoError(t, err)
	require.NoError(t, ir.Check(p).Err())
	return p
}

func golden(t *testing.T, path, got string) {
	if *modeltest.Update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s; go test ./passes/loops -update rewrites the goldens", path)
}

// The examples become the loops that their goldens hold, for the reasons that their tables of usage give. Both forms
// are proved, and compute the same.
func TestWorkedExamples(t *testing.T) {
	for _, name := range examples {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join("testdata", name)
			flat, p := example(t, name+".in.amk"), example(t, name+".in.amk")
			r, err := newRoller(p)
			require.NoError(t, err)
			r.variants[0].match(p)
			golden(t, base+".usage", usageTable(r.variants[0].runs))

			rollAll(t, p)
			golden(t, base+".out.amk", string(ir.Print(p)))
			rolled := example(t, name+".out.amk")
			requireUnrolls(t, flat, rolled)
			for _, p := range []*ir.Program{flat, rolled} {
				report := validate.Program(p)
				require.True(t, report.OK, "%v", report.Diags)
			}
			want := outputs(t, flat)
			require.Equal(t, want, outputs(t, rolled))
			for name, bits := range want {
				require.True(t, slices.ContainsFunc(bits, func(b uint32) bool { return b != 0 }), name)
			}
		})
	}
}

// usageTable prints the parameters of runs with their arguments.
func usageTable(runs []*run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%d calls of %d stages\n", r.count, r.period)
		for _, p := range r.params {
			fmt.Fprintf(&b, "%-12s %v\n", strings.Join(p.args, " "), p.usage)
		}
	}
	return b.String()
}

// outputs runs a step and returns the bits of what the caller gets.
func outputs(t *testing.T, p *ir.Program) map[string][]uint32 {
	s, err := refvm.NewSession(p, byKey{}, refvm.Options{})
	require.NoError(t, err)
	vm, err := s.At(0)
	require.NoError(t, err)
	for _, b := range p.Buffers {
		if b.Kind == ir.Input && b.DType == ir.F32 {
			values := make([]float32, b.Numel())
			for i := range values {
				values[i] = float32(len(b.Name)+int(b.Name[0])%7) - 1.25*float32(i)
			}
			require.NoError(t, vm.Write(b.Name, values))
		}
	}
	_, _, err = s.Step(3)
	require.NoError(t, err)
	out := map[string][]uint32{}
	for _, b := range p.Buffers {
		if b.Kind == ir.Output {
			values, err := vm.Read(b.Name)
			require.NoError(t, err)
			for _, v := range values {
				out[b.Name] = append(out[b.Name], math.Float32bits(v))
			}
		}
	}
	return out
}

// Two pages are there because one would not do, and one where two would be waste.
func TestPagesOfAChainAreWhatTheHazardDemands(t *testing.T) {
	double := example(t, "chain_double.out.amk")
	for i := range double.Buffers {
		if b := &double.Buffers[i]; len(b.Pages) == 2 {
			b.Pages = b.Pages[:1]
		}
	}
	require.False(t, validate.Program(double).OK)
	single := example(t, "chain_onchip.out.amk")
	require.True(t, slices.ContainsFunc(single.Buffers, func(b ir.Buffer) bool { return len(b.Pages) == 1 }))
	require.False(t, slices.ContainsFunc(single.Buffers, func(b ir.Buffer) bool { return len(b.Pages) == 2 }))
}
