package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The filters of jinja2, with tojson of transformers, and its tests. Filters that are generators in jinja2 are lazy and
// can be read once.

// refusedFilters are filters of jinja2 that this package does not have.
var refusedFilters = []string{"filesizeformat", "pprint", "random", "striptags", "urlencode", "urlize", "wordcount",
	"wordwrap", "xmlattr"}

func init() {
	filters := map[string]builtin{
		"abs": {"x", func(c *call) Value {
			v := c.at(0)
			c.notDefined(v)
			if f, ok := v.(float64); ok {
				return math.Abs(f)
			}
			if !isInt(v) {
				c.fail("%s has no absolute value", typeName(v))
			}
			if numberOrder(v, int64(0)) < 0 {
				return c.arithmetic("-", int64(0), v)
			}
			return c.whole(v)
		}},
		"attr": {"obj name", func(c *call) Value {
			c.notDefined(c.at(0))
			if v, ok := c.member(c.at(0), c.str(1)); ok {
				return v
			}
			return &undefined{typeName(c.at(0)) + " has no attribute " + quoted(c.str(1))}
		}},
		"batch": {"value linecount|fill_with", func(c *call) Value {
			n := c.int(1, 0)
			return c.lazily(c.at(0), func() func() (Value, bool) {
				from := c.iter(c.at(0))
				v, more := from.next()
				return func() (Value, bool) {
					if !more {
						return nil, false
					}
					row := &List{}
					for more && (len(row.items) == 0 || len(row.items) != n) {
						c.alloc(16)
						row.items = append(row.items, v)
						v, more = from.next()
					}
					for fill := c.or(2, nil); fill != nil && len(row.items) < n; {
						c.alloc(16)
						row.items = append(row.items, fill)
					}
					return row, true
				}
			})
		}},
		"center": {"value|width", func(c *call) Value { return c.centered(c.text(c.unmarked(c.at(0))), c.int(1, 80)) }},
		"default": {"value|default_value boolean", func(c *call) Value {
			_, missing := c.at(0).(*undefined)
			if missing || c.is(2) && !truth(c.at(0)) {
				return c.or(1, "")
			}
			return c.at(0)
		}},
		"dictsort": {"value|case_sensitive by reverse", func(c *call) Value {
			by := 0
			if c.has(2) {
				if by = slices.Index([]string{"key", "value"}, c.str(2)); by < 0 {
					c.fail("dictsort by %q; want key or value", c.str(2))
				}
			}
			d := c.asDict()
			return &List{items: c.sorted(d.items(), c.getter(int64(by), nil, !c.is(1)), c.is(3))}
		}},
		"escape":      {"s", func(c *call) Value { return c.escaped(c.at(0)) }},
		"forceescape": {"value", func(c *call) Value { return c.escaped(c.text(c.at(0))) }},
		"first": {"seq", func(c *call) Value {
			v, ok := c.iter(c.at(0)).next()
			if !ok {
				return &undefined{"No first item, sequence was empty."}
			}
			return v
		}},
		"last": {"seq", func(c *call) Value {
			v := c.at(0)
			if s, isText := str(v); isText {
				last, ok := c.char(s, -1)
				if _, marked := v.(safe); ok && marked {
					return safe(last)
				}
				if ok {
					return last
				}
			} else if _, lazy := v.(*iterator); lazy {
				c.fail("%s has no last item", typeName(v))
			} else if items := c.list(v); len(items) > 0 {
				return items[len(items)-1]
			}
			return &undefined{"No last item, sequence was empty."}
		}},
		"float": {"value|default", func(c *call) Value {
			v := c.at(0)
			c.notDefined(v)
			if isNumber(v) {
				return c.float(v)
			}
			if s, ok := str(v); ok {
				if f, ok := floatOf(s); ok {
					return f
				}
			}
			return c.or(1, 0.0)
		}},
		"format": {"*", func(c *call) Value {
			s := c.text(c.unmarked(c.pos[0]))
			if len(c.names) == 0 {
				return c.percent(s, tuple(c.pos[1:]...))
			}
			if len(c.pos) > 1 {
				c.fail("format takes arguments by position or by name, and not both")
			}
			return c.percent(s, c.namedDict())
		}},
		"groupby": {"value attribute|default case_sensitive", func(c *call) Value {
			key := c.getter(c.at(1), c.or(2, nil), !c.is(3))
			shown := c.getter(c.at(1), c.or(2, nil), false)
			groups := &List{}
			var members *List
			var last Value
			for _, v := range c.sorted(c.list(c.at(0)), key, false) {
				if k := key(v); members == nil || !c.equal(k, last) {
					c.alloc(128)
					members, last = &List{}, k
					groups.items = append(groups.items, &List{[]Value{shown(v), members}, seqTuple, true})
				}
				members.items = append(members.items, v)
			}
			return groups
		}},
		"indent": {"s|width first blank", func(c *call) Value {
			c.unmarked(c.at(0))
			s, by := c.str(0), ""
			if v := c.or(1, int64(4)); isNumber(v) {
				by = c.repeat(" ", c.index(v, "the width of indent"))
			} else {
				by = c.str(1)
			}
			var b strings.Builder
			for i, line := range c.lines(s+"\n", false) {
				c.alloc(len(by) + len(line) + 1)
				if i > 0 {
					b.WriteByte('\n')
				}
				if i == 0 && c.is(2) || i > 0 && (line != "" || c.is(3)) {
					b.WriteString(by)
				}
				b.WriteString(line)
			}
			return b.String()
		}},
		"int": {"value|default base", func(c *call) Value {
			v := c.at(0)
			c.notDefined(v)
			f, isFloat := v.(float64)
			if s, ok := str(v); ok {
				n, ok := intOf(s, c.int(2, 10))
				if ok {
					return n
				}
				f, isFloat = floatOf(s)
				isFloat = isFloat && !math.IsInf(f, 0)
			}
			switch {
			case isFloat && !math.IsNaN(f):
				return c.truncated(f)
			case isInt(v):
				return c.whole(v)
			}
			return c.or(1, int64(0))
		}},
		"items": {"value", func(c *call) Value {
			return c.lazily(c.at(0), func() func() (Value, bool) {
				if _, missing := c.at(0).(*undefined); missing {
					return none
				}
				return over("", c.asDict().items()).next
			})
		}},
		"join": {"value|d attribute", func(c *call) Value {
			get := c.getter(c.or(2, nil), nil, false)
			return c.joined(c.text(c.or(1, "")), c.at(0), func(v Value) string { return c.text(get(v)) })
		}},
		"length": {"obj", func(c *call) Value {
			if s, ok := str(c.at(0)); ok {
				c.work(len(s))
			}
			n, ok := length(c.at(0))
			if !ok {
				c.fail("%s has no length", typeName(c.at(0)))
			}
			return int64(n)
		}},
		"list": {"value", func(c *call) Value { return &List{items: c.list(c.at(0))} }},
		"map": {"*", func(c *call) Value {
			v, rest := c.pos[0], args{c.pos[1:], c.names, c.named}
			return c.lazily(v, func() func() (Value, bool) {
				if !truth(v) {
					return none
				}
				var f func(Value) Value
				if attribute, ok := rest.take("attribute"); ok && len(rest.pos) == 0 {
					standard, _ := rest.take("default")
					if len(rest.names) > 0 {
						c.fail("map has no argument %q", rest.names[0])
					}
					f = c.getter(attribute, standard, false)
				} else {
					f = c.applying("|", rest, "filter")
				}
				from := c.iter(v)
				return func() (Value, bool) {
					item, ok := from.next()
					if !ok {
						return nil, false
					}
					return f(item), true
				}
			})
		}},
		"replace": {"s old new|count", func(c *call) Value {
			most := -1
			if c.or(3, nil) != nil {
				most = c.int(3, -1)
			}
			return c.replace(c.text(c.at(0)), c.text(c.at(1)), c.text(c.at(2)), most)
		}},
		"reverse": {"value", func(c *call) Value {
			v := c.at(0)
			if s, ok := v.(string); ok {
				c.alloc(5 * len(s))
				runes := []rune(s)
				slices.Reverse(runes)
				return string(runes)
			}
			items := slices.Clone(c.list(v))
			c.alloc(16 * len(items))
			slices.Reverse(items)
			kind := "reversed"
			switch v := v.(type) {
			case *undefined:
			case *List:
				if v.kind == seqRange {
					kind = "range_iterator"
				}
			case *Dict:
				kind = "dict_reversekeyiterator"
			default:
				return &List{items: items}
			}
			return over(kind, items)
		}},
		"round": {"value|precision method", func(c *call) Value {
			v, places, method := c.at(0), c.int(1, 0), "common"
			if c.has(2) {
				method = c.str(2)
			}
			c.notDefined(v)
			to := map[string]func(float64) float64{"common": nil, "ceil": math.Ceil, "floor": math.Floor}
			if f, known := to[method]; !known || !isNumber(v) {
				c.fail("round of %s by method %q; want a number, and common, ceil or floor", typeName(v), method)
			} else if f != nil {
				scale := math.Pow(10, float64(places))
				if math.IsInf(scale, 0) || scale == 0 {
					c.fail("round to a precision of %d", places)
				}
				return f(c.float(v)*scale) / scale
			}
			if places < 0 {
				c.unsupported("round to a negative precision")
			}
			f, isFloat := v.(float64)
			if !isFloat {
				return c.whole(v)
			}
			if places <= 308 && f-f == 0 {
				f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', places, 64), 64)
			}
			return f
		}},
		"safe": {"value", func(c *call) Value { return safe(c.text(c.at(0))) }},
		"slice": {"value slices|fill_with", func(c *call) Value {
			n := c.int(1, 0)
			return c.lazily(c.at(0), func() func() (Value, bool) {
				items := c.list(c.at(0))
				if n == 0 {
					c.fail("slice into 0 slices")
				}
				i, longer := 0, len(items)%n // how many slices have one more
				return func() (Value, bool) {
					if i >= n {
						return nil, false
					}
					size := len(items) / (n - i)
					if i < longer {
						size++
					}
					c.alloc(16 * (size + 1))
					row := &List{items: slices.Clone(items[:size])}
					if fill := c.or(2, nil); fill != nil && i >= longer {
						row.items = append(row.items, fill)
					}
					items = items[size:]
					i++
					return row, true
				}
			})
		}},
		"sort": {"value|reverse case_sensitive attribute", func(c *call) Value {
			attributes := []Value{c.or(3, nil)}
			if s, ok := str(attributes[0]); ok {
				attributes = texts(strings.Split(s, ",")).(*List).items
			}
			key := func(v Value) Value {
				keys := &List{}
				c.alloc(16 * len(attributes))
				for _, attribute := range attributes {
					keys.items = append(keys.items, c.getter(attribute, nil, !c.is(2))(v))
				}
				return keys
			}
			return &List{items: c.sorted(c.list(c.at(0)), key, c.is(1))}
		}},
		"string": {"s", func(c *call) Value {
			if _, marked := c.at(0).(safe); marked {
				return c.at(0)
			}
			return c.text(c.at(0))
		}},
		"sum": {"iterable|attribute start", func(c *call) Value {
			total := c.or(2, int64(0))
			if _, ok := str(total); ok {
				c.fail("sum of texts; join joins them")
			}
			get := c.getter(c.or(1, nil), nil, false)
			c.each(c.at(0), func(v Value) bool {
				total = c.operate("+", total, get(v))
				return true
			})
			return total
		}},
		"tojson": {"x|ensure_ascii indent separators sort_keys", toJSON},
		"trim": {"value|chars", func(c *call) Value {
			rest := &args{}
			if c.has(1) {
				rest.pos = []Value{c.at(1)}
			}
			out := c.invoke("trim", builtins["str.strip"], []Value{c.text(c.at(0))}, rest)
			if _, marked := c.at(0).(safe); marked {
				return safe(out.(string))
			}
			return out
		}},
		"truncate": {"s|length killwords end leeway", func(c *call) Value {
			most, end, leeway := c.int(1, 255), []rune("..."), 5
			if c.has(3) {
				end = []rune(c.str(3))
			}
			if c.or(4, nil) != nil {
				leeway = c.int(4, 5)
			}
			if most < len(end) || leeway < 0 {
				c.fail("truncate to %d characters, %d of them for the end, with a leeway of %d", most, len(end), leeway)
			}
			if n, ok := length(c.at(0)); ok && n <= most+leeway {
				return c.at(0)
			}
			s := []rune(c.want(c.unmarked(c.at(0)), "an argument of truncate"))
			c.alloc(4 * len(s))
			cut := string(s[:most-len(end)])
			if at := strings.LastIndexByte(cut, ' '); !c.is(2) && at >= 0 {
				cut = cut[:at]
			}
			return cut + string(end)
		}},
		"unique": {"value|case_sensitive attribute", func(c *call) Value {
			return c.lazily(c.at(0), func() func() (Value, bool) {
				key := c.getter(c.or(2, nil), nil, !c.is(1))
				seen := map[hash]bool{}
				return c.filtered(c.iter(c.at(0)), func(v Value) bool {
					c.alloc(64)
					h := c.key(key(v))
					first := !seen[h]
					seen[h] = true
					return first
				})
			})
		}},
	}
	for alias, name := range map[string]string{"count": "length", "d": "default", "e": "escape"} {
		filters[alias] = filters[name]
	}
	for name, f := range map[string]func(string) string{"upper": upper, "lower": lower, "title": words,
		"capitalize": capitalize} {
		filters[name] = builtin{"s", func(c *call) Value {
			s := c.text(c.unmarked(c.at(0)))
			c.alloc(len(s))
			return c.made(f(s))
		}}
	}
	for name, sign := range map[string]int{"max": 1, "min": -1} {
		filters[name] = builtin{"value|case_sensitive attribute", func(c *call) Value {
			key := c.getter(c.or(2, nil), nil, !c.is(1))
			var best, bestKey Value = &undefined{"No aggregated item, sequence was empty."}, nil
			found := false
			c.each(c.at(0), func(v Value) bool {
				if k := key(v); !found || c.order(k, bestKey) == sign {
					best, bestKey = v, k
				}
				found = true
				return true
			})
			return best
		}}
	}
	for name, keep := range map[string]bool{"select": true, "selectattr": true, "reject": false, "rejectattr": false} {
		filters[name] = builtin{"*", func(c *call) Value {
			v, rest := c.pos[0], args{c.pos[1:], c.names, c.named}
			return c.lazily(v, func() func() (Value, bool) {
				if !truth(v) {
					return none
				}
				of := func(v Value) Value { return v }
				if strings.HasSuffix(name, "attr") {
					if len(rest.pos) == 0 {
						c.fail("%s wants the name of an attribute", name)
					}
					of = c.getter(rest.pos[0], nil, false)
					rest.pos = rest.pos[1:]
				}
				holds := func(v Value) Value { return truth(v) }
				if len(rest.pos) > 0 {
					holds = c.applying("is ", rest, "test")
				}
				return c.filtered(c.iter(v), func(v Value) bool { return holds(of(v)) == keep })
			})
		}}
	}
	register("|", "", filters)

	is := func(holds func(in *interp, v Value) bool) builtin {
		return builtin{"value", func(c *call) Value { return holds(c.interp, c.at(0)) }}
	}
	undef := func(_ *interp, v Value) bool { _, u := v.(*undefined); return u }
	remainder := func(n int64) func(in *interp, v Value) bool {
		return func(in *interp, v Value) bool { return in.equal(in.operate("%", v, int64(2)), n) }
	}
	named := func(key string) func(in *interp, v Value) bool {
		return func(in *interp, v Value) bool {
			in.key(v)
			s, ok := str(v)
			_, known := builtins[key+s]
			return ok && (known || key == "|" && slices.Contains(refusedFilters, s))
		}
	}
	tests := map[string]builtin{
		"defined":   is(func(in *interp, v Value) bool { return !undef(in, v) }),
		"undefined": is(undef),
		"none":      is(func(_ *interp, v Value) bool { return v == nil }),
		"boolean":   is(func(_ *interp, v Value) bool { _, ok := v.(bool); return ok }),
		"true":      is(func(_ *interp, v Value) bool { return v == true }),
		"false":     is(func(_ *interp, v Value) bool { return v == false }),
		"integer":   is(func(_ *interp, v Value) bool { _, isBool := v.(bool); return isInt(v) && !isBool }),
		"float":     is(func(_ *interp, v Value) bool { _, ok := v.(float64); return ok }),
		"number":    is(func(_ *interp, v Value) bool { return isNumber(v) }),
		"string":    is(func(_ *interp, v Value) bool { _, ok := str(v); return ok }),
		"mapping":   is(func(_ *interp, v Value) bool { _, ok := v.(*Dict); return ok }),
		"sequence": is(func(in *interp, v Value) bool {
			if l, ok := v.(*List); ok {
				return l.kind <= seqRange
			}
			if _, isLoop := v.(*loop); isLoop {
				return false
			}
			_, sized := length(v)
			return sized
		}),
		"iterable": is(func(in *interp, v Value) bool {
			_, isLoop := v.(*loop)
			return isLoop || in.iterate(v) != nil
		}),
		"callable": is(func(in *interp, v Value) bool {
			return among("function Macro LoopContext Undefined", typeName(v))
		}),
		"odd":     is(remainder(1)),
		"even":    is(remainder(0)),
		"lower":   is(func(in *interp, v Value) bool { return inCase(in.text(v), unicode.IsUpper) }),
		"upper":   is(func(in *interp, v Value) bool { return inCase(in.text(v), unicode.IsLower) }),
		"escaped": is(func(_ *interp, v Value) bool { _, ok := v.(safe); return ok }),
		"filter":  is(named("|")),
		"test":    is(named("is ")),
		"divisibleby": {"value num", func(c *call) Value {
			return c.equal(c.operate("%", c.at(0), c.at(1)), int64(0))
		}},
		// sameas compares what Python keeps one object of. Whether numbers and texts are one object is undefined.
		"sameas": {"value other", func(c *call) Value {
			x, y := c.at(0), c.at(1)
			if kind := typeName(x); kind != typeName(y) {
				return false
			} else if among("int float str Markup Undefined function Cycler", kind) {
				c.unsupported("the test sameas of two values of type " + kind)
			}
			return x == y
		}},
		"in": {"value seq", func(c *call) Value { return c.contains(c.at(1), c.at(0)) }},
	}
	for op, names := range map[string]string{"==": "== eq equalto", "!=": "!= ne", ">": "> gt greaterthan",
		">=": ">= ge", "<": "< lt lessthan", "<=": "<= le"} {
		for _, name := range strings.Fields(names) {
			tests[name] = builtin{"/value other", func(c *call) Value { return c.compare(op, c.at(0), c.at(1)) }}
		}
	}
	register("is ", "", tests)
}

// whole is an integer as a number, which it is of a boolean too.
func (in *interp) whole(v Value) Value { return in.arithmetic("+", v, int64(0)) }

// unmarked refuses a string that is marked safe, whose mark jinja2 would keep.
func (in *interp) unmarked(v Value) Value {
	if _, marked := v.(safe); marked {
		in.unsupported("a filter on a string that is marked safe")
	}
	return v
}

// asDict is the first argument, which must be a dictionary, before its items are listed.
func (c *call) asDict() *Dict {
	c.notDefined(c.at(0))
	d, ok := c.at(0).(*Dict)
	if !ok {
		c.fail("%s of %s; want a dictionary", c.what, typeName(c.at(0)))
	}
	c.alloc(entrySize * len(d.entries))
	return d
}

// namedDict is the arguments by name.
func (a *args) namedDict() *Dict {
	d := &Dict{}
	for i, name := range a.names {
		d.Set(name, a.named[i])
	}
	return d
}

// applying is the application of the filter or test that the first argument names, to what the rest says.
func (c *call) applying(prefix string, a args, what string) func(Value) Value {
	if len(a.pos) == 0 {
		c.fail("%s wants the name of a %s", c.what, what)
	}
	name := c.want(a.pos[0], "the name of a "+what)
	if prefix == "|" && slices.Contains(refusedFilters, name) {
		c.unsupported("the filter " + name)
	}
	return func(v Value) Value { return c.apply(prefix+name, v, &args{a.pos[1:], a.names, a.named}) }
}

// getter looks up an attribute of values, a.b.0. What is undefined on the way becomes the default, unless that is nil.
// Without case, texts are made lower.
func (in *interp) getter(attribute, standard Value, caseless bool) func(Value) Value {
	parts := []Value{attribute}
	if s, ok := str(attribute); ok {
		in.alloc(32 * (1 + strings.Count(s, ".")))
		parts = nil
		for part := range strings.SplitSeq(s, ".") {
			if n, ok := intOf(part, 10); ok && strings.Trim(part, "0123456789") == "" {
				parts = append(parts, n)
			} else {
				parts = append(parts, part)
			}
		}
	} else if attribute == nil {
		parts = nil
	}
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

// filtered are the values of an iterator that keep wants.
func (in *interp) filtered(from *iterator, keep func(Value) bool) func() (Value, bool) {
	return func() (Value, bool) {
		for {
			v, ok := from.next()
			in.work(1)
			if !ok || keep(v) {
				return v, ok
			}
		}
	}
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
		if in.order(x.key, y.key) == -1 {
			return -1
		}
		if in.order(y.key, x.key) == -1 {
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
