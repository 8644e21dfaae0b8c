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
	written elementSet
	polled  []elementSet
	last    [][8]int // view that was added to each: most SMs poll the same one
}

// everywhere reports whether every element that is written is polled in each copy.
func (c *copyPolls) everywhere() bool {
	for _, polled := range c.polled {
		if !c.written.within(polled) {
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
			}
			dims, fixed := fixedDims(a.Dims)
			switch k := task.SM % copies; {
			case a.Write:
				if !fixed {
					dims = wholeDims(b.Shape)
				}
				polls.written.add(dims, b.Shape)
			case fixed && dims != polls.last[k]:
				polls.last[k] = dims
				polls.polled[k].add(dims, b.Shape)
			}
		}
	}
	return out
}

// wholeDims are the bounds of a view of all elements.
func wholeDims(shape []int) (out [8]int) {
	for i := range 4 {
		out[2*i+1] = 1
		if i < len(shape) {
			out[2*i+1] = shape[i]
		}
	}
	return out
}

// elementSet is a set of elements of a buffer, a bit each in row-major order.
type elementSet []uint64

// add adds those of a view with fixed bounds.
func (s *elementSet) add(dims [8]int, shape []int) {
	extent := [4]int{1, 1, 1, 1}
	copy(extent[:], shape)
	for i := dims[0]; i < dims[1]; i++ {
		for j := dims[2]; j < dims[3]; j++ {
			for k := dims[4]; k < dims[5]; k++ {
				at := ((i*extent[1]+j)*extent[2] + k) * extent[3]
				s.addRange(at+dims[6], at+dims[7])
			}
		}
	}
}

func (s *elementSet) addRange(lo, hi int) {
	for need := (hi + 63) / 64; len(*s) < need; {
		*s = append(*s, 0)
	}
	for lo < hi {
		end := min(hi, (lo/64+1)*64)
		(*s)[lo/64] |= ^uint64(0) >> (64 - (end - lo)) << (lo % 64)
		lo = end
	}
}

// within reports whether all elements of s are in t.
func (s elementSet) within(t elementSet) bool {
	for i, w := range s {
		if i >= len(t) && w != 0 || i < len(t) && w&^t[i] != 0 {
			return false
		}
	}
	return true
}
