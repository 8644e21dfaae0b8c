package validate

import (
	"slices"

	"amkc/ir"
)

// Two relations order tasks. Both are kept as vector clocks with one component per chain, a set of tasks that hb orders
// totally: every SM queue is a chain, and tasks without an SM join a chain whose last task is hb-before them. Component c
// of a task's clock is the number of tasks of chain c that are before it, itself included.
//
// hb (happens-before) orders memory of any kind. Its edges are:
//   - queue order of one SM: the block barrier that ends a stage;
//   - counters realised by counting, from every producer to every waiter: release-add, acquire poll, block barrier.
//
// fb (freed-before) orders exchange words only. It has the edges of hb and, for flagged counters,
//   - from a task to a reader of a word that it wrote, when the reader waits on the flagged counter which that task
//     signals. The poll saw the word, so the write has happened; a task polls its words, passes a block barrier, and
//     only then publishes (checkMemory holds it to that order), so what the writer read before it published is over.
//
// A flagged poll is relaxed. It makes no other write of the writer visible, which is why fb never orders plain memory.
// For words, fb is enough where an access must be over before a later write:
//   - read before write: the read is program-ordered before the published word by a barrier, that word was polled, and
//     the write depends on that poll. The read cannot see a value that depends on itself.
//   - write before write: relaxed stores to different words may become visible in any order, so a chain of polls from
//     the writer alone proves nothing. It does when somebody read the first write in between: its value was in memory
//     then, and coherence orders the second write after it. Segments that nobody read are refused.
//
// A reader that needs all words of a flagged counter gets the edge from every producer. One that reads a part of them
// (the attention of one head) gets edges from the writers of that part alone.
type clocks struct {
	weak   bool    // some wait is flagged: fb and hb differ
	chain  []int32 // of each task
	index  []int32 // its place in the chain, counted from 1
	length []int32 // of each chain
	loose  []int32 // chains of tasks without an SM
	fb     [][]int32
	hb     [][]int32         // of the task that was last on each SM; only if weak
	kept   map[int32][]int32 // hb of the tasks whose views depend on pos; only if weak
	joinFB [][]int32         // of each counter: join of its producers so far
	joinHB [][]int32
	last   []int32 // last task of each SM so far
	slab   []int32
	spare  []int32
}

func (p *proof) startClocks() {
	f, c := p.flat, &p.clock
	n := len(f.Tasks)
	c.chain, c.index, c.fb = make([]int32, n), make([]int32, n), make([][]int32, n)
	c.length = make([]int32, f.SMs)
	c.last, c.hb = make([]int32, f.SMs), make([][]int32, f.SMs)
	c.joinFB, c.joinHB = make([][]int32, len(f.Counters)), make([][]int32, len(f.Counters))
	c.kept = map[int32][]int32{}
	for sm := range c.last {
		c.last[sm] = -1
	}
	for t := range f.Tasks {
		for _, w := range f.Tasks[t].Waits {
			c.weak = c.weak || f.Counters[w.Counter].How == ir.Flagged
			if c.joinFB[w.Counter] == nil {
				c.joinFB[w.Counter] = []int32{} // somebody waits: keep the join
			}
		}
	}
}

// begin sets the clocks of a task from its queue and the counting counters that it waits on.
func (p *proof) begin(t int32) (hb, fb []int32, ok bool) {
	f, c := p.flat, &p.clock
	task := &f.Tasks[t]
	hb = c.spare[:0]
	if task.SM >= 0 {
		if prev := c.last[task.SM]; prev >= 0 {
			fb = c.fb[prev]
		}
		if c.weak {
			hb = c.hb[task.SM] // kept from the task before, and brought forward in place
		} else {
			hb = append(hb, fb...)
		}
	}
	for _, w := range task.Waits {
		if f.Counters[w.Counter].How == ir.ByCounter {
			if hb = join(hb, c.joinHB[w.Counter]); !c.weak {
				hb = join(hb, c.joinFB[w.Counter])
			}
		}
	}
	chain := p.joinChain(t, hb)
	if !p.spend(&p.work.cells, len(c.length), maxClockCells, "vector clock components", t) {
		return nil, nil, false
	}
	own := c.alloc(len(c.length))
	if c.weak {
		copy(own, fb)
		for _, w := range task.Waits {
			if f.Counters[w.Counter].How == ir.ByCounter {
				own = join(own, c.joinFB[w.Counter])
			}
		}
		hb = grow(hb, len(c.length))
		hb[chain], own[chain] = c.index[t], c.index[t]
		if task.SM >= 0 {
			c.hb[task.SM] = hb
		} else {
			c.spare = hb
		}
	} else {
		copy(own, hb)
		own[chain] = c.index[t]
		c.spare, hb = hb, own
	}
	c.fb[t] = own
	return hb, own, true
}

// joinChain gives the task its place in a chain.
func (p *proof) joinChain(t int32, hb []int32) int32 {
	c := &p.clock
	chain := int32(p.flat.Tasks[t].SM)
	if chain < 0 {
		chain = int32(len(c.length))
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
	} else {
		c.last[chain] = t
	}
	c.length[chain]++
	c.chain[t], c.index[t] = chain, c.length[chain]
	return chain
}

// end adds a task that is done to the join of the counter it signals.
func (p *proof) end(t int32, hb, fb []int32) {
	c, s := &p.clock, p.flat.Tasks[t].Signal
	if s < 0 || c.joinFB[s] == nil {
		return
	}
	c.joinFB[s] = join(c.joinFB[s], fb)
	if c.weak && p.flat.Counters[s].How == ir.ByCounter {
		c.joinHB[s] = join(c.joinHB[s], hb)
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

// alloc returns a zeroed clock that is never given back.
func (c *clocks) alloc(n int) []int32 {
	if len(c.slab) < n {
		c.slab = make([]int32, max(n, 1<<15))
	}
	out := c.slab[:n:n]
	c.slab = c.slab[n:]
	return out
}

func at(clock []int32, chain int32) int32 {
	if int(chain) < len(clock) {
		return clock[chain]
	}
	return 0
}

// join returns the componentwise maximum, in dst if it has room.
func join(dst, src []int32) []int32 {
	dst = grow(dst, len(src))
	d := dst[:len(src)]
	for i, v := range src {
		d[i] = max(d[i], v)
	}
	return dst
}

func grow(clock []int32, n int) []int32 {
	if have := len(clock); have < n {
		clock = slices.Grow(clock, n-have)[:n]
		clear(clock[have:])
	}
	return clock
}
