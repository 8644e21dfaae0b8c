package ir

import (
	"cmp"
	"slices"
)

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

// arena places what ir.Check has passed: it lists every member of a family, and Check is what bounds their number.
func arena(p *Program, in func(*Buffer) bool) (places []Placement, size int) {
	place := func(k, i int) {
		b := &p.Buffers[k]
		name, err := Resolve(b.Name, i)
		if err != nil { // ir.Check has refused such a name before anything is placed
			return
		}
		places = append(places, Placement{Name: name, Buffer: k, Index: i, Bytes: b.Bytes()})
	}
	for k := range p.Buffers {
		if b := &p.Buffers[k]; in(b) {
			for i := range b.Count {
				place(k, b.First+i)
			}
		}
	}
	slices.SortStableFunc(places, func(a, b Placement) int { return cmp.Compare(a.Index, b.Index) })
	for k := range p.Buffers {
		if b := &p.Buffers[k]; in(b) && b.Count == 0 {
			place(k, 0)
		}
	}
	for i := range places {
		places[i].Offset = size
		size += roundUp(places[i].Bytes, ArenaAlign)
	}
	return places, size
}
