package tokenizer

import "unicode/utf8"

// A merger tokenizes words one after another, reusing its buffers.
type merger struct {
	model   *bpe
	symbols []symbol
	queue   []candidate
}

// A symbol is a token of the word being merged, in a doubly linked list over merger.symbols.
type symbol struct {
	id         int
	prev, next int // noToken at the ends
	dead       bool
}

// A candidate is a merge of the symbol at pos with the one after it.
type candidate struct {
	merge
	pos int
}

func (a candidate) less(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
}

func newMerger(m *bpe) *merger { return &merger{model: m} }

// tokenize appends the ids of word to ids, applying merges by rank, leftmost first. It takes O(n log n) time.
func (g *merger) tokenize(ids []int, word string) []int {
	if g.model.ignoreMerges {
		if id, ok := g.model.ids[word]; ok {
			return append(ids, id)
		}
	}
	g.start(word)
	for i := range len(g.symbols) - 1 {
		g.offer(i)
	}
	for len(g.queue) > 0 {
		g.apply(g.pop())
	}
	for _, s := range g.symbols {
		if !s.dead {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// start makes one symbol of each character of word; a character outside the vocabulary becomes its <0xNN> tokens, or
// the unknown token, or nothing, as the model says.
func (g *merger) start(word string) {
	g.symbols, g.queue = g.symbols[:0], g.queue[:0]
	unk := false // an unknown token waits, to be fused with the next
	flush := func() {
		if unk {
			g.add(g.model.unk)
			unk = false
		}
	}
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRuneInString(word[i:])
		char := word[i : i+size]
		i += size
		if id, ok := g.model.ids[char]; ok {
			flush()
			g.add(id)
		} else if g.addBytes(char) {
			continue // without a flush: the library puts a waiting unknown token after these bytes, too
		} else if g.model.unk != noToken {
			if !g.model.fuseUnk {
				flush()
			}
			unk = true
		}
	}
	flush()
}

// addBytes adds the byte tokens of char if the model falls back to bytes and has all of them.
func (g *merger) addBytes(char string) bool {
	if !g.model.byteFallback {
		return false
	}
	for i := 0; i < len(char); i++ {
		if g.model.byteTokens[char[i]] == noToken {
			return false
		}
	}
	for i := 0; i < len(char); i++ {
		g.add(g.model.byteTokens[char[i]])
	}
	return true
}

func (g *merger) add(id int) {
	n := len(g.symbols)
	if n > 0 {
		g.symbols[n-1].next = n
	}
	g.symbols = append(g.symbols, symbol{id: id, prev: n - 1, next: noToken})
}

// offer queues the merge of the symbols at pos and after it, if there is one.
func (g *merger) offer(pos int) {
	if m, ok := g.find(pos); ok {
		g.push(candidate{m, pos})
	}
}

func (g *merger) find(pos int) (merge, bool) {
	s := g.symbols[pos]
	if s.dead || s.next == noToken {
		return merge{}, false
	}
	m, ok := g.model.merges[[2]int{s.id, g.symbols[s.next].id}]
	return m, ok
}

// apply merges, unless earlier merges changed the pair so that it gives another token now.
func (g *merger) apply(c candidate) {
	if m, ok := g.find(c.pos); !ok || m.id != c.id {
		return
	}
	left := &g.symbols[c.pos]
	right := &g.symbols[left.next]
	left.id = c.id
	left.next = right.next
	right.dead = true
	if left.next != noToken {
		g.symbols[left.next].prev = c.pos
	}
	if left.prev != noToken {
		g.offer(left.prev)
	}
	g.offer(c.pos)
}

// push and pop keep queue a binary min-heap. container/heap would box every candidate.
func (g *merger) push(c candidate) {
	q := append(g.queue, c)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.less(q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = c
	g.queue = q
}

func (g *merger) pop() candidate {
	q := g.queue
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	for i := 0; len(q) > 0; {
		down := 2*i + 1
		if down+1 < len(q) && q[down+1].less(q[down]) {
			down++
		}
		if down >= len(q) || !q[down].less(last) {
			q[i] = last
			break
		}
		q[i] = q[down]
		i = down
	}
	g.queue = q
	return top
}
