package population

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"amkc/compiler/amk"
)

// ProfileOperands is a lowering in which one thing about the operands of a task is changed: the shape or the type of a
// buffer, which other tasks may use too, the list of inputs, or an integer parameter.
func ProfileOperands(seed uint64) Case {
	r := rand.New(rand.NewPCG(seed, 'p'))
	grid := lowerings()
	base := &grid[r.IntN(len(grid))]
	m := mutation{Rand: r, base: base, prog: base.clone()}
	m.prog.Buffers = slices.Clone(m.prog.Buffers)
	t := &m.prog.Tasks[r.IntN(len(m.prog.Tasks))]
	if chance(r, 4) { // most tasks multiply by a matrix
		op := m.prog.Tasks[r.IntN(len(m.prog.Tasks))].Op
		t = m.task(func(t *amk.Task) bool { return t.Op != amk.GEMVTile && t.Op != amk.GEMMTile || t.Op == op })
	}
	switch ids := slices.Concat(t.Inputs, t.Outputs); r.IntN(8) {
	case 0:
		m.changeInputs(t)
	case 1, 2:
		m.changeInteger(t)
	case 3:
		b := &m.prog.Buffers[pick(r, ids)]
		b.DType = pick(r, []amk.DType{amk.F32, amk.F16, amk.BF16, amk.I32, amk.I8})
	default:
		m.changeBuffer(&m.prog.Buffers[pick(r, ids)])
	}
	return Case{Name: fmt.Sprintf("AMK operands/%s/%d", base.name, seed), Class: "AMK operands", Profile: m.prog}
}

func (m *mutation) changeInputs(t *amk.Task) {
	t.Inputs = slices.Clone(t.Inputs)
	if i := m.IntN(len(t.Inputs)); chance(m.Rand, 2) {
		t.Inputs = slices.Delete(t.Inputs, i, i+1)
	} else {
		t.Inputs[i] = pick(m.Rand, t.Inputs)
	}
}

// changeInteger changes one of the integer parameters of a task, if it has any.
func (m *mutation) changeInteger(t *amk.Task) {
	var keys []string
	for k := range t.Params.All() {
		if _, ok := t.Params.Int(k); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 {
		key := pick(m.Rand, keys)
		n, _ := t.Params.Int(key)
		setParam(t, key, pick(m.Rand, []int{0, -1, int(n) + 1, int(n) - 1, 2 * int(n), int(n) / 2, 1<<31 - 1}))
	}
}

// changeBuffer gives a buffer another shape: one dimension larger or smaller, one more, or one less.
func (m *mutation) changeBuffer(b *amk.Buffer) {
	b.Shape = slices.Clone(b.Shape)
	i := m.IntN(len(b.Shape))
	switch n := b.Shape[i]; m.IntN(5) {
	case 0:
		b.Shape[i] = max(1, n/2)
	case 1:
		b.Shape[i] = pick(m.Rand, []int{2 * n, n + 1, max(1, n-1), 1})
	case 2:
		b.Shape = slices.Insert(b.Shape, i, 1)
	case 3:
		if n%2 == 0 {
			b.Shape[i] = n / 2
			b.Shape = slices.Insert(b.Shape, i, 2)
		}
	default:
		if i > 0 {
			b.Shape[i-1] *= n
			b.Shape = slices.Delete(b.Shape, i, i+1)
		}
	}
}
