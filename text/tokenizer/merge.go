package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"
)

// A merger tokenizes words one after another, reusing its buffers.
type merger struct {
	model   *bpe
	symbols []symbol
	queue   []uint64 // candidates: a rank in the upper half, the place of the left symbol in the lower
	known   []knownWord
	seed    maphash.Seed
}

// A symbol is a token of the word being merged, with what it makes with the next one. The symbols of a word are a doubly
// linked list over merger.symbols.
type symbol struct {
	id         int32
	prev, next int32 // noToken at the ends
	merge            // with the next, of rank noRank if there is none
}

// A knownWord is a word and its tokens, which are remembered until another word takes the place.
type knownWord struct {
	text string
	ids  []int32
}

const (
	knownWords = 1 << 13
	maxKnown   = 64 // bytes of a word that is remembered
)

func newMerger(m *bpe) merger {
	return merger{model: m, known: make([]knownWord, knownWords), seed: maphash.MakeSeed()}
}

// tokenize appends the ids of word to ids, up to where there are more than most.
func (g *merger) tokenize(ids []int, word string, most int) []int {
	if g.model.ignoreMerges {
		if id, ok := g.model.ids[word]; ok {
			return append(ids, int(id))
		}
	}
	for word != "" && len(ids) <= most {
		n := g.model.cut(word)
		ids = g.part(ids, word[:n])
		word = word[n:]
	}
	return ids
}

// part appends the ids of a word, from memory or by merging.
func (g *merger) part(ids []int, word string) []int {
	if len(word) > maxKnown {
		return g.merge(ids, word)
	}
	k := &g.known[maphash.String(g.seed, word)%knownWords]
	if k.text != word {
		start := len(ids)
		ids = g.merge(ids, word)
		k.text, k.ids = strings.Clone(word), k.ids[:0:0]
		for _, id := range ids[start:] {
			k.ids = append(k.ids, int32(id))
		}
		return ids
	}
	for _, id := range k.ids {
		ids = append(ids, int(id))
	}
	return ids
}

// merge appends the ids of word, with merges by rank, leftmost first. It takes O(n log n) time.
func (g *merger) merge(ids []int, word string) []int {
	g.start(word)
	g.mergeAll()
	for _, s := range g.symbols {
		if s.id != noToken {
			ids = append(ids, int(s.id))
		}
	}
	return ids
}

// start makes one symbol of each character of word; a character outside the vocabulary becomes its <0xNN> tokens, or
// the unknown token, or nothing, as the model says.
func (g *merger) start(word string) {
	m := g.model
	n := len(word)
	if !m.bytes {
		n = utf8.RuneCountInString(word)
	}
	g.symbols = slices.Grow(g.symbols[:0], n)
	unknown := false // an unknown token waits, to be fused with the next
	flush := func() {
		if unknown {
			g.add(m.unk)
			unknown = false
		}
	}
	for i := 0; i < len(word); {
		id, size := int32(noToken), 1
		if m.bytes || word[i] < utf8.RuneSelf {
			id = m.initial[word[i]]
		} else {
			_, size = utf8.DecodeRuneInString(word[i:])
			if known, ok := m.ids[word[i:i+size]]; ok {
				id = known
			}
		}
		char := word[i : i+size]
		i += size
		switch {
		case id != noToken:
			flush()
			g.add(id)
		case g.addBytes(char): // without a flush: the library puts a waiting unknown token after these bytes, too
		case m.unk != noToken:
			if !m.fuseUnk {
				flush()
			}
			unknown = true
		}
	}
	flush()
}

// addBytes adds the byte tokens of char if the model falls back to bytes and has all of them.
func (g *merger) addBytes(char string) bool {
	if !g.model.byteFallback {
		return false
	}
	if g.model.bytes {
		char = byteLevelString(char)
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

func (g *merger) add(id int32) {
	n := int32(len(g.symbols))
	if n > 0 {
		g.symbols[n-1].next = n
	}
	g.symbols = append(g.symbols, symbol{id: id, prev: n - 1, next: noToken, merge: merge{rank: noRank}})
}

// offer looks for the merge of the symbol at i with the next one.
func (g *merger) offer(i int) {
	s := &g.symbols[i]
	s.merge = g.model.merges.get(s.id, g.symbols[s.next].id)
}

// mergeAll keeps the merges in a queue. A symbol that has been merged into another has no token.
func (g *merger) mergeAll() {
	g.queue = slices.Grow(g.queue[:0], len(g.symbols))
	for i := range len(g.symbols) - 1 {
		g.offer(i)
		g.push(i)
	}
	for len(g.queue) > 0 {
		top := g.pop()
		i := int32(uint32(top))
		left := &g.symbols[i]
		if left.rank == noRank || uint64(left.rank) != top>>32 { // earlier merges changed the pair
			continue
		}
		right := &g.symbols[left.next]
		left.id, left.next = left.merge.id, right.next
		right.id, right.rank, left.rank = noToken, noRank, noRank
		if left.next != noToken {
			g.symbols[left.next].prev = i
			g.offer(int(i))
			g.push(int(i))
		}
		if left.prev != noToken {
			g.offer(int(left.prev))
			g.push(int(left.prev))
		}
	}
}

// push and pop keep the queue a binary min-heap: by rank, and of equal ranks the leftmost. container/heap would box
// every candidate.
func (g *merger) push(i int) {
	if g.symbols[i].rank == noRank {
		return
	}
	c := uint64(g.symbols[i].rank)<<32 | uint64(i)
	q := append(g.queue, c)
	at := len(q) - 1
	for at > 0 {
		up := (at - 1) / 2
		if q[up] <= c {
			break
		}
		q[at] = q[up]
		at = up
	}
	q[at] = c
	g.queue = q
}

func (g *merger) pop() uint64 {
	q := g.queue
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	for i := 0; len(q) > 0; {
		down := 2*i + 1
		if down+1 < len(q) && q[down+1] < q[down] {
			down++
		}
		if down >= len(q) || q[down] >= last {
			q[i] = last
			break
		}
		q[i] = q[down]
		i = down
	}
	g.queue = q
	return top
}
