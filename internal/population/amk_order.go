package population

import (
	"slices"

	"amkc/compiler/amk"
)

// cycle lets a task wait for one that needs it: by a counter, or by its place in the queue of an SM.
func (m *mutation) cycle() bool {
	late := m.task(waits)
	early := &m.prog.Tasks[m.ancestor(late.ID)]
	if early.OutCounter == late.OutCounter {
		return false
	}
	if chance(m.Rand, 4) {
		// Both run on one SM, the later one first.
		sm := 0
		early.SM, late.SM = &sm, &sm
		*early, *late = *late, *early
		return true
	}
	m.addWait(early, m.join(late.OutCounter), chance(m.Rand, 3))
	return true
}

// partialShared lowers a threshold, so that the wait passes with a producer missing.
func (m *mutation) partialShared() bool {
	shared := func(w amk.Wait) bool { return w.Threshold > 1 }
	t := m.task(func(t *amk.Task) bool { return slices.ContainsFunc(t.Waits, shared) })
	if t == nil {
		return false
	}
	t.Waits = slices.Clone(t.Waits)
	i := m.IntN(len(t.Waits))
	for !shared(t.Waits[i]) {
		i = (i + 1) % len(t.Waits)
	}
	t.Waits[i].Threshold = 1 + m.IntN(t.Waits[i].Threshold-1)
	return true
}

// dropWait leaves out a wait.
func (m *mutation) dropWait() bool {
	t := m.task(waits)
	i := m.IntN(len(t.Waits))
	t.Waits = slices.Delete(slices.Clone(t.Waits), i, i+1)
	return true
}

// kvBeforeAppend lets attention read a cache before this step's row is in it: without the wait for the append, with one
// for what the append itself waits for, or before the append in every order.
func (m *mutation) kvBeforeAppend() bool {
	attention := m.task(func(t *amk.Task) bool { return t.Op == amk.AttentionTile })
	if attention == nil {
		return false
	}
	cache := attention.Inputs[1+m.IntN(2)]
	i := slices.IndexFunc(attention.Waits, func(w amk.Wait) bool {
		return slices.Contains(m.prog.Tasks[m.base.producers[w.Counter][0]].Outputs, cache)
	})
	writer := &m.prog.Tasks[m.base.producers[attention.Waits[i].Counter][0]]
	if !readsRow(attention, writer) {
		return false
	}
	attention.Waits = slices.Clone(attention.Waits)
	switch m.IntN(3) {
	case 0:
		attention.Waits = slices.Delete(attention.Waits, i, i+1)
	case 1:
		attention.Waits[i] = writer.Waits[0]
	default:
		attention.Waits = slices.Delete(attention.Waits, i, i+1)
		m.addWait(writer, m.join(attention.OutCounter), false)
	}
	return true
}

// readsRow reports whether the row that a task appends is among those that an attention task reads. Of split attention,
// it is read by the last shard only.
func readsRow(attention, writer *amk.Task) bool {
	start, _ := attention.Params.Int("kv_start")
	n, _ := attention.Params.Int("kv_len")
	row, _ := writer.Params.Int("pos")
	return start <= row && row < start+n
}

// selfWait lets a task wait for the counter that it signals itself. The threshold may be one that other producers of
// the counter could reach without it.
func (m *mutation) selfWait() bool {
	t := &m.prog.Tasks[m.IntN(len(m.prog.Tasks))]
	w := m.join(t.OutCounter)
	w.Threshold = 1 + m.IntN(w.Threshold)
	m.addWait(t, w, chance(m.Rand, 3))
	return true
}
