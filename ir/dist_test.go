package ir

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTasksCoverTheAxisOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 3000 {
		d := Dist{Kind: DistKind(r.IntN(4)), Extent: 1 + r.IntN(500), Grain: 1 + r.IntN(20), SMs: 1 + r.IntN(40),
			Empty: r.IntN(2) == 0}
		d.Rot, d.Step = r.IntN(d.SMs), r.IntN(d.SMs)
		if d.Kind == ByUnit {
			d.Grain = 1
		}
		i := r.IntN(50)
		tasks, next := d.Tasks(i), 0
		perSM := map[int]int{}
		for k, sp := range tasks {
			require.Equal(t, next, sp.A, "%+v task %d", d, k)
			require.True(t, sp.B > sp.A || sp.B == sp.A && d.Kind == Spread && d.Empty, "%+v task %d", d, k)
			require.True(t, sp.A%d.Grain == 0 || sp.A == d.Extent, "%+v task %d", d, k)
			next = sp.B
			perSM[sp.SM]++
			if d.onSMs() {
				require.True(t, sp.SM >= 0 && sp.SM < d.SMs)
			} else {
				require.Equal(t, -1, sp.SM)
			}
		}
		require.Equal(t, d.Extent, next, "%+v", d)
		if d.Kind == Spread && !d.Empty {
			require.LessOrEqual(t, len(tasks), d.NumTasks())
		} else {
			require.Equal(t, d.NumTasks(), len(tasks))
		}
		for sm, n := range perSM {
			switch d.Kind {
			case Spread:
				require.Equal(t, 1, n, "%+v SM %d", d, sm)
			case ByUnit: // as even as can be
				require.LessOrEqual(t, n, (d.Extent+d.SMs-1)/d.SMs, "%+v SM %d", d, sm)
			}
		}
		// Unroll binds ops once per stage: from one iteration to the next, only SMs may change.
		for k, sp := range d.Tasks(i + 1) {
			require.Equal(t, [2]int{tasks[k].A, tasks[k].B}, [2]int{sp.A, sp.B})
		}
	}
}

func TestRotation(t *testing.T) {
	d := Dist{Kind: Spread, Extent: 32, Grain: 8, SMs: 4, Rot: 1, Step: 2}
	require.Equal(t, []TaskSpan{{3, 0, 8}, {0, 8, 16}, {1, 16, 24}, {2, 24, 32}}, d.Tasks(0))
	require.Equal(t, []TaskSpan{{1, 0, 8}, {2, 8, 16}, {3, 16, 24}, {0, 24, 32}}, d.Tasks(1))
	d = Dist{Kind: Spread, Extent: 10, Grain: 8, SMs: 4, Empty: true}
	require.Equal(t, []TaskSpan{{0, 0, 0}, {1, 0, 8}, {2, 8, 8}, {3, 8, 10}}, d.Tasks(0))
}
