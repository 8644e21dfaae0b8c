package passes

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/knobs"
)

// A reach is the closure of what comes before what, by definition and without shortcuts: the queue order of an SM,
// and an edge from each writer of a word to each task that reads that word and waits for the counter that the writer
// signals.
type reach struct {
	flat   *ir.Flat
	before []*big.Int // tasks before each task
}

func newReach(f *ir.Flat, pos int) *reach {
	r := &reach{flat: f}
	queue := map[int]int{}
	writers := map[int]map[[4]int][]int{} // buffer -> element -> tasks
	for t := range f.Tasks {
		task := &f.Tasks[t]
		set := new(big.Int)
		after := func(u int) {
			set.Or(set, r.before[u])
			set.SetBit(set, u, 1)
		}
		if u, ok := queue[task.SM]; ok {
			after(u)
		}
		queue[task.SM] = t
		accesses := task.Footprint(nil)
		for _, a := range accesses {
			if a.Write || !f.Buffers[a.Buf].Layout.Words() {
				continue
			}
			modeltest.EachElement(a.Dims, pos, func(e [4]int) {
				for _, u := range writers[a.Buf][e] {
					for _, w := range task.Waits {
						if w.Counter == f.Tasks[u].Signal && set.Bit(u) == 0 {
							after(u)
						}
					}
				}
			})
		}
		r.before = append(r.before, set)
		for _, a := range accesses {
			if a.Write && f.Buffers[a.Buf].Layout.Words() {
				modeltest.EachElement(a.Dims, pos, func(e [4]int) {
					if writers[a.Buf] == nil {
						writers[a.Buf] = map[[4]int][]int{}
					}
					writers[a.Buf][e] = append(writers[a.Buf][e], t)
				})
			}
		}
	}
	return r
}

// touching lists the tasks that access a buffer, and those that write it.
func (r *reach) touching(buf int) (all, writing []int) {
	for t := range r.flat.Tasks {
		for _, a := range r.flat.Tasks[t].Footprint(nil) {
			if a.Buf == buf {
				all = append(all, t)
				if a.Write {
					writing = append(writing, t)
				}
			}
		}
	}
	return all, writing
}

func (r *reach) precedes(a, b int) bool {
	all, _ := r.touching(a)
	_, writing := r.touching(b)
	for _, t := range all {
		for _, u := range writing {
			if r.before[u].Bit(t) == 0 {
				return false
			}
		}
	}
	return true
}

// Buffers on one page are ordered by the definition, and the clocks say of every two buffers what the definition says.
func TestPagesAgainstTheDefinition(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	shared, apart := 0, 0
	for seed := range uint64(8) {
		s := sampled(t, rand.New(rand.NewPCG(seed, 3)))
		lowered(t, s, "pagecolor")
		flats, err := unrolledWords(s.Program)
		require.NoError(t, err)
		conflicts, err := interference(flats)
		require.NoError(t, err)
		page := map[[2]int]bool{} // pairs of buffers on one page
		safe := map[[2]int]bool{}
		for i := range s.Program.Variants {
			v := &s.Program.Variants[i]
			f, diags := ir.Unroll(s.Program, v)
			require.NoError(t, diags.Err())
			r := newReach(f, v.Hi)
			for a := range f.Buffers {
				for b := range a {
					if !f.Buffers[a].Layout.Words() || !f.Buffers[b].Layout.Words() {
						continue
					}
					key := [2]int{a, b}
					if _, seen := safe[key]; !seen {
						safe[key] = true
					}
					safe[key] = safe[key] && (r.precedes(a, b) || r.precedes(b, a))
					page[key] = f.Buffers[a].Pages[0] == f.Buffers[b].Pages[0]
				}
			}
		}
		for key, ok := range safe {
			require.Equal(t, !ok, conflicts(key[0], key[1]), "seed %d buffers %v", seed, key)
			if page[key] {
				require.True(t, ok, "seed %d: buffers %v share a page", seed, key)
				shared++
			}
			if !ok {
				apart++
			}
		}
	}
	require.Positive(t, shared)
	require.Positive(t, apart)
}

// Each allocation folds further than the one before it, and every buffer has a page that holds it.
func TestAllocations(t *testing.T) {
	var pages []int
	for _, allocation := range []string{knobs.PagesApart, knobs.PagesByFamily, knobs.PagesByColour} {
		s := goldenCases(t)["tiny"]
		s.Config.PageAllocation = allocation
		lowered(t, s, "exchange")
		size := map[string]ir.Page{}
		for _, p := range s.Program.Pages {
			size[p.Name] = p
		}
		for i := range s.Program.Buffers {
			b := &s.Program.Buffers[i]
			require.Equal(t, isExchange(b), len(b.Pages) > 0, b.Name)
			for _, name := range b.Pages {
				require.GreaterOrEqual(t, size[name].Bytes, b.Bytes(), b.Name)
				require.Equal(t, b.Layout, size[name].Layout, b.Name)
			}
		}
		pages = append(pages, s.Pages.Pages)
		require.Equal(t, len(s.Program.Pages), s.Pages.Pages)
		require.Equal(t, 15, s.Pages.Buffers, "2 layers of 5 vectors and a partial, x once more, and the two of best")
	}
	require.Equal(t, []int{15, 8, 5}, pages)
	require.Equal(t, "15 exchange buffers on 5 pages, 1 bytes instead of 2", PageReport{15, 5, 2, 1}.String())
}

// A member is on the page that its index gives, wherever its family starts and however far apart the indices are:
// what is coloured as one slot is what unrolling lays onto one page.
func TestFoldedMembersLieOnTheirPage(t *testing.T) {
	for _, b := range []ir.Buffer{
		{Name: "x{i}", First: 0, Count: 5}, {Name: "x{i}", First: 1, Count: 5},
		{Name: "x{i}", First: 3, Count: 4, Step: 2}, {Name: "x{i}", First: 4, Count: 3, Step: 4},
	} {
		b.Kind, b.DType, b.Shape, b.Space, b.Layout.Kind = ir.Activation, ir.F32, []int{1}, ir.GlobalScratch, ir.Word64
		f := exchangeFamily{runs: []*ir.Buffer{&b}}
		for k := range b.Count {
			f.members = append(f.members, k)
		}
		slots := foldFamily(f, knobs.PagesByColour, func(x, y int) bool { return (x-y)%2 != 0 })
		require.Len(t, slots, 2)
		require.True(t, slots[0].first && !slots[1].first)
		b.Pages = []string{"0", "1"}
		p := &ir.Program{Model: ir.Model{MaxSeq: 1}, Buffers: []ir.Buffer{b}, Variants: []ir.Variant{{Name: "v"}},
			Pages: []ir.Page{{Name: "0"}, {Name: "1"}}}
		flat, diags := ir.Unroll(p, &p.Variants[0])
		require.NoError(t, diags.Err())
		for page, sl := range slots {
			for _, m := range sl.members {
				require.Equal(t, b.Pages[page:page+1], flat.Buffers[m].Pages, "member %d of %+v", m, b)
			}
		}
	}
}
