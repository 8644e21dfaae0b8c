package simulate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Of tasks that wait for each other the shortest circle is told, and none that waits for it from outside; and of a task
// that nobody can help, itself alone.
func TestExplanation(t *testing.T) {
	wait := func(sm, name, on, signal string) string {
		return "stage " + name + " explicit\n task sm=" + sm + " a=0 b=1\n wait " + on + " >= 1\n NOP()\n signal " +
			signal + "\n"
	}
	p := program(t, "counter q counter gpu\ncounter r counter gpu\n"+on("0", "t", whole)+
		wait("0", "x", "q", "r")+wait("1", "y", "r", "q")+wait("1", "behind", "q", "step"))
	v := Program(p, NewFootprints(), Effort{States: 100, Positions: 1})
	require.Equal(t, Stuck, v.Hazard.Kind)
	require.Equal(t, []Step{
		{"x.s000", 0, "waits for counter q to reach 1; it is at 0, and y.s001 would add to it"},
		{"y.s001", 1, "waits for counter r to reach 1; it is at 0, and x.s000 would add to it"},
	}, v.Hazard.Shrink(1000, nil).Script().Waits)
	p = program(t, on("0", "t", whole)+wait("1", "alone", "c", "step")+wait("0", "behind", "d", "step"))
	v = Program(p, NewFootprints(), Effort{States: 100, Positions: 1})
	require.Len(t, v.Hazard.Shrink(1000, nil).Script().Waits, 1)
}

// playOut lets happen what may until nothing may any more, whatever goes wrong on the way.
func playOut(s *state, seed uint64) {
	a := s.m.adversary(seed)
	for e, ok := a.pick(s); ok; e, ok = a.pick(s) {
		s.apply(e)
		s.hazard = nil
	}
}

// What is said to stop in every order does, in all that are tried; and tasks that are stuck in the order that is left
// of another one are, however it goes on.
func TestStuckAsTold(t *testing.T) {
	fp := NewFootprints()
	for name, program := range map[string]func(seed uint64, most int) *ir.Flat{
		"one producer": randomFlat, "many producers": manyProducers,
	} {
		t.Run(name, func(t *testing.T) {
			every, some, more := 0, 0, 0
			for seed := range uint64(6000) {
				v := Explore([]Run{{Flat: program(seed, 4+int(seed%4)), Pos: 0}}, fp, Options{MaxStates: 5000})
				if v.Hazard == nil || v.Hazard.Kind != Stuck {
					continue
				}
				h := v.Hazard.Shrink(1<<20, nil)
				if h.Kind != Stuck {
					continue
				}
				var path []event
				if h.always {
					every++
				} else {
					require.NotEmpty(t, h.Script().Steps)
					path = h.path
					some++
					if strings.Contains(h.Detail, "over it, and") {
						more++
					}
				}
				for order := range uint64(30) {
					s := start(h.m)
					for _, e := range path {
						require.True(t, s.may(e), "seed %d: %v", seed, h)
						s.apply(e)
					}
					playOut(s, seed+order)
					require.NotZero(t, s.left, "seed %d: %v: all tasks are done", seed, h)
					for _, w := range h.why {
						task := h.m.tasks[w.task]
						require.Less(t, int(s.pc[w.task]), len(task.ops)+2, "seed %d: %v: %s is done", seed, h,
							task.name)
					}
				}
			}
			t.Log(every, "in every order,", some, "in some, of which", more, "with an answer that is not stored")
			require.Greater(t, some, 50)
			if name == "many producers" {
				require.Greater(t, every, 50)
				require.Greater(t, more, 10)
			}
		})
	}
}

// A circle that is closed because a word was overwritten is not there in every order, and the order has those that
// have overwritten it.
func TestCircleInSomeOrders(t *testing.T) {
	body := on("0", "first", " x[0:2] = COPY(in[0:2])\n signal e") +
		on("0", "over", " y[0:2] = COPY(in[0:2])\n signal g")
	polls := " wait e >= 2\n out[0:2] = COPY(x[0:2])\n"
	again := on("1", "again", " x[0:2] = COPY(in[0:2])\n signal e")
	for _, c := range []struct {
		name, body string
		waits      []string
	}{
		{"two tasks", on("1", "use", polls+" signal step") + again, []string{"use.s001", "again.s001"}},
		// A circle of two, turn and next, does without the word, but one that polls it could open it.
		{"a way out of a smaller circle", on("0", "use", polls+" signal c") +
			on("1", "turn", " wait c >= 1\n NOP()\n signal d") + on("1", "next", " NOP()\n signal c") + again,
			[]string{"use.s000", "again.s001", "next.s001", "turn.s001"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := Program(program(t, body+c.body), NewFootprints(), Effort{States: 5000, Positions: 1}).Hazard
			require.NotNil(t, h)
			h = h.Shrink(1<<20, nil)
			require.Equal(t, Stuck, h.Kind)
			script := h.Script()
			var steps, waits []string
			for _, s := range script.Steps {
				steps = append(steps, s.Task)
			}
			for _, s := range script.Waits {
				waits = append(waits, s.Task)
			}
			require.Equal(t, c.waits, waits)
			require.Subset(t, steps, []string{"first.s000", "over.s000", c.waits[0]})
			require.Equal(t, "polls x (bytes 0 to 7 of page p) forever: over.s000 has stored y over it, and "+
				"again.s001 has not stored it", script.Waits[0].Does)
		})
	}
}

// Whom a task waits for is not listed for each: with n that wait for n, that takes memory of n squared.
func TestManyStuck(t *testing.T) {
	const n = 4000
	f := many(n, -1, -1)
	for i := range n {
		f.Tasks[i].Waits = []ir.FlatWait{{Counter: 1, Threshold: n}}
	}
	m, h, err := build([]Run{{Flat: f, Pos: 0}}, NewFootprints(), Options{})
	require.NoError(t, err)
	require.Nil(t, h)
	s := start(m)
	require.Less(t, allocated(s.stuck), 64<<20)
	require.NotNil(t, s.hazard)
	require.Len(t, s.hazard.why, 2)
	require.True(t, s.hazard.always)
}
