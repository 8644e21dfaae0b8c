package draft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// Passes without an accepted draft come after longer and longer pauses, and the first with one ends that. What nobody
// has timed costs as much as two steps.
func TestPace(t *testing.T) {
	var p Pace
	for _, pause := range []int{2, 4, 8, 16, 32, 32} {
		require.True(t, p.Due())
		p.Verified(0, 0)
		require.Equal(t, pause, max(0, p.pause))
		p.Decoded(pause-1, 0)
		require.False(t, p.Due())
		p.Decoded(1, 0)
	}
	p.Verified(3, 0)
	require.True(t, p.Due())
	p.Verified(0, 0)
	require.Equal(t, 2, max(0, p.pause))
}

// Pauses are the shorter, the less a pass costs over a step.
func TestPacePausesForWhatAPassCosts(t *testing.T) {
	for _, c := range []struct {
		pass   time.Duration
		pauses []int
	}{
		{100 * ms, []int{0, 0, 0, 0, 0, 0}},
		{90 * ms, []int{0, 0, 0, 0, 0, 0}}, // somebody was in the way of the step
		{104 * ms, []int{0, 0, 0, 0, 1, 1}},
		{125 * ms, []int{0, 1, 2, 4, 8, 8}},
		{150 * ms, []int{1, 2, 4, 8, 16, 16}},
		{200 * ms, []int{2, 4, 8, 16, 32, 32}},
		{900 * ms, []int{2, 4, 8, 16, 32, 32}},
	} {
		var p Pace
		p.Decoded(16, 1600*ms)
		p.Decoded(1, 120*ms) // the shortest step counts
		p.Decoded(1, 0)
		p.Verified(1, c.pass)
		for _, pause := range c.pauses {
			require.True(t, p.Due())
			p.Verified(0, c.pass+5*ms)
			require.Equal(t, pause, max(0, p.pause), c.pass)
			p.Decoded(pause, 0)
		}
	}
}

// A text of which every draft is wrong loses 3 % at most, whatever a pass costs.
func TestPaceBoundsWhatATextMayLose(t *testing.T) {
	for _, cost := range []time.Duration{1, 2, 3, 4, 5, 6, 9, 10, 20, 30, 50, 80, 100} {
		var p Pace
		var took time.Duration
		const tokens = 10_000
		for n := 0; n < tokens; {
			if p.Due() && n > 0 {
				p.Verified(0, 100*ms+cost*ms)
				took, n = took+(100+cost)*ms, n+1
				continue
			}
			steps := max(1, max(0, p.pause))
			p.Decoded(steps, time.Duration(steps)*100*ms)
			took, n = took+time.Duration(steps)*100*ms, n+steps
		}
		require.Less(t, took, tokens*103500*time.Microsecond, cost)
	}
}

// Launches without drafts have more and more steps, as many as a pause, and fewer where steps take long.
func TestPaceOfLaunches(t *testing.T) {
	for _, c := range []struct {
		step time.Duration
		want []int
	}{
		{0, []int{1, 2, 4, 8, 16, 16}},
		{ms / 20, []int{1, 2, 4, 8, 16, 16}},
		{ms, []int{1, 2, 4, 8, 9, 9}},
		{5 * ms, []int{1, 2, 2, 2}},
		{40 * ms, []int{1, 1, 1}},
	} {
		var p Pace
		for range 2 {
			for _, n := range c.want {
				require.Equal(t, n, p.Steps(), c.step)
				p.Decoded(n, time.Duration(n)*c.step)
			}
			p.Verified(1, 2*c.step)
		}
		for range 3 {
			p.Verified(0, 2*c.step)
		}
		require.Equal(t, 8, p.Steps())
	}
}

// Guesses that are right less often are asked for where passes cost little, and none where drafts are not due.
func TestPaceAsksEagerly(t *testing.T) {
	text := []int{1, 2, 3, 1}
	for _, c := range []struct {
		pass time.Duration
		want []int
	}{{0, nil}, {102 * ms, []int{2, 3}}, {125 * ms, []int{2, 3}}, {130 * ms, nil}} {
		var p Pace
		p.Decoded(2, 200*ms)
		p.Verified(1, c.pass)
		require.Equal(t, c.want, p.Draft(NGrams{}, text, 2), c.pass)
		require.Equal(t, []int{3, 1, 2}, p.Draft(NGrams{}, []int{1, 2, 3, 1, 2}, 3))
	}
	var p Pace
	p.Decoded(2, 200*ms)
	p.Verified(0, 110*ms)
	require.Equal(t, []int{2, 3}, p.Draft(NGrams{}, text, 2))
	p.Verified(0, 110*ms)
	require.Nil(t, p.Draft(NGrams{}, text, 2), "two without accepted drafts")
	p.Verified(1, 110*ms)
	require.Equal(t, []int{2, 3}, p.Draft(NGrams{}, text, 2))

	p = Pace{}
	p.Verified(0, 0)
	require.Nil(t, p.Draft(NGrams{}, []int{1, 2, 3, 1, 2}, 3))
}
