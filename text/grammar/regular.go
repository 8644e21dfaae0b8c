package grammar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A runeRange is a range of characters, both ends included.
type runeRange struct{ lo, hi rune }

// anyRune are all characters that a text in UTF-8 has.
var anyRune = []runeRange{{0, 0xD7FF}, {0xE000, 0x10FFFF}}

// normal returns ranges in their order, which do not touch, without what no text has.
func normal(ranges []runeRange) (all []runeRange) {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b runeRange) int { return int(a.lo - b.lo) })
	for _, r := range ranges {
		for _, of := range anyRune {
			lo, hi := max(r.lo, of.lo), min(r.hi, of.hi)
			switch last := len(all) - 1; {
			case lo > hi:
			case last >= 0 && lo <= all[last].hi+1:
				all[last].hi = max(all[last].hi, hi)
			default:
				all = append(all, runeRange{lo, hi})
			}
		}
	}
	return all
}

// complement are the characters that are not in some ranges.
func complement(ranges []runeRange) []runeRange {
	var all []runeRange
	next := rune(0)
	for _, r := range normal(ranges) {
		all = append(all, runeRange{next, r.lo - 1})
		next = r.hi + 1
	}
	return normal(append(all, runeRange{next, math.MaxInt32}))
}

// A languages holds regular languages over characters, as expressions with complements and intersections, each of them
// once. The derivative of an expression by a character is the expression of what follows it, so that expressions are
// the states of an automaton (Brzozowski).
type languages struct {
	classes [][]runeRange // of characters that no expression tells apart
	nodes   []language
	ids     map[string]int32
	derived map[[2]int32]int32
	all     int32 // of all texts
	fuel    *int  // how much may still be made
}

type language struct {
	kind  languageKind
	of    []int32
	set   []uint64 // of classes
	least int32
	most  int32 // -1: any number
	empty bool  // the empty text is one of it
}

type languageKind byte

const (
	langNone     languageKind = iota // no text
	langEmpty                        // the empty text
	langSet                          // one character
	langThen                         // of[0], and then of[1]
	langOr                           // any of several
	langAnd                          // all of several
	langNot                          // any text but those of[0]
	langRepeated                     // of[0], least to most times
)

// Limits of one pattern, and of all those of a schema together.
const (
	maxStates  = 10_000
	maxRepeats = 10_000
	maxFuel    = 4_000_000
)

var errStates = fmt.Errorf("takes more than %d states of an automaton, or too long to make one; want a pattern that "+
	"repeats less, or no length alongside it", maxStates)

// newLanguages tells apart the characters of some sets. Who makes much of them finds no fuel left.
func newLanguages(sets [][]runeRange, fuel *int) *languages {
	edges := []rune{0, 0xD800, 0xE000}
	slices.SortFunc(sets, func(a, b []runeRange) int {
		return slices.CompareFunc(a, b, func(a, b runeRange) int { return cmp.Or(int(a.lo-b.lo), int(a.hi-b.hi)) })
	})
	sets = slices.CompactFunc(sets, slices.Equal)
	for _, set := range sets {
		for _, r := range set {
			edges = append(edges, r.lo, r.hi+1)
		}
	}
	slices.Sort(edges)
	edges = append(slices.Compact(edges), 0x110000)
	l := &languages{ids: map[string]int32{}, derived: map[[2]int32]int32{}, fuel: fuel}
	if *fuel -= len(edges) * len(sets) / 8; *fuel < 0 {
		edges = edges[:2]
	}
	class := map[string]int{}
	for i := range len(edges) - 1 {
		lo, hi := edges[i], edges[i+1]-1
		if lo >= 0x110000 || normal([]runeRange{{lo, hi}}) == nil {
			continue
		}
		var key []byte // which sets it is in
		for n, set := range sets {
			if contains(set, lo) {
				key = binary.AppendUvarint(key, uint64(n))
			}
		}
		n, there := class[string(key)]
		if !there {
			n = len(l.classes)
			class[string(key)] = n
			l.classes = append(l.classes, nil)
		}
		l.classes[n] = append(l.classes[n], runeRange{lo, hi})
	}
	l.nodes = []language{{kind: langNone}, {kind: langEmpty, empty: true}}
	l.all = l.repeated(l.one(anyRune), 0, -1)
	return l
}

// contains reports whether a character is in some ranges, which are in their order.
func contains(set []runeRange, r rune) bool {
	n, found := slices.BinarySearchFunc(set, r, func(of runeRange, r rune) int { return cmp.Compare(of.lo, r) })
	return found || n > 0 && r <= set[n-1].hi
}

// none and nothing are the first nodes.
const (
	none    int32 = iota // no text
	nothing              // the empty text
)

// node returns a language, which is made if it is new.
func (l *languages) node(n language) int32 {
	key := []byte{byte(n.kind)}
	key = binary.AppendVarint(binary.AppendVarint(key, int64(n.least)), int64(n.most))
	for _, of := range n.of {
		key = binary.AppendUvarint(key, uint64(of))
	}
	for _, word := range n.set {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	if *l.fuel -= 1 + len(key)/8; *l.fuel < 0 {
		return none
	}
	if id, there := l.ids[string(key)]; there {
		return id
	}
	nullable := func(id int32) bool { return l.nodes[id].empty }
	switch n.kind {
	case langThen, langAnd:
		n.empty = !slices.ContainsFunc(n.of, func(id int32) bool { return !nullable(id) })
	case langOr:
		n.empty = slices.ContainsFunc(n.of, nullable)
	case langNot:
		n.empty = !nullable(n.of[0])
	case langRepeated:
		n.empty = n.least == 0 || nullable(n.of[0])
	}
	id := int32(len(l.nodes))
	l.nodes = append(l.nodes, n)
	l.ids[string(key)] = id
	return id
}

// one is a character of some ranges.
func (l *languages) one(ranges []runeRange) int32 {
	set := make([]uint64, (len(l.classes)+63)/64)
	*l.fuel -= len(l.classes) / 8
	for i, class := range l.classes {
		if contains(ranges, class[0].lo) {
			set[i/64] |= 1 << (i % 64)
		}
	}
	return l.set(set)
}

func (l *languages) set(set []uint64) int32 {
	if !slices.ContainsFunc(set, func(word uint64) bool { return word != 0 }) {
		return none
	}
	return l.node(language{kind: langSet, set: set})
}

func (l *languages) then(a, b int32) int32 {
	switch {
	case a == none || b == none:
		return none
	case a == nothing:
		return b
	case b == nothing:
		return a
	}
	if n := l.nodes[a]; n.kind == langThen {
		return l.then(n.of[0], l.then(n.of[1], b))
	}
	return l.node(language{kind: langThen, of: []int32{a, b}})
}

func (l *languages) not(a int32) int32 {
	switch n := l.nodes[a]; {
	case n.kind == langNot:
		return n.of[0]
	case a == none:
		return l.all
	case a == l.all:
		return none
	}
	return l.node(language{kind: langNot, of: []int32{a}})
}

// or and and flatten, sort and merge what they are of: that keeps the number of derivatives finite.
func (l *languages) or(of ...int32) int32  { return l.merged(langOr, none, l.all, of) }
func (l *languages) and(of ...int32) int32 { return l.merged(langAnd, l.all, none, of) }

func (l *languages) merged(kind languageKind, neutral, absorbing int32, of []int32) int32 {
	var flat []int32
	var set []uint64 // of characters, which are one in a union
	for _, id := range of {
		n := &l.nodes[id]
		parts := []int32{id}
		if n.kind == kind {
			parts = n.of
		}
		for _, part := range parts {
			p := &l.nodes[part]
			switch {
			case part == absorbing:
				return absorbing
			case part == neutral:
			case kind == langOr && p.kind == langSet:
				if set == nil {
					set = make([]uint64, len(p.set))
				}
				for i, word := range p.set {
					set[i] |= word
				}
			default:
				flat = append(flat, part)
			}
		}
	}
	if set != nil {
		flat = append(flat, l.set(set))
	}
	slices.Sort(flat)
	flat = slices.Compact(flat)
	switch len(flat) {
	case 0:
		return neutral
	case 1:
		return flat[0]
	}
	return l.node(language{kind: kind, of: flat})
}

func (l *languages) repeated(a int32, least, most int32) int32 {
	if a == none && least > 0 {
		return none
	}
	if a <= nothing || most == 0 {
		return nothing
	}
	n := l.nodes[a]
	if n.empty {
		least = 0
	}
	switch {
	case least == 1 && most == 1:
		return a
	case n.kind == langRepeated && n.least == 0 && n.most < 0 && least == 0:
		return a
	}
	return l.node(language{kind: langRepeated, of: []int32{a}, least: least, most: most})
}

// after is what follows a character of a class in the texts of a language.
func (l *languages) after(a int32, class int) int32 {
	key := [2]int32{a, int32(class)}
	if id, there := l.derived[key]; there {
		return id
	}
	if *l.fuel -= 1; *l.fuel < 0 {
		return none
	}
	n := l.nodes[a]
	var id int32
	switch n.kind {
	case langSet:
		if n.set[class/64]>>(class%64)&1 != 0 {
			id = nothing
		}
	case langThen:
		id = l.then(l.after(n.of[0], class), n.of[1])
		if l.nodes[n.of[0]].empty {
			id = l.or(id, l.after(n.of[1], class))
		}
	case langOr, langAnd:
		*l.fuel -= 2 * len(n.of)
		parts := make([]int32, len(n.of))
		for i, of := range n.of {
			parts[i] = l.after(of, class)
		}
		if id = l.or(parts...); n.kind == langAnd {
			id = l.and(parts...)
		}
	case langNot:
		id = l.not(l.after(n.of[0], class))
	case langRepeated:
		most := n.most
		if most > 0 {
			most--
		}
		id = l.then(l.after(n.of[0], class), l.repeated(n.of[0], max(n.least-1, 0), most))
	}
	l.derived[key] = id
	return id
}

// An automaton is a deterministic one, which begins in state 0. A text can be ended from every state of it.
type automaton struct {
	classes  [][]runeRange
	next     [][]int32 // state and class to a state; -1: none
	ends     []bool    // the text may end
	all      []bool    // any text may follow
	shortest []int32   // of the texts that follow
	longest  int32     // of all texts; -1: there is none
}

// errNoText says that a language has no text.
var errNoText = errors.New("has no text")

// automaton makes the one of a language.
func (l *languages) automaton(of int32) (*automaton, error) {
	a := &automaton{classes: l.classes}
	if *l.fuel < 0 {
		return nil, errStates
	}
	states, ids := []int32{of}, map[int32]int32{of: 0}
	for i := 0; i < len(states); i++ {
		row := make([]int32, len(l.classes))
		for class := range row {
			to := l.after(states[i], class)
			if to == none {
				row[class] = -1
				continue
			}
			id, there := ids[to]
			if !there {
				id = int32(len(states))
				ids[to] = id
				states = append(states, to)
			}
			row[class] = id
		}
		if *l.fuel < 0 || len(states) > maxStates {
			return nil, errStates
		}
		*l.fuel -= len(row)
		a.next = append(a.next, row)
	}
	for _, s := range states {
		a.ends = append(a.ends, l.nodes[s].empty)
		a.all = append(a.all, s == l.all)
	}
	return a.trimmed()
}

// trimmed takes out what leads to no end, and makes states one that nothing tells apart, as far as that is seen by what
// they lead to.
func (a *automaton) trimmed() (*automaton, error) {
	a.measure()
	if a.shortest[0] < 0 {
		return nil, errNoText
	}
	same := make([]int32, len(a.next)) // the state that stands for one
	for i := range same {
		same[i] = int32(i)
	}
	for changed, rounds := true, 0; changed && rounds < 16; rounds++ {
		changed = false
		seen := map[string]int32{}
		for i := len(a.next) - 1; i >= 0; i-- {
			if same[i] != int32(i) || a.shortest[i] < 0 {
				continue
			}
			key := []byte{0}
			if a.ends[i] {
				key[0] = 1
			}
			for _, to := range a.next[i] {
				switch {
				case to < 0 || a.shortest[to] < 0:
					to = -1
				case same[to] == int32(i):
					to = -2 // itself
				default:
					to = same[to]
				}
				key = binary.AppendVarint(key, int64(to))
			}
			if other, there := seen[string(key)]; there {
				same[i], changed = other, true
				continue
			}
			seen[string(key)] = int32(i)
		}
		for i := range same {
			for same[same[i]] != same[i] {
				same[i] = same[same[i]]
			}
		}
	}
	out := &automaton{classes: a.classes}
	number := map[int32]int32{}
	order := []int32{}
	add := func(s int32) int32 {
		s = same[s]
		if _, there := number[s]; !there {
			number[s] = int32(len(order))
			order = append(order, s)
		}
		return number[s]
	}
	add(0)
	for i := 0; i < len(order); i++ {
		row := make([]int32, len(a.classes))
		for class, to := range a.next[order[i]] {
			if row[class] = -1; to >= 0 && a.shortest[to] >= 0 {
				row[class] = add(to)
			}
		}
		out.next = append(out.next, row)
		out.ends = append(out.ends, a.ends[order[i]])
		out.all = append(out.all, a.all[order[i]])
	}
	out.measure()
	out.longest = out.depth()
	return out, nil
}

// measure finds the lengths of the shortest texts that follow; -1: none does.
func (a *automaton) measure() {
	a.shortest = make([]int32, len(a.next))
	into := make([][]int32, len(a.next))
	var queue []int32
	for i, row := range a.next {
		if a.shortest[i] = -1; a.ends[i] {
			a.shortest[i] = 0
			queue = append(queue, int32(i))
		}
		seen := map[int32]bool{}
		for _, to := range row {
			if to >= 0 && !seen[to] {
				seen[to] = true
				into[to] = append(into[to], int32(i))
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, from := range into[queue[0]] {
			if a.shortest[from] < 0 {
				a.shortest[from] = a.shortest[queue[0]] + 1
				queue = append(queue, from)
			}
		}
	}
}

// depth is the length of the longest text; -1: there is none.
func (a *automaton) depth() int32 {
	missing := make([]int, len(a.next)) // ways into a state that have not been followed
	for _, row := range a.next {
		for _, to := range row {
			if to >= 0 {
				missing[to]++
			}
		}
	}
	if missing[0] > 0 {
		return -1
	}
	far := make([]int32, len(a.next))
	longest, done := int32(0), 0
	for queue := []int32{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		done++
		longest = max(longest, far[at])
		for _, to := range a.next[at] {
			if to < 0 {
				continue
			}
			far[to] = max(far[to], far[at]+1)
			if missing[to]--; missing[to] == 0 {
				queue = append(queue, to)
			}
		}
	}
	if done < len(a.next) { // the others are in a loop
		return -1
	}
	return longest
}

// reads reports whether a text is one of the automaton's.
func (a *automaton) reads(text string) bool {
	at := int32(0)
	for _, r := range text {
		class := slices.IndexFunc(a.classes, func(of []runeRange) bool { return contains(of, r) })
		if class < 0 || a.next[at][class] < 0 {
			return false
		}
		at = a.next[at][class]
	}
	return a.ends[at]
}
