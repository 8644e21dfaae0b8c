package loops

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// A naming says which names are members of families, and with that what every name is called from now on.
type naming struct {
	family map[string]*series // by member
	index  map[string]int     // of a member
}

// families chooses those of a namer's series that become families: of buffers or counters, as fits says. Series of
// one role are joined where that gives a family too. The indices of a series need not be evenly spaced; of a family
// they must be, so that a series may be several of them under one name.
func (n *namer) families(fits func(*series) bool, taken map[string]bool) *naming {
	f := &naming{family: map[string]*series{}, index: map[string]int{}}
	byRole := map[string][]*series{}
	all := slices.DeleteFunc(n.series(), func(s *series) bool { return s.torn || !fits(s) })
	for _, s := range all {
		if s.role != "" {
			byRole[s.role] = append(byRole[s.role], s)
		}
	}
	for _, s := range all {
		same := byRole[s.role]
		if len(same) > 1 {
			if one := join(same); one != nil && fits(one) {
				if s != same[0] {
					continue
				}
				s = one
			}
		}
		if s.name = ir.NameIn(ir.Layer{Known: true, Index: true}, s.role); s.role == "" {
			s.name = fresh(stem(s.names[0]), s.names, s.at, taken)
		}
		for _, piece := range s.segments() {
			for k, name := range piece.names {
				f.family[name], f.index[name] = piece, piece.at[k]
			}
		}
	}
	return f
}

// fresh returns the name of a new family: its members' names are free, or are those of the members, which lose them.
func fresh(stem string, own []string, at []int, taken map[string]bool) string {
	for n := 0; ; n++ {
		name := indexed(respelled(stem, n), 0, "")
		if !slices.ContainsFunc(at, func(i int) bool {
			n := resolved(name, i)
			return taken[n] &&
				!slices.Contains(own, n)
		}) {
			for _, n := range own {
				delete(taken, n)
			}
			for _, i := range at {
				taken[resolved(name, i)] = true
			}
			return name
		}
	}
}

// respelled is the n-th spelling of a stem, for when the ones before are taken. Names have a longest length, so that
// the spellings must not grow with their number.
func respelled(stem string, n int) string {
	if n > 2 {
		return fmt.Sprintf("%s_%d_", stem, n)
	}
	return stem + strings.Repeat("_", n)
}

// now is what a name is called from now on.
func (f *naming) now(name string) string {
	if s := f.family[name]; s != nil {
		return resolved(s.name, f.index[name])
	}
	return name
}

// relative is the name that stands for a member in an iteration with the given index.
func (f *naming) relative(name string, i int) string {
	s := f.family[name]
	prefix, suffix, _ := strings.Cut(s.name, "{i}")
	return indexed(prefix, f.index[name]-i, suffix)
}

// bufferFamily makes the buffers of a series one family, or reports false: some are not the program's to place, or they
// differ in more than their index.
func bufferFamily(s *series, buffers rewrite.Buffers) (ir.Buffer, bool) {
	first := buffers.Find(s.names[0], 0)
	if first == nil || first.Kind == ir.Input || first.Kind == ir.Output || s.step() == 0 {
		return ir.Buffer{}, false
	}
	members := make([]*ir.Buffer, len(s.names))
	for k, name := range s.names {
		b := buffers.Find(name, 0)
		if b == nil || b.Count > 0 || !alike(first, b) || len(b.Pieces) != len(first.Pieces) {
			return ir.Buffer{}, false
		}
		members[k] = b
	}
	f := *first
	f.Name, f.First, f.Count, f.Pieces = s.name, s.at[0], len(members), slices.Clone(first.Pieces)
	if f.Step = s.step(); f.Step == 1 {
		f.Step = 0
	}
	for q := range f.Pieces {
		keys := make([]string, len(members))
		for k, b := range members {
			if !b.Pieces[q].Chain.Equal(f.Pieces[q].Chain) {
				return ir.Buffer{}, false
			}
			keys[k] = b.Pieces[q].Key
		}
		key, ok := familyKeys(keys, s.at)
		if !ok {
			return ir.Buffer{}, false
		}
		f.Pieces[q].Key = key
	}
	return f, true
}

// familyKeys returns the state-dict key of a family: those of the members with the numbers replaced that go up with the
// index. In a family of one nothing does, and it is the number of the layer that is replaced.
func familyKeys(keys []string, at []int) (string, bool) {
	if len(keys) == 1 {
		return strings.Replace(keys[0], fmt.Sprintf(".layers.%d.", at[0]), ".layers.{i}.", 1), true
	}
	parts := make([][]string, len(keys))
	for k, key := range keys {
		if parts[k] = numbersApart(key); len(parts[k]) != len(parts[0]) {
			return "", false
		}
	}
	var out strings.Builder
	for t, part := range parts[0] {
		offset, changes := 0, false
		for k := range parts {
			changes = changes || parts[k][t] != part
		}
		if !changes {
			out.WriteString(part)
			continue
		}
		for k := range parts {
			n, err := strconv.Atoi(parts[k][t])
			if err != nil || strconv.Itoa(n) != parts[k][t] || k > 0 && n-at[k] != offset {
				return "", false
			}
			offset = n - at[k]
		}
		out.WriteString(indexed("", offset, ""))
	}
	return out.String(), true
}

// numbersApart cuts a key before and after every number.
func numbersApart(key string) []string {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	var parts []string
	start := 0
	for i := 1; i <= len(key); i++ {
		if i == len(key) || digit(key[i]) != digit(key[i-1]) {
			parts = append(parts, key[start:i])
			start = i
		}
	}
	return parts
}
