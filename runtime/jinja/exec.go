package jinja

import "strings"

// block carries out statements. It ends early with a jump out of a loop.
func (in *interp) block(body []stmt, s *scope) jump {
	in.enter()
	defer in.leave()
	for _, st := range body {
		in.work(0)
		if j := in.exec(st, s); j != goOn {
			return j
		}
	}
	return goOn
}

func (in *interp) exec(st stmt, s *scope) jump {
	switch st := st.(type) {
	case text:
		in.print(string(st))
	case output:
		in.print(in.text(in.eval(st.value, s)))
	case ifElse:
		if truth(in.eval(st.cond, s)) {
			return in.block(st.then, s)
		}
		return in.block(st.not, s)
	case forLoop:
		return in.forLoop(&st, in.eval(st.over, s), s, 0)
	case assign:
		in.assignable(&st.to, s)
		in.assign(&st.to, in.eval(st.value, s), s)
	case assignBlock:
		in.assignable(&st.to, s)
		var v Value = in.capture(func() { in.block(st.body, s.inner()) })
		in.assign(&st.to, in.filtered(st.filters, v, s), s)
	case filterBlock:
		inner := s.inner()
		v := in.capture(func() { in.block(st.body, inner) })
		in.print(in.text(in.filtered(st.filters, v, inner)))
	case withBlock:
		inner := s.inner()
		for i := range st.to {
			in.assign(&st.to[i], in.eval(st.values[i], s), inner)
		}
		return in.block(st.body, inner)
	case *macroDef:
		s.vars[st.name] = &macro{st, s}
	case callBlock:
		fn := in.eval(st.call.fn, s)
		a := in.arguments(&st.call.args, s)
		a.names, a.named = append(a.names, "caller"), append(a.named, Value(&macro{st.macro, s}))
		in.line = st.call.at()
		in.print(in.text(in.call(fn, a)))
	case scoped:
		inner := s.inner()
		in.print(in.capture(func() { in.block(st.body, inner) }))
	case jump:
		return st
	}
	return goOn
}

// capture returns what f prints.
func (in *interp) capture(f func()) string {
	out, size := in.out, in.size
	var b strings.Builder
	in.out = &b
	f()
	in.out, in.size = out, size
	return in.made(b.String())
}

// filtered applies the filters of a block, whose innermost has no operand.
func (in *interp) filtered(e expr, v Value, s *scope) Value {
	f, ok := e.(*filter)
	if !ok {
		return v
	}
	return in.filter(f, in.filtered(f.of, v, s), s)
}

// assignable fails where an attribute of anything but a namespace is assigned to, before the value is evaluated.
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
		in.fail("%s is no namespace, so its attribute %s cannot be set", to.name, to.attr)
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

// A macro is one that was defined, with the variables around it.
type macro struct {
	def   *macroDef
	scope *scope
}

// macro calls a macro and returns what it prints.
func (in *interp) macro(m *macro, a *args) Value {
	d := m.def
	what := "macro " + d.name
	s := m.scope.inner()
	rest := &args{names: a.names, named: a.named}
	missing := make([]expr, len(d.params)) // defaults, which are evaluated inside of the macro
	foundCaller := false
	for i, param := range d.params {
		given := i < len(a.pos)
		var v Value
		if given {
			v = a.pos[i]
		} else {
			v, given = rest.take(param)
		}
		foundCaller = foundCaller || param == "caller"
		if !given {
			if at := i - len(d.params) + len(d.defaults); at >= 0 {
				missing[i] = d.defaults[at]
			}
			v = &undefined{"parameter " + quoted(param) + " was not provided"}
		}
		s.vars[param] = v
	}
	if d.caller && !foundCaller {
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
		in.fail("%s has no parameter %q", what, rest.names[0])
	}
	over := a.pos[min(len(a.pos), len(d.params)):]
	if d.rest {
		s.vars["varargs"] = tuple(over...)
	} else if len(over) > 0 {
		in.fail("%s takes %d arguments, and %d were given", what, len(d.params), len(a.pos))
	}
	in.alloc(256 + 32*len(s.vars))
	line := in.line
	var out string
	in.deeper(func() {
		for i, e := range missing {
			if e != nil {
				s.vars[d.params[i]] = in.eval(e, s)
			}
		}
		out = in.capture(func() { in.block(d.body, s) })
	})
	in.line = line
	return out
}
