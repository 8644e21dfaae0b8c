package population

import (
	"slices"

	"amkc/compiler/amk"
)

// outside returns an id that none of n things with the ids 0 to n-1 has.
func (m *mutation) outside(n int) int {
	return pick(m.Rand, []int{n, n + 1 + m.IntN(1000), -1, -2 - m.IntN(1000), 1<<31 - 1, -1 << 31})
}

// oobCounter lets a task signal or wait for a counter that does not exist.
func (m *mutation) oobCounter() bool {
	t := &m.prog.Tasks[m.IntN(len(m.prog.Tasks))]
	id := m.outside(len(m.prog.Counters))
	if chance(m.Rand, 3) {
		t.OutCounter = id
		return true
	}
	m.addWait(t, amk.Wait{Counter: id, Threshold: 1}, chance(m.Rand, 2))
	return true
}

// oobBuffer lets a task name a buffer that does not exist, or touch rows beyond the end or before the start of one.
func (m *mutation) oobBuffer() bool {
	if chance(m.Rand, 3) {
		return m.oobRows()
	}
	t := &m.prog.Tasks[m.IntN(len(m.prog.Tasks))]
	id := m.outside(len(m.prog.Buffers))
	ids := &t.Inputs
	if chance(m.Rand, 3) {
		ids = &t.Outputs
	}
	*ids = slices.Clone(*ids)
	(*ids)[m.IntN(len(*ids))] = id
	return true
}

// oobRows moves the rows that a task touches out of their buffer, by one row or by many.
func (m *mutation) oobRows() bool {
	t := m.task(func(t *amk.Task) bool {
		return t.Op == amk.GEMVTile || t.Op == amk.GEMMTile || t.Op == amk.KVAppend || t.Op == amk.AttentionTile
	})
	by := 1 + m.IntN(2)*m.IntN(1000)
	switch t.Op {
	case amk.KVAppend:
		setParam(t, "pos", m.shift(cacheRows-1, by))
	case amk.AttentionTile:
		n, _ := t.Params.Int("kv_len")
		setParam(t, "kv_start", m.shift(cacheRows-int(n), by))
	default:
		n, _ := t.Params.Int("N_tile")
		rows := m.prog.Buffers[t.Inputs[1]].Shape[0]
		setParam(t, "n_off", m.shift(rows-int(n), by))
	}
	return true
}

// shift returns an offset that is too large or negative; last is the largest that is neither.
func (m *mutation) shift(last, by int) int {
	if chance(m.Rand, 2) {
		return -by
	}
	return last + by
}

// capacityOverflow exceeds a limit of the records that the device loads, or of the memory that a page has.
func (m *mutation) capacityOverflow() bool {
	t := m.task(waits)
	switch m.IntN(6) {
	case 0, 1:
		// Waits that hold anyway, so that nothing but their number is wrong.
		for most := amk.MaxWaits + 1 + m.IntN(4); len(t.Waits) < most; {
			m.addWait(t, m.join(m.prog.Tasks[m.ancestor(t.ID)].OutCounter), false)
		}
	case 2:
		for most := amk.MaxInputs + 1 + m.IntN(4); len(t.Inputs) < most; {
			t.Inputs = append(slices.Clone(t.Inputs), pick(m.Rand, t.Inputs))
		}
	case 3:
		for most := amk.MaxOutputs + 1 + m.IntN(4); len(t.Outputs) < most; {
			t.Outputs = append(slices.Clone(t.Outputs), t.Outputs[0])
		}
	case 4:
		m.prog.Buffers = slices.Clone(m.prog.Buffers)
		b := &m.prog.Buffers[m.IntN(len(m.prog.Buffers))]
		for b.Shape = slices.Clone(b.Shape); len(b.Shape) <= amk.MaxRank; {
			b.Shape = slices.Insert(b.Shape, 0, 1)
		}
	default:
		return m.page(t)
	}
	return true
}

// page puts the output of a task on a page that cannot hold it, or on one that no SM has the shared memory for; then
// what touches the buffer runs on one SM, as it must.
func (m *mutation) page(t *amk.Task) bool {
	b := &m.prog.Buffers[t.Outputs[0]]
	if b.Kind != amk.Activation {
		return false
	}
	page := amk.Page{Space: b.Space, LiveStart: -1, LiveEnd: -1}
	if target := m.prog.Target; target != nil && chance(m.Rand, 2) {
		page.Space, page.NBytes = amk.SMEM, target.SmemBytesPerBlockOptin+1+m.IntN(1<<16)
		sm := m.IntN(target.NumSMs)
		for i := range m.prog.Tasks {
			if t := &m.prog.Tasks[i]; slices.Contains(t.Inputs, b.ID) || slices.Contains(t.Outputs, b.ID) {
				t.SM = &sm
			}
		}
	} else {
		count := 1
		for _, n := range b.Shape {
			count *= n
		}
		page.NBytes = m.IntN(b.DType.Bytes(count))
	}
	m.prog.Pages = &amk.Pages{Pages: []amk.Page{page}}
	m.prog.Pages.BufferToPage.Set(b.ID, page.ID)
	return true
}
