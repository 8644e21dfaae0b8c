package jinja

import (
	"slices"
	"strings"
)

// A builtin is a filter, a test, a method or a function that every template has.
type builtin struct {
	// params are the names of the parameters, those after | optional. A / in front: no argument is given by name, as
	// for methods of Python's types. A * instead: any arguments, which are in pos and names.
	params string
	do     func(c *call) Value
}

// builtins is the table of them: filters as "|name", tests as "is name", methods as "type.name", functions as "name()".
// What a filter, a test or a method is applied to is its first argument.
var builtins = map[string]builtin{}

// register adds what init functions declare, so that builtins may look each other up.
func register(prefix, suffix string, all map[string]builtin) {
	for name, b := range all {
		builtins[prefix+name+suffix] = b
	}
}

// args are the arguments of a call, by position and by name.
type args struct {
	pos   []Value
	names []string
	named []Value
}

func (a *args) add(name string, v Value) {
	a.names, a.named = append(a.names, name), append(a.named, v)
}

// take removes an argument that was given by name.
func (a *args) take(name string) (Value, bool) {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil, false
	}
	v := a.named[i]
	a.names = slices.Delete(slices.Clone(a.names), i, i+1)
	a.named = slices.Delete(slices.Clone(a.named), i, i+1)
	return v, true
}

// A call is one of a builtin, its arguments by its parameters.
type call struct {
	*interp
	args
	what   string
	values []Value
	given  []bool
}

// invoke calls a builtin. Its arguments begin with self.
func (in *interp) invoke(what string, b builtin, self []Value, a *args) Value {
	c := &call{interp: in, what: what, args: args{slices.Concat(self, a.pos), a.names, a.named}}
	if b.params != "*" {
		c.bind(b.params)
	}
	return b.do(c)
}

func (c *call) bind(params string) {
	names, positional := strings.CutPrefix(params, "/")
	needed, optional, _ := strings.Cut(names, "|")
	all := append(strings.Fields(needed), strings.Fields(optional)...)
	required := len(strings.Fields(needed))
	c.values, c.given = make([]Value, len(all)), make([]bool, len(all))
	if len(c.pos) > len(all) {
		c.fail("%s takes %d arguments, and %d were given", c.what, len(all), len(c.pos))
	}
	for i, v := range c.pos {
		c.values[i], c.given[i] = v, true
	}
	for i, name := range c.names {
		at := slices.Index(all, name)
		if at < 0 || c.given[at] || positional {
			c.fail("%s has no argument %q, or it was given twice; it takes %s", c.what, name, strings.Join(all, ", "))
		}
		c.values[at], c.given[at] = c.named[i], true
	}
	for i := range required {
		if !c.given[i] {
			c.fail("%s has no argument %q, which it needs", c.what, all[i])
		}
	}
}

func (c *call) has(i int) bool { return i < len(c.given) && c.given[i] }
func (c *call) at(i int) Value { return c.values[i] }

func (c *call) or(i int, standard Value) Value {
	if c.has(i) {
		return c.values[i]
	}
	return standard
}

// is reports whether an argument was given that is true.
func (c *call) is(i int) bool { return c.has(i) && truth(c.values[i]) }

func (c *call) int(i, standard int) int {
	if !c.has(i) {
		return standard
	}
	return c.index(c.values[i], "an argument of "+c.what)
}

// str is an argument that must be a string.
func (c *call) str(i int) string { return c.want(c.values[i], "an argument of "+c.what) }

// method makes a function that is an attribute of an object.
func method(name, params string, do func(c *call) Value) Value {
	return &function{name: name, do: builtin{params, do}}
}

// call calls a value.
func (in *interp) call(fn Value, a *args) Value {
	switch fn := fn.(type) {
	case *function:
		return in.invoke(fn.name, fn.do, fn.self, a)
	case *macro:
		return in.macro(fn, a)
	case *loop:
		if len(a.pos) != 1 || len(a.names) > 0 || fn.again == nil {
			in.fail("a loop is called, and takes one argument if it is recursive: {%% for ... recursive %%}")
		}
		return fn.again(a.pos[0])
	}
	in.notDefined(fn)
	return in.fail("%s cannot be called", typeName(fn))
}

// apply applies a filter or a test, by its key in builtins, to a value.
func (in *interp) apply(key string, v Value, a *args) Value {
	b, ok := builtins[key]
	if !ok {
		in.fail("there is no filter or test %q", key[strings.IndexAny(key, "| ")+1:])
	}
	in.work(0)
	return in.invoke(key, b, []Value{v}, a)
}

// changing are the methods that change a list or a dictionary. They are there, and calling them fails.
var changing = map[string]string{
	"list": "append clear pop reverse insert sort extend remove",
	"dict": "clear pop popitem setdefault update",
}

// others are the attributes of Python's types that templates have no use for, and that are refused.
var others = map[string]string{
	"str": "encode maketrans translate casefold isidentifier",
	"int": "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real " +
		"to_bytes",
	"float":     "as_integer_ratio conjugate fromhex hex imag is_integer real",
	"range":     "start stop step count index",
	"dict_keys": "isdisjoint mapping", "dict_values": "mapping", "dict_items": "isdisjoint mapping",
	"generator": "close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw",
	"Macro":     "arguments caller catch_kwargs catch_varargs explicit_caller",
}

// private are the names between double underscores that all of Python's objects have, and that the sandbox hides.
const private = "class delattr dir doc eq format ge getattribute getstate gt hash init init_subclass le lt ne new " +
	"reduce reduce_ex repr setattr sizeof str subclasshook len getitem iter contains"

func among(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// member returns an attribute that the type of a value has in Python.
func (in *interp) member(v Value, name string) (Value, bool) {
	kind := typeName(v)
	switch v := v.(type) {
	case object:
		if a, ok := v.attribute(in, name); ok {
			return a, true
		}
	case safe:
		if _, ok := builtins["str."+name]; ok {
			in.unsupported("the method " + name + " of a string that is marked safe")
		}
		kind = "str"
	case *List:
		if i := slices.Index([]string{"grouper", "list"}, name); v.group && i >= 0 {
			return v.items[i], true
		}
	case *function:
		if v.name == "dict" && name == "fromkeys" {
			return method("dict.fromkeys", "/keys|value", fromKeys), true
		}
	case bool:
		kind = "int"
	}
	if b, ok := builtins[kind+"."+name]; ok {
		return &function{kind + "." + name, []Value{v}, b}, true
	}
	word, hidden := strings.CutPrefix(name, "__")
	word, ends := strings.CutSuffix(word, "__")
	if among(changing[kind], name) || hidden && ends && among(private, word) {
		return &undefined{"access to attribute " + quoted(name) + " of " + typeName(v) + " is unsafe"}, true
	}
	if among(others[kind], name) {
		in.unsupported("the attribute " + name + " of " + kind)
	}
	return nil, false
}

// A cycler goes around its values.
type cycler struct {
	items []Value
	at    int
}

func (cy *cycler) attribute(_ *interp, name string) (Value, bool) {
	switch name {
	case "current":
		return cy.items[cy.at], true
	case "next":
		return method("cycler.next", "*", func(*call) Value {
			v := cy.items[cy.at]
			cy.at = (cy.at + 1) % len(cy.items)
			return v
		}), true
	case "reset":
		return method("cycler.reset", "*", func(*call) Value {
			cy.at = 0
			return nil
		}), true
	}
	return nil, false
}

// maxRange is the most values that range makes, as in jinja2's sandbox.
const maxRange = 100_000

func fromKeys(c *call) Value {
	d := &Dict{}
	c.each(c.at(0), func(k Value) bool {
		c.put(d, k, c.or(1, nil))
		return true
	})
	return d
}

// put adds an entry to a dictionary that is being made.
func (in *interp) put(d *Dict, k, v Value) {
	in.alloc(entrySize)
	d.set(in.key(k), k, v)
}

// dict is Python's dict of the arguments of a call.
func (c *call) dict() *Dict {
	d := &Dict{}
	if len(c.pos) > 1 {
		c.fail("%s is given %d arguments by position; 1 is the most", c.what, len(c.pos))
	}
	for _, v := range c.pos {
		c.notDefined(v)
		if from, ok := v.(*Dict); ok {
			v = &List{items: from.items()}
		}
		c.each(v, func(pair Value) bool {
			parts := c.list(pair)
			if len(parts) != 2 {
				c.fail("dict is given an item of %d parts; want a key and a value", len(parts))
			}
			c.put(d, parts[0], parts[1])
			return true
		})
	}
	for i, name := range c.names {
		c.put(d, name, c.named[i])
	}
	return d
}

func init() {
	register("", "()", map[string]builtin{
		"range": {"/stop|start step", func(c *call) Value {
			from, to, step := 0, c.int(0, 0), c.int(2, 1)
			if c.has(1) {
				from, to = to, c.int(1, 0)
			}
			if step == 0 {
				c.fail("the step of range is 0")
			}
			n := 0
			switch {
			case step > 0 && to > from:
				n = (to - from + step - 1) / step
			case step < 0 && to < from:
				n = (from - to - step - 1) / -step
			}
			if n > maxRange {
				fail(Limit, c.line, "range makes %d values; %d are the most", n, maxRange)
			}
			c.alloc(24 * n)
			r := &List{kind: seqRange}
			for i := range n {
				r.items = append(r.items, int64(from+i*step))
			}
			return r
		}},
		"dict": {"*", func(c *call) Value { return c.dict() }},
		"namespace": {"*", func(c *call) Value {
			ns := &namespace{}
			for _, e := range c.dict().entries {
				c.store(ns, c.want(e.key, "the name of an attribute"), e.value)
			}
			return ns
		}},
		"cycler": {"*", func(c *call) Value {
			if len(c.pos) == 0 || len(c.names) > 0 {
				c.fail("cycler takes one value or more")
			}
			return &cycler{items: c.pos}
		}},
		// joiner makes a function that returns nothing the first time, and a separator from then on.
		"joiner": {"|sep", func(c *call) Value {
			first, sep := "", c.text(c.or(0, ", "))
			return method("joiner", "*", func(*call) Value {
				out := first
				first = sep
				return out
			})
		}},
		"raise_exception": {"message", func(c *call) Value {
			fail(Raised, c.line, "%s", c.text(c.at(0)))
			return nil
		}},
		"strftime_now": {"format", func(c *call) Value {
			c.alloc(32 * (1 + strings.Count(c.str(0), "%")))
			return c.made(c.strftime(c.str(0)))
		}},
		"lipsum": {"*", func(c *call) Value { return c.unsupported("the function lipsum") }},
	})
	view := func(kind seqKind, size int, of func(e entry) Value) builtin {
		return builtin{"/d", func(c *call) Value {
			d := c.at(0).(*Dict)
			c.alloc(size * len(d.entries))
			return &List{items: d.list(of), kind: kind}
		}}
	}
	register("dict.", "", map[string]builtin{
		"get": {"/d key|default", func(c *call) Value {
			if v, ok := c.at(0).(*Dict).get(c.key(c.at(1))); ok {
				return v
			}
			return c.or(2, nil)
		}},
		"keys":   view(seqKeys, 16, func(e entry) Value { return e.key }),
		"values": view(seqValues, 16, func(e entry) Value { return e.value }),
		"items":  view(seqItems, entrySize, func(e entry) Value { return tuple(e.key, e.value) }),
		"copy":   {"/d", func(c *call) Value { return c.at(0) }},
		"fromkeys": {"*", func(c *call) Value {
			c.pos = c.pos[1:]
			return c.invoke(c.what, builtin{"/keys|value", fromKeys}, nil, &c.args)
		}},
	})
	find := func(c *call) (n, first int) {
		first = -1
		for i, item := range c.at(0).(*List).items {
			if c.equal(item, c.at(1)) {
				if n++; first < 0 {
					first = i
				}
			}
		}
		return n, first
	}
	for _, kind := range []string{"list.", "tuple."} {
		register(kind, "", map[string]builtin{
			"count": {"/l value", func(c *call) Value {
				n, _ := find(c)
				return int64(n)
			}},
			"index": {"/l value", func(c *call) Value {
				_, i := find(c)
				if i < 0 {
					c.fail("the list does not have the value that index looks for")
				}
				return int64(i)
			}},
		})
	}
	register("list.", "", map[string]builtin{"copy": {"/l", func(c *call) Value {
		items := c.at(0).(*List).items
		c.alloc(16 * len(items))
		return &List{items: slices.Clone(items)}
	}}})
}
