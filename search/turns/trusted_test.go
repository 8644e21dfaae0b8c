package turns

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// A build that is trusted is measured in each session that opens it, of which the first alone checks it.
func TestTrustedBuildsAreMeasured(t *testing.T) {
	hosttest.NeedDriver(t)
	entrants := []Entrant{{Name: "old", Dir: hosttest.Build(t, "", nil), Trusted: true},
		{Name: "new", Dir: hosttest.Build(t, "", nil), Session: "new"}}
	entrants = append(entrants, Entrant{Name: "twin", Dir: entrants[0].Dir, Session: "twin", Trusted: true})
	o := Options{Positions: []int{7}, Rounds: 2, Openings: 2, Bench: host.BenchOptions{Launches: 3, WarmUp: 1}}
	checks := map[*host.CheckReport]bool{}
	all, err := Take(t.Context(), entrants, o, func(turn Turn) error {
		require.Empty(t, turn.Error, "%s of opening %d", turn.Build, turn.Opening)
		require.True(t, turn.Check.Passed)
		checks[turn.Check] = true
		return nil
	})
	require.NoError(t, err)
	require.True(t, all)
	require.Len(t, checks, 3, "of the old one once, and of the new one twice")
}
