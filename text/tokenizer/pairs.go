package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"amkc/runtime/infile"
)

// pairs are the merges: what two adjacent tokens become, and when.
type pairs map[[2]int32]merge

// A merge is what a pair becomes. Those of lower rank go first.
type merge struct {
	rank uint32
	id   int32
}

// noRank is the rank of a pair that does not merge.
const noRank = 1<<32 - 1

// get returns the merge of a pair, of rank noRank if there is none.
func (p pairs) get(left, right int32) merge {
	if m, ok := p[[2]int32{left, right}]; ok {
		return m
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
	m.merges = pairs{}
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
		m.merges[[2]int32{left, right}] = merge{uint32(rank), whole}
	}
	return both, nil
}
