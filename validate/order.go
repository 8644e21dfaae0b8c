package validate

import (
	"slices"

	"amkc/ir"
)

// Two relations order tasks. Both are kept as vector clocks with one component per chain, a set of tasks that hb
// orders totally: every SM queue is a chain, and tasks without an SM join a chain whose last task is hb-before them.
// Component c of a task's clock is the number of tasks of chain c that are before it, itself included.
//
// hb (happens-before) orders memory of any kind. Its edges are:
//   - queue order of one SM: the block barrier that ends a stage;
//   - counters realised by counting, from every producer to every waiter: release-add, acquire poll, block barrier.
//
// fb (freed-before) orders exchange words only. It has the edges of hb and, for flagged counters,
//   - from a task to a reader of a word that it wrote, when the reader waits on the flagged counter which that task
//     signals. The poll saw the word, so the write has happened; a task polls its words, passes a block barrier, and
//     only then publishes (checkMemory checks that order), so what the writer read before it published is over.
//
// A flagged poll is relaxed. It makes no other write of the writer visible, which is why fb never orders plain memory.
// For words, fb is enough where an access must be over before a later write:
//   - read before write: the read is program-ordered before the published word by a barrier, that word was polled, and
//     the write depends on that poll. The read cannot see a value that depends on itself.
//   - write before write: relaxed stores to different words may become visible in any order, so a chain of polls from
//     the writer alone proves nothing. It does when another task read the first write in between: its value was in
//     memory then, and coherence orders the second write after it. Segments that nobody read are refused.
//
// A reader that needs all words of a flagged counter gets the edge from every producer. One that reads a part of them
// (the attention of one head) gets edges from the writers of that part alone.
type clocks struct {
	weak    bool      // some wait is flagged: fb and hb differ
	chain   []int32   // of each task
	index   []int32   // its place in the chain, counted from 1
	length  []int32   // of each chain
	chainOf []int32   // of each SM, -1 for SMs without tasks
	loose   []int32   // chains of tasks without an SM
	fb      [][]int32 // of each task that is done, unless its difference says it (delta.go)
	queue   [][]int32 // fb of the task that was last on each SM's chain
	hb      [][]int32 // the same for hb; only if weak
	kept    [][]int32 // hb of the tasks whose views depend on pos; only if weak
	waited  []bool    // for each counter: somebody waits, so that its joins are kept
	joinFB  [][]int32 // of each counter: join of its producers so far
	joinHB  [][]int32
	last    []int32 // last task of each SM so far, -1 for none
	deltas  deltas
	slab    slab
	spare   []int32 // hb of a task without an SM; only if weak
	half    int     // if there are peers: most chains of a rank; the component of theirs is that far from the rank's
	ofAll   []bool  // for each counter: it is one of all ranks
	known   []int32
	vectors vectors
}

// start gives every SM that has tasks a chain, in order, so that clocks are as short as the program allows.
func (c *clocks) start(f *ir.Flat, step int) {
	n := len(f.Tasks)
	c.slab.reset()
	c.vectors.reset()
	c.deltas.reset(n, len(f.Counters))
	c.weak, c.length, c.loose = false, c.length[:0], c.loose[:0]
	c.chain, c.index, c.fb = sized(c.chain, n), sized(c.index, n), sized(c.fb, n)
	c.chainOf, c.last = sized(c.chainOf, f.SMs), sized(c.last, f.SMs)
	c.waited = sized(c.waited, len(f.Counters))
	c.joinFB, c.joinHB = emptied(c.joinFB, len(f.Counters)), emptied(c.joinHB, len(f.Counters))
	for sm := range c.last {
		c.last[sm], c.chainOf[sm] = -1, -1
	}
	loose := 0
	for t := range f.Tasks {
		if sm := f.Tasks[t].SM; sm >= 0 {
			c.chainOf[sm] = 0
		} else {
			loose++
		}
		for _, w := range f.Tasks[t].Waits {
			c.weak = c.weak || f.Counters[w.Counter].How == ir.Flagged
			c.waited[w.Counter] = true
		}
	}
	for sm := range c.chainOf {
		if c.chainOf[sm] == 0 {
			c.chainOf[sm] = int32(len(c.length))
			c.length = append(c.length, 0)
		}
	}
	if step >= 0 {
		c.waited[step] = true // by the next step
	}
	c.half, c.ofAll = 0, sized(c.ofAll, len(f.Counters))
	if f.Peers > 0 {
		c.half = len(c.length) + loose
		for k := range f.Counters {
			c.ofAll[k] = f.Counters[k].Scope == ir.ScopeSystem
		}
	}
	c.queue, c.hb = emptied(c.queue, len(c.length)), emptied(c.hb, len(c.length))
	if c.kept = c.kept[:0]; c.weak {
		c.kept = sized(c.kept, n)
	}
}

// emptied returns n empty vectors, in the memory of those of an earlier proof.
func emptied(s [][]int32, n int) [][]int32 {
	for i := range s[:min(n, len(s))] {
		s[i] = s[i][:0]
	}
	for len(s) < n {
		s = append(s, nil)
	}
	return s
}

// begin sets the clocks of a task from its queue and the counting counters that it waits on. Where nothing is flagged
// the two are one vector.
func (p *Proof) begin(t int32) (hb, fb []int32, ok bool) {
	c := &p.clock
	if !p.spend(&p.work.cells, c.width()+1, maxClockCells, "vector clock components", t) {
		return nil, nil, false
	}
	fb = c.beginFB(p.flat, t)
	if !c.weak {
		chain := c.joinChain(p.flat.Tasks[t].SM, t, fb)
		c.placePeers(p.peers.of(t), t)
		fb = grow(fb, c.width())
		c.deltas.stamp(fb, stamp{chain, c.index[t]})
		return fb, fb, true
	}
	hb = c.beginHB(p.flat, t)
	chain := c.joinChain(p.flat.Tasks[t].SM, t, hb)
	c.placePeers(p.peers.of(t), t)
	fb, hb = grow(fb, c.width()), grow(hb, c.width())
	hb[chain] = c.index[t]
	c.deltas.stamp(fb, stamp{chain, c.index[t]})
	if p.flat.Tasks[t].SM >= 0 {
		c.hb[chain] = hb
	} else {
		c.spare = hb
	}
	return hb, fb, true
}

// beginFB returns what is fb-before a task by its queue and by counting. The vector of an SM is brought forward in
// place; one of a task without an SM has a component to spare, should the task begin a chain.
func (c *clocks) beginFB(f *ir.Flat, t int32) []int32 {
	task, n := &f.Tasks[t], c.width()
	own, chain, waits := []int32(nil), int32(-1), task.Waits
	c.deltas.restart(noBase)
	if task.SM >= 0 {
		chain = c.chainOf[task.SM]
		own = c.queue[chain]
		if last := c.last[task.SM]; last >= 0 {
			c.deltas.follow(last)
		}
	} else {
		own = c.slab.get(n + 1)[:0]
	}
	for len(own) == 0 && len(waits) > 0 {
		if k := waits[0].Counter; f.Counters[k].How == ir.ByCounter {
			own = append(own, c.joinFB[k]...)
			c.deltas.restart(int32(k))
		}
		waits = waits[1:]
	}
	own = grow(own, n)
	for _, w := range waits {
		if f.Counters[w.Counter].How == ir.ByCounter {
			own = c.joinCounter(own, w.Counter, chain)
		}
	}
	return own
}

// beginHB does the same for hb, of which only the last vector of an SM is kept.
func (c *clocks) beginHB(f *ir.Flat, t int32) []int32 {
	task := &f.Tasks[t]
	hb := c.spare[:0]
	if task.SM >= 0 {
		hb = c.hb[c.chainOf[task.SM]]
	}
	for _, w := range task.Waits {
		if f.Counters[w.Counter].How == ir.ByCounter {
			hb = join(hb, c.joinHB[w.Counter])
		}
	}
	return hb
}

// joinChain gives a task on an SM, or on none, its place in a chain.
func (c *clocks) joinChain(sm int, t int32, hb []int32) int32 {
	chain := int32(len(c.length))
	if sm >= 0 {
		chain = c.chainOf[sm]
		c.last[sm] = t
	} else {
		for _, k := range c.loose {
			if at(hb, k) == c.length[k] {
				chain = k
				break
			}
		}
		if int(chain) == len(c.length) {
			c.length = append(c.length, 0)
			c.loose = append(c.loose, chain)
		}
	}
	c.length[chain]++
	c.chain[t], c.index[t] = chain, c.length[chain]
	return chain
}

// end adds a task that is done to the join of the counter it signals.
func (p *Proof) end(t int32, hb, fb []int32) {
	c, s := &p.clock, p.flat.Tasks[t].Signal
	if !p.sound() { // what was joined to go on after an error is in the clock, not in its difference
		c.deltas.restart(noBase)
	}
	c.keepFB(t, p.flat.Tasks[t].SM, fb)
	if s < 0 || !c.waited[s] {
		return
	}
	c.produce(s, fb)
	if c.weak && p.flat.Counters[s].How == ir.ByCounter {
		if c.joinHB[s] = join(c.joinHB[s], hb); c.ofAll[s] {
			c.both(c.joinHB[s])
		}
	}
}

// keepFB stores fb of a task that is done: as a difference if it has one, so that the vector can be the next task's.
func (c *clocks) keepFB(t int32, sm int, fb []int32) {
	c.deltas.keep(t)
	if sm < 0 {
		c.fb[t] = fb
		return
	}
	if c.queue[c.chainOf[sm]] = fb; c.deltas.base == noBase {
		c.fb[t] = append(c.slab.get(len(fb))[:0], fb...)
	}
}

// keep stores hb of a task whose views depend on pos, for when positions are tried one by one.
func (c *clocks) keep(t int32, hb []int32) {
	if c.kept[t] == nil {
		c.kept[t] = c.slab.get(len(hb))
		copy(c.kept[t], hb)
	}
}

// before reports whether task a is at or before the task whose clock is given.
func (c *clocks) before(a int32, clock []int32) bool { return at(clock, c.chain[a]) >= c.index[a] }

// taskAt returns the task at a place of a chain, for messages.
func (c *clocks) taskAt(chain, index int32) int32 {
	for t := range c.chain {
		if c.chain[t] == chain && c.index[t] == index {
			return int32(t)
		}
	}
	return 0
}

func at(clock []int32, chain int32) int32 {
	if int(chain) < len(clock) {
		return clock[chain]
	}
	return 0
}

// join returns the componentwise maximum, in dst if it has room.
func join(dst, src []int32) []int32 {
	have := len(dst)
	if have < len(src) {
		dst = append(dst, src[have:]...)
		src = src[:have]
	}
	d := dst[:len(src)]
	for i, v := range src {
		d[i] = max(d[i], v)
	}
	return dst
}

// grow appends zeros up to n components.
func grow(clock []int32, n int) []int32 {
	if have := len(clock); have < n {
		clock = slices.Grow(clock, n-have)[:n]
		clear(clock[have:])
	}
	return clock
}

// slab hands out vectors that live until the proof ends.
type slab struct {
	chunks [][]int32
	chunk  int // the one in use
	free   []int32
}

const (
	firstChunk = 1 << 12
	lastChunk  = 1 << 18
)

func (s *slab) reset() {
	s.chunk, s.free = 0, nil
	if len(s.chunks) > 0 {
		s.free = s.chunks[0]
	}
}

// get returns a vector of length n, with anything in it.
func (s *slab) get(n int) []int32 {
	for len(s.free) < n {
		if s.chunk++; s.chunk >= len(s.chunks) {
			s.chunks = append(s.chunks, make([]int32, max(n, min(lastChunk, firstChunk<<min(len(s.chunks), 16)))))
			s.chunk = len(s.chunks) - 1
		}
		s.free = s.chunks[s.chunk]
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}
