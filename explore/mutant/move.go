package mutant

import (
	"fmt"
	"slices"
	"strings"
)

// moves are how the statements of a block move.
type moves struct {
	of     []statementMoves // of each child
	orders []order          // of stages
}

// statementMoves are the mutants in which a statement stands elsewhere.
type statementMoves struct {
	earlier, later *Mutant
	before, after  []int // children that move to the place before and after this one
}

// mutants are those in which the statement is not where it was.
func (m *statementMoves) mutants() (all []*Mutant) {
	for _, one := range []*Mutant{m.earlier, m.later} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

// mostMoved bounds the text of a statement that moves: it is there up to three times.
const mostMoved = 2000

// plan numbers the moves of all statements in a node. stages says that it is of the function that calls them.
func (w *writer) plan(n *node, stages bool) {
	if n.form == block {
		m := &moves{of: make([]statementMoves, len(n.children))}
		w.moves[n] = m
		if stages {
			m.orders = w.planOrders(n)
		}
		for i := range n.children {
			w.planMoves(n, m, i)
		}
	}
	for _, child := range n.children {
		w.plan(child, stages)
	}
}

func (w *writer) planMoves(n *node, m *moves, i int) {
	if slices.ContainsFunc(m.orders, func(o order) bool { return i >= o.first && i < o.last }) {
		return
	}
	p := w.firstPlace(n.children[i])
	if p == nil {
		return
	}
	stays := func(kind Kind, why string) { w.set.Stays = append(w.set.Stays, Stay{p.site, kind, why}) }
	if why := w.staysAll(n.children[i]); why != "" {
		stays(Earlier, why)
		stays(Later, why)
		return
	}
	if j, why := w.partner(n, i, -1); why != "" {
		stays(Earlier, why)
	} else if m.of[j].later == nil || !slices.Contains(m.of[i].after, j) {
		m.of[i].earlier = w.set.mutant(Earlier, "", p.site)
		m.of[j].before = append(m.of[j].before, i)
	}
	if j, why := w.partner(n, i, 1); why != "" {
		stays(Later, why)
	} else {
		m.of[i].later = w.set.mutant(Later, "", p.site)
		m.of[j].after = append(m.of[j].after, i)
	}
}

// firstPlace is the first call in a statement, outside of blocks in it, that orders something and may be moved.
func (w *writer) firstPlace(n *node) *place {
	if n.form == block {
		return nil
	}
	for i := n.body; i < n.last; i++ {
		if at := slices.IndexFunc(n.children, func(c *node) bool { return c.first == i }); at >= 0 {
			if p := w.firstPlace(n.children[at]); p != nil {
				return p
			}
			i = n.children[at].last - 1
			continue
		}
		if p := w.calls[i]; p != nil && p.primitive != nil && !p.primitive.fixed {
			return p
		}
	}
	return nil
}

// staysAll says why a statement is moved in no direction.
func (w *writer) staysAll(n *node) string {
	switch {
	case n.form == jump:
		return "it is a return"
	case n.form == plain && w.declares(n) != nil:
		return "it is a declaration"
	case w.tokens[n.last-1].end-w.tokens[n.first].begin > mostMoved:
		return "it is long"
	case n.first != n.body && n.first > 0 && w.tokens[n.first-1].kind == directive:
		return "a line of the preprocessor is before it"
	}
	for _, t := range w.tokens[n.body:n.last] {
		if t.kind == directive && directiveName(t.text) != "pragma" {
			return "it has a line of the preprocessor in it"
		}
	}
	return ""
}

// partner is the statement that one changes places with: the next one in a direction that does something. Or it says
// why there is none.
func (w *writer) partner(n *node, i, step int) (int, string) {
	moved := w.words(n.children[i])
	for j := i + step; j >= 0 && j < len(n.children); j += step {
		other := n.children[j]
		switch {
		case other.form == marker:
			return 0, "a line of the preprocessor is next to it"
		case other.form == jump:
			return 0, "a jump is next to it"
		case step < 0 && slices.ContainsFunc(w.declares(other), func(name string) bool {
			return slices.Contains(moved, name)
		}):
			return 0, "it uses what is declared before it"
		case w.isInert(other):
			continue
		case other.first != other.body && other.first > 0 && w.tokens[other.first-1].kind == directive:
			return 0, "a line of the preprocessor is next to it"
		}
		return j, ""
	}
	if step < 0 {
		return 0, "it is the first in its block"
	}
	return 0, "it is the last in its block"
}

// isInert reports whether a statement neither orders nor moves anything.
func (w *writer) isInert(n *node) bool {
	if n.form != plain {
		return false
	}
	tokens := w.tokens[n.body:n.last]
	switch {
	case tokens[0].is("using") || tokens[0].is("constexpr"):
		return true
	case w.declares(n) != nil:
		// a number of a thread: nothing is called, and no memory is looked at
		return !slices.ContainsFunc(tokens, func(t token) bool {
			return t.is("(") || t.is("[") || t.is("*") || t.is("->") || t.is(".") || t.is("{")
		})
	}
	name := w.chainAt(n.body)
	return w.isAt(name+1, "(") && slices.Contains(inert, w.tokens[name].text)
}

// typeWords begin declarations.
var typeWords = map[string]bool{"const": true, "constexpr": true, "static": true, "auto": true, "typename": true,
	"using": true, "u8": true, "u16": true, "u32": true, "u64": true, "int": true, "float": true, "double": true,
	"bool": true, "size_t": true, "float2": true, "float4": true, "uint2": true, "uint4": true, "unsigned": true,
	"long": true, "static_assert": true}

// declares are the names that a statement declares; nil if it is not a declaration. A static_assert declares nothing,
// but has no place of its own either.
func (f *file) declares(n *node) []string {
	if n.form != plain {
		return nil
	}
	at := n.body
	if !typeWords[f.tokens[at].text] && !f.isAt(at, "[") {
		// a type and a name
		if f.tokens[at].kind != word {
			return nil
		}
		at = f.chainAt(at)
		at++
		if f.isAt(at, "<") {
			next, ok := f.afterAngle(at)
			if !ok {
				return nil
			}
			at = next
			for f.isAt(at, "::") {
				at += 2
			}
		}
		for f.isAt(at, "*") || f.isAt(at, "&") || f.isAt(at, "const") {
			at++
		}
		if at >= n.last || f.tokens[at].kind != word {
			return nil
		}
	} else if f.isAt(at, "[") && !f.isAt(at+1, "[") {
		return nil
	}
	names := []string{}
	for _, part := range f.split(n.body, n.last-1) {
		name := ""
		for i := part[0]; i < part[1]; i++ {
			t := f.tokens[i]
			if t.is("=") || t.is("{") || t.is("(") || t.is("[") && name != "" {
				break
			}
			if t.is("<") {
				if next, ok := f.afterAngle(i); ok {
					i = next - 1
					continue
				}
			}
			if t.kind == word {
				name = t.text
			}
		}
		names = append(names, name)
	}
	return names
}

// block returns the text of a block, with the statements that move where they may stand.
func (w *writer) block(n *node) string {
	m := w.moves[n]
	var b strings.Builder
	for i := n.first; i < n.body; i++ {
		b.WriteString(w.tokens[i].text + w.gap(i+1))
	}
	b.WriteString("{")
	for i := 0; i < len(n.children); i++ {
		if k := slices.IndexFunc(m.orders, func(o order) bool { return o.first == i }); k >= 0 {
			b.WriteString(w.order(n, m.orders[k]))
			i = m.orders[k].last - 1
			continue
		}
		child := n.children[i]
		gap := w.gap(child.first)
		var before, after strings.Builder
		copyOf := func(b *strings.Builder, on *Mutant, j int) {
			fmt.Fprintf(b, " if (%s) { %s } ", isOn(on), w.flat(w.node(n.children[j])))
		}
		for _, j := range m.of[i].before {
			copyOf(&before, m.of[j].earlier, j)
		}
		for _, j := range m.of[i].after {
			copyOf(&after, m.of[j].later, j)
		}
		text := w.node(child)
		if mutants := m.of[i].mutants(); mutants != nil {
			fmt.Fprintf(&before, " if (!(%s)) {", isOn(mutants...))
			text += " }"
		}
		if child.first != child.body {
			b.WriteString(before.String() + gap) // a pragma begins its line
		} else {
			b.WriteString(gap + before.String())
		}
		b.WriteString(text + after.String())
	}
	b.WriteString(w.gap(n.last-1) + "}")
	return b.String()
}
