package validate_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
)

// toyLowerings returns the published lowerings of toy models, 38 to 100 tasks each.
func toyLowerings(t testing.TB) []*ir.Flat {
	files, err := filepath.Glob("../testdata/amk_ir/toy_*/program.json")
	require.NoError(t, err)
	require.Len(t, files, 6)
	var flats []*ir.Flat
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		p, diags := interchange.Parse(data, file)
		require.NoError(t, diags.Err(), file)
		f, diags := p.Flatten()
		require.NoError(t, diags.Err(), file)
		flats = append(flats, f)
	}
	return flats
}

// population makes schedules in the proportions of the published soundness study: lowerings, single mutants of them and
// random graphs, 360 : 2,800 : 4,000.
func population(t testing.TB, n int) []*ir.Flat {
	toys := toyLowerings(t)
	r := rand.New(rand.NewPCG(7, 7))
	flats := make([]*ir.Flat, n)
	for i := range flats {
		switch k := r.IntN(7160); {
		case k < 360:
			flats[i] = toys[r.IntN(len(toys))]
		case k < 3160:
			flats[i] = mutate(toys[r.IntN(len(toys))], r.IntN)
		default:
			flats[i] = randomFlat(r.IntN)
		}
	}
	return flats
}

// mutate returns a copy of a program with one defect injected, or what may be one: the program may still be right.
func mutate(f *ir.Flat, next source) *ir.Flat {
	g := *f
	g.Tasks, g.Buffers, g.Counters = slices.Clone(f.Tasks), slices.Clone(f.Buffers), slices.Clone(f.Counters)
	t := next(len(g.Tasks))
	task := &g.Tasks[t]
	task.Waits = slices.Clone(task.Waits)
	wait := func() *ir.FlatWait {
		if len(task.Waits) == 0 {
			task.Waits = append(task.Waits, ir.FlatWait{Counter: next(len(g.Counters)), Threshold: 1})
		}
		return &task.Waits[next(len(task.Waits))]
	}
	switch next(12) {
	case 0, 1:
		w := wait()
		*w = task.Waits[0]
		task.Waits = task.Waits[1:]
	case 2:
		wait().Threshold--
	case 3:
		wait().Threshold += 1 + next(2)
	case 4: // a cycle, mostly
		later := &g.Tasks[t+next(len(g.Tasks)-t)]
		if c := later.Signal; c >= 0 {
			task.Waits = append(task.Waits, ir.FlatWait{Counter: c, Threshold: producers(&g, c)})
		}
	case 5:
		wait().Counter = len(g.Counters) + next(3)
	case 6:
		task.Signal = next(len(g.Counters))
	case 7:
		task.SM = next(g.SMs+1) - 1
	case 8: // another place in the queues
		u := next(len(g.Tasks))
		g.Tasks[t], g.Tasks[u] = g.Tasks[u], g.Tasks[t]
	case 9, 10:
		mutateView(&g, task, next)
	default: // too little memory
		b := &g.Buffers[next(len(g.Buffers))]
		b.Shape = slices.Clone(b.Shape)
		b.Shape[next(len(b.Shape))] /= 2
	}
	return &g
}

// mutateView lets an operand name another buffer, or cover other elements.
func mutateView(f *ir.Flat, task *ir.Task, next source) {
	task.Ops = slices.Clone(task.Ops)
	op := &task.Ops[next(len(task.Ops))]
	op.In, op.Out = cloneViews(op.In), cloneViews(op.Out)
	op.InBuf, op.OutBuf = slices.Clone(op.InBuf), slices.Clone(op.OutBuf)
	views, bufs := op.In, op.InBuf
	if next(2) == 0 || len(views) == 0 {
		views, bufs = op.Out, op.OutBuf
	}
	if len(views) == 0 {
		return
	}
	i := next(len(views))
	if next(3) == 0 {
		bufs[i] = next(len(f.Buffers) + 1)
		return
	}
	if len(views[i].Dims) == 0 {
		return
	}
	d := next(len(views[i].Dims))
	r := &views[i].Dims[d]
	shift := ir.Int(next(5) - 2)
	if r.Lo = r.Lo.Add(shift); next(3) > 0 {
		r.Hi = r.Hi.Add(shift)
	}
}
