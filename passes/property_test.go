package passes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
)

// sampled is the state of a sample before the first pass.
func sampled(t testing.TB, rng *rand.Rand) *State {
	of := modeltest.NewSample(rng)
	return &State{Source: importers.Source{Name: "sample", Config: modeltest.OpenConfig(t, of.Model)},
		Target: of.Target, Config: of.Config}
}

func eachSample(t *testing.T, last string, f func(t *testing.T, s *State)) {
	for seed := range uint64(modeltest.Samples()) {
		s := lowered(t, sampled(t, rand.New(rand.NewPCG(seed, 99))), last)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, s) }) {
			t.Logf("config %s", s.Source.Config.Model.Raw)
			return
		}
	}
}

// After every pass the program is well formed, and its text form is exact.
func TestEveryPassLeavesAWellFormedProgram(t *testing.T) {
	for seed := range uint64(modeltest.Samples()) {
		s := sampled(t, rand.New(rand.NewPCG(seed, 99)))
		for _, p := range pipeline {
			require.NoError(t, p.Run(s))
			if s.Program == nil {
				continue
			}
			require.NoError(t, ir.Check(s.Program).Err(), "after %s", p.Name)
			text := ir.Print(s.Program)
			back, err := ir.Parse(text, "printed")
			require.NoError(t, err)
			require.Equal(t, string(text), string(ir.Print(back)))
		}
	}
}

// Every element that a step must produce is written, and written by one task: logits, each exchanged vector, the cache
// rows of this position.
func TestEveryElementIsWrittenOnce(t *testing.T) {
	eachSample(t, "exchange", func(t *testing.T, s *State) {
		for i := range s.Program.Variants {
			v := &s.Program.Variants[i]
			f, diags := ir.Unroll(s.Program, v)
			require.NoError(t, diags.Err())
			for _, pos := range []int{v.Lo, (v.Lo + v.Hi) / 2, v.Hi} {
				checkWrites(t, f, pos)
			}
		}
	})
}

func checkWrites(t *testing.T, f *ir.Flat, pos int) {
	writes := make([]map[[4]int]int, len(f.Buffers))
	owner := make([]map[[4]int]int, len(f.Buffers))
	var accesses []ir.Access
	for i := range f.Tasks {
		accesses = f.Tasks[i].Footprint(accesses[:0])
		for _, a := range accesses {
			b := &f.Buffers[a.Buf]
			if a.Write || b.Space == ir.SMEM {
				modeltest.EachElement(a.Dims, pos, func(e [4]int) {
					if b.Space == ir.SMEM {
						if owner[a.Buf] == nil {
							owner[a.Buf] = map[[4]int]int{}
						}
						if sm, known := owner[a.Buf][e]; known {
							require.Equal(t, sm, f.Tasks[i].SM, "%s %v is touched by one SM alone", b.Name, e)
						}
						owner[a.Buf][e] = f.Tasks[i].SM
					}
					if a.Write {
						if writes[a.Buf] == nil {
							writes[a.Buf] = map[[4]int]int{}
						}
						writes[a.Buf][e]++
					}
				})
			}
		}
	}
	for k := range f.Buffers {
		b := &f.Buffers[k]
		want := b.Numel()
		switch {
		case b.Kind == ir.KVCache:
			want = b.Shape[0] * 2 * b.Shape[3]
		case b.Kind != ir.Activation && b.Kind != ir.Output || writes[k] == nil && isPart(b.Name):
			want = 0
		}
		require.Len(t, writes[k], want, "elements of %s written at position %d", b.Name, pos)
		for e, n := range writes[k] {
			if b.Name != "residual" {
				require.Equal(t, 1, n, "writes of %s %v", b.Name, e)
			}
		}
	}
}

func isPart(name string) bool { _, role := ir.InLayer(name); return role == "part" }

// The splits of a head take every row of the cache once between them, and the row of this step belongs to one.
func TestSplitsPartitionTheContext(t *testing.T) {
	seen := 0
	eachSample(t, "assign", func(t *testing.T, s *State) {
		for i := range s.Program.Variants {
			v := &s.Program.Variants[i]
			f, diags := ir.Unroll(s.Program, v)
			require.NoError(t, diags.Err())
			for _, pos := range []int{v.Lo, (v.Lo + v.Hi) / 2, v.Hi} {
				rows := map[[2]int][]int{} // layer's cache and head
				for k := range f.Tasks {
					for _, op := range f.Tasks[k].Ops {
						if op.Code == ir.ATTENTION {
							key := [2]int{op.InBuf[1], op.In[1].Dims[0].Lo.At(pos)}
							rows[key] = op.In[1].Dims[1].Elements(rows[key], pos)
							if op.Has("parts") {
								seen++
								mine := pos/op.IntAt("block", pos, 1)%op.IntAt("parts", pos, 1) == op.IntAt("part", pos,
									0)
								require.Equal(t, mine, len(f.Tasks[k].Ops[1].Out[0].Dims[1].Elements(nil, pos)) == 1,
									"who appends")
							}
						}
					}
				}
				for key, got := range rows {
					slices.Sort(got)
					want := make([]int, pos)
					for r := range want {
						want[r] = r
					}
					require.Equal(t, want, append([]int{}, got...), "%v", key)
				}
			}
		}
	})
	require.Positive(t, seen, "some samples have splits")
}

// Balancing never leaves the busiest SM with more than contiguous spans do.
func TestBalanceIsNoWorseThanContiguous(t *testing.T) {
	better := 0
	for seed := range uint64(modeltest.Samples()) {
		most := map[string]int{}
		for _, policy := range []string{policyContiguous, policyBalance} {
			s := sampled(t, rand.New(rand.NewPCG(seed, 7)))
			s.Config.SMAssignment.Policy = policy
			lowered(t, s, "assign")
			v := &s.Program.Variants[0]
			b := newBalancer(s.Program, v)
			rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
				for _, i := range rewrite.Indices(st, loop) {
					for _, task := range st.Dist.Tasks(i) {
						b.loads[task.SM] += b.bytes(st, task, i)
					}
				}
			})
			most[policy] = slices.Max(b.loads)
		}
		require.LessOrEqual(t, most[policyBalance], most[policyContiguous], "seed %d", seed)
		if most[policyBalance] < most[policyContiguous] {
			better++
		}
	}
	require.Greater(t, better, modeltest.Samples()/4)
}
