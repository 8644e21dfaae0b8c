package mutant

import (
	"slices"
	"strconv"
	"strings"
)

// A Site is a place in the code that has mutants. A mutated kernel counts its executions.
type Site struct {
	Number   int
	File     string // of the build, with slashes
	Line     int
	Function string
	Name     string // of the primitive or the variable
	Ordinal  int    // among those of this name in the function, from 1
}

func (s *Site) String() string {
	return s.File + " " + s.Function + " " + s.Name + " " + strconv.Itoa(s.Ordinal)
}

// A place is a site and where its tokens are.
type place struct {
	site        *Site
	first, last int // [first, last)

	// of a call
	primitive *primitive
	receiver  int      // the token of its name: what stands before is the object
	template  [2]int   // its template arguments, without the brackets
	arguments [][2]int // its arguments

	// of a variable: what it is set to is [first, last), or the statement that counts it
	variable *variable
	operator string // "=", "^=" or "++"

	// of an edit
	edit *edit

	mutants []*Mutant // of the site, in the order of their texts
	moved   []*Mutant // of the statement that it is in
}

var primitiveOf, variableOf = func() (map[string]*primitive, map[string]*variable) {
	p, v := map[string]*primitive{}, map[string]*variable{}
	for i := range primitives {
		p[primitives[i].name] = &primitives[i]
	}
	for i := range variables {
		v[variables[i].name] = &variables[i]
	}
	return p, v
}()

// findPlaces finds the places in the tokens of a function: calls by their first tokens, and variables that are set by
// the operator.
func (f *file) findPlaces(path string, n *node, inFunction bool) map[int]*place {
	places := map[int]*place{}
	for i := n.first; i < n.last; i++ {
		var p *place
		switch t := f.tokens[i]; {
		case t.kind == word && inFunction:
			if p = f.callAt(i); p != nil && p.primitive.in != "" && p.primitive.in != path {
				p = nil
			}
		case t.is("=") || t.is("^="):
			p = f.assignmentAt(i, inFunction, n.last)
		case t.is("++") && inFunction:
			p = f.incrementAt(i)
		}
		if p != nil {
			places[i] = p
		}
	}
	// A variable that is set to what a number of the table says has its mutants there.
	for at, p := range places {
		if p.variable == nil {
			continue
		}
		if c := places[p.first]; c != nil && c.primitive != nil && c.primitive.fixed && c.last == p.last {
			delete(places, at)
		}
	}
	return places
}

func (f *file) isAt(at int, text string) bool {
	return at >= 0 && at < len(f.tokens) && f.tokens[at].is(text)
}

func (f *file) joins(at int) bool {
	if f.isAt(at, "template") { // c.next.template advance<kSlots>()
		at--
	}
	return f.isAt(at, ".") || f.isAt(at, "->") || f.isAt(at, "::")
}

// chainAt returns the last word of names that are joined by points: c.shared.aborted.
func (f *file) chainAt(at int) int {
	for f.joins(at+1) && at+2 < len(f.tokens) && f.tokens[at+2].kind == word {
		at += 2
		if f.isAt(at, "template") {
			at++
		}
	}
	return at
}

// callAt finds the call of a primitive that begins at a token.
func (f *file) callAt(at int) *place {
	if f.joins(at - 1) {
		return nil
	}
	name := f.chainAt(at)
	primitive := primitiveOf[f.tokens[name].text]
	if primitive == nil {
		return nil
	}
	p := &place{first: at, receiver: name, primitive: primitive}
	open := name + 1
	if f.isAt(open, "<") {
		next, ok := f.afterAngle(open)
		if !ok {
			return nil
		}
		p.template = [2]int{open + 1, next - 1}
		open = next
	}
	if !f.isAt(open, "(") {
		return nil
	}
	last, ok := f.after(open)
	if !ok {
		return nil
	}
	p.last = last
	p.arguments = f.split(open+1, last-1)
	return p
}

// split splits tokens at the commas between them.
func (f *file) split(first, last int) [][2]int {
	if first == last {
		return nil
	}
	var parts [][2]int
	begin := first
	for i := first; i < last; i++ {
		switch t := f.tokens[i]; {
		case t.is(","):
			parts = append(parts, [2]int{begin, i})
			begin = i + 1
		case t.is("(") || t.is("[") || t.is("{"):
			next, _ := f.after(i)
			i = next - 1
		case t.is("<"):
			// template arguments, if what follows them is what they are of
			if next, ok := f.afterAngle(i); ok && (f.isAt(next, "(") || f.isAt(next, "{") || f.isAt(next, "::")) {
				i = next - 1
			}
		}
	}
	return append(parts, [2]int{begin, last})
}

// assignmentAt finds a variable of the table that an operator at a token sets.
func (f *file) assignmentAt(at int, inFunction bool, end int) *place {
	v := variableOf[f.tokens[at-1].text]
	if v == nil || !inFunction && v.kind != Phase || f.isConstant(at) || f.isVector(at-2) {
		return nil
	}
	last := at + 1
	for last < end && !f.isAt(last, ",") && !f.isAt(last, ";") && !f.isAt(last, ")") {
		if f.isAt(last, "(") || f.isAt(last, "[") || f.isAt(last, "{") {
			last, _ = f.after(last)
		} else {
			last++
		}
	}
	return &place{first: at + 1, last: last, variable: v, operator: f.tokens[at].text}
}

// isVector reports whether a word is a type of vectors: a variable of the table is a number, not a vector of its name.
func (f *file) isVector(at int) bool {
	return at >= 0 && slices.Contains([]string{"uint2", "uint4", "float2", "float4"}, f.tokens[at].text)
}

// isConstant reports whether a declaration is one of a constant of the compiler, which nothing changes at run time.
func (f *file) isConstant(at int) bool {
	for ; at >= 0; at-- {
		switch t := f.tokens[at]; {
		case t.is("constexpr"):
			return true
		case t.is(";") || t.is("{") || t.is("}") || t.kind == directive:
			return false
		}
	}
	return false
}

// incrementAt finds a variable of the table that a whole statement increments.
func (f *file) incrementAt(at int) *place {
	name := f.chainAt(at + 1)
	v := variableOf[f.tokens[name].text]
	if v == nil || !f.isAt(name+1, ";") {
		return nil
	}
	if f.isAt(at-1, "{") || f.isAt(at-1, ";") || f.isAt(at-1, "}") || f.isAt(at-1, ")") || f.isAt(at-1, "else") ||
		f.tokens[at-1].kind == directive {
		return &place{first: at, last: name + 1, variable: v, operator: "++"}
	}
	return nil
}

// alternatives are the mutants of a place that change it where it stands: the kind of each, what tells it from others
// of its kind, and its text, in which what belongs to the place is still to be filled in.
func (p *place) alternatives() []change {
	switch {
	case p.edit != nil:
		return []change{{p.edit.kind, p.edit.what, p.edit.to}}
	case p.variable != nil:
		switch kind := p.variable.kind; {
		case p.operator == "++":
			return []change{{kind, "not counted", "void()"}}
		case p.operator == "^=":
			return []change{{kind, "not changed", "0"}}
		case kind == Phase:
			return []change{{kind, "other", "(($call) ^ 1)"}}
		default:
			return []change{{kind, "more", "(($call) + 1)"}, {kind, "less", "(($call) - 1)"}}
		}
	}
	var all []change
	if !p.primitive.fixed {
		without := p.primitive.without
		if without == "" {
			without = "void()"
		}
		all = append(all, change{LeftOut, "", without})
	}
	for _, c := range p.primitive.changes {
		if !slices.ContainsFunc([]string{"$0", "$1", "$2", "$3", "$4"}, func(a string) bool {
			return strings.Contains(c.text, a) && int(a[1]-'0') >= len(p.arguments)
		}) {
			all = append(all, c)
		}
	}
	return all
}

// replaceOnce replaces the last of what may stand in a text more than once: an argument, not what is before it.
func replaceOnce(text, old, by string) string {
	at := strings.LastIndex(text, old)
	if at < 0 {
		panic("mutant: the table changes an argument that its text does not have")
	}
	return text[:at] + by + text[at+len(old):]
}
