package validate

import (
	"sync"

	"amkc/ir"
	"amkc/validate/views"
)

// proofs keeps the memory of finished proofs for the next ones: a search proves a hundred thousand small schedules a
// second, and would spend most of that time in the allocator. Every rule sizes what it uses when it begins, and clears
// what it does not overwrite. Reports share no memory with a proof but the diagnostics, which are never reused.
var proofs = sync.Pool{New: func() any { return new(Proof) }}

// maxKept bounds the programs whose proofs are kept, in tasks, so that one giant does not stay in memory.
const maxKept = 1 << 16

func newProof(f *ir.Flat, b Backend, w without) *Proof {
	p := proofs.Get().(*Proof)
	p.flat, p.backend, p.diags, p.errors, p.warnings = f, b, nil, 0, 0
	p.stats, p.work, p.hints, p.without = Stats{}, work{}, 0, w
	p.kinship.of = 0
	p.index.carry, p.index.choices = p.index.carry[:0], p.index.choices[:0]
	if p.contract, p.positions = nil, (views.Positions{}); f != nil {
		p.contract, p.positions = b.Contract(p), views.Positions{Lo: f.Lo, Hi: f.Hi}
	}
	return p
}

// release gives the memory of a proof back. Neither it nor its parts may be used after.
func (p *Proof) release() {
	if p.flat != nil && len(p.flat.Tasks) > maxKept {
		return
	}
	p.flat, p.diags, p.index.table, p.contract = nil, nil, nil, nil
	clear(p.bodies.roots)
	proofs.Put(p)
}

// manySegments is the number of segments from which memory is not kept while other variants are proved.
const manySegments = 1 << 18

// shed lets go of what a proof has to say of memory, if it is much: what is left says how tasks and views are related.
func (p *Proof) shed() {
	if len(p.segs) < manySegments {
		return
	}
	p.segs, p.bounds, p.spans, p.runs, p.x = nil, nil, nil, nil, [2]expander{}
	for i := range p.locs {
		l := &p.locs[i]
		l.segs, l.bounds, l.cuts = nil, nil, cuts{}
	}
}

// sized returns a slice of n zero elements, in the memory of s if that is enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
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
