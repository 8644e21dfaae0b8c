package validate

import (
	"sync"

	"amkc/ir"
	"amkc/validate/views"
)

// Proof is one Flat under validation, and the facts that the rules have derived from it so far. The rules of a contract
// use its exported methods only, and must not retain it after their call.
type Proof struct {
	flat      *ir.Flat
	backend   Backend
	contract  Contract // of the backend; nil: it demands nothing more
	positions views.Positions
	findings
	work  work
	stats Stats

	// What the rules derive, in order, each with the file that owns it.
	names    names         // structure.go
	peers    peers         // peers.go
	bodies   bodies        // bodies.go
	ops      opCheck       // operands.go
	index    indices       // indices.go
	mem      memoryMap     // locations.go
	counters counterTasks  // counters.go
	schedule schedule      // deadlock.go
	segments segmentation  // segments.go
	symbolic symbolicViews // symbolic.go
	words    exchangeWords // single_write.go
	clock    clocks        // order.go
	sweep    sweep         // memory.go
	related  reachability  // reachability.go
}

// prove runs the rules. A group of rules that fails ends the proof: later groups would report its consequences.
func prove(f *ir.Flat, b Backend, w without) *Proof {
	p := newProof(f, b, w)
	if f == nil {
		p.Errorf(CodeStructure, "", "there is no program")
		return p
	}
	p.stats = Stats{Variants: 1, Tasks: len(f.Tasks), Counters: len(f.Counters)}
	for _, group := range [][]func(*Proof){
		{(*Proof).checkStructure, (*Proof).checkTarget, (*Proof).findPeers},
		{(*Proof).checkBackend, (*Proof).checkParameters},
		{(*Proof).checkBuffers, (*Proof).checkPages},
		{(*Proof).checkOperands},
		{(*Proof).findLocations, (*Proof).checkAliases, (*Proof).checkPeers},
		{(*Proof).checkCounters, (*Proof).checkEpochs},
		{(*Proof).checkDeadlock},
		{(*Proof).makeSegments},
		{(*Proof).checkSingleWrites},
		{(*Proof).checkMemory},
		{(*Proof).checkPositions, (*Proof).checkOutputs, (*Proof).checkCapacity, (*Proof).checkReads,
			(*Proof).checkIndices, (*Proof).checkStates},
	} {
		for _, rule := range group {
			rule(p)
		}
		if !p.sound() {
			break
		}
	}
	return p
}

// proofs keeps the memory of finished proofs for the next ones: a search proves a hundred thousand small schedules a
// second, and would spend most of that time in the allocator. Every rule sizes what it uses when it begins, and clears
// what it does not overwrite. Reports share no memory with a proof but the diagnostics, which are never reused.
var proofs = sync.Pool{New: func() any { return new(Proof) }}

// maxKept bounds the programs whose proofs are kept, in tasks, so that one giant does not stay in memory.
const maxKept = 1 << 16

func newProof(f *ir.Flat, b Backend, w without) *Proof {
	p := proofs.Get().(*Proof)
	p.flat, p.backend, p.findings = f, b, findings{without: w}
	p.stats, p.work = Stats{}, work{}
	p.related.of, p.related.hints = 0, 0
	p.index.carry, p.index.choices, p.ops.declared = p.index.carry[:0], p.index.choices[:0], nil
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
	p.flat, p.diags, p.index.table, p.contract, p.ops.moving = nil, nil, nil, nil, ir.Expr{}
	clear(p.bodies.roots)
	proofs.Put(p)
}

// manySegments is the number of segments from which memory is not kept while other variants are proved.
const manySegments = 1 << 18

// shed lets go of what a proof has to say of memory, if it is much: what is left says how tasks and views are related.
func (p *Proof) shed() {
	if len(p.segments.all) < manySegments {
		return
	}
	p.segments, p.mem.expanders = segmentation{}, [2]expander{}
	for i := range p.mem.locs {
		l := &p.mem.locs[i]
		l.segs, l.bounds, l.boundaries = nil, nil, boundaries{}
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
