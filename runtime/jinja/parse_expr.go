package jinja

import (
	"fmt"
	"slices"
	"strings"
)

func (p *parser) expression() (e expr) {
	p.nested(func() { e = p.conditional() })
	return e
}

// tuple reads an expression, or several with commas between them, which are a tuple.
func (p *parser) tuple(conditions bool, ends []string, brackets bool) expr {
	line := p.peek().line
	var items []expr
	many := false
	for !p.tupleEnds(ends) {
		if conditions {
			items = append(items, p.expression())
		} else {
			p.nested(func() { items = append(items, p.or()) })
		}
		if !p.takeOp(",") {
			break
		}
		many = true
	}
	switch {
	case many || brackets && items == nil:
		return &sequence{pos(line), seqTuple, items}
	case items == nil:
		fail(Syntax, line, "found %v; want an expression", p.peek())
	}
	return items[0]
}

func (p *parser) tupleEnds(names []string) bool {
	t := p.peek()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.kind == tokOp && t.text == ")" ||
		t.kind == tokName && slices.Contains(names, t.text)
}

func (p *parser) conditional() expr {
	line, known := p.peek().line, len(p.unknown)
	e := p.or()
	for n := 0; p.takeName("if"); n++ {
		p.bound(n)
		c := &conditional{pos: pos(line), yes: e}
		c.cond = p.or()
		if p.takeName("else") {
			p.nested(func() { c.no = p.conditional() })
		}
		p.unknown = p.unknown[:known]
		e = c
	}
	return e
}

// bound keeps chains of operators short enough to be evaluated one inside the other.
func (p *parser) bound(n int) {
	if n >= maxChain {
		fail(Limit, p.peek().line, "more than %d operators in a row", maxChain)
	}
}

// chain reads operands with operators between them, from left to right.
func (p *parser) chain(kind tokenKind, ops []string, operand func() expr) expr {
	line := p.peek().line
	left := operand()
	for n := 0; p.peek().kind == kind && slices.Contains(ops, p.peek().text); n++ {
		p.bound(n)
		op := p.next().text
		left = &binary{pos(line), op, left, operand()}
	}
	return left
}

var (
	orOps    = []string{"or"}
	andOps   = []string{"and"}
	sumOps   = []string{"+", "-"}
	timesOps = []string{"*", "/", "//", "%"}
	powOps   = []string{"**"}
	compOps  = []string{"==", "!=", "<", "<=", ">", ">="}
)

func (p *parser) or() expr  { return p.chain(tokName, orOps, p.and) }
func (p *parser) and() expr { return p.chain(tokName, andOps, p.not) }

func (p *parser) not() expr {
	if t := p.peek(); p.takeName("not") {
		var of expr
		p.nested(func() { of = p.not() })
		return &unary{pos(t.line), "not", of}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	c := &comparison{pos: pos(p.peek().line), first: p.sum()}
	for n := 0; ; n++ {
		p.bound(n)
		op := p.peek().text
		switch {
		case p.peek().kind == tokOp && slices.Contains(compOps, op):
			p.next()
		case p.takeName("in"):
		case p.isName("not") && p.tokens[1].kind == tokName && p.tokens[1].text == "in":
			p.next()
			p.next()
			op = "not in"
		case c.ops == nil:
			return c.first
		default:
			return c
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr { return p.chain(tokOp, sumOps, p.concat) }

func (p *parser) concat() expr {
	c := &concat{pos(p.peek().line), []expr{p.times()}}
	for p.takeOp("~") {
		c.parts = append(c.parts, p.times())
	}
	if len(c.parts) == 1 {
		return c.parts[0]
	}
	return c
}

func (p *parser) times() expr { return p.chain(tokOp, timesOps, p.power) }
func (p *parser) power() expr {
	return p.chain(tokOp, powOps, func() expr { return p.unary(true) })
}

func (p *parser) unary(filters bool) (e expr) {
	if t := p.peek(); p.isOp("-") || p.isOp("+") {
		p.next()
		p.nested(func() { e = &unary{pos(t.line), t.text, p.unary(false)} })
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() (e expr) {
	t := p.next()
	at := pos(t.line)
	switch {
	case t.kind == tokName:
		switch t.text {
		case "true", "True":
			return &literal{at, true}
		case "false", "False":
			return &literal{at, false}
		case "none", "None":
			return &literal{at, nil}
		}
		for _, m := range p.macros {
			m.caller = m.caller || t.text == "caller"
			m.rest = m.rest || t.text == "varargs"
			m.kw = m.kw || t.text == "kwargs"
		}
		return &name{at, t.text}
	case t.kind == tokString:
		s := t.text
		if p.peek().kind == tokString {
			var b strings.Builder
			b.WriteString(s)
			for p.peek().kind == tokString {
				b.WriteString(p.next().text)
			}
			s = b.String()
		}
		return &literal{at, s}
	case t.kind == tokNumber:
		return &literal{at, t.value}
	case t.kind == tokOp && t.text == "(":
		p.nested(func() { e = p.tuple(true, nil, true) })
		p.want(tokOp, ")")
		return e
	case t.kind == tokOp && t.text == "[":
		list := &sequence{at, seqList, nil}
		p.items("]", func() { list.items = append(list.items, p.expression()) })
		return list
	case t.kind == tokOp && t.text == "{":
		m := &mapping{pos: at}
		p.items("}", func() {
			m.keys = append(m.keys, p.expression())
			p.want(tokOp, ":")
			m.values = append(m.values, p.expression())
		})
		return m
	}
	fail(Syntax, t.line, "found %v; want an expression", t)
	return nil
}

// items reads what stands between two brackets, with commas between and perhaps behind.
func (p *parser) items(end string, read func()) {
	for n := 0; !p.isOp(end); n++ {
		if n > 0 {
			p.want(tokOp, ",")
			if p.isOp(end) {
				break
			}
		}
		read()
	}
	p.want(tokOp, end)
}

func (p *parser) postfix(e expr) expr {
	for n := 0; ; n++ {
		p.bound(n)
		switch {
		case p.isOp(".") || p.isOp("["):
			e = p.subscript(e)
		case p.isOp("("):
			e = &call{pos(p.peek().line), e, p.arguments()}
		default:
			return e
		}
	}
}

func (p *parser) filters(e expr) expr {
	for n := 0; ; n++ {
		p.bound(n)
		switch {
		case p.isOp("|"):
			p.next()
			e = p.filter(e, p.want(tokName, ""))
		case p.isName("is"):
			e = p.test(e)
		case p.isOp("("):
			e = &call{pos(p.peek().line), e, p.arguments()}
		default:
			return e
		}
	}
}

// filterChain reads the further filters of a block.
func (p *parser) filterChain(e expr) expr {
	for n := 0; p.takeOp("|"); n++ {
		p.bound(n)
		e = p.filter(e, p.want(tokName, ""))
	}
	return e
}

func (p *parser) filter(of expr, t token) expr {
	f := &filter{pos: pos(t.line), of: of, name: p.dotted(t.text)}
	p.known("filter", f.name, t.line, filters[f.name] != nil, refusedFilters)
	if p.isOp("(") {
		f.args = p.arguments()
	}
	return f
}

// known refuses the name of a filter or test. One that jinja2 has not either is an error unless a condition stands
// around it, which may yet follow.
func (p *parser) known(what, name string, line int, have bool, refused []string) {
	switch {
	case have:
	case slices.Contains(refused, name):
		unsupported(line, "the "+what+" "+name)
	case !p.soft:
		p.unknown = append(p.unknown, &Error{Syntax, line, fmt.Sprintf("there is no %s %q", what, name)})
	}
}

func (p *parser) dotted(name string) string {
	for p.takeOp(".") {
		name += "." + p.want(tokName, "").text
	}
	return name
}

func (p *parser) test(of expr) expr {
	at := pos(p.next().line)
	negated := p.takeName("not")
	t := &test{pos: at, of: of, name: p.dotted(p.want(tokName, "").text)}
	p.known("test", t.name, int(at), tests[t.name] != nil, nil)
	switch next := p.peek(); {
	case p.isOp("("):
		t.args = p.arguments()
	case p.isName("is"):
		fail(Syntax, next.line, "one test with is cannot follow another")
	case p.isName("else"), p.isName("or"), p.isName("and"):
	case next.kind == tokName, next.kind == tokString, next.kind == tokNumber, p.isOp("["), p.isOp("{"):
		p.nested(func() { t.args.pos = []expr{p.postfix(p.primary())} })
	}
	if negated {
		return &unary{at, "not", t}
	}
	return t
}

func (p *parser) subscript(of expr) expr {
	at := pos(p.peek().line)
	if p.next().text == "." {
		t := p.next()
		if _, whole := t.value.(int64); t.kind == tokNumber && whole {
			return &item{at, of, &literal{at, t.value}}
		}
		if t.kind != tokName {
			fail(Syntax, t.line, "found %v; want a name after the dot", t)
		}
		return &attribute{at, of, t.text}
	}
	var keys []expr
	for !p.isOp("]") {
		if keys != nil {
			p.want(tokOp, ",")
		}
		keys = append(keys, p.subscribed(at, of))
	}
	p.want(tokOp, "]")
	if len(keys) == 1 {
		if s, ok := keys[0].(*slice); ok && s.of == of { // and no slice that is the key
			return s
		}
		return &item{at, of, keys[0]}
	}
	if slices.ContainsFunc(keys, func(e expr) bool { s, ok := e.(*slice); return ok && s.of == of }) {
		unsupported(int(at), "a slice of more than one dimension")
	}
	return &item{at, of, &sequence{at, seqTuple, keys}}
}

// subscribed reads a key, or the bounds of a slice.
func (p *parser) subscribed(at pos, of expr) expr {
	s := &slice{pos: at, of: of}
	if !p.isOp(":") {
		if s.from = p.expression(); !p.isOp(":") {
			return s.from
		}
	}
	p.next()
	ends := func() bool { return p.isOp("]") || p.isOp(",") }
	if !ends() && !p.isOp(":") {
		s.to = p.expression()
	}
	if p.takeOp(":") && !ends() {
		s.step = p.expression()
	}
	return s
}

func (p *parser) arguments() (a arguments) {
	open := p.want(tokOp, "(")
	for n := 0; !p.isOp(")"); n++ {
		if n > 0 {
			p.want(tokOp, ",")
			if p.isOp(")") {
				break
			}
		}
		wrong := a.dict != nil
		switch {
		case p.takeOp("*"):
			wrong = wrong || a.list != nil
			a.list = p.expression()
		case p.takeOp("**"):
			a.dict = p.expression()
		case p.peek().kind == tokName && p.tokens[1].kind == tokOp && p.tokens[1].text == "=":
			t := p.next()
			p.next()
			if slices.Contains(a.names, t.text) {
				fail(Syntax, t.line, "the call has two arguments %q", t.text)
			}
			a.names, a.values = append(a.names, t.text), append(a.values, p.expression())
		default:
			wrong = wrong || a.list != nil || a.names != nil
			a.pos = append(a.pos, p.expression())
		}
		if wrong {
			fail(Syntax, open.line, "the arguments of a call are in the wrong order")
		}
	}
	p.want(tokOp, ")")
	return a
}
