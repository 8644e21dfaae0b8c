// Package diff compares texts line by line and directories file by file, to review the effect of a change of a schedule
// on a build.
//
// It imports the standard library and runtime/infile, and must not import any other package of amkc: it does not depend
// on the contents.
package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// context is how many unchanged lines surround a change.
const context = 3

// Unified returns the difference of two texts as unified hunks, without file headers: nil when they are equal. Lines
// that occur once in both texts anchor the comparison, as in patience diff, so the hunks match lines that a reader
// would match. The difference is not always the shortest.
func Unified(a, b []byte) []byte {
	if bytes.Equal(a, b) {
		return nil
	}
	m := newMatcher(a, b)
	m.match(0, len(m.a), 0, len(m.b), 0)
	var out bytes.Buffer
	for _, h := range m.hunks() {
		m.print(&out, h)
	}
	return out.Bytes()
}

// Count returns the numbers of added and removed lines of unified hunks.
func Count(hunks []byte) (added, removed int) {
	for line := range bytes.Lines(hunks) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// A matcher pairs the lines of two texts.
type matcher struct {
	linesA, linesB [][]byte
	a, b           []int // the lines, interned
	pairs          []pair
}

// A pair is a line that both texts have, by its index in each.
type pair struct{ a, b int }

func newMatcher(a, b []byte) *matcher {
	m := &matcher{linesA: split(a), linesB: split(b)}
	ids := map[string]int{}
	intern := func(lines [][]byte) []int {
		out := make([]int, len(lines))
		for i, line := range lines {
			id, ok := ids[string(line)]
			if !ok {
				id = len(ids)
				ids[string(line)] = id
			}
			out[i] = id
		}
		return out
	}
	m.a, m.b = intern(m.linesA), intern(m.linesB)
	return m
}

// split returns the lines with their line ends.
func split(text []byte) [][]byte {
	return slices.Collect(bytes.Lines(text))
}

// maxDepth bounds the recursion of match. Every level halves real texts several times over; beyond it lines count as
// changed.
const maxDepth = 64

// match appends the pairs of a[a0:a1] and b[b0:b1], in order.
func (m *matcher) match(a0, a1, b0, b1, depth int) {
	for a0 < a1 && b0 < b1 && m.a[a0] == m.b[b0] {
		m.pairs = append(m.pairs, pair{a0, b0})
		a0, b0 = a0+1, b0+1
	}
	tail := 0
	for a0 < a1-tail && b0 < b1-tail && m.a[a1-tail-1] == m.b[b1-tail-1] {
		tail++
	}
	a1, b1 = a1-tail, b1-tail
	if anchors := m.anchors(a0, a1, b0, b1); len(anchors) > 0 && depth < maxDepth {
		for _, at := range append(anchors, pair{a1, b1}) {
			m.match(a0, at.a, b0, at.b, depth+1)
			if at.a < a1 {
				m.pairs = append(m.pairs, at)
			}
			a0, b0 = at.a+1, at.b+1
		}
	}
	for i := range tail {
		m.pairs = append(m.pairs, pair{a1 + i, b1 + i})
	}
}

// anchors returns the longest ascending run of lines that occur exactly once in each of the two ranges.
func (m *matcher) anchors(a0, a1, b0, b1 int) []pair {
	type count struct{ inA, inB, at int }
	seen := map[int]count{}
	for _, id := range m.a[a0:a1] {
		c := seen[id]
		c.inA++
		seen[id] = c
	}
	for j := b0; j < b1; j++ {
		c := seen[m.b[j]]
		c.inB++
		c.at = j
		seen[m.b[j]] = c
	}
	var unique []pair
	for i := a0; i < a1; i++ {
		if c := seen[m.a[i]]; c.inA == 1 && c.inB == 1 {
			unique = append(unique, pair{i, c.at})
		}
	}
	return ascending(unique)
}

// ascending returns the longest subsequence of pairs, sorted by a, in which b ascends as well (patience sorting).
func ascending(pairs []pair) []pair {
	tops := make([]int, 0, len(pairs)) // of each pile, the index of its top pair
	below := make([]int, len(pairs))   // of each pair, the top of the pile to its left
	for i, p := range pairs {
		pile, _ := slices.BinarySearchFunc(tops, p.b, func(top, b int) int { return cmp.Compare(pairs[top].b, b) })
		below[i] = -1
		if pile > 0 {
			below[i] = tops[pile-1]
		}
		if pile == len(tops) {
			tops = append(tops, i)
		} else {
			tops[pile] = i
		}
	}
	out := make([]pair, len(tops))
	if len(tops) == 0 {
		return out
	}
	for i, at := len(out)-1, tops[len(tops)-1]; i >= 0; i, at = i-1, below[at] {
		out[i] = pairs[at]
	}
	return out
}

// A block is a stretch of lines without a partner: a[a0:a1] gave way to b[b0:b1]. Between two blocks the texts agree.
type block struct{ a0, a1, b0, b1 int }

func (m *matcher) blocks() []block {
	var out []block
	a, b := 0, 0
	for _, p := range append(m.pairs, pair{len(m.a), len(m.b)}) {
		if p.a > a || p.b > b {
			out = append(out, block{a, p.a, b, p.b})
		}
		a, b = p.a+1, p.b+1
	}
	return out
}

// hunks groups the blocks whose contexts meet.
func (m *matcher) hunks() [][]block {
	var out [][]block
	for _, b := range m.blocks() {
		last := len(out) - 1
		if last >= 0 && b.a0-out[last][len(out[last])-1].a1 <= 2*context {
			out[last] = append(out[last], b)
		} else {
			out = append(out, []block{b})
		}
	}
	return out
}

func (m *matcher) print(out *bytes.Buffer, hunk []block) {
	first, last := hunk[0], hunk[len(hunk)-1]
	before, after := min(context, first.a0, first.b0), min(context, len(m.a)-last.a1)
	fmt.Fprintf(out, "@@ -%s +%s @@\n", extent(first.a0-before, last.a1+after), extent(first.b0-before, last.b1+after))
	a := first.a0 - before
	for _, b := range hunk {
		writeLines(out, ' ', m.linesA[a:b.a0])
		writeLines(out, '-', m.linesA[b.a0:b.a1])
		writeLines(out, '+', m.linesB[b.b0:b.b1])
		a = b.a1
	}
	writeLines(out, ' ', m.linesA[a:a+after])
}

// extent prints a range of lines as diff(1) does: from 1, and an empty range by the line before it.
func extent(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func writeLines(out *bytes.Buffer, mark byte, lines [][]byte) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
