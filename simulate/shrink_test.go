package simulate

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What Shrink leaves of an order still goes wrong, at a task that was at fault before, and no task can be spared.
func TestShrink(t *testing.T) {
	fp, kinds, before, after, always := NewFootprints(), map[Kind]int{}, 0, 0, 0
	for seed := range uint64(3000) {
		runs := []Run{{Flat: randomFlat(seed, 8), Pos: 0}}
		if seed >= 1500 {
			runs[0].Flat = manyProducers(seed, 6)
		}
		v := Explore(runs, fp, Options{MaxStates: 5000})
		if seed%2 == 0 {
			v = Sample(runs, fp, Options{}, seed, 30)
		}
		if v.Hazard == nil || v.Hazard.m == nil {
			continue
		}
		h := v.Hazard.Shrink(1<<20, nil)
		kinds[h.Kind]++
		if h.always {
			always++
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
	t.Log(kinds, always, "in every order,", before, "tasks before,", after, "after")
	require.Less(t, 5*after, 4*before)
	for _, kind := range []Kind{Race, Stuck, Undefined} {
		require.Greater(t, kinds[kind], 20, kind)
	}
	require.Greater(t, always, 20)
}

// Who wants no more gets the order that there is by then, and at once: without a run if that was before the first.
func TestShrinkStops(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	fp, found := NewFootprints(), 0
	for seed := range uint64(200) {
		v := Sample([]Run{{Flat: randomFlat(seed, 8), Pos: 0}}, fp, Options{}, seed, 30)
		if v.Hazard == nil || v.Hazard.m == nil || v.Hazard.always {
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

// many is a program of n tasks that add to a counter, and n that wait for all of these. Their SMs are given.
func many(n, adds, waits int) *ir.Flat {
	f := &ir.Flat{SMs: 3, Counters: []ir.Counter{{Name: "c", How: ir.ByCounter}, {Name: "d", How: ir.ByCounter}}}
	for i := range n {
		f.Tasks = append(f.Tasks, ir.Task{Name: fmt.Sprint("adds", i), SM: adds, Signal: 0})
	}
	for i := range n {
		f.Tasks = append(f.Tasks, ir.Task{Name: fmt.Sprint("waits", i), SM: waits, Signal: 1,
			Waits: []ir.FlatWait{{Counter: 0, Threshold: n}}})
	}
	return f
}

// allocated returns how many bytes a call allocates.
func allocated(call func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// What a task has waited for is not listed for each: with n that wait for n, that takes memory of n squared.
func TestShrinkManyWaits(t *testing.T) {
	const n = 4000
	f := many(n, 0, 0)
	f.Buffers = []ir.Buffer{{Name: "in", Kind: ir.Input, DType: ir.F16, Shape: []int{2}},
		{Name: "a", Kind: ir.Activation, DType: ir.F16, Shape: []int{2}}}
	all := []ir.Range{ir.Span(ir.Int(0), ir.Int(2))}
	op := ir.FlatOp{Op: ir.Op{Code: ir.COPY, In: []ir.Operand{{Buf: "in", Dims: all}},
		Out: []ir.Operand{{Buf: "a", Dims: all}}}, InBuf: []int{0}, OutBuf: []int{1}}
	f.Tasks = append(f.Tasks, ir.Task{Name: "last", SM: 0, Signal: 1, Ops: []ir.FlatOp{op}},
		ir.Task{Name: "apart", SM: 1, Signal: 1, Ops: []ir.FlatOp{op}})
	m, h, err := build([]Run{{Flat: f, Pos: 0}}, NewFootprints(), Options{})
	require.NoError(t, err)
	require.Nil(t, h)
	h = m.sample(1, 1).Hazard
	require.NotNil(t, h)
	require.Equal(t, Race, h.Kind)
	require.Greater(t, len(h.path), 4*n)

	stopped := make(chan struct{})
	s := &shrinker{h: h, path: h.path, left: 1 << 20, stop: stopped, kind: h.Kind, task: h.task, other: h.other}
	require.Less(t, allocated(s.slice), 16<<20)
	require.Positive(t, s.left)
	require.Len(t, s.tasks(), 2*n+2, "all that are on the SM of one of the two")

	close(stopped)
	s.path = h.path
	s.slice()
	require.Negative(t, s.left, "it has looked at stop")
	require.Len(t, s.path, len(h.path))
}
