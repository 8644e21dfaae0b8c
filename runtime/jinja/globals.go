package jinja

import "strings"

// maxRange is the most values that range makes, as in jinja2's sandbox.
const maxRange = 100_000

// globals are the functions that templates find by name, unless a variable has that name.
var globals map[string]Value

func init() {
	globals = map[string]Value{}
	for name, f := range map[string]func(in *interp, a *args) Value{
		"range": globalRange, "dict": globalDict, "namespace": globalNamespace, "cycler": globalCycler,
		"joiner": globalJoiner, "raise_exception": globalRaise, "strftime_now": globalNow,
		"lipsum": func(in *interp, a *args) Value { in.unsupported("the function lipsum"); return nil },
	} {
		globals[name] = &function{name, f}
	}
}

func globalRange(in *interp, a *args) Value {
	p := a.plain(in, "range", 1, 3)
	from, to, step := 0, p.integer(0, 0), p.integer(2, 1)
	if p.has(1) {
		from, to = to, p.integer(1, 0)
	}
	if step == 0 {
		in.fail("the step of range is 0")
	}
	n := 0
	switch {
	case step > 0 && to > from:
		n = (to - from + step - 1) / step
	case step < 0 && to < from:
		n = (from - to - step - 1) / -step
	}
	if n > maxRange {
		fail(Limit, in.line, "range makes %d values; %d are the most", n, maxRange)
	}
	in.alloc(24 * n)
	r := &List{kind: seqRange}
	for i := range n {
		r.items = append(r.items, int64(from+i*step))
	}
	return r
}

// globalDict is Python's dict.
func globalDict(in *interp, a *args) Value {
	d := &Dict{}
	for _, v := range a.plainOf(in, "dict", 1) {
		in.notDefined(v)
		if from, ok := v.(*Dict); ok {
			in.alloc(entrySize * len(from.entries))
			for _, e := range from.entries {
				d.set(in.key(e.key), e.key, e.value)
			}
			continue
		}
		in.each(v, func(pair Value) bool {
			parts := in.list(pair)
			if len(parts) != 2 {
				in.fail("dict is given an item of %d parts; want a key and a value", len(parts))
			}
			in.alloc(entrySize)
			d.set(in.key(parts[0]), parts[0], parts[1])
			return true
		})
	}
	for i, name := range a.names {
		in.alloc(entrySize)
		d.Set(name, a.named[i])
	}
	return d
}

// plainOf are the arguments by position, of which there may be so many.
func (a *args) plainOf(in *interp, what string, most int) []Value {
	if len(a.pos) > most {
		in.fail("%s is given %d arguments by position; %d are the most", what, len(a.pos), most)
	}
	return a.pos
}

func globalNamespace(in *interp, a *args) Value {
	ns := &namespace{}
	for _, e := range globalDict(in, a).(*Dict).entries {
		in.store(ns, in.want(e.key, "the name of an attribute"), e.value)
	}
	return ns
}

// A cycler goes around its values.
type cycler struct {
	items []Value
	at    int
}

func globalCycler(in *interp, a *args) Value {
	if len(a.pos) == 0 || len(a.names) > 0 {
		in.fail("cycler takes one value or more")
	}
	return &cycler{items: a.pos}
}

func (c *cycler) attribute(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{"cycler.next", func(*interp, *args) Value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{"cycler.reset", func(*interp, *args) Value {
			c.at = 0
			return nil
		}}, true
	}
	return nil, false
}

// globalJoiner makes a function that returns nothing the first time, and a separator from then on.
func globalJoiner(in *interp, a *args) Value {
	sep, used := in.text(a.bind(in, "joiner", 0, "sep").or(0, ", ")), false
	return &function{"joiner", func(*interp, *args) Value {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

func globalRaise(in *interp, a *args) Value {
	fail(Raised, in.line, "%s", in.text(a.bind(in, "raise_exception", 1, "message").at(0)))
	return nil
}

func globalNow(in *interp, a *args) Value {
	format := a.bind(in, "strftime_now", 1, "format").str(0)
	in.alloc(32 * (1 + strings.Count(format, "%")))
	return in.made(in.strftime(format))
}
