package population

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"amkc/compiler/amk"
)

// mutantsPerClass is that of the published population.
const mutantsPerClass = 350

// mutations inject one defect of their class, or return false where the lowering has no place for it.
var mutations = []struct {
	class string
	apply func(*mutation) bool
}{
	{"cycle", (*mutation).cycle},
	{"partial_shared", (*mutation).partialShared},
	{"drop_wait", (*mutation).dropWait},
	{"kv_before_append", (*mutation).kvBeforeAppend},
	{"self_wait", (*mutation).selfWait},
	{"oob_counter", (*mutation).oobCounter},
	{"oob_buffer", (*mutation).oobBuffer},
	{"capacity_overflow", (*mutation).capacityOverflow},
}

// MutantClasses returns the classes of the published population, in its order.
func MutantClasses() []string {
	var classes []string
	for _, m := range mutations {
		classes = append(classes, m.class)
	}
	return classes
}

// Mutants yields the 2,800 mutants of the published population: 350 of each class.
func Mutants() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for _, m := range mutations {
			for seed := range uint64(mutantsPerClass) {
				if !yield(Mutate(m.class, seed)) {
					return
				}
			}
		}
	}
}

// Mutate injects one defect of a class into a lowering; the seed decides which, and where. Not every mutant is
// unsafe: a dropped wait may have been implied by others. The class must be one of MutantClasses.
func Mutate(class string, seed uint64) Case {
	c, _ := mutate(class, seed)
	return c
}

// mutate also returns the lowering that the mutant was made from.
func mutate(class string, seed uint64) (Case, *lowering) {
	i := slices.Index(MutantClasses(), class)
	if i < 0 {
		panic(fmt.Sprintf("population: there is no class %q of mutants", class))
	}
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	grid := lowerings()
	for {
		base := &grid[r.IntN(len(grid))]
		m := mutation{Rand: r, base: base, prog: base.clone()}
		if mutations[i].apply(&m) {
			return Case{Name: fmt.Sprintf("%s/%s/%d", class, base.name, seed), Class: class, Profile: m.prog}, base
		}
	}
}

// A mutation is one being made. The tasks of prog are its own, but what they point to is still the base's: replace a
// slice, do not write to it.
type mutation struct {
	*rand.Rand
	base *lowering
	prog *amk.Program
}

func (l *lowering) clone() *amk.Program {
	p := *l.prog
	p.Tasks = slices.Clone(p.Tasks)
	return &p
}

// pick returns a random element of a list that is not empty.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// chance is true in one of n cases.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// task returns a random task that satisfies a condition, or nil if chance finds none.
func (m *mutation) task(ok func(*amk.Task) bool) *amk.Task {
	const tries = 200
	for range tries {
		if t := &m.prog.Tasks[m.IntN(len(m.prog.Tasks))]; ok(t) {
			return t
		}
	}
	return nil
}

func waits(t *amk.Task) bool { return len(t.Waits) > 0 }

// ancestor returns the id of a random task that must be done before task t starts. The task must have waits.
func (m *mutation) ancestor(t int) int {
	at := t
	for steps := 1 + m.IntN(1+m.IntN(40)); steps > 0; steps-- {
		list := m.base.prog.Tasks[at].Waits
		if len(list) == 0 {
			break
		}
		at = pick(m.Rand, m.base.producers[pick(m.Rand, list).Counter])
	}
	return at
}

// join is the wait for all producers of a counter.
func (m *mutation) join(counter int) amk.Wait {
	return amk.Wait{Counter: counter, Threshold: len(m.base.producers[counter])}
}

// addWait puts a wait at a random place of a task's list, or in the place of one that is there.
func (m *mutation) addWait(t *amk.Task, w amk.Wait, instead bool) {
	if instead && len(t.Waits) > 0 {
		t.Waits = slices.Clone(t.Waits)
		t.Waits[m.IntN(len(t.Waits))] = w
		return
	}
	t.Waits = slices.Insert(slices.Clone(t.Waits), m.IntN(len(t.Waits)+1), w)
}

// setParam gives a task another value for one of its integer parameters.
func setParam(t *amk.Task, key string, n int) {
	var params amk.Object
	for k, v := range t.Params.All() {
		params.Set(k, v)
	}
	params.Set(key, amk.Int(n))
	t.Params = params
}
