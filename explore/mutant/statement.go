package mutant

import (
	"fmt"
	"slices"
)

// A form is what a node of a function is.
type form uint8

const (
	block   form = iota // { statements }
	control             // if, for, while, do, switch, with all that belongs to it
	plain               // an expression or a declaration, up to its semicolon
	jump                // return, break, continue
	marker              // a line of the preprocessor, a label, a local type
)

// A node is a statement, or the block of a lambda.
type node struct {
	form        form
	first, last int     // its tokens, with the pragmas before it: [first, last)
	body        int     // the first token after the pragmas
	children    []*node // statements of a block, and what is inside a statement: branches, bodies, lambdas
}

// A function is one that has a body, or a member with an initialiser.
type function struct {
	name string // with the type that it is a member of: "Producer::copy"
	body *node
}

// parse finds the functions of a source and their statements. It knows as much of C++ as the device runtime and what is
// emitted have.
func parse(source string) (*file, error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser{file: &file{source: source, tokens: tokens}}
	if err := p.scope(""); err != nil {
		return nil, err
	}
	if p.at < len(tokens) {
		return nil, p.errorf("a brace closes nothing")
	}
	return p.file, nil
}

// A file is a source and what was found in it.
type file struct {
	source    string
	tokens    []token
	functions []function
}

type parser struct {
	*file
	at int
}

func (p *parser) errorf(format string, args ...any) error {
	line := lineOf(p.source, len(p.source))
	if p.at < len(p.tokens) {
		line = lineOf(p.source, p.tokens[p.at].begin)
	}
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

func (p *parser) is(text string) bool { return p.at < len(p.tokens) && p.tokens[p.at].is(text) }
func (p *parser) isAt(at int, text string) bool {
	return at >= 0 && at < len(p.tokens) && p.tokens[at].is(text)
}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// after returns the token after the bracket that closes the one at a place, whatever lies between.
func (f *file) after(at int) (int, bool) {
	depth := 0
	for i := at; i < len(f.tokens); i++ {
		switch t := f.tokens[i]; {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// afterAngle is after of an angle bracket that begins a list of template arguments or parameters.
func (f *file) afterAngle(at int) (int, bool) {
	depth := 0
	for i := at; i < len(f.tokens); i++ {
		switch t := f.tokens[i]; {
		case t.is("<"):
			depth++
		case t.is(">"):
			if depth--; depth == 0 {
				return i + 1, true
			}
		case t.is("(") || t.is("[") || t.is("{"):
			next, ok := f.after(i)
			if !ok {
				return 0, false
			}
			i = next - 1
		case t.is(";") || t.is(")") || t.is("]") || t.is("}") || t.is("&&") || t.is("||"):
			return 0, false
		}
	}
	return 0, false
}

// scope parses what stands outside of functions, up to a closing brace or the end.
func (p *parser) scope(path string) error {
	for p.at < len(p.tokens) && !p.is("}") {
		switch t := p.tokens[p.at]; {
		case t.kind == directive || t.is(";"):
			p.at++
		case (t.is("public") || t.is("private") || t.is("protected")) && p.isAt(p.at+1, ":"):
			p.at += 2
		default:
			if err := p.declaration(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// braced parses the scope between braces.
func (p *parser) braced(path string) error {
	p.at++
	if err := p.scope(path); err != nil {
		return err
	}
	if !p.is("}") {
		return p.errorf("a brace is not closed")
	}
	p.at++
	return nil
}

// notNames stand before parentheses and are not names of functions.
var notNames = map[string]bool{"alignas": true, "decltype": true, "__launch_bounds__": true, "noexcept": true}

func (p *parser) declaration(path string) error {
	first := p.at
	for p.is("template") {
		next, ok := p.afterAngle(p.at + 1)
		if !ok {
			return p.errorf("a list of template parameters does not end")
		}
		p.at = next
	}
	switch t := p.tokens[p.at]; {
	case t.is("namespace") || t.is("extern") && p.isAt(p.at+2, "{"):
		for !p.is("{") && p.at < len(p.tokens) {
			p.at++
		}
		return p.braced(path)
	case t.is("struct") || t.is("class") || t.is("union") || t.is("enum"):
		return p.record(path)
	}
	name := "" // of a function, once its parameters have been passed
	initialises := false
	for p.at < len(p.tokens) {
		t := p.tokens[p.at]
		switch {
		case t.is(";"):
			p.at++
			if initialises && name == "" {
				p.functions = append(p.functions, function{path, &node{form: plain, first: first, last: p.at,
					body: first}})
			}
			return nil
		case t.is("operator"): // whose name is marks, or a pair of brackets
			name = t.text
			for p.at++; p.at < len(p.tokens) && (name == t.text || !p.is("(")); p.at++ {
				name += p.tokens[p.at].text
			}
		case t.is("="):
			initialises = true
			p.at++
		case t.is("{") && (name == "" || initialises || p.initialisesMember()):
			if name == "" {
				initialises = true
			}
			if err := p.skip(); err != nil {
				return err
			}
		case t.is("{"):
			body, err := p.block()
			if err != nil {
				return err
			}
			if path != "" {
				name = path + "::" + name
			}
			p.functions = append(p.functions, function{name, body})
			return nil
		case t.is("("):
			if before := p.tokens[p.at-1]; name == "" && !initialises && before.kind == word && !notNames[before.text] {
				name = before.text
			}
			if err := p.skip(); err != nil {
				return err
			}
		case t.is("["):
			if err := p.skip(); err != nil {
				return err
			}
		case t.is("}"):
			return p.errorf("a declaration does not end")
		default:
			p.at++
		}
	}
	return p.errorf("a declaration does not end")
}

// initialisesMember reports whether a brace begins the initialiser of a member, in the list of a constructor.
func (p *parser) initialisesMember() bool {
	before := p.tokens[p.at-1]
	return before.kind == word && before.text != "const" && before.text != "override" && before.text != "noexcept"
}

// skip passes what stands in brackets.
func (p *parser) skip() error {
	next, ok := p.after(p.at)
	if !ok {
		return p.errorf("a bracket is not closed")
	}
	p.at = next
	return nil
}

// record parses a struct, class, union or enum outside of functions.
func (p *parser) record(path string) error {
	isEnum := p.is("enum")
	name := ""
	for p.at++; p.at < len(p.tokens); {
		switch t := p.tokens[p.at]; {
		case t.is(";"):
			p.at++
			return nil
		case t.is("("):
			if err := p.skip(); err != nil {
				return err
			}
		case t.is("{") && isEnum:
			if err := p.skip(); err != nil {
				return err
			}
		case t.is("{"):
			inside := name
			if path != "" && name != "" {
				inside = path + "::" + name
			} else if name == "" {
				inside = path // an anonymous union or struct
			}
			if err := p.braced(inside); err != nil {
				return err
			}
		default:
			if t.kind == word && name == "" && t.text != "alignas" && t.text != "class" {
				name = t.text
			}
			p.at++
		}
	}
	return p.errorf("a type does not end")
}

// block parses statements between braces.
func (p *parser) block() (*node, error) {
	n := &node{form: block, first: p.at, body: p.at}
	for p.at++; !p.is("}"); {
		if p.at == len(p.tokens) {
			return nil, p.errorf("a block does not end")
		}
		child, err := p.statement()
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	p.at++
	n.last = p.at
	return n, nil
}

func (p *parser) statement() (*node, error) {
	n := &node{form: plain, first: p.at}
	for p.at < len(p.tokens) && p.tokens[p.at].kind == directive && directiveName(p.tokens[p.at].text) == "pragma" {
		p.at++
	}
	if p.at == len(p.tokens) {
		return nil, p.errorf("a block does not end")
	}
	n.body = p.at
	var err error
	switch t := p.tokens[p.at]; {
	case t.kind == directive:
		n.form = marker
		p.at++
	case t.is("{"):
		inner, e := p.block()
		if e != nil {
			return nil, e
		}
		inner.first = n.first
		return inner, nil
	case t.is("if") || t.is("for") || t.is("while") || t.is("switch"):
		n.form = control
		isIf := t.is("if")
		for p.at++; !p.is("("); p.at++ {
			if !p.is("constexpr") {
				return nil, p.errorf("a condition is missing")
			}
		}
		if err = p.group(n); err == nil {
			err = p.inside(n)
		}
		if err == nil && isIf && p.is("else") {
			p.at++
			err = p.inside(n)
		}
	case t.is("do"):
		n.form = control
		p.at++
		if err = p.inside(n); err == nil {
			err = p.upToSemicolon(n)
		}
	case t.is("return") || t.is("break") || t.is("continue"):
		n.form = jump
		err = p.upToSemicolon(n)
	case t.is("case") || t.is("default"):
		n.form = marker
		for !p.is(":") {
			if p.at++; p.at == len(p.tokens) {
				return nil, p.errorf("a label does not end")
			}
		}
		p.at++
	case t.is("struct") || t.is("union"):
		n.form = marker
		for !p.is(";") {
			if p.is("{") {
				err = p.skip()
			} else {
				p.at++
			}
			if err != nil || p.at == len(p.tokens) {
				return nil, p.errorf("a type does not end")
			}
		}
		p.at++
	default:
		err = p.upToSemicolon(n)
	}
	n.last = p.at
	return n, err
}

// inside parses the statement that belongs to a control statement.
func (p *parser) inside(n *node) error {
	child, err := p.statement()
	if err == nil {
		n.children = append(n.children, child)
	}
	return err
}

// group parses what stands in parentheses and has lambdas in it.
func (p *parser) group(n *node) error {
	p.at++
	for !p.is(")") {
		if err := p.piece(n); err != nil {
			return err
		}
	}
	p.at++
	return nil
}

func (p *parser) upToSemicolon(n *node) error {
	for !p.is(";") {
		if err := p.piece(n); err != nil {
			return err
		}
	}
	p.at++
	return nil
}

// piece passes a token, or what is in brackets, or the block of a lambda.
func (p *parser) piece(n *node) error {
	switch {
	case p.at == len(p.tokens) || p.is("}") || p.is(")") || p.is("]"):
		return p.errorf("a statement does not end")
	case p.is("("):
		return p.group(n)
	case p.is("{") && p.isLambda():
		child, err := p.block()
		if err == nil {
			n.children = append(n.children, child)
		}
		return err
	case p.is("{") || p.is("["):
		closed := closing[p.tokens[p.at].text]
		for p.at++; !p.is(closed); {
			if err := p.piece(n); err != nil {
				return err
			}
		}
	}
	p.at++
	return nil
}

// isLambda reports whether a brace begins the body of a lambda: parameters or captures stand before it.
func (p *parser) isLambda() bool {
	at := p.at - 1
	if p.isAt(at, "mutable") {
		at--
	}
	if p.isAt(at, "]") {
		// captures, not a subscript, which no brace follows
		return true
	}
	if !p.isAt(at, ")") {
		return false
	}
	depth := 0
	for ; at >= 0; at-- {
		if p.isAt(at, ")") {
			depth++
		} else if p.isAt(at, "(") {
			if depth--; depth == 0 {
				return p.isAt(at-1, "]")
			}
		}
	}
	return false
}

// words are the words of a statement.
func (f *file) words(n *node) []string {
	var all []string
	for _, t := range f.tokens[n.body:n.last] {
		if t.kind == word && !slices.Contains(all, t.text) {
			all = append(all, t.text)
		}
	}
	return all
}
