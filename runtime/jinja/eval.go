package jinja

// A scope holds the variables that were assigned inside of something, and leads to those around it.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) inner() *scope { return &scope{map[string]Value{}, s} }

func (s *scope) lookup(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	v, ok := globals[name]
	return v, ok
}

// eval evaluates an expression.
func (in *interp) eval(e expr, s *scope) Value {
	in.line = e.at()
	in.work(0)
	in.enter()
	defer in.leave()
	switch e := e.(type) {
	case *literal:
		return e.value
	case *name:
		if v, ok := s.lookup(e.id); ok {
			return v
		}
		return &undefined{quoted(e.id) + " is undefined"}
	case *sequence:
		in.alloc(16 * len(e.items))
		l := &List{make([]Value, len(e.items)), e.kind, false}
		for i, item := range e.items {
			l.items[i] = in.eval(item, s)
		}
		return l
	case *mapping:
		in.alloc(entrySize * len(e.keys))
		d := &Dict{}
		for i := range e.keys {
			k := in.eval(e.keys[i], s)
			d.set(in.key(k), k, in.eval(e.values[i], s))
		}
		return d
	case *attribute:
		of := in.eval(e.of, s)
		in.line = e.at()
		return in.attribute(of, e.name)
	case *item:
		of, key := in.eval(e.of, s), in.eval(e.key, s)
		in.line = e.at()
		return in.item(of, key)
	case *slice:
		return in.slice(e, s)
	case *call:
		fn := in.eval(e.fn, s)
		a := in.arguments(&e.args, s)
		in.line = e.at()
		return in.call(fn, a)
	case *filter:
		return in.filter(e, in.eval(e.of, s), s)
	case *test:
		return in.test(e, s)
	case *unary:
		return in.unary(e, s)
	case *binary:
		return in.binary(e, s)
	case *concat:
		return in.concat(e, s)
	case *comparison:
		left := in.eval(e.first, s)
		for i, op := range e.ops {
			right := in.eval(e.rest[i], s)
			in.line = e.at()
			if !in.compare(op, left, right) {
				return false
			}
			left = right
		}
		return true
	case *conditional:
		if truth(in.eval(e.cond, s)) {
			return in.eval(e.yes, s)
		}
		if e.no == nil {
			return &undefined{"the inline if has no else and its condition is false, so its value is undefined"}
		}
		return in.eval(e.no, s)
	}
	panic("an expression of no known type")
}

func (in *interp) unary(e *unary, s *scope) Value {
	v := in.eval(e.of, s)
	in.line = e.at()
	if e.op == "not" {
		return !truth(v)
	}
	in.notDefined(v)
	if !isNumber(v) {
		in.fail("%s has no sign", typeName(v))
	}
	if e.op == "+" {
		return in.arithmetic("+", v, int64(0))
	}
	if f, ok := v.(float64); ok {
		return -f
	}
	return in.arithmetic("-", int64(0), v)
}

func (in *interp) binary(e *binary, s *scope) Value {
	left := in.eval(e.left, s)
	switch e.op {
	case "and":
		if !truth(left) {
			return left
		}
		return in.eval(e.right, s)
	case "or":
		if truth(left) {
			return left
		}
		return in.eval(e.right, s)
	}
	right := in.eval(e.right, s)
	in.line = e.at()
	return in.operate(e.op, left, right)
}

// operate carries out an operator between two values.
func (in *interp) operate(op string, left, right Value) Value {
	if isNumber(left) && isNumber(right) {
		return in.arithmetic(op, left, right)
	}
	a, isText := str(left)
	b, bothText := str(right)
	_, safeLeft := left.(safe)
	_, safeRight := right.(safe)
	x, isList := left.(*List)
	y, bothLists := right.(*List)
	switch {
	case op == "%" && isText:
		if safeLeft {
			in.unsupported("% of a string that is marked safe")
		}
		return in.percent(a, right)
	case op == "+" && isText && bothText:
		if safeLeft || safeRight {
			return safe(in.made(string(in.escaped(left) + in.escaped(right))))
		}
		in.alloc(len(a) + len(b))
		return a + b
	case op == "+" && isList && bothLists && x.kind == y.kind && x.kind <= seqTuple:
		in.alloc(16 * (len(x.items) + len(y.items)))
		return &List{append(append([]Value{}, x.items...), y.items...), x.kind, false}
	case op == "*" && (isText || isList && x.kind <= seqTuple) && isInt(right):
		return in.times(left, right)
	case op == "*" && (bothText || bothLists && y.kind <= seqTuple) && isInt(left):
		return in.times(right, left)
	}
	in.notDefined(left)
	in.notDefined(right)
	in.fail("%s %s %s has no meaning", typeName(left), op, typeName(right))
	return nil
}

// times repeats a text or a list.
func (in *interp) times(v, count Value) Value {
	if _, ok := small(count); !ok {
		in.fail("%s cannot be repeated so often", typeName(v))
	}
	n := max(in.index(count, "what a text is repeated by"), 0)
	switch v := v.(type) {
	case string:
		return in.repeat(v, n)
	case safe:
		return safe(in.repeat(string(v), n))
	}
	l := v.(*List)
	if len(l.items) > 0 && n > in.limits.Memory {
		n = in.limits.Memory
	}
	in.alloc(16 * len(l.items) * n)
	out := &List{kind: l.kind}
	for range n * min(1, len(l.items)) {
		out.items = append(out.items, l.items...)
	}
	return out
}

func (in *interp) concat(e *concat, s *scope) Value {
	parts := make([]string, len(e.parts))
	total := 0
	for i, part := range e.parts {
		parts[i] = in.text(in.eval(part, s))
		total += len(parts[i])
	}
	in.alloc(total)
	out := make([]byte, 0, total)
	for _, part := range parts {
		out = append(out, part...)
	}
	return string(out)
}

// arguments evaluates those of a call.
func (in *interp) arguments(from *arguments, s *scope) *args {
	a := &args{}
	for _, e := range from.pos {
		a.pos = append(a.pos, in.eval(e, s))
	}
	if from.list != nil {
		more := in.eval(from.list, s)
		in.alloc(16 * len(a.pos))
		a.pos = append(a.pos, in.list(more)...)
	}
	for i, e := range from.values {
		a.names, a.named = append(a.names, from.names[i]), append(a.named, in.eval(e, s))
	}
	if from.dict != nil {
		d, ok := in.eval(from.dict, s).(*Dict)
		if !ok {
			in.fail("what stands after ** is not a dictionary")
		}
		in.alloc(32 * len(d.entries))
		for _, e := range d.entries {
			a.names, a.named = append(a.names, in.want(e.key, "a key after **")), append(a.named, e.value)
		}
	}
	return a
}

// call calls a value.
func (in *interp) call(fn Value, a *args) (v Value) {
	switch fn := fn.(type) {
	case *function:
		return fn.call(in, a)
	case *macro:
		return in.macro(fn, a)
	case *loop:
		return fn.recurse(a)
	case *undefined:
		in.notDefined(fn)
	}
	in.fail("%s cannot be called", typeName(fn))
	return nil
}

// filter applies a filter to a value.
func (in *interp) filter(e *filter, v Value, s *scope) Value {
	a := in.arguments(&e.args, s)
	in.line = e.at()
	return in.applyFilter(e.name, v, a)
}

func (in *interp) applyFilter(name string, v Value, a *args) Value {
	f := filters[name]
	if f == nil {
		in.fail("there is no filter %q", name)
	}
	in.work(0)
	a.pos = append([]Value{v}, a.pos...)
	return f(in, a)
}

func (in *interp) test(e *test, s *scope) Value {
	v := in.eval(e.of, s)
	a := in.arguments(&e.args, s)
	in.line = e.at()
	return in.applyTest(e.name, v, a)
}

func (in *interp) applyTest(name string, v Value, a *args) bool {
	f := tests[name]
	if f == nil {
		in.fail("there is no test %q", name)
	}
	in.work(0)
	a.pos = append([]Value{v}, a.pos...)
	return f(in, a)
}
