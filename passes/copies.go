package passes

import (
	"slices"

	"amkc/ir"
)

// Several copies of an exchanged vector spread its readers over memory. An SM polls one of them, so that a poll says
// nothing of the others: a copy of a word that nobody polls may not be overwritten within a step (validate, AMK3135),
// and storing it costs time. So an exchange keeps its copies only if some task polls every word of each, in every
// variant that writes it; otherwise it is narrow and has one. An example is qkv of few kv heads, whose words have one
// reader each.

// keepPolledCopies finds the narrow exchanges of a program, by the name of their buffer or family, and gives each one
// copy. Flats are the variants of p. With one copy an exchange is narrow if it would be with two, so that one and two
// copies have the same exchanges on a page.
func keepPolledCopies(p *ir.Program, flats []*ir.Flat) (narrow map[string]bool) {
	narrow = map[string]bool{}
	families := slices.DeleteFunc(exchangeFamilies(p), func(f exchangeFamily) bool {
		return f.runs[0].DType != p.Model.Activations // shares of a context and best values have one copy anyway
	})
	for _, flat := range flats {
		polled := pollsOf(flat, p.Model.Activations)
		for _, f := range families {
			for _, member := range f.members {
				if !polled[member].everywhere() {
					narrow[f.runs[0].Name] = true
				}
			}
		}
	}
	for _, f := range families {
		for _, b := range f.runs {
			if narrow[b.Name] {
				b.Layout.Copies = min(b.Layout.Copies, 1)
			}
		}
	}
	return narrow
}

// copyPolls are the elements of a vector that tasks of one variant write, and those that they poll in each copy.
type copyPolls struct {
	elements int // of the vector
	written  elementSet
	polled   []elementSet
	last     [][8]int // view that was added to each: most SMs poll the same one
}

// everywhere reports whether every element that is written is polled in each copy.
func (c *copyPolls) everywhere() bool {
	for k := range c.polled {
		if !c.written.within(&c.polled[k], c.elements) {
			return false
		}
	}
	return true
}

// pollsOf returns what tasks do with each buffer of words of a type. Views that change with the position count for
// nothing.
func pollsOf(flat *ir.Flat, of ir.DType) []copyPolls {
	out := make([]copyPolls, len(flat.Buffers))
	var accesses []ir.Access
	for t := range flat.Tasks {
		task := &flat.Tasks[t]
		accesses = task.Footprint(accesses[:0])
		for i := range accesses {
			a := &accesses[i]
			b := &flat.Buffers[a.Buf]
			if !b.Layout.Words() || b.DType != of || task.SM < 0 {
				continue
			}
			polls, copies := &out[a.Buf], max(2, b.Layout.Copies)
			if polls.polled == nil {
				polls.polled, polls.last = make([]elementSet, copies), make([][8]int, copies)
				polls.elements = b.Numel()
			}
			dims, fixed := fixedDims(a.Dims)
			switch k := task.SM % copies; {
			case a.Write && !fixed:
				polls.written.addWhole()
			case a.Write:
				polls.written.add(dims, b.Shape)
			case fixed && dims != polls.last[k]:
				polls.last[k] = dims
				polls.polled[k].add(dims, b.Shape)
			}
		}
	}
	return out
}

// elementSet is a set of elements of a buffer.
type elementSet struct {
	whole bool     // all elements; then bits says nothing
	bits  []uint64 // one of each element, in row-major order
}

// addWhole adds all elements.
func (s *elementSet) addWhole() { s.whole, s.bits = true, nil }

// add adds those of a view with fixed bounds.
func (s *elementSet) add(dims [8]int, shape []int) {
	if s.whole {
		return
	}
	extent, whole := [4]int{1, 1, 1, 1}, true
	copy(extent[:], shape)
	for i, n := range extent {
		dims[2*i], dims[2*i+1] = max(0, dims[2*i]), min(dims[2*i+1], n)
		whole = whole && dims[2*i] == 0 && dims[2*i+1] == n
	}
	if whole {
		s.addWhole()
		return
	}
	if s.bits == nil {
		s.bits = make([]uint64, (extent[0]*extent[1]*extent[2]*extent[3]+63)/64)
	}
	// The last dimensions that the view has as a whole are one range with the one before them.
	last, row := len(extent)-1, 1
	for ; dims[2*last] == 0 && dims[2*last+1] == extent[last]; last-- {
		row *= extent[last]
	}
	var rows func(d, at int)
	rows = func(d, at int) {
		at *= extent[d]
		if d == last {
			s.addRange((at+dims[2*d])*row, (at+dims[2*d+1])*row)
			return
		}
		for i := dims[2*d]; i < dims[2*d+1]; i++ {
			rows(d+1, at+i)
		}
	}
	rows(0, 0)
}

func (s *elementSet) addRange(lo, hi int) {
	for lo < hi {
		end := min(hi, (lo/64+1)*64)
		s.bits[lo/64] |= ^uint64(0) >> (64 - (end - lo)) << (lo % 64)
		lo = end
	}
}

// within reports whether all elements of s are in t, of n.
func (s *elementSet) within(t *elementSet, n int) bool {
	for i := range (n + 63) / 64 {
		if s.word(i, n)&^t.word(i, n) != 0 {
			return false
		}
	}
	return true
}

// word is the i-th word of the set's bits, of n elements.
func (s *elementSet) word(i, n int) uint64 {
	switch {
	case s.whole:
		return ^uint64(0) >> (64 - min(64, n-64*i))
	case s.bits == nil:
		return 0
	}
	return s.bits[i]
}
