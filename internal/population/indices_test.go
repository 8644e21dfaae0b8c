package population

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// Programs that compute rows of tables are right but for these rows, and half of them are right altogether.
func TestIndices(t *testing.T) {
	seeds := draws(2000)
	accepted, codes := 0, map[string]int{}
	for seed := range uint64(seeds) {
		c := Indices(seed)
		require.NoError(t, ir.Check(c.Program).Err(), c.Name)
		rep := validate.Program(c.Program)
		if rep.OK {
			accepted++
			continue
		}
		for _, d := range rep.Diags.Errors() {
			codes[d.Code]++
		}
	}
	t.Logf("%d of %d accepted; rejected for %v", accepted, seeds, codes)
	require.Greater(t, accepted, seeds*4/10)
	require.Less(t, accepted, seeds*8/10)
	require.Greater(t, codes[validate.CodeIndex.ID], seeds*2/10)
	require.LessOrEqual(t, len(codes), 2, "values that no task has written, besides indices")
}
