package ir

import "fmt"

// A chunk of the stream, which fills a slot of the ring, has a multiple of ChunkUnit bytes between these bounds.
const (
	MinChunk  = 4096
	MaxChunk  = 65536
	ChunkUnit = 2048
)

// IsChunk reports whether a chunk may have so many bytes; ChunkSizes says in words which may.
func IsChunk(bytes int) bool {
	return bytes >= MinChunk && bytes <= MaxChunk && bytes%ChunkUnit == 0
}

// ChunkSizes is what IsChunk accepts, for diagnostics.
var ChunkSizes = fmt.Sprintf("a multiple of %d from %d to %d", ChunkUnit, MinChunk, MaxChunk)

// Scratch is the shared memory of a thread block besides its ring, as far as it depends on the program: struct Scratch of
// runtime/cuda/amk/context.cuh. Passes choose by it what fits, codegen refuses by it what does not, and the cost model counts the
// ring's slots by it.
type Scratch struct {
	Rows       int // most rows of the residual that an SM owns
	HeadDim    int // of the rotation
	PaddedHead int // elements of a head, in whole blocks of 16
	WarpHeads  int // query heads whose results a warp keeps
	Unit       int // bytes: q of a group and a block of the cache, with tensor cores
	Vector     int // floats: activations, which stages without tensor cores keep
}

// ScratchOf returns the scratch of a model, with or without tensor cores, whose matrix stages have so many columns each.
func ScratchOf(m *Model, tensorCores bool, rows int, columns ...int) Scratch {
	group := m.Heads / max(1, m.KVHeads)
	s := Scratch{Rows: (rows + 7) / 8 * 8, HeadDim: m.HeadDim, PaddedHead: (m.HeadDim + 15) / 16 * 16, WarpHeads: group, Unit: 16}
	keeps := !tensorCores
	for _, n := range columns {
		s.Vector = max(s.Vector, (n+31)/32*32)
		keeps = keeps || n%4 != 0
	}
	s.Vector = max(s.Vector, (group+2)*m.HeadDim)
	if !keeps {
		s.Vector = 4
	}
	if tensorCores {
		s.WarpHeads, s.Unit = min(8, (group+1)/2*2), 2*group*(s.PaddedHead+16)+64*s.PaddedHead
	}
	return s
}

// Bytes is the size of the scratch beside a ring of at most so many slots, padding included.
func (s *Scratch) Bytes(slots int) int {
	const (
		warps    = 8
		partial  = 2 * warps * 8 * 32
		squares  = 2 * warps
		best     = 2 * warps
		words    = 8 + 2*4  // and four addresses
		paddings = 4*12 + 4 // at most, before the parts that are aligned to 16 or 8 bytes and at the end
	)
	attention := warps * s.WarpHeads * (s.PaddedHead + 2) // results, maximum and sum
	return 2*8*slots + paddings + s.Unit + 4*(partial+squares+s.Rows+s.HeadDim+best+attention+s.Vector+words)
}

// Slots is how many slots of so many bytes a ring has beside the scratch in so much shared memory; below 0 if even that does not fit.
func (s *Scratch) Slots(shared, slot int) int { return (shared - s.Bytes(shared/slot)) / slot }
