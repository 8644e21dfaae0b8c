package validate_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// TestSharedBodiesChangeNothing: a program whose tasks share the memory of their views, as unrolled loops do, gets the
// report of its copy that shares nothing, be it right or broken in one place, in every iteration or in one buffer.
func TestSharedBodiesChangeNothing(t *testing.T) {
	s := toy
	s.layers = 60
	accepted, rejected := 0, 0
	seeds := 9
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 60
	}
	for _, how := range []string{"flagged", "counter"} {
		p := program(t, s.with(how))
		for v := range 2 {
			f, diags := ir.Unroll(p, &p.Variants[v])
			require.NoError(t, diags.Err())
			require.Greater(t, len(f.Tasks), 1024)
			for seed := range uint64(seeds) {
				next := source(rand.New(rand.NewPCG(seed, uint64(v))).IntN)
				g := f
				switch seed % 3 {
				case 1:
					g = mutate(f, next)
				case 2: // views of a stage are shared by its iterations: break one of them in all
					g = unbound(f, next)
				}
				got, want := validate.Flat(g), validate.Flat(unshared(g))
				require.Equal(t, want, got, "%s %d, seed %d", how, v, seed)
				if got.OK {
					accepted++
				} else {
					rejected++
				}
			}
		}
	}
	require.Greater(t, accepted, seeds)
	require.Greater(t, rejected, seeds)
}

// unbound returns a copy of a program in which the views that one op shares with those of other iterations are shifted.
func unbound(f *ir.Flat, next source) *ir.Flat {
	g := *f
	g.Tasks = append([]ir.Task(nil), f.Tasks...)
	like := &f.Tasks[next(len(f.Tasks))]
	k := next(len(like.Ops))
	old := like.Ops[k].In
	if len(old) == 0 {
		return &g
	}
	views := cloneViews(old)
	if v := &views[next(len(views))]; len(v.Dims) > 0 {
		r := &v.Dims[next(len(v.Dims))]
		shift := ir.Int(next(3) - 1)
		r.Lo, r.Hi = r.Lo.Add(shift), r.Hi.Add(shift)
	}
	for i := range g.Tasks {
		if ops := g.Tasks[i].Ops; k < len(ops) && len(ops[k].In) > 0 && &ops[k].In[0] == &old[0] {
			g.Tasks[i].Ops = append([]ir.FlatOp(nil), ops...)
			g.Tasks[i].Ops[k].In = views
		}
	}
	return &g
}
