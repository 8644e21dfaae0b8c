package loops

import (
	"cmp"
	"slices"
)

// A namer finds out which names are members of one family. That a call names a in one iteration and the next names b
// in the same place says that the index of b is one step beyond that of a; what is connected by such statements is
// one family.
type namer struct {
	ids   map[string]int
	names []string
	up    []int // union-find: towards the representative
	beyond,
	anchor []int // index of a name less that of the name it points up to; index it was first seen with
	torn []bool // of a representative: the statements contradict each other
}

func newNamer() *namer { return &namer{ids: map[string]int{}} }

func (n *namer) id(name string, index int) int {
	id, known := n.ids[name]
	if !known {
		id = len(n.names)
		n.ids[name] = id
		n.names, n.up, n.beyond, n.anchor, n.torn = append(n.names, name), append(n.up, id), append(n.beyond, 0),
			append(n.anchor, index), append(n.torn, false)
	}
	return id
}

// find returns the representative of a name, and how far beyond it the name's index is.
func (n *namer) find(x int) (root, beyond int) {
	for n.up[x] != x {
		if next := n.up[x]; n.up[next] != next { // halve the path
			n.beyond[x] += n.beyond[next]
			n.up[x] = n.up[next]
		}
		beyond += n.beyond[x]
		x = n.up[x]
	}
	return x, beyond
}

// args states that the iterations of a loop name these one after another.
func (n *namer) args(args []string, x indexing) {
	first := n.id(args[0], x.first)
	for k, name := range args[1:] {
		a, atA := n.find(first)
		b, atB := n.find(n.id(name, x.at(k+1)))
		apart := (k+1)*x.step + atA - atB // index of b less that of a
		switch {
		case a != b && a < b:
			n.up[b], n.beyond[b], n.torn[a] = a, apart, n.torn[a] || n.torn[b]
		case a != b:
			n.up[a], n.beyond[a], n.torn[b] = b, -apart, n.torn[a] || n.torn[b]
		case apart != 0:
			n.torn[a] = true
		}
	}
}

// A series is the names of one family, by rising index. A torn one is not a series: a name has two indices, or an index
// has two names.
type series struct {
	names []string
	at    []int
	torn  bool
	role  string // of names that carry a layer, and that layer is the index
	name  string // of the family, with {i}
}

// step returns the distance of the indices if it is constant, and otherwise 0.
func (s *series) step() int {
	if len(s.at) < 2 {
		return 1
	}
	step := s.at[1] - s.at[0]
	for k := range s.at[1:] {
		if s.at[k+1]-s.at[k] != step {
			return 0
		}
	}
	return step
}

// segments cuts a series into pieces whose indices are evenly spaced, each as long as it can be from the left.
func (s *series) segments() []*series {
	var out []*series
	for from := 0; from < len(s.at); {
		to := min(from+2, len(s.at))
		for to < len(s.at) && s.at[to]-s.at[to-1] == s.at[from+1]-s.at[from] {
			to++
		}
		out = append(out, &series{names: s.names[from:to], at: s.at[from:to], role: s.role, name: s.name})
		from = to
	}
	return out
}

// series returns all families of names, each name in one, in the order in which their first names were met.
func (n *namer) series() []*series {
	byRoot := map[int]*series{}
	var all []*series
	for id := range n.names {
		root, _ := n.find(id)
		if byRoot[root] == nil {
			byRoot[root] = &series{torn: n.torn[root]}
			all = append(all, byRoot[root])
		}
		byRoot[root].names = append(byRoot[root].names, n.names[id])
	}
	for _, s := range all {
		n.order(s)
	}
	return all
}

// order gives the names of a series their indices: the layers that they carry, if these agree with what has been
// stated, or else such that the name met first keeps the index it was met with.
func (n *namer) order(s *series) {
	_, base := n.find(n.ids[s.names[0]])
	layer0, role := splitName(s.names[0])
	first, index := n.anchor[n.ids[s.names[0]]], map[string]int{}
	for _, name := range s.names {
		_, beyond := n.find(n.ids[name])
		index[name] = beyond - base
		if layer, r := splitName(name); layer < 0 || r != role || layer-layer0 != index[name] {
			role = ""
		}
		first = max(first, -index[name])
	}
	if s.role = role; role != "" {
		first = layer0
	}
	slices.SortFunc(s.names, func(a, b string) int { return cmp.Compare(index[a], index[b]) })
	for k, name := range s.names {
		s.at = append(s.at, first+index[name])
		s.torn = s.torn || k > 0 && s.at[k] == s.at[k-1]
	}
}

// join returns the series of one role that are one family alongside each other: layers may use the members of one in
// turns, and a loop over a single layer states nothing of the next. It returns nothing if they are not a family.
func join(list []*series) *series {
	one := &series{role: list[0].role}
	index := map[string]int{}
	for _, s := range list {
		for k, name := range s.names {
			index[name] = s.at[k]
		}
		one.names = append(one.names, s.names...)
	}
	slices.SortFunc(one.names, func(a, b string) int { return cmp.Compare(index[a], index[b]) })
	for _, name := range one.names {
		one.at = append(one.at, index[name])
	}
	if one.step() == 0 {
		return nil
	}
	return one
}
