package grammar

import (
	"math"
	"slices"
)

// A program is an automaton with a stack: rules, which call each other, of places with bytes between them.
type program struct {
	places []place
	rules  []int32   // where each begins
	counts []counter // of the places that count
}

// A counter says how many characters a string may have, whose places count them.
type counter struct {
	least, most int32 // most is -1 where there is no bound
	ahead       int32 // from any of its places the string may end within n characters
}

// Numbers of characters that are far from the bounds that tokens might reach: what may follow is the same after all of
// them.
const (
	farAbove int32 = -1 // the least, and no bound is ahead
	farBelow int32 = -2 // too few for the string to end, and no bound is ahead
)

// class is a number that what may follow is the same after as after n characters: while both bounds are farther away
// than any token reaches, n makes no difference.
func (c *counter) class(n int32, longest int32) int32 {
	switch far := c.most < 0 || c.most-n-c.ahead > longest; {
	case far && n >= c.least:
		return farAbove
	case far && c.least-n > longest:
		return farBelow
	}
	return n
}

// far is the class of numbers of characters that what follows n is found from: it differs in what a token does that
// has more than left characters, or that ends the string within needed ones.
func (c *counter) far(n int32) (class, left, needed int32) {
	class, left, needed = farAbove, math.MaxInt32, 0
	if c.most >= 0 {
		left = c.most - n - c.ahead
	}
	if n < c.least {
		class, needed = farBelow, c.least-n
	}
	return class, left, needed
}

// A place is a point in a rule.
type place struct {
	spans []span
	calls []call
	skips []int32 // places that can be gone on from at once
	end   bool    // the rule may end here
	like  int32   // where not 0, another place that most bytes lead from to the same as from here
	count int32   // the counter that it belongs to, plus 1; 0: none
	wide  bool    // many bytes may follow, and it is not of the places that all grammars have

	text     bool      // any special token may stand here, and most others, as the text may be nearly anything
	specials []special // that lead to other places
}

// A span leads over one byte to another place. In a string whose characters are counted it does so before some of
// them, or after.
type span struct {
	lo, hi byte
	how    counting
	to     int32
	under  int32 // where not 0, fewer characters than these have come
	least  int32 // where not 0, at least these have come
}

// counting is what a span does to the number of characters.
type counting byte

const (
	keeps counting = iota
	adds           // one
	ends           // the string: what follows begins with none
)

// over are the places that a byte leads to.
func (p *place) over(b byte) (all []int32) {
	for _, s := range p.spans {
		if s.lo <= b && b <= s.hi {
			all = append(all, s.to)
		}
	}
	return all
}

// last reports whether nothing but the end of its rule is at a place.
func (p *place) last() bool {
	return p.end && len(p.spans) == 0 && len(p.calls) == 0 && len(p.skips) == 0 && len(p.specials) == 0
}

// A call leads over a text of a rule to another place.
type call struct{ rule, back int32 }

// A spot is a place with a stack: where to go on when the rule ends. Without a stack the text ends with it. n is how
// many characters a string has so far that counts them.
type spot struct {
	at int32
	n  int32
	up *frame
}

type frame struct {
	back int32
	up   *frame
}

// A machine runs a program. It keeps one copy of each frame, so that equal stacks are equal pointers.
type machine struct {
	*program
	frames map[frame]*frame
	free   bool     // strings may have any number of characters more than they have
	set    spotSet  // that is made
	seen   spotSet  // of settle
	spots  [][]spot // of walk, by depth
}

func newMachine(p *program) *machine {
	return &machine{program: p, frames: map[frame]*frame{}, set: spotSet{in: map[spot]bool{}},
		seen: spotSet{in: map[spot]bool{}}}
}

func (m *machine) push(back int32, up *frame) *frame {
	f := frame{back, up}
	if m.frames[f] == nil {
		m.frames[f] = &f
	}
	return m.frames[f]
}

// A spotSet has spots once each, in the order in which they came.
type spotSet struct {
	list []spot
	in   map[spot]bool // the same, where there are many
}

// add adds a spot. Up to some, looking through all of them is quicker than a map.
func (s *spotSet) add(at spot) {
	const few = 16
	switch n := len(s.list); {
	case n <= few:
		if slices.Contains(s.list, at) {
			return
		}
		if n == few {
			clear(s.in)
			for _, before := range append(s.list, at) {
				s.in[before] = true
			}
		}
	case s.in[at]:
		return
	default:
		s.in[at] = true
	}
	s.list = append(s.list, at)
}

// settle adds to the set the spots at which a byte is due, that a spot leads to without one. ended says that the text
// can end there too.
func (m *machine) settle(s spot) (ended bool) {
	p := &m.places[s.at]
	if !p.end && len(p.calls) == 0 && len(p.skips) == 0 { // a byte is due, as nearly always
		m.set.add(s)
		return false
	}
	if p.text { // which no rule calls: the text may end, or go on
		m.set.add(s)
		return true
	}
	m.seen.list = append(m.seen.list[:0], s)
	for i := 0; i < len(m.seen.list); i++ {
		s := m.seen.list[i]
		p := &m.places[s.at]
		if len(p.spans) > 0 || len(p.specials) > 0 {
			m.set.add(s)
		}
		for _, to := range p.skips {
			m.seen.add(spot{to, s.n, s.up})
		}
		for _, c := range p.calls {
			up := s.up
			if !m.places[c.back].last() { // what ends with its last call has nothing to come back for
				up = m.push(c.back, up)
			}
			m.seen.add(spot{m.rules[c.rule], 0, up})
		}
		if p.end && s.up == nil {
			ended = true
		} else if p.end {
			m.seen.add(spot{s.up.back, 0, s.up.up})
		}
	}
	return ended
}

// settled are the spots that one leads to without a byte.
func (m *machine) settled(s spot) (_ []spot, ended bool) {
	m.set.list = nil
	ended = m.settle(s)
	return m.set.list, ended
}

// step returns the spots that others lead to over a byte, which may lie in room. Where there are more than are
// followed, which a schema that refers to itself may come to, they are cut to the first ones: those lead to texts of
// the grammar too.
func (m *machine) step(room, from []spot, b byte) (_ []spot, ended, cut bool) {
	m.set.list = room[:0]
	for _, s := range from {
		for _, over := range m.places[s.at].spans {
			if b < over.lo || b > over.hi || over.least > 0 && s.n < over.least ||
				over.under != 0 && s.n >= over.under && !m.free {
				continue
			}
			n := s.n
			switch over.how {
			case adds:
				n++
			case ends:
				n = 0
			}
			here := m.settle(spot{over.to, n, s.up})
			ended = ended || here
			if len(m.set.list) > maxSpots {
				return m.set.list[:maxSpots], ended, true
			}
		}
	}
	return m.set.list, ended, false
}

// walk looks which of the nodes from first up to last, with all that is below them, the bytes of texts lead to that
// begin at spots. It calls found for those that a text goes on from, and ended for those that one ends at. Nodes that
// skip reports, and what is below them, it leaves out; nil reports none.
func (m *machine) walk(v *Vocabulary, first, last int32, from []spot, found, ended func(n int32),
	skip func(n int32) bool) {
	if first == last {
		return
	}
	above := v.nodes[first].depth
	m.reach(0)
	m.spots[0] = append(m.spots[0][:0], from...)
	for i := first; i < last; {
		n := &v.nodes[i]
		if skip != nil && skip(i) {
			i = n.after
			continue
		}
		d := int(n.depth - above)
		m.reach(d + 1)
		set, ends, cut := m.step(m.spots[d+1][:0], m.spots[d], n.letter)
		m.spots[d+1] = set
		if ends {
			ended(i)
		}
		if len(set) > 0 {
			found(i)
		}
		if i++; len(set) == 0 || cut { // what is below a cut may be found when the text is there
			i = n.after
		}
	}
}

func (m *machine) reach(depth int) {
	for len(m.spots) <= depth {
		m.spots = append(m.spots, nil)
	}
}
