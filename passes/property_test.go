package passes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A sample is a random small model, target and schedule.
func sample(t testing.TB, rng *rand.Rand) *State {
	kv := 1 + rng.IntN(4)
	heads := kv * (1 + rng.IntN(4))
	pick := func(values ...int) int { return values[rng.IntN(len(values))] }
	config := fmt.Sprintf(`{"model_type": "llama", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d,
		"num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d, "vocab_size": %d,
		"max_position_embeddings": %d,
		"tie_word_embeddings": %t, "torch_dtype": %q}`, 1+rng.IntN(200), 1+rng.IntN(300), 1+rng.IntN(5), heads, kv,
		pick(2, 6, 8, 12, 16, 24, 40, 64), 1+rng.IntN(400), pick(1, 17, 80, 200), rng.IntN(2) == 0,
		[]string{"float32", "float16", "bfloat16"}[rng.IntN(3)])
	c := ir.ScheduleConfig{
		Tiling: map[string]map[string]int{
			"attention": {"split_from": pick(0, 16, 40), "max_splits": pick(1, 3, 16)},
			"gemv":      {"rows": pick(8, 8, 16)},
			"exchange":  {"flagged": rng.IntN(2), "copies": pick(1, 2)},
			"ring":      {"chunk_bytes": pick(4096, 16384)},
		},
		SMAssignment:   ir.Assignment{Policy: []string{policyContiguous, policyBalance, policyRoundRobin}[rng.IntN(3)]},
		PageAllocation: []string{"graph_color", "linear", "none"}[rng.IntN(3)],
	}
	return &State{Source: Source{Name: "sample", Config: openConfig(t, config)},
		Target: toyTarget(pick(1, 2, 5, 13, 32)), Config: c}
}

// samples is how many random models a property is asked of, of which AMKC_LONG asks for 40.
func samples() int {
	if os.Getenv("AMKC_LONG") != "" {
		return 40
	}
	return 16
}

func eachSample(t *testing.T, last string, f func(t *testing.T, s *State)) {
	for seed := range uint64(samples()) {
		s := sample(t, rand.New(rand.NewPCG(seed, 99)))
		lowered(t, s, last)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, s) }) {
			t.Logf("config %s", s.Source.Config.Model.Raw)
			return
		}
	}
}

// After every pass the program is well formed, and its text form is exact.
func TestEveryPassLeavesAWellFormedProgram(t *testing.T) {
	for seed := range uint64(samples()) {
		s := sample(t, rand.New(rand.NewPCG(seed, 99)))
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
				eachElement(a.Dims, pos, func(e [4]int) {
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

func isPart(name string) bool { _, role := splitName(name); return role == "part" }

func eachElement(dims []ir.Range, pos int, f func([4]int)) {
	sets := [4][]int{{0}, {0}, {0}, {0}}
	for d, r := range dims {
		sets[d] = r.Elements(nil, pos)
	}
	for _, a := range sets[0] {
		for _, b := range sets[1] {
			for _, c := range sets[2] {
				for _, d := range sets[3] {
					f([4]int{a, b, c, d})
				}
			}
		}
	}
}

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
	for seed := range uint64(samples()) {
		most := map[string]int{}
		for _, policy := range []string{policyContiguous, policyBalance} {
			s := sample(t, rand.New(rand.NewPCG(seed, 7)))
			s.Config.SMAssignment.Policy = policy
			lowered(t, s, "assign")
			v := &s.Program.Variants[0]
			b := newBalancer(s.Program, v)
			eachStage(v, func(st *ir.Stage, loop *ir.Loop) {
				for _, i := range indices(st, loop) {
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
	require.Greater(t, better, samples()/4)
}
