package jinja

import (
	"math/big"
	"slices"
	"strings"
)

// The filters of lists and other sequences. Those that jinja2 makes generators of are evaluated as their values are
// asked for, and only once.

// truncated is a float without its fraction.
func truncated(f float64) Value {
	n, _ := big.NewFloat(f).Int(nil)
	return norm(n)
}

// path reads the name of an attribute, a.b.0, into its parts.
func (in *interp) path(v Value) []Value {
	s, ok := str(v)
	if !ok {
		if v == nil {
			return nil
		}
		return []Value{v}
	}
	in.alloc(32 * (1 + strings.Count(s, ".")))
	var parts []Value
	for _, part := range strings.Split(s, ".") {
		if n, ok := intOf(part, 10); ok && strings.Trim(part, "0123456789") == "" {
			parts = append(parts, n)
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}

// getter looks up an attribute of values. What is undefined on the way becomes the default, unless that is nil. Without
// case, texts are made lower.
func (in *interp) getter(attribute, standard Value, caseless bool) func(Value) Value {
	parts := in.path(attribute)
	return func(v Value) Value {
		for _, part := range parts {
			v = in.item(v, part)
			if _, missing := v.(*undefined); missing && standard != nil {
				v = standard
			}
		}
		if s, ok := str(v); ok && caseless {
			in.alloc(len(s))
			return lower(s)
		}
		return v
	}
}

// lazily makes a generator over a value of what start returns, which is called when the first item is asked for.
func (in *interp) lazily(from Value, start func() func() (Value, bool)) Value {
	g := &iterator{kind: "generator", size: -1}
	if it, ok := from.(*iterator); ok {
		if g.depth = it.depth + 1; g.depth > in.limits.Depth {
			fail(Limit, in.line, "more than %d generators ask each other for values", in.limits.Depth)
		}
	}
	var next func() (Value, bool)
	g.next = func() (Value, bool) {
		in.work(1)
		if next == nil {
			next = start()
		}
		return next()
	}
	return g
}

func none() (Value, bool) { return nil, false }

func filterMap(in *interp, a *args) Value {
	v, rest := a.pos[0], &args{a.pos[1:], a.names, a.named}
	return in.lazily(v, func() func() (Value, bool) {
		if !truth(v) {
			return none
		}
		var f func(Value) Value
		if attribute, ok := rest.take("attribute"); ok && len(rest.pos) == 0 {
			standard, _ := rest.take("default")
			if len(rest.names) > 0 {
				in.fail("map has no argument %q", rest.names[0])
			}
			f = in.getter(attribute, standard, false)
		} else {
			if len(rest.pos) == 0 {
				in.fail("map wants the name of a filter, or attribute")
			}
			name := in.want(rest.pos[0], "the name of a filter")
			if slices.Contains(refusedFilters, name) {
				in.unsupported("the filter " + name)
			}
			f = func(item Value) Value {
				return in.applyFilter(name, item, &args{rest.pos[1:], rest.names, rest.named})
			}
		}
		from := in.iter(v)
		return func() (Value, bool) {
			item, ok := from.next()
			if !ok {
				return nil, false
			}
			return f(item), true
		}
	})
}

func selector(name string, keep, byAttribute bool) filterFunc {
	return func(in *interp, a *args) Value {
		v, rest := a.pos[0], a.pos[1:]
		return in.lazily(v, func() func() (Value, bool) {
			if !truth(v) {
				return none
			}
			of := func(v Value) Value { return v }
			if byAttribute {
				if len(rest) == 0 {
					in.fail("%s wants the name of an attribute", name)
				}
				of = in.getter(rest[0], nil, false)
				rest = rest[1:]
			}
			holds := truth
			if len(rest) > 0 {
				test := in.want(rest[0], "the name of a test")
				holds = func(v Value) bool { return in.applyTest(test, v, &args{rest[1:], a.names, a.named}) }
			}
			from := in.iter(v)
			return func() (Value, bool) {
				for {
					item, ok := from.next()
					in.work(1)
					if !ok || holds(of(item)) == keep {
						return item, ok
					}
				}
			}
		})
	}
}

func filterItems(in *interp, a *args) Value {
	v := a.bind(in, "items", 1, "value").at(0)
	return in.lazily(v, func() func() (Value, bool) {
		if _, ok := v.(*undefined); ok {
			return none
		}
		d, ok := v.(*Dict)
		if !ok {
			in.fail("items of %s; want a dictionary", typeName(v))
		}
		in.alloc(entrySize * len(d.entries))
		return over("", d.items()).next
	})
}

func filterList(in *interp, a *args) Value {
	items := in.list(a.bind(in, "list", 1, "value").at(0))
	return &List{items: items}
}

func filterFirst(in *interp, a *args) Value {
	v, ok := in.iter(a.bind(in, "first", 1, "seq").at(0)).next()
	if !ok {
		return &undefined{"No first item, sequence was empty."}
	}
	return v
}

func filterLast(in *interp, a *args) Value {
	v := a.bind(in, "last", 1, "seq").at(0)
	var items []Value
	switch v := v.(type) {
	case string:
		if c, ok := in.char(v, -1); ok {
			return c
		}
	case safe:
		if c, ok := in.char(string(v), -1); ok {
			return safe(c)
		}
	case *undefined:
	case *List:
		items = v.items
	case *Dict:
		items = v.keys()
	default:
		in.fail("%s has no last item", typeName(v))
	}
	if len(items) == 0 {
		return &undefined{"No last item, sequence was empty."}
	}
	return items[len(items)-1]
}

func filterJoin(in *interp, a *args) Value {
	p := a.bind(in, "join", 1, "value", "d", "attribute")
	sep := in.text(p.or(1, ""))
	get := func(v Value) Value { return v }
	if p.or(2, nil) != nil {
		get = in.getter(p.at(2), nil, false)
	}
	var b strings.Builder
	first := true
	in.each(p.at(0), func(v Value) bool {
		s := in.text(get(v))
		in.alloc(len(sep) + len(s))
		if !first {
			b.WriteString(sep)
		}
		first = false
		b.WriteString(s)
		return true
	})
	return b.String()
}

// sorted sorts values by a key, in a stable way. Reversed, what is equal keeps its order too.
func (in *interp) sorted(items []Value, key func(Value) Value, reverse bool) []Value {
	in.alloc(64 * len(items))
	keyed := make([]entry, len(items))
	for i, v := range items {
		keyed[i] = entry{key(v), v}
	}
	slices.SortStableFunc(keyed, func(x, y entry) int {
		if reverse {
			x, y = y, x
		}
		switch {
		case in.less(x.key, y.key):
			return -1
		case in.less(y.key, x.key):
			return 1
		}
		return 0
	})
	out := make([]Value, len(items))
	for i, e := range keyed {
		out[i] = e.value
	}
	return out
}

func filterSort(in *interp, a *args) Value {
	p := a.bind(in, "sort", 1, "value", "reverse", "case_sensitive", "attribute")
	var getters []func(Value) Value
	attributes := []Value{p.or(3, nil)}
	if s, ok := str(attributes[0]); ok {
		attributes = nil
		for _, part := range strings.Split(s, ",") {
			attributes = append(attributes, part)
		}
	}
	for _, attribute := range attributes {
		getters = append(getters, in.getter(attribute, nil, !p.is(2)))
	}
	key := func(v Value) Value {
		keys := &List{}
		in.alloc(16 * len(getters))
		for _, get := range getters {
			keys.items = append(keys.items, get(v))
		}
		return keys
	}
	return &List{items: in.sorted(in.list(p.at(0)), key, p.is(1))}
}

func filterDictsort(in *interp, a *args) Value {
	p := a.bind(in, "dictsort", 1, "value", "case_sensitive", "by", "reverse")
	by := 0
	if p.has(2) {
		if by = slices.Index([]string{"key", "value"}, p.str(2)); by < 0 {
			in.fail("dictsort by %q; want key or value", p.str(2))
		}
	}
	in.notDefined(p.at(0))
	d, ok := p.at(0).(*Dict)
	if !ok {
		in.fail("dictsort of %s; want a dictionary", typeName(p.at(0)))
	}
	in.alloc(entrySize * len(d.entries))
	return &List{items: in.sorted(d.items(), in.getter(int64(by), nil, !p.is(1)), p.is(3))}
}
