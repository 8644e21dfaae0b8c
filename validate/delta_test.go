package validate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// randomGraph makes tasks without ops, ordered by queues and by counting.
func randomGraph(r *rand.Rand) *ir.Flat {
	f := &ir.Flat{SMs: 1 + r.IntN(5)}
	counters := 1 + r.IntN(6)
	for c := range counters { // tasks wait for earlier counters, so that no cycle arises
		f.Counters = append(f.Counters, ir.Counter{Name: fmt.Sprint("c", c), How: ir.ByCounter})
		for range r.IntN(5) {
			task := ir.Task{Name: fmt.Sprint("t", len(f.Tasks)), SM: r.IntN(f.SMs+2) - 2, Signal: c}
			task.SM = max(task.SM, -1)
			for w := range c {
				if r.IntN(3) == 0 {
					task.Waits = append(task.Waits, ir.FlatWait{Counter: w})
				}
			}
			f.Tasks = append(f.Tasks, task)
		}
	}
	for t := range f.Tasks {
		var waits []ir.FlatWait
		for _, w := range f.Tasks[t].Waits {
			for q := range f.Tasks {
				if f.Tasks[q].Signal == w.Counter {
					w.Threshold++
				}
			}
			if w.Threshold > 0 {
				waits = append(waits, w)
			}
		}
		f.Tasks[t].Waits = waits
	}
	return f
}

// TestClocksAreReachability: a task is before another by its clock just where a path leads from the one to the other,
// whatever short ways the clocks were joined by.
func TestClocksAreReachability(t *testing.T) {
	pairs := 0
	for seed := range uint64(5000) {
		f := randomGraph(rand.New(rand.NewPCG(seed, 9)))
		p := prove(f, Reference, nil)
		require.NoError(t, p.diags.Err())
		n := len(f.Tasks)
		before := make([][]bool, n)
		for b := range n { // tasks stand in a legal order
			before[b] = make([]bool, n)
			before[b][b] = true
			for a := range b {
				edge := f.Tasks[a].SM >= 0 && f.Tasks[a].SM == f.Tasks[b].SM
				for _, w := range f.Tasks[b].Waits {
					edge = edge || f.Tasks[a].Signal == w.Counter
				}
				for k := range n {
					before[b][k] = before[b][k] || edge && before[a][k]
				}
			}
		}
		for b := range n {
			for a := range n {
				require.Equal(t, before[b][a], p.clock.before(int32(a), p.clock.joinDone(nil, int32(b))),
					"seed %d: %d before %d", seed, a, b)
				pairs++
			}
		}
		p.release()
	}
	require.Greater(t, pairs, 100000)
}
