package soundness

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
	"amkc/simulate"
)

// Passes of several tokens: none that validate accepts goes wrong, wherever the sequences are. It rejects the slips by
// the codes that are meant for them.
func TestTokensPopulation(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	n := uint64(200)
	if os.Getenv("AMKC_LONG") != "" {
		n = 20_000
	}
	fp, accepted, unsafe := simulate.NewFootprints(), 0, map[string]int{}
	for seed := range n {
		j := Judge(population.Tokens(seed), fp, simulate.Effort{States: 2000, Orders: 4, Positions: 4,
			ExploreWork: 50_000, SampleWork: 50_000, Seed: seed})
		require.False(t, j.FalseAccept(), "%s is accepted: %v", j.Case.Name, j.Verdict.Hazard)
		require.False(t, j.Disagree(), "%s: %v, and the reference VM %q", j.Case.Name, j.Diags.Err(), j.Misfit)
		switch {
		case len(j.Diags) == 0:
			accepted++
		case j.Verdict.Unsafe():
			unsafe[j.Diags[0].Code]++
		default:
			require.NotEmpty(t, explained[j.Diags[0].Code], "%s is safe: %v", j.Case.Name, j.Diags.Err())
		}
	}
	t.Log(accepted, "of", n, "accepted; unsafe by code:", unsafe)
	require.Greater(t, accepted, int(n)/3)
	for _, code := range []string{"AMK3103", "AMK3108", "AMK3130", "AMK3141", "AMK3163", "AMK3164"} {
		require.NotZero(t, unsafe[code], code)
	}
}
