package ir

import (
	"slices"
	"strconv"
)

// A program of several ranks runs on as many GPUs at once. All of them run its text: each has the tasks of every
// stage on SMs of its own, and every buffer and counter for itself, but for those that join them:
//
//   - A buffer in PEER_SCRATCH is in the memory of every rank. A task stores a word to all of them, and loads that of
//     its own rank. So ranks push what others need, and none reads the memory of another.
//   - A counter of scope system is one for all: each of its producers, on any rank, adds 1 to the count that every rank
//     sees.
//
// What ranks do not have in common is what mentions the symbol rank, and a rank's share of a tensor (transform.Share).
// Weights, constants and inputs without a share are the same everywhere.
//
// The unrolled form has the tasks of all ranks, stage by stage. Names of what is not rank 0's end in @ and the rank.

// MaxRanks bounds the ranks of a program: the GPUs of one host.
const MaxRanks = 8

// NumRanks is the number of ranks, at least 1.
func (p *Program) NumRanks() int { return max(1, p.Ranks) }

// ranksOf is a number of ranks as programs hold it.
func ranksOf(n int) int {
	if n == 1 {
		return 0
	}
	return n
}

// onRank is a name, with the rank that it is of.
func onRank(name string, rank int) string {
	if rank == 0 {
		return name
	}
	return name + "@" + strconv.Itoa(rank)
}

// ranks checks the number of ranks, and that no name is one that the unrolled form gives.
func (c *checker) ranks() {
	n := c.p.NumRanks()
	switch {
	case c.p.Ranks < 0 || n > MaxRanks:
		c.fail(CodeRange, "ranks", "%d, want 1 to %d", c.p.Ranks, MaxRanks)
	case n > 1 && c.p.Target == nil:
		c.fail(CodeSize, "ranks", "%d, and no target says how many SMs each has, want a target", n)
	}
}

// Shares reports whether each rank has a share of what the buffer comes from.
func (b *Buffer) Shares() bool {
	return slices.ContainsFunc(b.Pieces, func(pc Piece) bool { return pc.Chain.Shares() })
}

// OfRank returns the buffer as a rank has it: shares of tensors are rows of them, and it is called as the rank's.
func (b *Buffer) OfRank(rank int) Buffer {
	own := *b
	if !b.Shares() {
		return own
	}
	own.Name, own.Pieces = onRank(b.Name, rank), slices.Clone(b.Pieces)
	for i := range own.Pieces {
		own.Pieces[i].Chain = own.Pieces[i].Chain.OfRank(rank)
	}
	return own
}

// sameOnRanks reports whether all ranks have the buffer in common: memory that none of them writes, and what they push.
func (b *Buffer) sameOnRanks() bool {
	return b.Space == PeerScratch || b.Kind.ReadOnly() && !b.Shares()
}

// declareRanks gives the ranks after the first buffers, pages and counters of their own, and notes which those are.
func (u *unroller) declareRanks() {
	f := u.flat
	buffers, counters, pages := len(f.Buffers), len(f.Counters), len(f.Pages)
	u.ofRank = make([]rankMembers, u.ranks)
	for r := range u.ofRank {
		of := rankMembers{make([]int, buffers), make([]int, counters)}
		u.ofRank[r] = of
		for k := range of.buffers {
			of.buffers[k] = k
			b := f.Buffers[k]
			if r == 0 || b.sameOnRanks() {
				continue
			}
			of.buffers[k] = len(f.Buffers)
			name := b.Name
			b = b.OfRank(r)
			b.Name = u.renamed("buffer", u.buffers, name, r)
			if len(b.Pages) > 0 {
				b.Pages = []string{onRank(b.Pages[0], r)}
			}
			f.Buffers = append(f.Buffers, b)
		}
		for k := range of.counters {
			of.counters[k] = k
			if c := f.Counters[k]; r > 0 && c.Scope != ScopeSystem {
				of.counters[k] = len(f.Counters)
				c.Name = u.renamed("counter", u.counters, c.Name, r)
				f.Counters = append(f.Counters, c)
			}
		}
		for _, pg := range f.Pages[:pages] {
			if r > 0 && pg.Space != PeerScratch {
				pg.Name = onRank(pg.Name, r)
				f.Pages = append(f.Pages, pg)
			}
		}
	}
	for k := range f.Buffers[:buffers] {
		if f.Buffers[k].Shares() {
			f.Buffers[k] = f.Buffers[k].OfRank(0)
		}
	}
}

// An Origin is what a buffer of the unrolled form is: a member of the buffers of its program, on a rank.
type Origin struct {
	Member Member
	Rank   int
}

// BufferOrigins lists those of the buffers of a program's unrolled form, in their order.
func BufferOrigins(p *Program) []Origin {
	members := BufferDirectory(p).Members()
	out := make([]Origin, 0, len(members))
	for r := range p.NumRanks() {
		for _, m := range members {
			if r == 0 || !p.Buffers[m.Declared].sameOnRanks() {
				out = append(out, Origin{m, r})
			}
		}
	}
	return out
}

// renamed is the name that a rank has for something, which nothing else may have.
func (u *unroller) renamed(what string, all *Directory, name string, rank int) string {
	name = onRank(name, rank)
	if _, taken := all.Find(name, 0); taken {
		u.fail(CodeName, what+" "+name, "has the name that rank %d has for its own, want another", rank)
	}
	return name
}

// rankMembers are the indices of the members of a program's directories in the unrolled form, for one rank.
type rankMembers struct{ buffers, counters []int }

// buffersOf returns the numbers that members have on a rank; -1 is that of a temporary.
func (u *unroller) buffersOf(rank int, members []int) []int {
	out := slices.Clone(members)
	for i, m := range members {
		if m >= 0 {
			out[i] = u.ofRank[rank].buffers[m]
		}
	}
	return out
}

// taskOf returns a task of the first rank, without its ops, as a rank has it.
func (u *unroller) taskOf(rank int, t Task) Task {
	counters := u.ofRank[rank].counters
	t.Waits = slices.Clone(t.Waits)
	for i := range t.Waits {
		t.Waits[i].Counter = counters[t.Waits[i].Counter]
	}
	if t.Signal >= 0 {
		t.Signal = counters[t.Signal]
	}
	return t
}

// opsOnRank returns ops with the symbol rank replaced.
func opsOnRank(ops []Op, rank int) []Op {
	n := Int(rank)
	views := func(list []Operand) []Operand {
		list = slices.Clone(list)
		for i := range list {
			list[i].Dims = slices.Clone(list[i].Dims)
			for d := range list[i].Dims {
				r := &list[i].Dims[d]
				r.Lo, r.Hi, r.Part = r.Lo.With(OnRank, n), r.Hi.With(OnRank, n), r.Part.With(OnRank, n)
			}
		}
		return list
	}
	ops = slices.Clone(ops)
	for k := range ops {
		o := &ops[k]
		o.Out, o.In, o.Params = views(o.Out), views(o.In), slices.Clone(o.Params)
		for i := range o.Params {
			o.Params[i].Int = o.Params[i].Int.With(OnRank, n)
		}
	}
	return ops
}

// RankOf returns the rank of an SM.
func (f *Flat) RankOf(sm int) int { return sm / max(1, f.SMs/max(1, f.Ranks)) }

// Copies returns how many copies of a buffer's words there are in all: those of its layout, on every rank if it is one
// that ranks push to. A task stores to all of them.
func (f *Flat) Copies(b *Buffer) int {
	if b.Space == PeerScratch {
		return max(1, f.Ranks) * max(1, b.Layout.Copies)
	}
	return max(1, b.Layout.Copies)
}

// Copy returns the copy of a buffer's words that an SM loads: that of its number modulo their number, of its own rank.
func (f *Flat) Copy(b *Buffer, sm int) int {
	n := max(1, b.Layout.Copies)
	perRank := max(1, f.SMs/max(1, f.Ranks))
	if b.Space == PeerScratch {
		return sm/perRank*n + sm%perRank%n
	}
	return sm % perRank % n
}
