package grammar

// A scanner looks for texts in another one: the automaton of Aho and Corasick, whose states are places.
type scanner struct {
	places []int32
	over   [][256]int32 // places that bytes lead to from each
	states map[int32]int
}

func (s *scanner) root() int32 { return s.places[0] }

// next is the state that a byte leads to; -1: none, as a text is complete.
func (s *scanner) next(state int, b byte) int {
	if to, there := s.states[s.over[state][b]]; there {
		return to
	}
	return -1
}

// scan adds places for what does not have some texts in it. to says where each of them leads.
func (c *callCompiler) scan(texts []string, to func(i int) int32) *scanner {
	type node struct {
		next [256]int // 0: not in the trie
		fail int
		text int // that is complete here, plus 1
	}
	nodes := []node{{}}
	for i, text := range texts {
		at := 0
		for _, b := range []byte(text) {
			if nodes[at].next[b] == 0 {
				nodes = append(nodes, node{})
				nodes[at].next[b] = len(nodes) - 1
			}
			at = nodes[at].next[b]
		}
		if nodes[at].text == 0 {
			nodes[at].text = i + 1
		}
	}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if n := &nodes[at]; n.text == 0 {
			n.text = nodes[n.fail].text
		}
		for b, next := range nodes[at].next {
			fallback := 0
			if at != 0 {
				fallback = nodes[nodes[at].fail].next[b]
			}
			if next == 0 {
				nodes[at].next[b] = fallback
				continue
			}
			nodes[next].fail = fallback
			queue = append(queue, next)
		}
	}
	s := &scanner{places: make([]int32, len(nodes)), over: make([][256]int32, len(nodes)), states: map[int32]int{}}
	for i, n := range nodes {
		if n.text > 0 {
			s.places[i] = to(n.text - 1)
			continue
		}
		s.places[i] = c.textPlace()
		s.states[s.places[i]] = i
		if i > 0 {
			c.p.places[s.places[i]].like = s.places[0]
		}
	}
	for i, n := range nodes {
		for b, next := range n.next {
			s.over[i][b] = s.places[next]
		}
		if n.text == 0 {
			c.spans(s.places[i], s.over[i])
		}
	}
	return s
}

// spans leads over bytes to places.
func (c *callCompiler) spans(at int32, over [256]int32) {
	for lo := 0; lo < len(over); {
		hi := lo
		for hi+1 < len(over) && over[hi+1] == over[lo] {
			hi++
		}
		if over[lo] != nowhere {
			c.span(at, byte(lo), byte(hi), over[lo])
		}
		lo = hi + 1
	}
}
