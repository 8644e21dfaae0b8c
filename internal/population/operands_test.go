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
		p, q := ProfileOperands(seed), ProfileOperands(seed)
		distinct(t, names, p)
		require.Equal(t, p.Profile.Marshal(), q.Profile.Marshal())
	}
}

// Operands of a lowering that are changed break some programs and not others, and the lowerings stay as they are.
func TestProfileOperands(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	before := map[string]string{}
	for i := range lowerings() {
		before[lowerings()[i].name] = string(lowerings()[i].prog.Marshal())
	}
	accepted, misfits := 0, 0
	for seed := range uint64(draws(1000)) {
		c := ProfileOperands(seed)
		flat, _ := c.Profile.Flatten()
		switch {
		case flat == nil:
		case validate.Flat(flat).OK:
			accepted++
		default:
			for _, d := range validate.Flat(flat).Diags.Errors() {
				if d.Code == validate.CodeShapes.ID {
					misfits++
					break
				}
			}
		}
	}
	t.Log(accepted, "accepted,", misfits, "with shapes that do not fit")
	require.Greater(t, accepted, draws(400)/4)
	require.Greater(t, misfits, draws(160)/4)
	for i := range lowerings() {
		require.Equal(t, before[lowerings()[i].name], string(lowerings()[i].prog.Marshal()))
	}
}
