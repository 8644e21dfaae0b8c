package population

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// Operands that are made to fit an opcode are accepted, and those of every opcode are made.
func TestFittingOperands(t *testing.T) {
	for seed := range uint64(draws(4000)) {
		code := ir.Opcode(seed % uint64(len(ir.Ops)))
		f := operandsOf(rand.New(rand.NewPCG(seed, 1)), code, 0)
		require.Equal(t, code, f.Tasks[0].Ops[len(f.Tasks[0].Ops)-1].Code)
		if code != ir.FUSED {
			require.NoError(t, validate.Flat(f).Diags.Err(), "%v, seed %d", code, seed)
		}
	}
}

func TestOperandsAreReproducible(t *testing.T) {
	names := map[string]bool{}
	for seed := range uint64(draws(400)) {
		c := Operands(seed)
		distinct(t, names, c)
		again := Operands(seed)
		require.Equal(t, fingerprint(&c), fingerprint(&again))
	}
}
