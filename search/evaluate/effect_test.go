package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/knobs"
	"amkc/search"
)

// A candidate that emits the same step as its baseline is refused at every rung, before anything is built, and the
// message names the settings that change nothing. The same settings on both sides are judged.
func TestCandidatesWithoutEffect(t *testing.T) {
	base := knobs.Settings{"tiling.ring.pace": "500"}
	for _, c := range []struct {
		candidate, baseline knobs.Settings
		named               string // empty: it is judged
	}{
		{knobs.Settings{"tiling.ring.pace": "500", "tiling.gemv.split_k": "8"}, base,
			"from tiling.gemv.split_k 8 (4 in the baseline); want"},
		{knobs.Settings{"tiling.ring.pace": "700"}, nil, "from tiling.ring.pace 700 (700 in the baseline); want"},
		{nil, knobs.Settings{"tiling.gemv.split_k": "1"}, "from tiling.gemv.split_k 4 (1 in the baseline); want"},
		{knobs.Settings{"tiling.ring.pace": "600", "tiling.gemv.split_k": "8"}, base, ""},
		{knobs.Settings{"tiling.ring.chunk_bytes": "8192"}, nil, ""},
		{base, base, ""},
		{nil, knobs.Settings{}, ""},
	} {
		for _, rung := range search.Rungs {
			r := requestFor(t, c.candidate, c.baseline)
			r.Rung = rung
			g := newFakeGPU()
			for _, v := range []*search.Verdict{judgedAs(t, r), g.judges(t, r)} {
				if c.named == "" {
					want := search.Pass
					if v.Device == search.DeviceCost && rung != search.Final {
						want = search.Unchecked
					}
					require.Equal(t, want, v.Class, "%v: %s", c.candidate, v.Why)
					continue
				}
				require.Equal(t, search.Rejected, v.Class, "%v against %v", c.candidate, c.baseline)
				require.Equal(t, "AMK6109", v.Reason.Code)
				require.Contains(t, v.Reason.Msg, c.named)
				require.True(t, v.Proof.OK)
				require.Empty(t, append(g.built, g.launched...))
				require.Zero(t, v.GPUSeconds)
			}
		}
	}
}

// Where the same bits are asked for, a candidate is refused that adds up in another order than its baseline, whether it
// states that or a default follows from what it states: a small ring has smaller chunks.
func TestSameBits(t *testing.T) {
	for _, c := range []struct {
		path  string
		value knobs.Value
		class search.Class
	}{
		{"tiling.ring.chunk_bytes", "8192", search.Rejected},
		{"smem_bytes_per_block", "32768", search.Rejected},
		{"smem_bytes_per_block", "65536", search.Unchecked},
		{"tiling.ring.pace", "600", search.Unchecked},
	} {
		r := requestFor(t, knobs.Settings{c.path: c.value}, nil)
		r.Rung = search.Screen
		require.Equal(t, search.Unchecked, judgedAs(t, r).Class, "%v", c)
		r.SameBits = true
		v := judgedAs(t, r)
		require.True(t, v.SameBits)
		require.Equal(t, c.class, v.Class, "%v: %s", c, v.Why)
		if c.class == search.Rejected {
			require.Equal(t, search.CodeOrder, v.Reason.Code)
			require.Equal(t, "tiling.ring.chunk_bytes", v.Reason.Pos)
		}
	}
}
