package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/knobs"
	"amkc/search"
)

// What takes more than 80 % of the target's memory is not a candidate.
func TestRoom(t *testing.T) {
	r := requestFor(t, knobs.Settings{"tiling.ring.pace": "500"}, nil)
	l, err := compiler.RunPasses(r.Options)
	require.NoError(t, err)
	defer l.Close()
	f, err := compiler.Memory(l.Program)
	require.NoError(t, err)
	target := *r.Options.Target
	r.Options.Target = &target
	for bytes, want := range map[int]search.Class{int(float64(f.Bytes()) / 0.81): search.Rejected,
		int(float64(f.Bytes()) / 0.79): search.Pass, 0: search.Pass} {
		target.HBMBytes = bytes
		v := judgedAs(t, r)
		require.Equal(t, want, v.Class, "%d bytes", bytes)
		if want == search.Rejected {
			require.Equal(t, codeMemory.ID, v.Reason.Code)
			require.Contains(t, v.Reason.Msg, "more than the 80 % (")
		}
	}
}
