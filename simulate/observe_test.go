package simulate

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/population"
)

// observer explores a program without exchange words by what can be seen from outside, and knows nothing of
// knowledge: something is wrong if two tasks that conflict can be under way at once, if a read finds different
// writers in different interleavings or none that may be, or if tasks are left that never run.
type observer struct {
	m      *machine
	met    map[string]bool
	found  map[[3]int]int // writer that a read has found: by task, op and cell
	hazard bool
}

// world is who is where (0 waiting, 1 under way, 2 done) and who wrote each cell last, through which buffer.
type world struct {
	at      []byte
	writer  []int16
	through []string
}

func (o *observer) visit(w world) {
	key := append([]byte(nil), w.at...)
	for _, x := range w.writer {
		key = binary.AppendVarint(key, int64(x))
	}
	if o.hazard || o.met[string(key)] {
		return
	}
	o.met[string(key)] = true
	moved, left := false, false
	for t, at := range w.at {
		next := world{append([]byte(nil), w.at...), append([]int16(nil), w.writer...),
			append([]string(nil), w.through...)}
		left = left || at < 2
		switch {
		case at == 1:
			next.at[t] = 2
		case at == 0 && o.mayStart(w, t):
			next.at[t] = 1
			o.run(next, t)
		default:
			continue
		}
		moved = true
		o.visit(next)
	}
	o.hazard = o.hazard || left && !moved
}

func (o *observer) mayStart(w world, t int) bool {
	task := &o.m.tasks[t]
	if task.after >= 0 && w.at[task.after] < 2 {
		return false
	}
	for _, wt := range task.waits {
		n := o.m.counters[wt.counter].init
		for _, p := range o.m.counters[wt.counter].producers {
			n += int(w.at[p] / 2)
		}
		if n < wt.threshold {
			return false
		}
	}
	return true
}

// run runs all of a task at once, which is the same as any other way if nobody under way conflicts with it.
func (o *observer) run(w world, t int) {
	for u, at := range w.at {
		o.hazard = o.hazard || at == 1 && u != t && o.conflict(t, u)
	}
	for k, op := range o.m.tasks[t].ops {
		for _, a := range op.reads {
			for c := a.lo; c < a.hi; c++ {
				by := int(w.writer[c])
				was, again := o.found[[3]int{t, k, c}]
				o.hazard = o.hazard || by < 0 && !o.m.cells[c].initial || by >= 0 && w.through[c] != a.buf.Name ||
					again && was != by
				o.found[[3]int{t, k, c}] = by
			}
		}
		for _, a := range op.writes {
			for c := a.lo; c < a.hi; c++ {
				w.writer[c], w.through[c] = int16(t), a.buf.Name
			}
		}
	}
}

func (o *observer) conflict(t, u int) bool {
	touched := map[int]bool{} // by t: whether it writes
	for _, op := range o.m.tasks[t].ops {
		for _, a := range op.reads {
			for c := a.lo; c < a.hi; c++ {
				touched[c] = touched[c]
			}
		}
		for _, a := range op.writes {
			for c := a.lo; c < a.hi; c++ {
				touched[c] = true
			}
		}
	}
	for _, op := range o.m.tasks[u].ops {
		for _, a := range op.reads {
			for c := a.lo; c < a.hi; c++ {
				if touched[c] {
					return true
				}
			}
		}
		for _, a := range op.writes {
			for c := a.lo; c < a.hi; c++ {
				if _, both := touched[c]; both {
					return true
				}
			}
		}
	}
	return false
}

// What tasks know of each other decides the same as what can be seen from outside, schedule by schedule and byte by
// byte. AMKC_LONG tries more programs.
func TestKnowledgeAgreesWithObservation(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	seeds := 3000
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 12_000
	}
	fp := NewFootprints()
	safe, unsafe, static := 0, 0, 0
	for seed := range uint64(seeds) {
		f := population.DAG(seed).Flat
		if len(f.Tasks) > 7 {
			continue
		}
		runs := []Run{{Flat: f, Pos: f.Lo}}
		m, h, err := build(runs, fp, Options{Bytes: seed%2 == 0})
		require.NoError(t, err)
		v := Explore(runs, fp, Options{})
		require.True(t, v.Complete)
		if h != nil {
			static++
			require.True(t, v.Unsafe())
			continue
		}
		require.Empty(t, m.messages)
		o := observer{m: m, met: map[string]bool{}, found: map[[3]int]int{}}
		w := world{make([]byte, len(m.tasks)), make([]int16, len(m.cells)), make([]string, len(m.cells))}
		for c := range w.writer {
			w.writer[c] = -1
		}
		o.visit(w)
		require.Equal(t, o.hazard, v.Unsafe(), "seed %d: %v", seed, v.Hazard)
		if o.hazard {
			unsafe++
		} else {
			safe++
		}
	}
	t.Log(safe, "safe,", unsafe, "unsafe,", static, "whatever the schedule")
	require.Greater(t, safe, seeds/24)
	require.Greater(t, unsafe, seeds/24)
}
