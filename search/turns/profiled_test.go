package turns

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// The build of the entrant that wants a profile is profiled once, at the first position, behind the turns of the first
// opening.
func TestProfiled(t *testing.T) {
	var got []*host.Profile
	entrants := []Entrant{{Name: "a", Dir: "a", Profiled: func(p *host.Profile) { got = append(got, p) }},
		{Name: "b", Dir: "b"}, {Name: "twin", Dir: "a", Session: "twin"}}
	o := Options{Positions: []int{7, 9}, Rounds: 2, Openings: 2, More: func() bool { return true }}
	log, turns, all := run(t, o, nil, entrants...)
	require.True(t, all)
	require.Len(t, turns, 2*2*2*3)
	require.Equal(t, []*host.Profile{{Position: 7}}, got)
	require.Equal(t, []string{"open a", "open b", "open a", "bench a 7/0", "bench b 7/0", "bench a 7/0", "bench a 9/0",
		"bench b 9/0", "bench a 9/0", "profile a 7"}, log[:10])
	require.NotContains(t, log[10:], "profile a 7")

	log, _, _ = run(t, o, nil, entrants[1:]...)
	require.NotContains(t, log, "profile a 7", "nobody wants one")
	require.NotContains(t, log, "profile b 7")

	// Without positions there is nothing to take.
	log, _, all = run(t, Options{Rounds: 1}, nil, entrants...)
	require.True(t, all)
	require.NotContains(t, log, "profile a 0")
}

// badly is a build that can be measured, and not profiled.
type badly struct {
	fake
	why error
}

func (b *badly) profile(context.Context, int) (*host.Profile, error) { return nil, b.why }

// A profile that fails is left out, and the turns are as they were.
func TestProfilesThatFail(t *testing.T) {
	var log []string
	entrants := []Entrant{{Name: "a", Dir: "a", Profiled: func(*host.Profile) { t.Error("there is none") }}}
	taken := 0
	all, err := take(t.Context(), entrants, Options{Positions: []int{7}, Rounds: 2},
		func(context.Context, string, int, string, *checks) build {
			return &badly{fake{"a", &log, nil}, errors.New("no room")}
		}, func(turn Turn) error {
			require.Empty(t, turn.Error)
			taken++
			return nil
		})
	require.NoError(t, err)
	require.True(t, all)
	require.Equal(t, 2, taken)
}

// cancelling is a build whose context ends while it is profiled.
type cancelling struct {
	fake
	cancel func()
}

func (c *cancelling) profile(ctx context.Context, _ int) (*host.Profile, error) {
	c.cancel()
	return nil, ctx.Err()
}

func TestProfilesThatAreCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var log []string
	entrants := []Entrant{{Name: "a", Dir: "a", Profiled: func(*host.Profile) { t.Error("there is none") }}}
	_, err := take(ctx, entrants, Options{Positions: []int{7}, Rounds: 2},
		func(context.Context, string, int, string, *checks) build {
			return &cancelling{fake{"a", &log, nil}, func() { cancel(errors.New("enough")) }}
		}, func(Turn) error { return nil })
	require.EqualError(t, err, "enough")
	require.Equal(t, []string{"bench a 7/0", "close a"}, log, "no second opening")
}

// Builds that a search compiles have no kernel that records a profile, and those with all kernels have.
func TestProfiledSessions(t *testing.T) {
	hosttest.NeedDriver(t)
	for settings, want := range map[string]int{"": 1, "lean=1": 0} {
		profiles := 0
		entrants := []Entrant{{Name: "old", Dir: hosttest.Build(t, settings, nil), Trusted: true,
			Profiled: func(p *host.Profile) {
				require.NotEmpty(t, p.Spans)
				profiles++
			}}}
		o := Options{Positions: []int{7}, Rounds: 2, Openings: 2, Bench: host.BenchOptions{Launches: 3, WarmUp: 1}}
		all, err := Take(t.Context(), entrants, o, func(turn Turn) error {
			require.Empty(t, turn.Error)
			return nil
		})
		require.NoError(t, err)
		require.True(t, all)
		require.Equal(t, want, profiles, settings)
	}
	// Nor is one made of what cannot be opened.
	entrants := []Entrant{{Name: "old", Dir: t.TempDir(), Profiled: func(*host.Profile) { t.Error("there is none") }}}
	all, err := Take(t.Context(), entrants, Options{Positions: []int{7}, Rounds: 1}, func(Turn) error { return nil })
	require.NoError(t, err)
	require.False(t, all)
}
