package validate

import (
	"fmt"
	"math/bits"

	"amkc/ir"
)

// copies are those of a location of exchange words, for an address is several words on the device: a task writes all
// copies, and polls the one of its SM (ir.Flat.Copy). So a poll shows that a write is in memory for that
// copy alone. Each question about two writes of one word is asked of every copy that some task of the variant polls on
// that page or buffer, and of one where none is polled.
type copies struct {
	count  int
	flat   *ir.Flat
	buf    *ir.Buffer // whose copies they are
	polled copySet    // by some task
}

// copySet has bit k set for copy k. A layout has up to 64 copies.
type copySet uint64

// of returns the copy that an SM polls.
func (c copies) of(sm int) copySet {
	if c.count == 1 {
		return 1
	}
	if sm < 0 {
		return 0 // notePolledCopies refuses such tasks
	}
	return 1 << c.flat.Copy(c.buf, sm)
}

// first returns the number of the lowest copy of a set.
func (s copySet) first() int { return bits.TrailingZeros64(uint64(s)) }

// notePolledCopies finds the copies of each location that tasks poll. A word with a single copy counts as polled.
func (p *Proof) notePolledCopies() {
	for i := range p.mem.locs {
		p.mem.locs[i].copies.polled = 0
	}
	for i := range p.mem.accesses {
		a := &p.mem.accesses[i]
		l := &p.mem.locs[a.loc]
		if a.write || !l.words || l.copies.count == 1 {
			continue
		}
		sm := p.flat.Tasks[a.task].SM
		if sm < 0 {
			p.Errorf(CodeLayout, p.Task(a.task), "polls %s in one of %d copies, but runs on no SM, which decides the "+
				"copy", p.flat.Buffers[a.buf].Name, l.copies.count).Suggest("assign it to an SM, or keep one copy")
			return
		}
		l.copies.polled |= l.copies.of(sm)
	}
	for i := range p.mem.locs {
		if c := &p.mem.locs[i].copies; c.polled == 0 {
			c.polled = 1
		}
	}
}

// unseen returns the copies of a segment that some task of the variant polls, and none has polled since the segment was
// written.
func (s *sweep) unseen(l *location, g *segment) copySet {
	seen := g.seen
	if g.shared >= 0 {
		seen |= s.shared.all[g.shared].seen
	}
	return l.copies.polled &^ seen
}

// reportUnseen reports a word that is overwritten while some copy of its last value has been polled by nobody.
func (s *sweep) reportUnseen(l *location, i int, a *access, unseen copySet) {
	who, c := s.p.Who(l.segs[i].writer), l.copies
	read, fix := "", "let another task read it"
	if c.count > 1 {
		read = fmt.Sprintf(" in copy %d of %d", unseen.first(), c.count)
		fix = fmt.Sprintf("let another task read it on an SM whose number modulo %d is %d, keep one copy", c.count,
			unseen.first())
	}
	s.report(l, i, a, CodeUnread, "overwrites %s, written by %s and read by nobody else%s: two relaxed stores of one "+
		"word may become visible in either order", s.span(l, i, a), who, read).
		Suggest("%s, or realise a counter between the two by counting", fix)
}
