package ir

import "math"

// Placement is where a member of a buffer family lies in an arena: one allocation that holds many buffers.
type Placement struct {
	Name   string // resolved
	Buffer int    // index into Program.Buffers
	Index  int    // member of the family, 0 for a plain buffer
	Offset int    // bytes from the start of the arena
	Bytes  int    // what the layout needs, padding to ArenaAlign not counted
}

// ArenaAlign is the alignment of every buffer in an arena, in bytes.
const ArenaAlign = 256

// WeightArena places the WEIGHT and CONST buffers: families first, member by member, so that a layer's tensors lie side
// by side at a constant stride, then the plain buffers, both in program order. It is the data section of
// weights.safetensors, and does not depend on the schedule: neither on the target nor on the configuration.
func WeightArena(p *Program) (places []Placement, size int) {
	return arena(p, func(b *Buffer) bool { return b.Kind == Weight || b.Kind == Const })
}

// CacheArena places the KV_CACHE buffers the same way.
func CacheArena(p *Program) (places []Placement, size int) {
	return arena(p, func(b *Buffer) bool { return b.Kind == KVCache })
}

func arena(p *Program, in func(*Buffer) bool) (places []Placement, size int) {
	place := func(k, i int) {
		b := &p.Buffers[k]
		name, err := Resolve(b.Name, i)
		if err != nil { // ir.Check has refused such a name before anything is placed
			return
		}
		places = append(places, Placement{Name: name, Buffer: k, Index: i, Offset: size, Bytes: b.Bytes()})
		size += roundUp(b.Bytes(), ArenaAlign)
	}
	first, last := familyRange(p, in)
	for i := first; i < last; i++ {
		for k := range p.Buffers {
			if b := &p.Buffers[k]; in(b) && b.Count > 0 && i >= b.First && i < b.First+b.Count {
				place(k, i)
			}
		}
	}
	for k := range p.Buffers {
		if b := &p.Buffers[k]; in(b) && b.Count == 0 {
			place(k, 0)
		}
	}
	return places, size
}

// familyRange returns the smallest range of indices that covers every family.
func familyRange(p *Program, in func(*Buffer) bool) (first, last int) {
	first = math.MaxInt
	for k := range p.Buffers {
		if b := &p.Buffers[k]; in(b) && b.Count > 0 {
			first, last = min(first, b.First), max(last, b.First+b.Count)
		}
	}
	return first, last
}
