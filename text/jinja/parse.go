package jinja

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds on how deep a template may nest. Operators in a chain, a + b + c, count too: they are evaluated inside each
// other.
const (
	maxNesting = 100
	maxChain   = 1000
)

// An expr evaluates an expression.
type expr func(in *interp, s *scope) Value

// A pipe applies a filter, or several, to a value.
type pipe func(in *interp, s *scope, v Value) Value

// parser compiles a template as it reads it.
type parser struct {
	tokens  []token
	nesting int
	soft    bool        // inside an if, where an unknown filter or test fails only when it is evaluated
	loops   int         // around what is read
	unknown []*Error    // unknown filters and tests outside of conditions
	macros  []*macroDef // around what is read
	called  *called     // what the last node is, if it is a call
}

type called struct {
	line int
	fn   expr
	args func(in *interp, s *scope) *args
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

// is reports whether the next token is one of some operators or words.
func (p *parser) is(kind tokenKind, texts ...string) bool {
	return p.tokens[0].kind == kind && slices.Contains(texts, p.tokens[0].text)
}

func (p *parser) isOp(ops ...string) bool { return p.is(tokOp, ops...) }

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
		if text == "" {
			text = "a name"
		}
		p.fail(t.line, "found %v; want %s", t, text)
	}
	return p.next()
}

func (p *parser) name() string { return p.want(tokName, "").text }

func (p *parser) fail(line int, format string, args ...any) { fail(Syntax, line, format, args...) }

// nested reads something inside something else.
func (p *parser) nested(read func()) {
	if p.nesting++; p.nesting > maxNesting {
		fail(Limit, p.peek().line, "more than %d levels of nesting", maxNesting)
	}
	read()
	p.nesting--
}

// bound keeps chains of operators short enough to be evaluated inside each other.
func (p *parser) bound(n int) {
	if n >= maxChain {
		fail(Limit, p.peek().line, "more than %d operators in a row", maxChain)
	}
}

// node makes an expression of what evaluates it.
func (p *parser) node(line int, f expr) expr {
	p.called = nil
	return func(in *interp, s *scope) Value {
		outer := in.line
		in.line = line
		in.work(0)
		in.enter()
		v := f(in, s)
		in.leave()
		in.line = outer
		return v
	}
}

func (p *parser) constant(line int, v Value) expr {
	return p.node(line, func(*interp, *scope) Value { return v })
}

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
		return p.sequence(line, seqTuple, items)
	case items == nil:
		p.fail(line, "found %v; want an expression", p.peek())
	}
	return items[0]
}

func (p *parser) tupleEnds(names []string) bool {
	return p.isOp("}}", "%}", ")") || p.is(tokName, names...)
}

func (p *parser) sequence(line int, kind seqKind, items []expr) expr {
	return p.node(line, func(in *interp, s *scope) Value {
		in.alloc(16 * len(items))
		l := &List{items: make([]Value, len(items)), kind: kind}
		for i, item := range items {
			l.items[i] = item(in, s)
		}
		return l
	})
}

func (p *parser) conditional() expr {
	line, known := p.peek().line, len(p.unknown)
	e := p.or()
	for n := 0; p.takeName("if"); n++ {
		p.bound(n)
		yes, cond, no := e, p.or(), expr(nil)
		if p.takeName("else") {
			p.nested(func() { no = p.conditional() })
		}
		p.unknown = p.unknown[:known]
		e = p.node(line, func(in *interp, s *scope) Value {
			switch {
			case truth(cond(in, s)):
				return yes(in, s)
			case no == nil:
				return &undefined{"the inline if has no else and its condition is false, so its value is undefined"}
			}
			return no(in, s)
		})
	}
	return e
}

// binary reads operands with operators between them, from left to right.
func (p *parser) binary(operand func() expr, kind tokenKind, ops ...string) expr {
	line := p.peek().line
	e := operand()
	for n := 0; p.is(kind, ops...); n++ {
		p.bound(n)
		left, op := e, p.next().text
		right := operand()
		e = p.node(line, func(in *interp, s *scope) Value {
			a := left(in, s)
			switch op {
			case "and", "or":
				if truth(a) == (op == "or") {
					return a
				}
				return right(in, s)
			}
			return in.operate(op, a, right(in, s))
		})
	}
	return e
}

func (p *parser) or() expr    { return p.binary(p.and, tokName, "or") }
func (p *parser) and() expr   { return p.binary(p.not, tokName, "and") }
func (p *parser) sum() expr   { return p.binary(p.concat, tokOp, "+", "-") }
func (p *parser) times() expr { return p.binary(p.power, tokOp, "*", "/", "//", "%") }
func (p *parser) power() expr {
	return p.binary(func() expr { return p.unary(true) }, tokOp, "**")
}

func (p *parser) not() expr {
	line := p.peek().line
	if !p.takeName("not") {
		return p.comparison()
	}
	var of expr
	p.nested(func() { of = p.not() })
	return p.negated(line, of)
}

func (p *parser) negated(line int, of expr) expr {
	return p.node(line, func(in *interp, s *scope) Value { return !truth(of(in, s)) })
}

func (p *parser) comparison() expr {
	line, first := p.peek().line, p.sum()
	var ops []string
	var rest []expr
	for n := 0; ; n++ {
		p.bound(n)
		op := p.peek().text
		switch {
		case p.isOp("==", "!=", "<", "<=", ">", ">="), p.is(tokName, "in"):
			p.next()
		case p.is(tokName, "not") && p.tokens[1].kind == tokName && p.tokens[1].text == "in":
			p.next()
			p.next()
			op = "not in"
		case ops == nil:
			return first
		default:
			return p.node(line, func(in *interp, s *scope) Value {
				left := first(in, s)
				for i, op := range ops {
					right := rest[i](in, s)
					if !in.compare(op, left, right) {
						return false
					}
					left = right
				}
				return true
			})
		}
		ops, rest = append(ops, op), append(rest, p.sum())
	}
}

func (p *parser) concat() expr {
	line, parts := p.peek().line, []expr{p.times()}
	for p.takeOp("~") {
		parts = append(parts, p.times())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return p.node(line, func(in *interp, s *scope) Value {
		texts, total := make([]string, len(parts)), 0
		for i, part := range parts {
			texts[i] = in.text(part(in, s))
			total += len(texts[i])
		}
		in.alloc(total)
		return strings.Join(texts, "")
	})
}

func (p *parser) unary(filters bool) (e expr) {
	if t := p.peek(); p.isOp("-", "+") {
		p.next()
		var of expr
		p.nested(func() { of = p.unary(false) })
		e = p.node(t.line, func(in *interp, s *scope) Value { return in.sign(t.text, of(in, s)) })
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
	switch {
	case t.kind == tokName:
		switch t.text {
		case "true", "True":
			return p.constant(t.line, true)
		case "false", "False":
			return p.constant(t.line, false)
		case "none", "None":
			return p.constant(t.line, nil)
		}
		for _, m := range p.macros {
			m.caller = m.caller || t.text == "caller"
			m.rest = m.rest || t.text == "varargs"
			m.kw = m.kw || t.text == "kwargs"
		}
		return p.node(t.line, func(in *interp, s *scope) Value {
			if v, ok := s.lookup(t.text); ok {
				return v
			}
			return &undefined{quoted(t.text) + " is undefined"}
		})
	case t.kind == tokString:
		var b strings.Builder
		for b.WriteString(t.text); p.peek().kind == tokString; {
			b.WriteString(p.next().text)
		}
		return p.constant(t.line, b.String())
	case t.kind == tokNumber:
		return p.constant(t.line, t.value)
	case t.kind == tokOp && t.text == "(":
		p.nested(func() { e = p.tuple(true, nil, true) })
		p.want(tokOp, ")")
		return e
	case t.kind == tokOp && t.text == "[":
		var items []expr
		p.items("]", func() { items = append(items, p.expression()) })
		return p.sequence(t.line, seqList, items)
	case t.kind == tokOp && t.text == "{":
		var keys, values []expr
		p.items("}", func() {
			keys = append(keys, p.expression())
			p.want(tokOp, ":")
			values = append(values, p.expression())
		})
		return p.node(t.line, func(in *interp, s *scope) Value {
			in.alloc(entrySize * len(keys))
			d := &Dict{}
			for i := range keys {
				k := keys[i](in, s)
				d.set(in.key(k), k, values[i](in, s))
			}
			return d
		})
	}
	p.fail(t.line, "found %v; want an expression", t)
	return nil
}

// items reads what stands before a closing bracket, with commas between and perhaps after.
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
		case p.isOp(".", "["):
			e = p.subscript(e)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

// filters reads what may follow an operand: filters and tests.
func (p *parser) filters(e expr) expr {
	for n := 0; ; n++ {
		p.bound(n)
		switch line := p.peek().line; {
		case p.takeOp("|"):
			of, f := e, p.filter()
			e = p.node(line, func(in *interp, s *scope) Value { return f(in, s, of(in, s)) })
		case p.takeName("is"):
			e = p.test(e, line)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) call(fn expr) expr {
	c := &called{p.peek().line, fn, p.arguments()}
	e := p.node(c.line, func(in *interp, s *scope) Value {
		fn := c.fn(in, s)
		return in.call(fn, c.args(in, s))
	})
	p.called = c
	return e
}

// filter reads a filter after its |.
func (p *parser) filter() pipe {
	line := p.peek().line
	key := "|" + p.dotted()
	p.known("filter", key, line)
	with := noArgs
	if p.isOp("(") {
		with = p.arguments()
	}
	return func(in *interp, s *scope, v Value) Value {
		a := with(in, s)
		in.line = line
		return in.apply(key, v, a)
	}
}

// pipeline reads the filters of a block.
func (p *parser) pipeline() pipe {
	var all []pipe
	for n := 0; n == 0 || p.takeOp("|"); n++ {
		p.bound(n)
		all = append(all, p.filter())
	}
	return func(in *interp, s *scope, v Value) Value {
		for _, f := range all {
			v = f(in, s, v)
		}
		return v
	}
}

func (p *parser) test(of expr, line int) expr {
	negated := p.takeName("not")
	key := "is " + p.dotted()
	p.known("test", key, line)
	with := noArgs
	switch next := p.peek(); {
	case p.isOp("("):
		with = p.arguments()
	case p.is(tokName, "is"):
		p.fail(next.line, "one test with is cannot follow another")
	case p.is(tokName, "else", "or", "and"):
	case next.kind == tokName, next.kind == tokString, next.kind == tokNumber, p.isOp("[", "{"):
		p.nested(func() {
			arg := p.postfix(p.primary())
			with = func(in *interp, s *scope) *args { return &args{pos: []Value{arg(in, s)}} }
		})
	}
	e := p.node(line, func(in *interp, s *scope) Value {
		v := of(in, s)
		return in.apply(key, v, with(in, s))
	})
	if negated {
		return p.negated(line, e)
	}
	return e
}

func (p *parser) dotted() string {
	name := p.name()
	for p.takeOp(".") {
		name += "." + p.name()
	}
	return name
}

// known refuses an unknown filter or test. One that jinja2 does not have either is an error unless a condition stands
// around it, which may still follow.
func (p *parser) known(what, key string, line int) {
	name := key[strings.IndexAny(key, "| ")+1:]
	if _, ok := builtins[key]; ok {
		return
	}
	if what == "filter" && slices.Contains(refusedFilters, name) {
		fail(Unsupported, line, "the filter %s is not supported", name)
	}
	if !p.soft {
		p.unknown = append(p.unknown, &Error{Syntax, line, fmt.Sprintf("there is no %s %q", what, name)})
	}
}

func (p *parser) subscript(of expr) expr {
	t := p.next()
	line := t.line
	if t.text == "." {
		t := p.next()
		if _, whole := t.value.(int64); t.kind == tokNumber && whole {
			return p.item(line, of, p.constant(line, t.value))
		}
		if t.kind != tokName {
			p.fail(t.line, "found %v; want a name after the dot", t)
		}
		return p.node(line, func(in *interp, s *scope) Value { return in.attribute(of(in, s), t.text) })
	}
	var keys []expr
	var bounds *[3]expr
	for !p.isOp("]") {
		if keys != nil {
			p.want(tokOp, ",")
		}
		key, slice := p.subscribed()
		if keys, bounds = append(keys, key), slice; slice != nil && (len(keys) > 1 || p.isOp(",")) {
			fail(Unsupported, line, "a slice of more than one dimension is not supported")
		}
	}
	p.want(tokOp, "]")
	switch {
	case bounds != nil:
		return p.node(line, func(in *interp, s *scope) Value {
			v := of(in, s)
			values := [3]Value{}
			for i, b := range bounds {
				if b != nil {
					values[i] = b(in, s)
				}
			}
			return in.slice(v, values)
		})
	case len(keys) == 1:
		return p.item(line, of, keys[0])
	}
	return p.item(line, of, p.sequence(line, seqTuple, keys))
}

func (p *parser) item(line int, of, key expr) expr {
	return p.node(line, func(in *interp, s *scope) Value {
		v := of(in, s)
		return in.item(v, key(in, s))
	})
}

// subscribed reads a key, or the bounds of a slice.
func (p *parser) subscribed() (key expr, bounds *[3]expr) {
	if !p.isOp(":") {
		if key = p.expression(); !p.isOp(":") {
			return key, nil
		}
	}
	bounds = &[3]expr{key}
	p.next()
	if !p.isOp("]", ",", ":") {
		bounds[1] = p.expression()
	}
	if p.takeOp(":") && !p.isOp("]", ",") {
		bounds[2] = p.expression()
	}
	return nil, bounds
}

func noArgs(*interp, *scope) *args { return &args{} }

// arguments reads those of a call.
func (p *parser) arguments() func(*interp, *scope) *args {
	open := p.want(tokOp, "(")
	var pos, values []expr
	var names []string
	var list, dict expr
	p.items(")", func() {
		wrong := dict != nil
		switch {
		case p.takeOp("*"):
			wrong = wrong || list != nil
			list = p.expression()
		case p.takeOp("**"):
			dict = p.expression()
		case p.peek().kind == tokName && p.tokens[1].kind == tokOp && p.tokens[1].text == "=":
			t := p.next()
			p.next()
			if slices.Contains(names, t.text) {
				p.fail(t.line, "the call has two arguments %q", t.text)
			}
			names, values = append(names, t.text), append(values, p.expression())
		default:
			wrong = wrong || list != nil || names != nil
			pos = append(pos, p.expression())
		}
		if wrong {
			p.fail(open.line, "the arguments of a call are in the wrong order")
		}
	})
	return func(in *interp, s *scope) *args {
		a := &args{}
		for _, e := range pos {
			a.pos = append(a.pos, e(in, s))
		}
		if list != nil {
			more := list(in, s)
			in.alloc(16 * len(a.pos))
			a.pos = append(a.pos, in.list(more)...)
		}
		for i, e := range values {
			a.add(names[i], e(in, s))
		}
		if dict != nil {
			d, ok := dict(in, s).(*Dict)
			if !ok {
				in.fail("what stands after ** is not a dictionary")
			}
			in.alloc(32 * len(d.entries))
			for _, e := range d.entries {
				a.add(in.want(e.key, "a key after **"), e.value)
			}
		}
		return a
	}
}
