package jinja

import (
	"slices"
	"strings"
)

// A stmt executes a statement. It may end early with a jump out of a loop.
type stmt struct {
	line int
	run  func(in *interp, s *scope) jump
}

type jump int

const (
	goOn jump = iota
	breakLoop
	continueLoop
)

// printing is the statement that prints a value.
func printing(line int, e expr) stmt {
	return stmt{line, func(in *interp, s *scope) jump {
		in.print(in.text(e(in, s)))
		return goOn
	}}
}

func (in *interp) block(body []stmt, s *scope) (j jump) {
	in.enter()
	for _, st := range body {
		in.line = st.line
		in.work(0)
		if j = st.run(in, s); j != goOn {
			break
		}
	}
	in.leave()
	return j
}

// statements reads up to a tag that begins with one of ends, whose name is the next token then; up to the end of the
// template if there are none.
func (p *parser) statements(ends []string) (body []stmt) {
	p.nested(func() {
		for {
			switch t := p.next(); {
			case t.kind == tokEOF:
				if ends != nil {
					p.fail(t.line, "the template ends too early; want {%% %s %%}", ends[len(ends)-1])
				}
				return
			case t.kind == tokData:
				body = append(body, stmt{t.line, func(in *interp, _ *scope) jump {
					in.print(t.text)
					return goOn
				}})
			case t.text == "{{":
				body = append(body, printing(t.line, p.tuple(true, nil, false)))
				p.want(tokOp, "}}")
			default:
				if p.is(tokName, ends...) {
					return
				}
				line := p.peek().line
				body = append(body, stmt{line, p.statement(line)})
				p.want(tokOp, "%}")
			}
		}
	})
	return body
}

// block reads the end of a tag, statements, and the name of the tag that ends them.
func (p *parser) block(ends ...string) (body []stmt, end string) {
	p.takeOp(":")
	p.want(tokOp, "%}")
	body = p.statements(ends)
	return body, p.next().text
}

// apart reads what jinja2 compiles apart from the if around it.
func (p *parser) apart(soft bool, read func()) {
	before := p.soft
	p.soft = soft
	read()
	p.soft = before
}

// last reads the last block of a tag, which jinja2 compiles apart.
func (p *parser) last(end string) (body []stmt) {
	p.apart(false, func() { body, _ = p.block(end) })
	return body
}

// refused are the tags of jinja2 that chat templates have no use for.
var refused = []string{"block", "extends", "include", "import", "from", "autoescape"}

func (p *parser) statement(line int) (run func(*interp, *scope) jump) {
	switch tag := p.name(); tag {
	case "set":
		return p.set()
	case "if":
		p.apart(true, func() { run = p.ifElse() })
		return run
	case "for":
		return p.forLoop(line)
	case "macro":
		m := &macroDef{line: line, name: p.name()}
		p.signature(m)
		p.macroBody(m, "endmacro")
		return func(_ *interp, s *scope) jump {
			s.vars[m.name] = &macro{m, s}
			return goOn
		}
	case "call":
		return p.callBlock(line)
	case "filter":
		f := p.pipeline()
		body := p.last("endfilter")
		return func(in *interp, s *scope) jump {
			inner := s.inner()
			in.print(in.text(f(in, inner, in.capture(func() { in.block(body, inner) }))))
			return goOn
		}
	case "with":
		return p.with()
	case "generation":
		body := p.last("endgeneration")
		return func(in *interp, s *scope) jump {
			in.print(in.capture(func() { in.block(body, s.inner()) }))
			return goOn
		}
	case "print":
		var all []stmt
		for !p.isOp("%}") {
			if all != nil {
				p.want(tokOp, ",")
			}
			all = append(all, printing(line, p.expression()))
		}
		return func(in *interp, s *scope) jump { return in.block(all, s) }
	case "break":
		return func(*interp, *scope) jump { return breakLoop }
	case "continue":
		return func(*interp, *scope) jump { return continueLoop }
	default:
		if slices.Contains(refused, tag) {
			fail(Unsupported, line, "the tag {%% %s %%} is not supported", tag)
		}
		p.fail(line, "there is no tag {%% %s %%} here", tag)
	}
	return nil
}

func (p *parser) set() func(*interp, *scope) jump {
	to := p.target(nil, true)
	var value func(in *interp, s *scope) Value
	if p.takeOp("=") {
		value = p.tuple(true, nil, false)
	} else {
		f := func(_ *interp, _ *scope, v Value) Value { return v }
		if p.takeOp("|") {
			f = p.pipeline()
		}
		body := p.last("endset")
		value = func(in *interp, s *scope) Value {
			return f(in, s, in.capture(func() { in.block(body, s.inner()) }))
		}
	}
	return func(in *interp, s *scope) jump {
		in.assignable(&to, s)
		in.assign(&to, value(in, s), s)
		return goOn
	}
}

func (p *parser) ifElse() func(*interp, *scope) jump {
	type branch struct {
		cond expr // nil: else
		body []stmt
	}
	var all []branch
	for end := "elif"; end == "elif"; {
		if len(all) == maxChain {
			fail(Limit, p.peek().line, "more than %d elif in a row", maxChain)
		}
		b := branch{cond: p.tuple(false, nil, false)}
		b.body, end = p.block("elif", "else", "endif")
		if all = append(all, b); end == "else" {
			body, _ := p.block("endif")
			all = append(all, branch{nil, body})
		}
	}
	return func(in *interp, s *scope) jump {
		for _, b := range all {
			if b.cond == nil || truth(b.cond(in, s)) {
				return in.block(b.body, s)
			}
		}
		return goOn
	}
}

func (p *parser) with() func(*interp, *scope) jump {
	var to []target
	var values []expr
	var body []stmt
	p.apart(false, func() {
		for !p.isOp("%}") {
			if to != nil {
				p.want(tokOp, ",")
			}
			to = append(to, p.target(nil, false))
			p.want(tokOp, "=")
			values = append(values, p.expression())
		}
		body = p.last("endwith")
	})
	return func(in *interp, s *scope) jump {
		inner := s.inner()
		for i := range to {
			in.assign(&to[i], values[i](in, s), inner)
		}
		return in.block(body, inner)
	}
}

// A target is what is assigned to: a name, an attribute of a namespace, or several targets.
type target struct {
	line  int
	name  string
	attr  string
	items []target
	many  bool
}

// target reads what is assigned to. With namespaces it may be an attribute.
func (p *parser) target(ends []string, namespaces bool) target {
	to := target{line: p.peek().line}
	for !p.tupleEnds(ends) {
		to.items = append(to.items, p.oneTarget(namespaces))
		if !p.takeOp(",") {
			break
		}
		to.many = true
	}
	switch {
	case to.many:
		return to
	case to.items == nil:
		p.fail(to.line, "found %v; want a name to assign to", p.peek())
	}
	return to.items[0]
}

func (p *parser) oneTarget(namespaces bool) (to target) {
	if p.takeOp("(") {
		p.nested(func() { to = p.target(nil, false) })
		p.want(tokOp, ")")
		return to
	}
	t := p.want(tokName, "")
	if slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, t.text) {
		p.fail(t.line, "%s cannot be assigned to", t.text)
	}
	to = target{line: t.line, name: t.text}
	if namespaces && p.takeOp(".") {
		to.attr = p.name()
	}
	if to.name == "loop" && to.attr == "" && p.loops > 0 {
		p.fail(t.line, "loop cannot be assigned to inside of a loop")
	}
	return to
}

// assignable fails if an attribute of anything but a namespace is assigned to, before the value is evaluated.
func (in *interp) assignable(to *target, s *scope) {
	for i := range to.items {
		in.assignable(&to.items[i], s)
	}
	if to.attr != "" {
		in.line = to.line
		in.namespaceOf(to, s)
	}
}

func (in *interp) namespaceOf(to *target, s *scope) *namespace {
	v, _ := s.lookup(to.name)
	ns, ok := v.(*namespace)
	if !ok {
		in.fail("%s is not a namespace, so its attribute %s cannot be set", to.name, to.attr)
	}
	return ns
}

func (in *interp) assign(to *target, v Value, s *scope) {
	in.line = to.line
	switch {
	case to.many:
		parts := in.list(v)
		if len(parts) != len(to.items) {
			in.fail("%d values are assigned to %d names", len(parts), len(to.items))
		}
		for i := range parts {
			in.assign(&to.items[i], parts[i], s)
		}
	case to.attr != "":
		in.store(in.namespaceOf(to, s), to.attr, v)
	default:
		in.alloc(16)
		s.vars[to.name] = v
	}
}

// store sets an attribute of a namespace.
func (in *interp) store(ns *namespace, name string, v Value) {
	if strings.HasPrefix(name, "_") {
		in.fail("the attribute %s of a namespace begins with an underscore, which is refused", name)
	}
	in.alloc(16)
	ns.vars.Set(name, v)
}

type macroDef struct {
	line             int
	name             string
	params           []string
	defaults         []expr // of the last ones
	body             []stmt
	caller, rest, kw bool // the body names caller, varargs, kwargs
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
			p.fail(t.line, "the macro has two parameters %q", t.text)
		}
		m.params = append(m.params, t.text)
		if p.takeOp("=") {
			p.apart(false, func() { m.defaults = append(m.defaults, p.expression()) })
		} else if m.defaults != nil {
			p.fail(t.line, "parameter %q has no default, and one before it has", t.text)
		}
	}
	p.want(tokOp, ")")
}

func (p *parser) macroBody(m *macroDef, end string) {
	p.macros = append(p.macros, m)
	m.body = p.last(end)
	p.macros = p.macros[:len(p.macros)-1]
	at := slices.Index(m.params, "caller")
	if m.caller && at >= 0 && at < len(m.params)-len(m.defaults) {
		p.fail(m.line, "the parameter caller of a macro needs a default")
	}
	m.rest = m.rest && !slices.Contains(m.params, "varargs")
	m.kw = m.kw && !slices.Contains(m.params, "kwargs")
}

func (p *parser) callBlock(line int) func(*interp, *scope) jump {
	m := &macroDef{line: line}
	if p.isOp("(") {
		p.signature(m)
	}
	p.called = nil
	p.expression()
	c := p.called
	if c == nil {
		p.fail(line, "want a call of a macro after {%% call %%}")
	}
	p.macroBody(m, "endcall")
	return func(in *interp, s *scope) jump {
		fn := c.fn(in, s)
		a := c.args(in, s)
		a.add("caller", &macro{m, s})
		in.line = c.line
		in.print(in.text(in.call(fn, a)))
		return goOn
	}
}

// A macro is one that was defined, with the variables around it.
type macro struct {
	def   *macroDef
	scope *scope
}

func (m *macro) attribute(_ *interp, name string) (Value, bool) { return m.def.name, name == "name" }

// macro calls a macro and returns what it prints.
func (in *interp) macro(m *macro, a *args) Value {
	d := m.def
	s := m.scope.inner()
	rest := &args{names: a.names, named: a.named}
	missing := make([]expr, len(d.params)) // defaults, which are evaluated inside of the macro
	for i, param := range d.params {
		v, given := Value(nil), i < len(a.pos)
		if given {
			v = a.pos[i]
		} else {
			v, given = rest.take(param)
		}
		if !given {
			if at := i - len(d.params) + len(d.defaults); at >= 0 {
				missing[i] = d.defaults[at]
			}
			v = &undefined{"parameter " + quoted(param) + " was not provided"}
		}
		s.vars[param] = v
	}
	if d.caller && !slices.Contains(d.params, "caller") {
		v, ok := rest.take("caller")
		if !ok {
			v = &undefined{"No caller defined"}
		}
		s.vars["caller"] = v
	}
	if d.kw {
		kwargs := &Dict{}
		for i, name := range rest.names {
			kwargs.Set(name, rest.named[i])
		}
		s.vars["kwargs"] = kwargs
	} else if len(rest.names) > 0 {
		in.fail("macro %s has no parameter %q", d.name, rest.names[0])
	}
	over := a.pos[min(len(a.pos), len(d.params)):]
	if d.rest {
		s.vars["varargs"] = tuple(over...)
	} else if len(over) > 0 {
		in.fail("macro %s takes %d arguments, and %d were given", d.name, len(d.params), len(a.pos))
	}
	in.alloc(256 + 32*len(s.vars))
	var out string
	in.deeper(func() {
		for i, e := range missing {
			if e != nil {
				s.vars[d.params[i]] = e(in, s)
			}
		}
		out = in.capture(func() { in.block(d.body, s) })
	})
	return out
}

type forLoop struct {
	line      int
	to        target
	cond      expr // nil: all
	recursive bool
	body, not []stmt
}

func (p *parser) forLoop(line int) func(*interp, *scope) jump {
	p.loops++
	f := &forLoop{line: line, to: p.target([]string{"in"}, false)}
	p.want(tokName, "in")
	over := p.tuple(false, []string{"recursive"}, false)
	p.apart(false, func() {
		if p.takeName("if") {
			f.cond = p.expression()
		}
		f.recursive = p.takeName("recursive")
		end := ""
		if f.body, end = p.block("else", "endfor"); end == "else" {
			f.not = p.last("endfor")
		}
	})
	p.loops--
	return func(in *interp, s *scope) jump { return in.forLoop(f, over(in, s), s, 0) }
}

// A loop is the variable loop inside a for.
type loop struct {
	in      *interp
	from    *iterator
	again   func(over Value) string // renders the loop for other values, of a recursive one
	index0  int
	depth0  int
	size    int // how many values there are, -1: not known yet
	before  Value
	current Value
	ahead   []Value // values that were looked at and not looped over yet
	changed Value
}

// next goes on to the next value.
func (l *loop) next() bool {
	v, ok := l.peek()
	if !ok {
		return false
	}
	l.in.work(1)
	l.ahead = l.ahead[1:]
	l.index0++
	l.before, l.current = l.current, v
	return true
}

func (l *loop) peek() (Value, bool) {
	if len(l.ahead) == 0 {
		v, ok := l.from.next()
		if !ok {
			return nil, false
		}
		l.ahead = append(l.ahead, v)
	}
	return l.ahead[0], true
}

// length is how many values there are. Those of a generator are made for it.
func (l *loop) length() int {
	if l.size < 0 {
		for v, ok := l.from.next(); ok; v, ok = l.from.next() {
			l.in.alloc(16)
			l.ahead = append(l.ahead, v)
		}
		l.size = l.index0 + 1 + len(l.ahead)
	}
	return l.size
}

// forLoop runs a loop over a value. A recursive one is inside depth others.
func (in *interp) forLoop(f *forLoop, over Value, s *scope, depth int) jump {
	in.line = f.line
	from := in.iter(over)
	l := &loop{in: in, from: from, index0: -1, depth0: depth, size: from.size, changed: &undefined{}}
	if f.cond != nil {
		l.size = -1
		l.from = &iterator{kind: "generator", size: -1, next: func() (Value, bool) {
			for {
				v, ok := from.next()
				if !ok {
					return nil, false
				}
				in.work(1)
				inner := s.inner()
				in.assign(&f.to, v, inner)
				if truth(f.cond(in, inner)) {
					return v, true
				}
			}
		}}
	}
	if f.recursive {
		l.again = func(over Value) (out string) {
			in.deeper(func() { out = in.capture(func() { in.forLoop(f, over, s, depth+1) }) })
			return out
		}
	}
	for l.next() {
		inner := s.inner()
		inner.vars["loop"] = l
		in.assign(&f.to, l.current, inner)
		if in.block(f.body, inner) == breakLoop {
			break
		}
	}
	if l.index0 < 0 && f.not != nil {
		return in.block(f.not, s.inner())
	}
	return goOn
}

// attribute returns what loop.name is.
func (l *loop) attribute(_ *interp, name string) (Value, bool) {
	switch name {
	case "index":
		return int64(l.index0 + 1), true
	case "index0":
		return int64(l.index0), true
	case "revindex":
		return int64(l.length() - l.index0), true
	case "revindex0":
		return int64(l.length() - l.index0 - 1), true
	case "first":
		return l.index0 == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return int64(l.length()), true
	case "depth":
		return int64(l.depth0 + 1), true
	case "depth0":
		return int64(l.depth0), true
	case "previtem":
		if l.index0 == 0 {
			return &undefined{"there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if v, more := l.peek(); more {
			return v, true
		}
		return &undefined{"there is no next item"}, true
	case "cycle":
		return method("loop.cycle", "*", func(c *call) Value {
			if len(c.pos) == 0 || len(c.names) > 0 {
				c.fail("loop.cycle takes one value or more")
			}
			return c.pos[l.index0%len(c.pos)]
		}), true
	case "changed":
		return method("loop.changed", "*", func(c *call) Value {
			now := tuple(c.pos...)
			same := c.equal(l.changed, now)
			l.changed = now
			return !same
		}), true
	}
	return nil, false
}
