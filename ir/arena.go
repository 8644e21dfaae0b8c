package ir

// Placement is the location of a member of a buffer family in an arena, which is one allocation for many buffers.
type Placement struct {
	Name   string // resolved
	Buffer int    // index into Program.Buffers
	Index  int    // member of the family, 0 for a plain buffer
	Rank   int    // whose arena it is in
	Offset int    // bytes from the start of the arena, or of those of all ranks
	Bytes  int    // what the layout needs, padding to ArenaAlign not counted
}

// ArenaAlign is the alignment of every buffer in an arena, in bytes.
const ArenaAlign = 256

// WeightArena places the WEIGHT and CONST buffers. Families come first, in blocks: those with the same indices are
// interleaved in one block, member by member, so that the members that one iteration of a loop reads are adjacent and
// every family has a constant stride. Then come the plain buffers. Blocks, the families of a block and plain buffers
// are in program order. It depends on the loops of the schedule, and not on the target.
func WeightArena(p *Program) (places []Placement, size int) {
	return arena(p, func(b *Buffer) bool { return b.Kind == Weight || b.Kind == Const })
}

// PackedWeights places the weight arenas of all ranks, one after another: they are the data section of
// weights.safetensors.
func PackedWeights(p *Program) (places []Placement, size int) {
	arena, each := WeightArena(p)
	for rank := range p.NumRanks() {
		for _, pl := range arena {
			pl.Name, pl.Rank, pl.Offset = onRank(pl.Name, rank), rank, pl.Offset+rank*each
			places = append(places, pl)
		}
	}
	return places, each * p.NumRanks()
}

// CacheArena places what sequences have for themselves the same way: KV_CACHE buffers, and those of kind STATE.
func CacheArena(p *Program) (places []Placement, size int) {
	return arena(p, func(b *Buffer) bool { return b.Kind.OfSequences() })
}

// block is the indices that the families of a block have.
type block struct{ first, count, step int }

// arena places what ir.Check has passed: it lists every member of a family, and Check is what bounds their number.
func arena(p *Program, in func(*Buffer) bool) (places []Placement, size int) {
	place := func(buffer, i int) {
		b := &p.Buffers[buffer]
		name, err := Resolve(b.Name, i)
		if err != nil { // ir.Check has refused such a name before anything is placed
			return
		}
		places = append(places, Placement{Name: name, Buffer: buffer, Index: i, Offset: size, Bytes: b.Bytes()})
		size += roundUp(b.Bytes(), ArenaAlign)
	}
	var blocks []block
	families, plain := map[block][]int{}, []int(nil)
	for n := range p.Buffers {
		b := &p.Buffers[n]
		if !in(b) {
			continue
		}
		if b.Count == 0 {
			plain = append(plain, n)
			continue
		}
		key := block{b.First, b.Count, max(1, b.Step)}
		if families[key] == nil {
			blocks = append(blocks, key)
		}
		families[key] = append(families[key], n)
	}
	for _, key := range blocks {
		for k := range key.count {
			for _, n := range families[key] {
				place(n, p.Buffers[n].Index(k))
			}
		}
	}
	for _, n := range plain {
		place(n, 0)
	}
	return places, size
}
