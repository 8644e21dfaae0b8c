package validate

import (
	"slices"

	"amkc/ir"
	"amkc/validate/views"
)

// Ranks run one text, and are alike: whatever is true of a rank is true of each, with the ranks renamed. So the proof
// is that of the first rank. Its memory is what its own tasks touch, and what the tasks of all ranks push there. Those
// of the others, its peers, are listed where they reach it or differ (ir.UnrollWithPeers); each has a twin, the task
// that the first rank has in its place. An order of all ranks is one of the first rank, in which the peers' tasks
// follow their twin; there is a cycle among all tasks if and only if there is one among those.
//
// What a task knows are two numbers for each chain: how far it is on the rank of the task, and how far it is on every
// other rank. Those of a peer's task are its twin's, seen from there. An edge within a rank joins the two numbers one
// by one. One that comes from the same task of all ranks, through a counter of scope system or through words that each
// of them pushed, makes both of them the larger one (both): the task hears of each rank from that rank itself.
//
// A word that is pushed is one in the memory of each rank, and all ranks read the same ones (checkPeers). The task that
// pushes it is on the rank of the reader in one of them, and on another in the rest. So a reader has to know a writer,
// and a writer a reader, on all ranks alike. Two writes of a word are by the same two ranks in each of these memories.
//
// This is exact but for one thing: a task that polls words which some ranks pushed, but not the others, learns nothing
// of their writers. The proof of the form with the tasks of all ranks (ir.Unroll) is the oracle that tests hold it to.

// peers are the tasks of other ranks.
type peers struct {
	flat *ir.Flat
	list lists // of each task: those that peers have in its place
}

// of lists the tasks that peers have in place of a task of the first rank.
func (s *peers) of(t int32) []int32 {
	if s.flat.Peers <= 0 {
		return nil
	}
	return s.list.of(int(t))
}

// twin returns the task that the first rank has in place of t: t itself, if that is its own.
func (s *peers) twin(t int32) int32 {
	if task := &s.flat.Tasks[t]; task.Rank > 0 {
		return int32(task.Twin)
	}
	return t
}

// Ranks is the number of ranks that the program runs on.
func (p *Proof) Ranks() int { return max(1, p.flat.Ranks, 1+p.flat.Peers) }

// findPeers checks that the tasks of peers are those of their twins, and that a task which reaches other ranks has one
// on each.
func (p *Proof) findPeers() {
	f := p.flat
	p.peers.flat = f
	p.peers.list.begin(len(f.Tasks))
	for i := range f.Tasks {
		switch t := &f.Tasks[i]; {
		case t.Rank == 0:
		case p.Full():
			return
		case !p.isPeer(i, t):
			p.Errorf(CodeStructure, taskPos(t), "is of rank %d, and no task before it is what it is on rank 0: one on "+
				"the same SM, with the same signal, ops and buffers", t.Rank)
		default:
			p.peers.list.count(t.Twin)
		}
	}
	if !p.sound() {
		return
	}
	p.peers.list.offsets()
	for i := range f.Tasks {
		if t := &f.Tasks[i]; t.Rank > 0 {
			p.peers.list.put(t.Twin, i)
		}
	}
	for i := range f.Tasks {
		if f.Peers > 0 && f.Tasks[i].Rank == 0 && !p.Full() {
			p.checkReaches(int32(i))
		}
	}
}

// isPeer reports whether a task of a peer is its twin but for views and parameters.
func (p *Proof) isPeer(i int, t *ir.Task) bool {
	if t.Rank < 0 || t.Rank > p.flat.Peers || t.Twin < 0 || t.Twin >= i || p.flat.Tasks[t.Twin].Rank != 0 {
		return false
	}
	twin := &p.flat.Tasks[t.Twin]
	signal := twin.Signal
	if !p.ofAllRanks(signal) {
		signal = -1
	}
	return t.SM == twin.SM && t.Signal == signal && len(t.Waits) == 0 &&
		slices.EqualFunc(t.Ops, twin.Ops, func(a, b ir.FlatOp) bool {
			return a.Code == b.Code && slices.Equal(a.InBuf, b.InBuf) && slices.Equal(a.OutBuf, b.OutBuf)
		})
}

func (p *Proof) ofAllRanks(counter int) bool {
	return counter >= 0 && p.flat.Counters[counter].Scope == ir.ScopeSystem
}

// checkReaches: a task that pushes, or signals a counter of all ranks, has a peer on each of them; others have that, or
// none.
func (p *Proof) checkReaches(t int32) {
	task, all := &p.flat.Tasks[t], p.peers.of(t)
	reaches := p.ofAllRanks(task.Signal)
	for k := range task.Ops {
		reaches = reaches || slices.ContainsFunc(task.Ops[k].OutBuf, func(b int) bool {
			return b >= 0 && p.flat.Buffers[b].Space == ir.PeerScratch
		})
	}
	right := len(all) == p.flat.Peers || len(all) == 0 && !reaches
	for i, q := range all {
		right = right && p.flat.Tasks[q].Rank == i+1
	}
	if !right {
		p.Errorf(CodeStructure, p.Task(t), "has %d tasks of other ranks in its place, want one of each of %d", len(all),
			p.flat.Peers)
	}
}

// checkPeers: all ranks have the same views of what they write, each of its own memory. Only where a task pushes, and
// what it takes of memory that no task writes, may depend on its rank.
func (p *Proof) checkPeers() {
	for i := range p.flat.Tasks {
		t := &p.flat.Tasks[i]
		if t.Rank == 0 || p.Root(i) != i {
			continue
		}
		for k := range t.Ops {
			op, twin := &t.Ops[k], &p.flat.Tasks[t.Twin].Ops[k]
			for n, b := range op.InBuf {
				if b >= 0 && p.mem.locOf[b] >= 0 && !views.Same(op.In[n].Dims, twin.In[n].Dims) {
					p.reportDifferent(int32(i), &op.In[n], &twin.In[n], b, "reads")
				}
			}
			for n, b := range op.OutBuf {
				if b >= 0 && p.mem.locOf[b] >= 0 && !p.mem.locs[p.mem.locOf[b]].pushed &&
					!views.Same(op.Out[n].Dims, twin.Out[n].Dims) {
					p.reportDifferent(int32(i), &op.Out[n], &twin.Out[n], b, "writes")
				}
			}
		}
		if p.Full() {
			return
		}
	}
}

func (p *Proof) reportDifferent(t int32, of, twin *ir.Operand, buf int, does string) {
	name := p.flat.Buffers[buf].Name
	d := p.Errorf(CodePeers, p.Task(t), "%s %s%s, and on rank 0 %s%s: ranks are proved by being alike", does, name,
		views.String(of.Dims), name, views.String(twin.Dims))
	d.Buffer = name
	d.Suggest("name the rank where a task pushes, or where it reads memory that no task writes")
}

// push looks at what a task of a peer stores in the memory of the first rank. Its twin, whose clock it has, has just
// been walked.
func (s *sweep) push(t int32) {
	s.task = t
	for k := s.p.mem.first[t]; k < s.p.mem.first[t+1]; k++ {
		if s.p.mem.accesses[k].write {
			s.access(k)
		}
	}
}

// knows reports whether a writer is before the current task, or is that, in the order of memory of any kind.
func (s *sweep) knows(l *location, w int32) bool {
	if l.pushed {
		return s.p.clock.beforeOnAll(w, s.hb)
	}
	return w == s.task || s.p.clock.before(w, s.hb)
}

// precedes reports whether the last writer of a segment is before the current task, which writes it, by a clock of it.
func (s *sweep) precedes(l *location, w int32, clock []int32) bool {
	if !l.pushed {
		return s.p.clock.before(w, clock)
	}
	return s.p.clock.beforeOn(w, clock, s.p.flat.Tasks[w].Rank != s.p.flat.Tasks[s.task].Rank)
}

// width is the number of components of a clock.
func (c *clocks) width() int { return max(len(c.length), 2*c.half) }

// placePeers gives the tasks that peers have in place of one its place, among the components of the peers.
func (c *clocks) placePeers(all []int32, t int32) {
	for _, q := range all {
		c.chain[q], c.index[q] = c.chain[t]+int32(c.half), c.index[t]
	}
}

// mirrored returns the component that says of peers what a component says of the rank, and the other way round.
func (c *clocks) mirrored(chain int32) int32 {
	if int(chain) < c.half {
		return chain + int32(c.half)
	}
	return chain - int32(c.half)
}

// beforeOn reports whether task a of a rank, or of all others, is at or before the task whose clock is given.
func (c *clocks) beforeOn(a int32, clock []int32, others bool) bool {
	chain := c.chain[a]
	if others != (int(chain) >= c.half) {
		chain = c.mirrored(chain)
	}
	return at(clock, chain) >= c.index[a]
}

// beforeOnAll reports whether task a of every rank is at or before the task whose clock is given.
func (c *clocks) beforeOnAll(a int32, clock []int32) bool {
	return c.before(a, clock) && (c.half == 0 || at(clock, c.mirrored(c.chain[a])) >= c.index[a])
}

// both lets a clock say the same of the rank and of its peers: the more of the two.
func (c *clocks) both(clock []int32) {
	for i := range c.half {
		m := max(clock[i], clock[i+c.half])
		clock[i], clock[i+c.half] = m, m
	}
}

// joinRanks joins what a task that is done knows, on all ranks, into the current clock.
func (c *clocks) joinRanks(clock []int32, t int32) []int32 {
	c.known = grow(c.joinDone(c.known[:0], t), c.width())
	c.both(c.known)
	c.deltas.base = noBase
	return join(clock, c.known)
}
