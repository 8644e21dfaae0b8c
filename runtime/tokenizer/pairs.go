package tokenizer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// pairs are the merges: what two tokens side by side become, and when. It is a hash table with open addressing, in
// which a lookup reads one line of memory as a rule; encoding is mostly that.
type pairs struct {
	slots []pairSlot
	shift int
	odd   uint64 // random, so that no file can make chains long
}

type pairSlot struct {
	key uint64
	merge
}

// A merge is what a pair becomes. Those of lower rank go first.
type merge struct {
	rank uint32
	id   int32
}

// noRank is the rank of a pair that does not merge.
const noRank = 1<<32 - 1

// newPairs makes a table for up to n pairs.
func newPairs(n int) pairs {
	p := pairs{shift: 60, odd: rand.Uint64() | 1}
	for 1<<(64-p.shift) < 2*n {
		p.shift--
	}
	p.slots = make([]pairSlot, 1<<(64-p.shift))
	for i := range p.slots {
		p.slots[i].rank = noRank
	}
	return p
}

// slot returns the place of a pair, or the empty one where it belongs.
func (p *pairs) slot(left, right int32) *pairSlot {
	key := uint64(left)<<32 | uint64(right)
	for i := key * p.odd >> p.shift; ; i = (i + 1) & uint64(len(p.slots)-1) {
		if s := &p.slots[i]; s.key == key || s.rank == noRank {
			return s
		}
	}
}

// get returns the merge of a pair, of rank noRank if there is none.
func (p *pairs) get(left, right int32) merge {
	if s := p.slot(left, right); s.rank != noRank {
		return s.merge
	}
	return merge{rank: noRank}
}

// loadMerges reads pairs, written as ["a","b"] or, before tokenizers 0.20, as "a b".
func (m *bpe) loadMerges(text string) error {
	const where = "model.merges"
	if text == "" {
		return malformed(where, "is missing")
	}
	r := &reader{text: text}
	lines := r.take('[') && r.space() == '"'
	r.pos = 0
	n := 1 + strings.Count(text, ",")
	if !lines {
		n = 1 + n/2
	}
	m.merges = newPairs(n)
	var p pairReader
	var failed error
	rank := 0
	ok := r.array(func() bool {
		var ok bool
		if lines {
			if ok = p.readLine(r); p.parts == 0 {
				return ok
			}
		} else {
			ok = p.readPair(r)
		}
		if ok && failed == nil {
			failed = p.insert(m, rank)
		}
		rank++
		return ok
	})
	switch {
	case ok:
		return failed
	case lines:
		return problem(text, where, &[]string{})
	}
	return problem(text, where, &[][]string{})
}

// A pairReader holds the two tokens of a merge, one after another.
type pairReader struct {
	text  []byte // both, with a space between
	left  int    // length of the first
	parts int
	both  []byte // in the form of the vocabulary
}

// readLine reads "a b". A line with the version of the list has no parts.
func (p *pairReader) readLine(r *reader) bool {
	line, ok := r.str()
	p.text = append(p.text[:0], line...)
	p.left = bytes.IndexByte(line, ' ')
	p.parts = 1 + bytes.Count(line, []byte(" "))
	if bytes.HasPrefix(line, []byte("#version")) {
		p.parts = 0
	}
	return ok
}

// readPair reads ["a","b"].
func (p *pairReader) readPair(r *reader) bool {
	p.text, p.parts = p.text[:0], 0
	return r.array(func() bool {
		part, ok := r.str()
		if p.parts == 1 {
			p.left = len(p.text)
		}
		if p.parts++; p.parts > 1 {
			p.text = append(p.text, ' ')
		}
		p.text = append(p.text, part...)
		return ok
	})
}

// insert adds the merge to the table, instead of an earlier one of the same pair.
func (p *pairReader) insert(m *bpe, rank int) error {
	where := func() string { return fmt.Sprintf("model.merges[%d]", rank) }
	if p.parts != 2 {
		return malformed(where(), "%q is not a pair of tokens", p.text)
	}
	first, second := p.text[:p.left], p.text[p.left+1:]
	okForm, cut := true, len(first)
	p.both = p.both[:0]
	if m.bytes {
		var okFirst, okSecond bool
		p.both, okFirst = appendStandIns(p.both, first)
		cut = len(p.both)
		p.both, okSecond = appendStandIns(p.both, second)
		okForm = okFirst && okSecond
	} else {
		p.both = append(append(p.both, first...), second...)
	}
	left, okLeft := m.ids[string(p.both[:cut])]
	right, okRight := m.ids[string(p.both[cut:])]
	whole, okWhole := m.ids[string(p.both)]
	if !okForm { // of tokens that no word has in it
		_, okLeft = m.id(string(first))
		_, okRight = m.id(string(second))
		_, okWhole = m.id(string(first) + string(second))
	}
	if !okLeft || !okRight || !okWhole {
		return malformed(where(), "%q, %q or what they merge into is not in the vocabulary", first, second)
	}
	if okForm {
		s := m.merges.slot(left, right)
		*s = pairSlot{uint64(left)<<32 | uint64(right), merge{uint32(rank), whole}}
	}
	return nil
}
