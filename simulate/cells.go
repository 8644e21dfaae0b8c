package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"amkc/ir"
)

// placeKey identifies a place.
type placeKey struct {
	name string
	page bool // the name is that of a page, else of a buffer
	copy int
	step int // the step that it exists in; -1: all of them
}

// placesOf numbers the places that a task on an SM touches in a buffer. Exchange words are kept in copies: a task
// writes each, and reads that of its SM. No SM has one with a number from SMs on.
func (m *machine) placesOf(f *ir.Flat, b *ir.Buffer, sm int, write bool, step int) []int {
	if !write {
		return []int{m.placeOf(b, f.Copy(b, max(0, sm)), step)}
	}
	var out []int
	n := f.Copies(b)
	if b.Space != ir.PeerScratch {
		n = min(n, f.SMs/max(1, f.Ranks))
	}
	for k := range max(1, n) { // a program without SMs has one copy
		out = append(out, m.placeOf(b, k, step))
	}
	return out
}

// placeOf numbers the place of a copy of a buffer. A place with exchange words on it is one of words. What is kept on
// chip is kept for a step: the next one may keep it elsewhere.
func (m *machine) placeOf(b *ir.Buffer, copy, step int) int {
	key := placeKey{name: b.Name, copy: copy, step: -1}
	if len(b.Pages) > 0 {
		key.name, key.page = b.Pages[0], true
	}
	if b.Space == ir.SMEM || b.Space == ir.Register {
		key.step = step
	}
	n, ok := m.byPlace[key]
	if !ok {
		n = len(m.places)
		m.byPlace[key] = n
		m.places = append(m.places, place{copy: copy})
	}
	m.places[n].words = m.places[n].words || b.Layout.Words()
	m.places[n].smem = b.Space == ir.SMEM
	return n
}

// bytesOf returns the bytes of elements [lo, lo+n) inside one copy of a buffer. A buffer that is on no page shares its
// bytes with nothing, and layouts are injective: there the order of the elements will do.
func bytesOf(b *ir.Buffer, lo, n int) [][2]int {
	bits := b.DType.Bits()
	switch {
	case b.Layout.Words():
		size := b.Offset(1)
		return [][2]int{{lo * size, (lo + n) * size}}
	case b.ScaledRows(): // a scale of each row follows the elements
		out, hd := [][2]int{{lo, lo + n}}, b.Shape[len(b.Shape)-1]
		return append(out, [2]int{b.Numel() + lo/hd, b.Numel() + (lo+n+hd-1)/hd})
	case len(b.Pages) == 0 || b.Layout.Kind == ir.RowMajor:
		return [][2]int{{lo * bits / 8, ((lo+n)*bits + 7) / 8}}
	}
	var out [][2]int
	for e := lo; e < lo+n; e++ {
		at := b.Offset(e)
		out = append(out, [2]int{at, at + max(1, bits/8)})
	}
	return out
}

// cut makes the cells: bytes between two neighbouring ends of what is touched, or single bytes.
func (m *machine) cut(regions []region) error {
	first := m.runs[0].at()
	for _, r := range regions {
		if m.opts.stopped() { // one region of a cache may add millions of boundaries
			return ErrStopped
		}
		p := &m.places[r.place]
		p.at = append(p.at, r.lo, r.hi)
		if m.opts.Bytes {
			for b := r.lo; b < r.hi; b++ {
				p.at = append(p.at, b)
			}
		}
		if r.buf.Kind == ir.KVCache {
			var ok bool
			if p.at, ok = rowsAppear(p.at, &r, first); !ok {
				return tooManyCells()
			}
		}
		if len(p.at) > 4*maxCells { // with duplicates, or too many
			if p.at = compact(p.at); len(p.at) > maxCells {
				return tooManyCells()
			}
		}
	}
	for i := range m.places {
		p := &m.places[i]
		p.at = compact(p.at)
		p.base = len(m.cells)
		if len(m.cells)+len(p.at) > maxCells {
			return tooManyCells()
		}
		for k := 0; k+1 < len(p.at); k++ {
			m.cells = append(m.cells, cell{place: i, lo: p.at[k], hi: p.at[k+1]})
		}
	}
	touched := 0
	for _, r := range regions {
		if m.opts.stopped() {
			return ErrStopped
		}
		lo, hi := m.span(r)
		if touched += hi - lo; touched > maxTouched {
			return tooLarge("its tasks touch pieces of memory more than %d times", maxTouched)
		}
		if r.buf.Kind != ir.Input && !r.buf.Kind.OfSequences() {
			continue
		}
		for c := lo; c < hi; c++ {
			m.cells[c].initial = m.cells[c].initial || initial(r.buf, m.cells[c].lo, first)
		}
	}
	return nil
}

func compact(at []int) []int {
	slices.Sort(at)
	return slices.Compact(at)
}

func tooManyCells() error {
	return tooLarge("its tasks touch more than %d pieces of memory in different ways", maxCells)
}

// rowsAppear adds the bytes of a region of a cache at which rows that are there initially begin and end, given the
// positions of all sequences. It adds nothing and returns false if these alone are too many.
func rowsAppear(at []int, r *region, positions []int) ([]int, bool) {
	d, bits := len(r.buf.Shape)-3, r.buf.DType.Bits()
	rows, heads, width := r.buf.Shape[d], r.buf.Shape[d+1], r.buf.Shape[d+2]
	base, row := 0, max(1, heads*width*bits/8)
	if values := r.buf.Numel(); r.buf.ScaledRows() && r.lo >= values {
		base, row = values, heads // scales, a byte each
	}
	block := rows * row
	first, end := max(0, r.lo-base)/block, (r.hi-base+block-1)/block
	var ends []int
	for _, pos := range positions {
		ends = append(ends, min(pos, rows))
	}
	ends = compact(ends)
	// Rows 0 and rows are boundaries of blocks too, so at least a third of the boundaries are distinct.
	if (end-first)*(1+len(ends)) > 4*maxCells {
		return at, false
	}
	for b := first; b < end; b++ {
		at = inside(at, base+b*block, r)
		for _, pos := range ends {
			at = inside(at, base+b*block+pos*row, r)
		}
	}
	return at, true
}

func inside(at []int, b int, r *region) []int {
	if b > r.lo && b < r.hi {
		return append(at, b)
	}
	return at
}

// initial reports whether a byte is defined before the first step, at the positions of all sequences: inputs and states
// are, and the cache rows below the position of their sequence.
func initial(b *ir.Buffer, at int, positions []int) bool {
	if b.Kind == ir.KVCache {
		d := len(b.Shape) - 3
		e, row := at*8/b.DType.Bits(), b.Shape[d+1]*b.Shape[d+2]
		if values := b.Numel(); b.ScaledRows() && at >= values { // where its scale is in place of its elements
			e, row = at-values, b.Shape[d+1]
		}
		of := 0
		if len(positions) > 1 {
			of = e / row / (b.Numel() / b.Shape[0] / (b.Shape[d+1] * b.Shape[d+2]))
		}
		return e/row%b.Shape[d] < positions[of]
	}
	return b.Kind == ir.Input || b.Kind == ir.Recurrent
}

// span returns the cells of a region.
func (m *machine) span(r region) (lo, hi int) {
	p := &m.places[r.place]
	i, _ := slices.BinarySearch(p.at, r.lo)
	k, _ := slices.BinarySearch(p.at, r.hi)
	return p.base + i, p.base + k
}

// assign gives every op its accesses, and finds on-chip memory that is touched from two sides.
func (m *machine) assign(regions []region) (*Hazard, error) {
	polls, sends := m.exchanged(regions)
	if polls > maxPolls || sends > maxPolls {
		return nil, tooLarge("its tasks poll more than %d words, or send as many", maxPolls)
	}
	m.messages = make([]message, 0, sends)
	for _, r := range regions {
		if m.opts.stopped() {
			return nil, ErrStopped
		}
		t := &m.tasks[r.task]
		for len(t.ops) <= r.op {
			t.ops = append(t.ops, opCode{})
		}
		lo, hi := m.span(r)
		if h := m.own(r, lo, hi); h != nil {
			return h, nil
		}
		op := &t.ops[r.op]
		switch {
		case !m.places[r.place].words && r.write:
			op.writes = append(op.writes, access{lo, hi, r.buf})
		case !m.places[r.place].words:
			op.reads = append(op.reads, access{lo, hi, r.buf})
		case r.write:
			for c := lo; c < hi; c++ {
				m.send(r, int32(c))
			}
		default:
			op.polls = slices.Grow(op.polls, hi-lo)
			for c := lo; c < hi; c++ {
				op.polls = append(op.polls, poll{cell: int32(c), buf: r.buf})
			}
		}
	}
	m.polls = make([]int, len(m.tasks))
	for i := range m.tasks {
		if !m.assignPolls(i) {
			return nil, ErrStopped
		}
		if len(m.answers) > maxPolls {
			return nil, tooLarge("its polls have more than %d answers", maxPolls)
		}
		most := 0
		for k := range m.tasks[i].ops {
			most = max(most, len(m.tasks[i].ops[k].polls))
		}
		m.polls[i], m.polled = m.polled, m.polled+most
	}
	return nil, nil
}

// exchanged counts the words that tasks poll and send.
func (m *machine) exchanged(regions []region) (polls, sends int) {
	for _, r := range regions {
		lo, hi := m.span(r)
		switch {
		case !m.places[r.place].words:
		case r.write:
			sends += hi - lo
		default:
			polls += hi - lo
		}
	}
	return polls, sends
}

// send adds a store of a word.
func (m *machine) send(r region, c int32) {
	before, queue := int32(-1), m.tasks[r.task].queue
	for _, n := range slices.Backward(m.cells[c].messages) {
		if m.tasks[m.messages[n].task].queue == queue {
			before = n
			break
		}
	}
	op, n := &m.tasks[r.task].ops[r.op], int32(len(m.messages))
	op.sends = append(op.sends, n)
	m.cells[c].messages = append(m.cells[c].messages, n)
	m.messages = append(m.messages, message{int32(r.task), int32(r.op), c, before, r.buf})
}

// assignPolls leaves one poll of each word that a task does not have yet, from an earlier poll or a store of its
// own, and finds the messages that answer it: from producers of flagged counters that the task waits on, through the
// same buffer, in the same step. It reports false if the caller has stopped.
func (m *machine) assignPolls(t int) bool {
	written := map[int32]*ir.Buffer{} // the buffer through which the task itself wrote a cell last
	task := &m.tasks[t]
	looked, stopped := 0, m.opts.stopped()
	spend := func(n int) { // a million words may each have thousands of messages and be polled through as many buffers
		if looked += 1 + n; looked >= 1<<20 {
			looked, stopped = 0, m.opts.stopped()
		}
	}
	for k := range task.ops {
		op := &task.ops[k]
		slices.SortFunc(op.polls, func(a, b poll) int {
			return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.buf.Name, b.buf.Name))
		})
		op.polls = slices.DeleteFunc(slices.Compact(op.polls), func(p poll) bool {
			own := m.pollersOf(t, p.cell)
			spend(len(own))
			return written[p.cell] == p.buf || !stopped && slices.ContainsFunc(own, func(was poller) bool {
				return task.ops[was.op].polls[was.poll].buf == p.buf
			})
		})
		for n := range op.polls {
			p := &op.polls[n]
			p.first = int32(len(m.answers))
			c := &m.cells[p.cell]
			if spend(len(c.messages)); stopped {
				return false
			}
			for _, msg := range c.messages {
				by := &m.messages[msg]
				if from := &m.tasks[by.task]; by.buf == p.buf && from.step == task.step && from.signal >= 0 &&
					slices.Contains(task.flagged, from.signal) {
					m.answers = append(m.answers, msg)
				}
			}
			p.answers = int32(len(m.answers)) - p.first
			c.peeked = c.peeked || p.answers == 0
			c.pollers = append(c.pollers, poller{int32(t), int32(k), int32(n)})
		}
		for _, msg := range op.sends {
			written[m.messages[msg].cell] = m.messages[msg].buf
		}
	}
	return !stopped
}

// pollersOf lists the polls of a cell by task t. Polls are added task by task: those of the current task come last.
func (m *machine) pollersOf(t int, cell int32) []poller {
	list := m.cells[cell].pollers
	n := len(list)
	for n > 0 && int(list[n-1].task) == t {
		n--
	}
	return list[n:]
}

// own notes who touches on-chip memory, which belongs to an SM or to a task.
func (m *machine) own(r region, lo, hi int) *Hazard {
	t := &m.tasks[r.task]
	var owner int
	switch r.buf.Space {
	case ir.SMEM:
		if owner = t.flat.SM + 1; owner == 0 {
			return &Hazard{Kind: Owner, Where: "task " + t.name,
				Detail: "touches " + r.buf.Name + " in shared memory, but runs on no SM"}
		}
	case ir.Register:
		owner = r.task + 1
	default:
		return nil
	}
	for c := lo; c < hi; c++ {
		was := &m.cells[c].owner
		if *was != 0 && *was != owner {
			whose := fmt.Sprintf("in the shared memory of SM %d", *was-1)
			if r.buf.Space == ir.Register {
				whose = "in registers of " + m.tasks[*was-1].name
			}
			return &Hazard{Kind: Owner, Where: "task " + t.name,
				Detail: fmt.Sprintf("touches %s, which is %s", m.where(c, r.buf), whose)}
		}
		*was = owner
	}
	return nil
}

// where names a cell for a message.
func (m *machine) where(c int, b *ir.Buffer) string {
	at, of := &m.cells[c], ""
	if len(b.Pages) > 0 {
		of = " of page " + b.Pages[0]
	}
	if b.Layout.Copies > 1 || b.Space == ir.PeerScratch {
		of += fmt.Sprintf(", copy %d", m.places[at.place].copy)
	}
	return fmt.Sprintf("%s (bytes %d to %d%s)", b.Name, at.lo, at.hi-1, of)
}
