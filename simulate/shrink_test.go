package simulate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Shrink leaves of an order still goes wrong, at a task that was at fault before, and no task can be spared.
func TestShrink(t *testing.T) {
	fp, kinds, before, after := NewFootprints(), map[Kind]int{}, 0, 0
	for seed := range uint64(1500) {
		runs := []Run{{Flat: randomFlat(seed, 8), Pos: 0}}
		v := Explore(runs, fp, Options{MaxStates: 5000})
		if seed%2 == 0 {
			v = Sample(runs, fp, Options{}, seed, 30)
		}
		if v.Hazard == nil || v.Hazard.m == nil {
			continue
		}
		h := v.Hazard.Shrink(1<<20, nil)
		kinds[h.Kind]++
		if h.always() {
			require.Empty(t, h.Script().Steps)
			require.NotEmpty(t, h.Script().Waits)
			continue
		}
		require.Contains(t, []int32{v.Hazard.task, v.Hazard.other}, h.task, "seed %d", seed)
		s := &shrinker{h: h, path: h.path, left: 1 << 20, kind: h.Kind, task: h.task, other: h.other}
		if h.late >= 0 {
			s.kind, s.other, s.early = Undefined, h.late, h.Kind == Race
			s.task = h.m.of(h.path[len(h.path)-1])
		}
		_, ok := s.again(h.path)
		require.True(t, ok, "seed %d: %v", seed, h)
		for _, spared := range s.tasks() {
			if spared == s.task {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(h.path), func(e event) bool { return h.m.of(e) == spared })
			_, ok := s.again(left)
			require.False(t, ok, "seed %d: %v without %s", seed, h, h.m.tasks[spared].name)
		}
		before, after = before+tasksIn(v.Hazard), after+tasksIn(h)
		script := h.Script()
		require.NotEmpty(t, script.Steps)
		for _, step := range script.Steps {
			require.NotEmpty(t, step.Does)
		}
	}
	t.Log(kinds, before, "tasks before,", after, "after")
	require.Less(t, 5*after, 4*before)
	for _, kind := range []Kind{Race, Stuck, Undefined} {
		require.Greater(t, kinds[kind], 20, kind)
	}
}

// Who wants no more gets the order that there is by then, and at once: without a run if that was before the first.
func TestShrinkStops(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	fp, found := NewFootprints(), 0
	for seed := range uint64(200) {
		v := Sample([]Run{{Flat: randomFlat(seed, 8), Pos: 0}}, fp, Options{}, seed, 30)
		if v.Hazard == nil || v.Hazard.m == nil || v.Hazard.always() {
			continue
		}
		found++
		h := v.Hazard.Shrink(1<<20, stopped)
		require.Equal(t, v.Hazard.path, h.path, "seed %d", seed)
		require.Equal(t, v.Hazard.String(), h.String())
		require.NotEmpty(t, h.Script().Steps)

		s := &shrinker{h: h, path: h.path, left: 3 * looks / 2, stop: stopped, kind: h.Kind, task: h.task,
			other: h.other}
		_, ok := s.again(h.path)
		require.False(t, ok, "nothing is run")
		require.Negative(t, s.left)
	}
	require.Greater(t, found, 50)
}

func tasksIn(h *Hazard) int {
	met := map[int32]bool{}
	for _, e := range h.path {
		met[h.m.of(e)] = true
	}
	return len(met)
}

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

// A wait that its counter satisfies from the beginning needs nobody.
func TestShrinkFromInitialCounts(t *testing.T) {
	p := program(t, "counter i counter gpu init=3\n"+
		on("0", "t", " wait i >= 1\n a[0:2] = COPY(in[0:2])\n signal step")+
		on("1", "u", " wait i >= 2\n out[0:2] = COPY(a[0:2])\n signal step"))
	h := Program(p, NewFootprints(), Effort{States: 100, Positions: 1}).Hazard
	require.NotNil(t, h)
	require.Equal(t, Race, h.Kind)
	require.Len(t, h.Shrink(1000, nil).Script().Steps, 2)
}
