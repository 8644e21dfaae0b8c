package mutant

import (
	"fmt"
	"slices"
	"strings"
)

// A writer writes a file with its mutants.
type writer struct {
	*file
	set      *Set
	path     string
	ordinals map[string]int // of places of a name in a function
	moves    map[*node]*moves
	calls    map[int]*place // of the function that is written
	edits    map[int]*place
	writing  map[*place]bool
}

// all returns the text of the file. A file without sites is as it was.
func (w *writer) all() (string, error) {
	w.ordinals, w.moves, w.writing = map[string]int{}, map[*node]*moves{}, map[*place]bool{}
	var b strings.Builder
	before := len(w.set.Sites)
	at := 0 // byte
	for _, fn := range w.functions {
		if err := w.prepare(fn); err != nil {
			return "", err
		}
		begin, end := w.tokens[fn.body.first].begin, w.tokens[fn.body.last-1].end
		b.WriteString(w.source[at:begin])
		b.WriteString(w.node(fn.body))
		at = end
	}
	b.WriteString(w.source[at:])
	if len(w.set.Sites) == before {
		return w.source, nil
	}
	return prefix + b.String(), nil
}

// prepare numbers the sites and mutants of a function, in the order of its text.
func (w *writer) prepare(fn function) error {
	w.calls = w.findPlaces(w.path, fn.body, fn.body.form == block)
	var err error
	if w.edits, err = w.findEdits(w.path, fn); err != nil {
		return err
	}
	for i := fn.body.first; i < fn.body.last; i++ {
		for _, p := range []*place{w.edits[i], w.calls[i]} {
			if p != nil {
				w.number(p, fn, i)
			}
		}
	}
	w.plan(fn.body, fn.name == "consume" && strings.HasSuffix(w.path, ".cu"))
	return nil
}

func (w *writer) number(p *place, fn function, at int) {
	name := ""
	switch {
	case p.edit != nil:
		name = p.edit.what
	case p.variable != nil:
		name = p.variable.name
	default:
		name = p.primitive.name
	}
	w.ordinals[fn.name+" "+name]++
	p.site = w.set.site(Site{File: w.path, Line: lineOf(w.source, w.tokens[at].begin), Function: fn.name, Name: name,
		Ordinal: w.ordinals[fn.name+" "+name]})
	for _, c := range p.alternatives() {
		what := c.what
		if p.edit != nil {
			what = ""
		}
		p.mutants = append(p.mutants, w.set.mutant(c.kind, what, p.site))
	}
}

// node returns the text of a node with its mutants, without what lies around it.
func (w *writer) node(n *node) string {
	if n.form != block {
		return w.text(n.first, n.last, n.children)
	}
	return w.block(n)
}

// text returns the text of some tokens, and of the nodes among them.
func (w *writer) text(first, last int, nodes []*node) string {
	var b strings.Builder
	for i := first; i < last; {
		if i > first {
			b.WriteString(w.gap(i))
		}
		at := slices.IndexFunc(nodes, func(n *node) bool { return n.first == i && n.last <= last })
		switch e, p := w.edits[i], w.calls[i]; {
		case e != nil && !w.writing[e] && e.last <= last:
			b.WriteString(w.place(e, nodes))
			i = e.last
		case at >= 0:
			b.WriteString(w.node(nodes[at]))
			i = nodes[at].last
		case p != nil && !w.writing[p] && p.variable != nil && p.operator != "++":
			b.WriteString(w.tokens[i].text + w.gap(i+1) + w.place(p, nodes))
			i = p.last
		case p != nil && !w.writing[p] && p.last <= last:
			b.WriteString(w.place(p, nodes))
			i = p.last
		default:
			b.WriteString(w.tokens[i].text)
			i++
		}
	}
	return b.String()
}

// gap is what stands before a token.
func (w *writer) gap(i int) string { return w.source[w.tokens[i-1].end:w.tokens[i].begin] }

// place returns the text of a place: the mutant that is on, or what was there.
func (w *writer) place(p *place, nodes []*node) string {
	w.writing[p] = true
	defer delete(w.writing, p)
	call := w.text(p.first, p.last, nodes)
	if p.edit != nil && p.edit.insert {
		return fmt.Sprintf("%s if (AMK_SITE_REACHED(%d), %s) { %s }", call, p.site.Number, isOn(p.mutants...),
			w.flat(p.edit.to))
	}
	fill := []string{"$call", call}
	if p.primitive != nil {
		fill = append(fill, "$.", w.flat(w.text(p.first, p.receiver, nil)))
		template := w.flat(w.text(p.template[0], p.template[1], nil))
		fill = append(fill, "$<", template, "$t", "")
		if p.template[1] > 0 {
			fill[len(fill)-1] = "<" + template + ">"
		}
		for i, a := range p.arguments {
			fill = append(fill, fmt.Sprintf("$%d", i), w.text(a[0], a[1], nodes))
		}
	}
	filled := strings.NewReplacer(fill...)
	var b strings.Builder
	fmt.Fprintf(&b, "(AMK_SITE_REACHED(%d), ", p.site.Number)
	for i, c := range p.alternatives() {
		fmt.Fprintf(&b, "%s ? %s : ", isOn(p.mutants[i]), w.flat(filled.Replace(c.text)))
	}
	if p.operator == "++" {
		b.WriteString("(void)")
	}
	return b.String() + call + ")"
}

// flat puts a text on one line, without its comments and pragmas: it is there more than once, and lines keep their
// numbers.
func (w *writer) flat(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if at := strings.Index(line, "//"); at >= 0 {
			line = strings.TrimSpace(line[:at])
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
