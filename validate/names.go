package validate

import "hash/maphash"

// names is a set of names, each of which stands at an index of a list. It is kept from proof to proof, so that a small
// program costs no allocation, and holds no string, so that it keeps no program alive.
type names struct {
	slots []slot // open addressing, a power of two, at most half full
}

type slot struct {
	hash uint32
	at   int32 // index plus 1; 0 for none
}

// nameSeed differs from run to run: nobody can choose names that collide. No result depends on it.
var nameSeed = maphash.MakeSeed()

// reset empties the set and makes room for n names.
func (s *names) reset(n int) {
	size := 8
	for size < 2*n {
		size *= 2
	}
	s.slots = sized(s.slots, size)
}

// add enters a name at index i unless it is there already. It returns the index where it stands, i when it is new.
func (s *names) add(name string, i int, nameAt func(int) string) int {
	k, found := s.find(name, nameAt)
	if !found {
		s.slots[k] = slot{hashOf(name), int32(i) + 1}
	}
	return int(s.slots[k].at) - 1
}

// index returns where a name stands, or -1.
func (s *names) index(name string, nameAt func(int) string) int {
	if k, found := s.find(name, nameAt); found {
		return int(s.slots[k].at) - 1
	}
	return -1
}

func (s *names) find(name string, nameAt func(int) string) (k int, found bool) {
	hash, mask := hashOf(name), len(s.slots)-1
	for k = int(hash) & mask; s.slots[k].at > 0; k = (k + 1) & mask {
		if s.slots[k].hash == hash && nameAt(int(s.slots[k].at)-1) == name {
			return k, true
		}
	}
	return k, false
}

func hashOf(name string) uint32 { return uint32(maphash.String(nameSeed, name)) }

// checkNames: names of one kind of thing are not empty and unique.
func (p *Proof) checkNames(what string, n int, name func(int) string) {
	p.names.reset(n)
	fine := true
	for i := range n {
		s := name(i)
		if s == "" {
			p.Errorf(CodeStructure, "", "%s %d has no name", what, i)
			fine = false
			continue
		}
		fine = p.names.add(s, i, name) == i && fine
	}
	if fine || p.Full() {
		return
	}
	p.names.reset(n)
	for i := range n {
		if p.names.add(name(i), i, name) != i && !p.Full() {
			p.Errorf(CodeStructure, what+" "+name(i), "is defined twice; names are unique among %ss", what)
		}
	}
}
