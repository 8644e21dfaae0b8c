package refvm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// validate does not import refvm, and has a table of its own of what it runs.
func TestValidateKnowsTheKernels(t *testing.T) {
	for c := range ir.Ops {
		runs := c < len(kernels) && kernels[c] != nil
		require.Equal(t, runs, validate.Reference.Implements(ir.Opcode(c)), ir.Opcode(c))
	}
}
