package jinja

import "slices"

// Bounds on how deep a template may nest. Expressions in a chain, a + b + c, count for themselves: they are evaluated
// one inside the other.
const (
	maxNesting = 100
	maxChain   = 1000
)

type parser struct {
	tokens  []token
	nesting int
	soft    bool        // inside an if, where a filter or test that nobody knows fails when it is reached
	loops   int         // around what is read
	unknown []*Error    // filters and tests that nobody knows, outside of conditions
	macros  []*macroDef // around what is read
}

func (p *parser) peek() token { return p.tokens[0] }

// next returns the current token and goes on; at the end it stays.
func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != tokEOF {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) is(kind tokenKind, text string) bool {
	return p.tokens[0].kind == kind && p.tokens[0].text == text
}

func (p *parser) isOp(op string) bool     { return p.is(tokOp, op) }
func (p *parser) isName(name string) bool { return p.is(tokName, name) }

func (p *parser) take(kind tokenKind, text string) bool {
	if !p.is(kind, text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) takeOp(op string) bool     { return p.take(tokOp, op) }
func (p *parser) takeName(name string) bool { return p.take(tokName, name) }

func (p *parser) want(kind tokenKind, text string) token {
	t := p.peek()
	if t.kind != kind || text != "" && t.text != text {
		what := text
		switch {
		case kind == tokName && text == "":
			what = "a name"
		case kind == tokBlockEnd:
			what = "%}"
		case kind == tokVarEnd:
			what = "}}"
		}
		fail(Syntax, t.line, "found %v; want %s", t, what)
	}
	return p.next()
}

// nested reads something inside something else.
func (p *parser) nested(read func()) {
	if p.nesting++; p.nesting > maxNesting {
		fail(Limit, p.peek().line, "more than %d levels of nesting", maxNesting)
	}
	read()
	p.nesting--
}

// statements reads up to a tag that begins with one of ends, which is left standing behind its {%; up to the end of the
// template if there are none.
func (p *parser) statements(ends []string) (body []stmt) {
	p.nested(func() {
		for {
			switch t := p.next(); t.kind {
			case tokEOF:
				if ends != nil {
					fail(Syntax, t.line, "the template ends too early; want {%% %s %%}", ends[len(ends)-1])
				}
				return
			case tokData:
				body = append(body, text(t.text))
			case tokVarBegin:
				body = append(body, output{p.tuple(true, nil, false)})
				p.want(tokVarEnd, "")
			case tokBlockBegin:
				if p.peek().kind == tokName && slices.Contains(ends, p.peek().text) {
					return
				}
				if s := p.statement(); s != nil {
					body = append(body, s)
				}
				p.want(tokBlockEnd, "")
			}
		}
	})
	return body
}

// block reads the end of a tag, statements, and the name of the tag that ends them.
func (p *parser) block(ends ...string) []stmt {
	p.takeOp(":")
	p.want(tokBlockEnd, "")
	return p.statements(ends)
}

// last is [parser.block] up to the last part of a tag.
func (p *parser) last(end string) []stmt {
	body := p.block(end)
	p.next()
	return body
}

// apart reads what jinja2 compiles apart from the if around it.
func (p *parser) apart(soft bool, read func()) {
	before := p.soft
	p.soft = soft
	read()
	p.soft = before
}

// refused are the tags of jinja2 that chat templates have no use for.
var refused = []string{"block", "extends", "include", "import", "from", "autoescape"}

func (p *parser) statement() (s stmt) {
	t := p.want(tokName, "")
	switch t.text {
	case "set":
		return p.set(t.line)
	case "if":
		p.apart(true, func() { s = p.ifElse() })
	case "for":
		return p.forLoop(t.line)
	case "macro":
		m := &macroDef{line: t.line, name: p.want(tokName, "").text}
		p.signature(m)
		p.macroBody(m, "endmacro")
		return m
	case "call":
		return p.callBlock(t.line)
	case "filter":
		first := p.want(tokName, "")
		f := p.filterChain(p.filter(nil, first))
		p.apart(false, func() { s = filterBlock{f, p.last("endfilter")} })
	case "with":
		return p.with()
	case "generation":
		p.apart(false, func() { s = scoped{p.last("endgeneration")} })
	case "print":
		var all []stmt
		for p.peek().kind != tokBlockEnd {
			if all != nil {
				p.want(tokOp, ",")
			}
			all = append(all, output{p.expression()})
		}
		return ifElse{cond: &literal{pos(t.line), true}, then: all}
	case "break":
		return breakLoop
	case "continue":
		return continueLoop
	default:
		if slices.Contains(refused, t.text) {
			unsupported(t.line, "the tag {% "+t.text+" %}")
		}
		fail(Syntax, t.line, "there is no tag {%% %s %%} here", t.text)
	}
	return s
}

func (p *parser) set(line int) (s stmt) {
	to := p.target(nil, true)
	if p.takeOp("=") {
		return assign{line, to, p.tuple(true, nil, false)}
	}
	var filters expr
	if p.isOp("|") {
		p.next()
		filters = p.filterChain(p.filter(nil, p.want(tokName, "")))
	}
	p.apart(false, func() { s = assignBlock{to, filters, p.last("endset")} })
	return s
}

func (p *parser) ifElse() stmt {
	first := ifElse{cond: p.tuple(false, nil, false)}
	first.then = p.block("elif", "else", "endif")
	all := []ifElse{first}
	for {
		end := p.next().text
		last := &all[len(all)-1]
		switch end {
		case "elif":
			if len(all) == maxChain {
				fail(Limit, p.peek().line, "more than %d elif in a row", maxChain)
			}
			branch := ifElse{cond: p.tuple(false, nil, false)}
			branch.then = p.block("elif", "else", "endif")
			all = append(all, branch)
			continue
		case "else":
			last.not = p.last("endif")
		}
		for i := len(all) - 1; i > 0; i-- {
			all[i-1].not = []stmt{all[i]}
		}
		return all[0]
	}
}

func (p *parser) forLoop(line int) stmt {
	p.loops++
	f := forLoop{line: line, to: p.target([]string{"in"}, false)}
	p.want(tokName, "in")
	f.over = p.tuple(false, []string{"recursive"}, false)
	p.apart(false, func() {
		if p.takeName("if") {
			f.cond = p.expression()
		}
		f.recursive = p.takeName("recursive")
		f.body = p.block("else", "endfor")
		if p.next().text == "else" {
			f.not = p.last("endfor")
		}
	})
	p.loops--
	return f
}

func (p *parser) with() (s stmt) {
	w := withBlock{}
	p.apart(false, func() {
		for p.peek().kind != tokBlockEnd {
			if w.to != nil {
				p.want(tokOp, ",")
			}
			w.to = append(w.to, p.target(nil, false))
			p.want(tokOp, "=")
			w.values = append(w.values, p.expression())
		}
		w.body = p.last("endwith")
	})
	return w
}

// signature reads the parameters of a macro.
func (p *parser) signature(m *macroDef) {
	p.want(tokOp, "(")
	for !p.isOp(")") {
		if m.params != nil {
			p.want(tokOp, ",")
		}
		t := p.want(tokName, "")
		if slices.Contains(m.params, t.text) {
			fail(Syntax, t.line, "the macro has two parameters %q", t.text)
		}
		m.params = append(m.params, t.text)
		if p.takeOp("=") {
			p.apart(false, func() { m.defaults = append(m.defaults, p.expression()) })
		} else if m.defaults != nil {
			fail(Syntax, t.line, "parameter %q has no default, and one before it has", t.text)
		}
	}
	p.want(tokOp, ")")
}

func (p *parser) macroBody(m *macroDef, end string) {
	p.macros = append(p.macros, m)
	p.apart(false, func() { m.body = p.last(end) })
	p.macros = p.macros[:len(p.macros)-1]
	at := slices.Index(m.params, "caller")
	if m.caller && at >= 0 && at < len(m.params)-len(m.defaults) {
		fail(Syntax, m.line, "the parameter caller of a macro needs a default")
	}
	m.rest = m.rest && !slices.Contains(m.params, "varargs")
	m.kw = m.kw && !slices.Contains(m.params, "kwargs")
}

func (p *parser) callBlock(line int) stmt {
	m := &macroDef{line: line}
	if p.isOp("(") {
		p.signature(m)
	}
	called, ok := p.expression().(*call)
	if !ok {
		fail(Syntax, line, "want a call of a macro after {%% call %%}")
	}
	p.macroBody(m, "endcall")
	return callBlock{m, called}
}

// target reads what is assigned to. With namespaces it may be an attribute.
func (p *parser) target(ends []string, namespaces bool) target {
	line := p.peek().line
	var all []target
	many := false
	for {
		if p.tupleEnds(ends) {
			break
		}
		all = append(all, p.oneTarget(namespaces))
		if !p.takeOp(",") {
			break
		}
		many = true
	}
	switch {
	case many:
		return target{line: line, items: all, many: true}
	case all == nil:
		fail(Syntax, line, "found %v; want a name to assign to", p.peek())
	}
	return all[0]
}

func (p *parser) oneTarget(namespaces bool) (to target) {
	if p.takeOp("(") {
		p.nested(func() { to = p.target(nil, false) })
		p.want(tokOp, ")")
		return to
	}
	t := p.want(tokName, "")
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, t.text) {
		fail(Syntax, t.line, "%s cannot be assigned to", t.text)
	}
	to = target{line: t.line, name: t.text}
	if namespaces && p.takeOp(".") {
		to.attr = p.want(tokName, "").text
	}
	if to.name == "loop" && to.attr == "" && p.loops > 0 {
		fail(Syntax, t.line, "loop cannot be assigned to inside of a loop")
	}
	return to
}
