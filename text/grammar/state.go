package grammar

import (
	"fmt"
	"math"
	"slices"
	"sync"
)

// A Grammar is a set of texts, for the tokens of a vocabulary. It is safe for concurrent use.
type Grammar struct {
	v    *Vocabulary
	p    *program
	root int32

	specials map[int]string // texts of special tokens, which only text with calls has
	leaving  []int32        // tokens that may end what may be anything

	mu     sync.Mutex
	locals map[point]*local
}

// A point is a place, and how many characters have been counted, as far as they make a difference.
type point struct{ at, n int32 }

// point is the one of a spot.
func (g *Grammar) point(s spot) point {
	if c := g.p.places[s.at].count; c != 0 {
		return point{s.at, g.p.counts[c-1].class(s.n, g.v.longest)}
	}
	return point{at: s.at}
}

// A local is what follows from a place, whatever the stack is.
type local struct {
	mask  Mask    // tokens that stay within the rule of the place, or what it calls
	edges []int32 // nodes at which it ends
}

// Limits of what is kept: a mask of 128k tokens has 16 KiB.
const (
	maxLocals = 512  // of a grammar
	maxMasks  = 64   // of a state
	maxSpots  = 2048 // alternatives that a text is open to
	maxWide   = 16   // of these, different ones that a walk through most tokens is for
)

// local returns what follows from a point.
func (g *Grammar) local(at point) *local {
	mu, all := &g.mu, g.locals
	if at.at < numCommon {
		mu, all = &g.v.mu, g.v.common
	}
	mu.Lock()
	l := all[at]
	mu.Unlock()
	if l != nil {
		return l
	}
	l = g.explore(at)
	mu.Lock()
	defer mu.Unlock()
	room := maxLocals
	if at.n > 0 { // which is found from another quickly, as long as that is kept
		room /= 2
	}
	if len(all) < room {
		all[at] = l
	}
	return l
}

// explore finds what follows from a point, by a walk through all tokens, but for those that are known of another.
func (g *Grammar) explore(from point) *local {
	at := from.at
	v, p := g.v, &g.p.places[at]
	if p.text {
		return g.exploreText(at)
	}
	begin := []spot{{at: at, n: from.n}}
	m := newMachine(g.p)
	l := &local{mask: v.newMask()}
	defer func() { g.allowSpecials(at, l.mask) }()
	if p.count != 0 {
		switch c := &g.p.counts[p.count-1]; from.n {
		case farAbove, farBelow:
			m.free = true
			if begin[0].n = c.least; from.n == farBelow {
				begin[0].n = math.MinInt32 / 2
			}
		default:
			g.exploreNear(from, c, m, l)
			return l
		}
	}
	found := func(n int32) { l.mask.allow(v.at(n)) }
	ended := func(n int32) { l.edges = append(l.edges, n) }
	if p.like == 0 {
		m.walk(v, 0, int32(len(v.nodes)), begin, found, ended, nil)
		return l
	}
	known, like := g.local(point{at: p.like}), &g.p.places[p.like]
	for n := int32(0); n < int32(len(v.nodes)); n = v.nodes[n].after {
		after := v.nodes[n].after
		if b := v.nodes[n].letter; !slices.Equal(p.over(b), like.over(b)) {
			m.walk(v, n, after, begin, found, ended, nil)
			continue
		}
		for _, id := range v.below(n) {
			if known.mask.Allows(int(id)) {
				l.mask.allow([]int32{id})
			}
		}
		first, _ := slices.BinarySearch(known.edges, n)
		last, _ := slices.BinarySearch(known.edges, after)
		l.edges = append(l.edges, known.edges[first:last]...)
	}
	return l
}

// exploreNear is explore for a string near a bound of its length, by what follows far from it. Only tokens that reach
// the bound are walked through: few, unless it is less than ten characters away.
func (g *Grammar) exploreNear(from point, c *counter, m *machine, l *local) {
	v := g.v
	class, left, needed := c.far(from.n)
	known := g.local(point{from.at, class})
	same := func(n int32) bool { // with all that is below it
		of := &v.nodes[n]
		return int32(of.most) <= left && (!of.quote || int32(of.most) <= needed || needed == 0)
	}
	copy(l.mask, known.mask)
	for n := int32(0); n < int32(len(v.nodes)); {
		if same(n) {
			n = v.nodes[n].after
			continue
		}
		for _, id := range v.at(n) {
			l.mask[id/64] &^= 1 << (id % 64)
		}
		n++
	}
	edges := known.edges // that come next
	skip := func(n int32) bool {
		if !same(n) {
			return false
		}
		for len(edges) > 0 && edges[0] < n {
			edges = edges[1:]
		}
		for len(edges) > 0 && edges[0] < v.nodes[n].after {
			l.edges, edges = append(l.edges, edges[0]), edges[1:]
		}
		return true
	}
	m.walk(v, 0, int32(len(v.nodes)), []spot{{at: from.at, n: from.n}},
		func(n int32) { l.mask.allow(v.at(n)) }, func(n int32) { l.edges = append(l.edges, n) }, skip)
}

// A State is the beginning of a text of a grammar. It is for one goroutine at a time.
type State struct {
	g     *Grammar
	m     *machine
	spots []spot
	ended bool    // the text may end here
	ends  []int32 // tokens that end it
	masks map[spot]Mask
}

// Begin returns the state of an empty text. ends are the tokens that end a text once it is complete.
func (g *Grammar) Begin(ends ...int) *State {
	s := &State{g: g, m: newMachine(g.p), masks: map[spot]Mask{}}
	for _, id := range ends {
		if id >= 0 && id < g.v.size {
			s.ends = append(s.ends, int32(id))
		}
	}
	s.spots, s.ended = s.m.settled(spot{at: g.p.rules[g.root]})
	return s
}

// MayEnd reports whether the text is complete.
func (s *State) MayEnd() bool { return s.ended }

// MayGoOn reports whether the text can be continued.
func (s *State) MayGoOn() bool { return len(s.spots) > 0 }

// Mask returns the tokens that may follow, and those that end the text if it is complete. Callers must not modify it.
func (s *State) Mask() Mask {
	if len(s.spots) == 1 && !s.ended {
		return s.mask(s.spots[0])
	}
	all := s.g.v.newMask()
	if s.ended {
		all.allow(s.ends)
	}
	var wide []point
	for _, spot := range s.spots {
		if s.g.p.places[spot.at].wide {
			switch at := s.g.point(spot); {
			case slices.Contains(wide, at):
			case len(wide) == maxWide:
				continue
			default:
				wide = append(wide, at)
			}
		}
		for i, word := range s.mask(spot) {
			all[i] |= word
		}
	}
	return all
}

// mask returns the tokens that can follow at a spot.
func (s *State) mask(at spot) Mask {
	from := s.g.point(at)
	if at.n = from.n; s.masks[at] != nil {
		return s.masks[at]
	}
	l, v := s.g.local(from), s.g.v
	m := l.mask
	if len(l.edges) > 0 {
		m = slices.Clone(m)
		var after []spot
		if at.up != nil {
			after, _ = s.m.settled(spot{at.up.back, 0, at.up.up})
		}
		allow := func(n int32) { m.allow(v.at(n)) }
		for _, n := range l.edges {
			allow(n)
			if len(after) > 0 {
				s.m.walk(v, n+1, v.nodes[n].after, after, allow, allow, nil)
			}
		}
	}
	if len(s.masks) == maxMasks {
		clear(s.masks)
	}
	s.masks[at] = m
	return m
}

// An OpenError reports that a text has too many open alternatives to follow those of a token.
type OpenError struct{}

func (*OpenError) Error() string {
	return fmt.Sprintf("the text is open to more than %d alternatives, and the token belongs to others", maxSpots)
}

// Take appends a token to the text. It fails for a token that Mask does not allow, and may fail with an *OpenError if
// the text has more open alternatives than are followed.
func (s *State) Take(id int) error {
	if shown, special := s.g.specials[id]; special {
		return s.takeSpecial(id, shown)
	}
	if id < 0 || id >= s.g.v.size || len(s.g.v.texts[id]) == 0 {
		return fmt.Errorf("token %d has no text", id)
	}
	now, ended, open := s.spots, false, false
	for _, b := range s.g.v.texts[id] {
		var cut bool
		now, ended, cut = s.m.step(nil, now, b)
		open = open || cut
	}
	switch {
	case len(now) > 0 || ended:
	case open:
		return &OpenError{}
	default:
		return fmt.Errorf("token %d does not follow", id)
	}
	s.spots, s.ended = now, ended
	return nil
}
