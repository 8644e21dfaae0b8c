package amktest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// examples returns the directories of the programs that AutoMegaKernel wrote.
func examples(t testing.TB) []string {
	files, err := filepath.Glob("../../testdata/amk_ir/*/program.json")
	require.NoError(t, err)
	require.Len(t, files, 7)
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

func load(t testing.TB, dir string) *interchange.Program {
	data, err := os.ReadFile(filepath.Join(dir, "program.json"))
	require.NoError(t, err)
	p, diags := interchange.Parse(data, "program.json")
	require.Empty(t, diags)
	return p
}

// verdict says whether a program is accepted: by Flatten, which refuses what has no flat form, and by the proof.
func verdict(p *interchange.Program) diag.List {
	flat, diags := p.Flatten()
	if flat == nil {
		return diags
	}
	return validate.Flat(flat).Diags.Errors()
}

func TestExamplesAreProved(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			require.Empty(t, verdict(load(t, dir)))
		})
	}
}

// clone copies what mutations change.
func clone(p *interchange.Program) *interchange.Program {
	q := *p
	q.Tasks = slices.Clone(p.Tasks)
	for i := range q.Tasks {
		t := &q.Tasks[i]
		t.Inputs, t.Outputs, t.Waits = slices.Clone(t.Inputs), slices.Clone(t.Outputs), slices.Clone(t.Waits)
	}
	return &q
}

// A dag answers which tasks come before which. Ids of the examples are dense, so that they are places in lists.
type dag struct {
	producers [][]int
	before    [][]uint64 // by task: the set of the tasks before it
}

func newDAG(p *interchange.Program) *dag {
	g := &dag{producers: make([][]int, len(p.Counters))}
	for i := range p.Tasks {
		c := p.Tasks[i].OutCounter
		g.producers[c] = append(g.producers[c], i)
	}
	// Each SM runs its tasks in the order of the list.
	last := map[int]int{}
	for i := range p.Tasks { // list order is a legal order in these programs
		set := make([]uint64, (len(p.Tasks)+63)/64)
		add := func(j int) {
			set[j/64] |= 1 << (j % 64)
			for w := range set {
				set[w] |= g.before[j][w]
			}
		}
		for _, w := range p.Tasks[i].Waits {
			for _, j := range g.producers[w.Counter] {
				add(j)
			}
		}
		if sm := p.Tasks[i].SM; sm != nil {
			if j, ok := last[*sm]; ok {
				add(j)
			}
			last[*sm] = i
		}
		g.before = append(g.before, set)
	}
	return g
}

func (g *dag) has(task, earlier int) bool { return g.before[task][earlier/64]>>(earlier%64)&1 == 1 }

// pastRows reports whether a task is attention over earlier rows alone: a shard that ends before the row of this step.
func pastRows(p *interchange.Program, t *interchange.Task) bool {
	start := integer(t.Params, "kv_start")
	n := integer(t.Params, "kv_len")
	pos := integer(p.Meta, "pos")
	return t.Op == ir.ATTENTION && start+n <= pos
}

// Dropping a wait must be rejected exactly when it was the only thing that ordered its producers before the task: in
// these programs a task waits for nothing that it does not read, directly or through what else it waits for. The
// exception is a shard of attention, which waits for appends to rows that it may not read.
func TestDroppedWaits(t *testing.T) {
	for _, dir := range examples(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			p := load(t, dir)
			dropped, implied := 0, 0
			for i := range p.Tasks {
				for k := range p.Tasks[i].Waits {
					w := p.Tasks[i].Waits[k]
					m := clone(p)
					m.Tasks[i].Waits = slices.Delete(m.Tasks[i].Waits, k, k+1)
					g := newDAG(m)
					still := !slices.ContainsFunc(g.producers[w.Counter], func(j int) bool { return !g.has(i, j) })
					still = still || pastRows(p, &p.Tasks[i]) && p.Tasks[g.producers[w.Counter][0]].Op == ir.KVAppend
					if dropped++; still {
						implied++
						require.Empty(t, verdict(m), "task %d does not need its wait on counter %d", i, w.Counter)
					} else {
						diags := verdict(m)
						require.Error(t, diags.Err(), "task %d without its wait on counter %d", i, w.Counter)
						require.Equal(t, "AMK3130", diags[0].Code)
					}
				}
			}
			require.Greater(t, dropped, 20)
			require.Less(t, implied, dropped/2)
		})
	}
}

// Every other class of mutant, at every place where it can be injected.
func TestMutantsAreRejected(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, class := range []struct {
		name   string
		codes  string                                        // one of these is what the first error has
		inject func(p *interchange.Program, i int) (ok bool) // changes task i, if it can
	}{
		{"cycle", "AMK3120", func(p *interchange.Program, i int) bool {
			end := &p.Tasks[len(p.Tasks)-1] // all tasks come before the head's
			producers := 0
			for k := range p.Tasks {
				if p.Tasks[k].OutCounter == end.OutCounter {
					producers++
				}
			}
			if p.Tasks[i].OutCounter == end.OutCounter || len(p.Tasks[i].Waits) == interchange.MaxWaits {
				return false
			}
			p.Tasks[i].Waits = append(p.Tasks[i].Waits, interchange.Wait{Counter: end.OutCounter, Threshold: producers})
			return true
		}},
		{"partial_shared", "AMK3112", func(p *interchange.Program, i int) bool {
			for k := range p.Tasks[i].Waits {
				if w := &p.Tasks[i].Waits[k]; w.Threshold > 1 {
					w.Threshold--
					return true
				}
			}
			return false
		}},
		{"kv_before_append", "AMK3130", func(p *interchange.Program, i int) bool {
			t := &p.Tasks[i]
			if t.Op != ir.ATTENTION || pastRows(p, t) {
				return false
			}
			t.Waits = t.Waits[:1] // the queries
			return true
		}},
		{"self_wait", "AMK3112 AMK3120", func(p *interchange.Program, i int) bool {
			p.Tasks[i].Waits = append(p.Tasks[i].Waits, interchange.Wait{Counter: p.Tasks[i].OutCounter, Threshold: 1})
			return true
		}},
		{"oob_counter", "AMK3921", func(p *interchange.Program, i int) bool {
			p.Tasks[i].Waits = append(p.Tasks[i].Waits, interchange.Wait{Counter: 1 << 20, Threshold: 1})
			return true
		}},
		{"oob_buffer", "AMK3921", func(p *interchange.Program, i int) bool {
			p.Tasks[i].Inputs[0] = 1 << 20
			return true
		}},
		{"capacity_overflow", "AMK3923", func(p *interchange.Program, i int) bool {
			for len(p.Tasks[i].Waits) <= interchange.MaxWaits && i > 0 {
				p.Tasks[i].Waits = append(p.Tasks[i].Waits, interchange.Wait{Counter: 0, Threshold: 1})
			}
			return i > 0
		}},
	} {
		t.Run(class.name, func(t *testing.T) {
			for _, dir := range examples(t) {
				p := load(t, dir)
				injected := 0
				for i := range p.Tasks {
					m := clone(p)
					if !class.inject(m, i) {
						continue
					}
					injected++
					diags := verdict(m)
					require.Error(t, diags.Err(), "%s: task %d (%s)", filepath.Base(dir), i, p.Tasks[i].Label)
					require.Contains(t, class.codes, diags[0].Code, diags)
				}
				require.Positive(t, injected, dir)
			}
		})
	}
}

// integer returns a field of an object, or 0.
func integer(object json.RawMessage, key string) int {
	var fields map[string]any
	if json.Unmarshal(object, &fields) != nil {
		return 0
	}
	n, _ := fields[key].(float64)
	return int(n)
}
