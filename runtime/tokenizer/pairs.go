package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"amkc/runtime/infile"
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
func (m *bpe) loadMerges(text json.RawMessage) error {
	const where = "model.merges"
	if text == nil {
		return malformed(where, "is missing")
	}
	lines := bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("["))), []byte(`"`))
	n := 1 + bytes.Count(text, []byte(","))
	if !lines {
		n = 1 + n/2
	}
	m.merges = newPairs(n)
	var failed error
	rank := 0
	var both []byte
	r := newReader(string(text))
	ok := infile.HalfCharacter(text) < 0 && r.list('[', func() bool {
		var parts []string
		ok := true
		if lines {
			var line string
			if line, ok = r.str(); strings.HasPrefix(line, "#version") {
				return ok
			}
			parts = strings.Split(line, " ")
		} else {
			ok = r.Decode(&parts) == nil && parts != nil
		}
		if ok && failed == nil {
			both, failed = m.addMerge(parts, rank, both[:0])
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

// addMerge adds a merge to the table, instead of an earlier one of the same pair. It uses both, and returns it.
func (m *bpe) addMerge(parts []string, rank int, both []byte) ([]byte, error) {
	where := func() string { return fmt.Sprintf("model.merges[%d]", rank) }
	if len(parts) != 2 {
		return both, malformed(where(), "%q is not a pair of tokens", strings.Join(parts, " "))
	}
	first, second := parts[0], parts[1]
	okForm, cut := true, len(first)
	if m.bytes {
		var okFirst, okSecond bool
		both, okFirst = appendStandIns(both, first)
		cut = len(both)
		both, okSecond = appendStandIns(both, second)
		okForm = okFirst && okSecond
	} else {
		both = append(append(both, first...), second...)
	}
	left, okLeft := m.ids[string(both[:cut])]
	right, okRight := m.ids[string(both[cut:])]
	whole, okWhole := m.ids[string(both)]
	if !okForm { // of tokens that no word has in it
		_, okLeft = m.id(first)
		_, okRight = m.id(second)
		_, okWhole = m.id(first + second)
	}
	if !okLeft || !okRight || !okWhole {
		return both, malformed(where(), "%q, %q or what they merge into is not in the vocabulary", first, second)
	}
	if okForm {
		s := m.merges.slot(left, right)
		*s = pairSlot{uint64(left)<<32 | uint64(right), merge{uint32(rank), whole}}
	}
	return both, nil
}
