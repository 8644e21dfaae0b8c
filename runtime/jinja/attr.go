package jinja

import (
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute is v.name: an attribute of Python's type, and otherwise the value of a key.
func (in *interp) attribute(v Value, name string) Value {
	in.notDefined(v)
	if a, ok := in.member(v, name); ok {
		return a
	}
	if d, ok := v.(*Dict); ok {
		if item, there := d.Get(name); there {
			return item
		}
	}
	return &undefined{typeName(v) + " has no attribute " + quoted(name)}
}

// item is v[key]: the value of a key or at an index, and otherwise an attribute.
func (in *interp) item(v, key Value) Value {
	in.notDefined(v)
	n, whole := small(key)
	switch v := v.(type) {
	case *Dict:
		if h, ok := hashOf(key); ok {
			in.work(len(h.text))
			if item, there := v.get(h); there {
				return item
			}
		}
	case *List:
		if n < 0 {
			n += int64(len(v.items))
		}
		if whole && v.kind <= seqRange && 0 <= n && n < int64(len(v.items)) {
			return v.items[n]
		}
	case string, safe:
		if s, _ := str(v); whole {
			if c, ok := in.char(s, n); ok {
				return c
			}
		}
	}
	if name, ok := str(key); ok {
		if a, ok := in.member(v, name); ok {
			return a
		}
		return &undefined{typeName(v) + " has no attribute " + quoted(name)}
	}
	return &undefined{typeName(v) + " has no such element"}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// char is a character of a text.
func (in *interp) char(s string, n int64) (string, bool) {
	in.work(len(s))
	count := int64(utf8.RuneCountInString(s))
	if n < 0 {
		n += count
	}
	if n < 0 || n >= count {
		return "", false
	}
	if count == int64(len(s)) {
		return s[n : n+1], true
	}
	for i, r := range s {
		if n == 0 {
			return s[i : i+utf8.RuneLen(r)], true
		}
		n--
	}
	return "", false
}

// slice is v[from:to:step].
func (in *interp) slice(e *slice, s *scope) Value {
	v := in.eval(e.of, s)
	bounds := [3]Value{}
	for i, b := range []expr{e.from, e.to, e.step} {
		if b != nil {
			bounds[i] = in.eval(b, s)
		}
	}
	in.line = e.at()
	in.notDefined(v)
	if text, ok := v.(string); ok {
		if ascii(text) {
			from, to, step := in.bounds(bounds, len(text))
			if step == 1 {
				return in.made(text[from:max(from, to)])
			}
			return in.made(string(pick(in, []byte(text), from, to, step)))
		}
		in.alloc(4 * len(text))
		runes := []rune(text)
		from, to, step := in.bounds(bounds, len(runes))
		return in.made(string(pick(in, runes, from, to, step)))
	}
	l, ok := v.(*List)
	if !ok || l.kind > seqRange {
		if _, marked := v.(safe); marked {
			in.unsupported("a slice of a string that is marked safe")
		}
		in.fail("%s cannot be sliced", typeName(v))
	}
	from, to, step := in.bounds(bounds, len(l.items))
	return &List{pick(in, l.items, from, to, step), l.kind, false}
}

// bounds are the first index, the one before which to end, and the step, in a sequence of n, by Python's rules.
func (in *interp) bounds(b [3]Value, n int) (from, to, step int) {
	step = 1
	if b[2] != nil {
		if step = in.index(b[2], "the step of a slice"); step == 0 {
			in.fail("the step of a slice is 0")
		}
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	at := func(v Value, standard int) int {
		if v == nil {
			return standard
		}
		i := in.index(v, "a bound of a slice")
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	if step < 0 {
		return at(b[0], high), at(b[1], low), step
	}
	return at(b[0], low), at(b[1], high), step
}

func pick[T any](in *interp, all []T, from, to, step int) []T {
	var out []T
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		in.alloc(16)
		out = append(out, all[i])
	}
	return out
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// changing are the methods that change a list or a dictionary. They are there, and calling them fails.
var changing = map[string][]string{
	"list": {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"},
	"dict": {"clear", "pop", "popitem", "setdefault", "update"},
}

// others are the attributes of Python's types that templates have no use for, and that are refused.
var others = map[string][]string{
	"str": {"encode", "maketrans", "translate", "casefold", "isidentifier"},
	"int": {"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "imag",
		"numerator", "real", "to_bytes"},
	"float":     {"as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"},
	"range":     {"start", "stop", "step", "count", "index"},
	"dict_keys": {"isdisjoint", "mapping"}, "dict_values": {"mapping"}, "dict_items": {"isdisjoint", "mapping"},
	"generator": {"close", "gi_code", "gi_frame", "gi_running", "gi_suspended", "gi_yieldfrom", "send", "throw"},
	"Macro":     {"arguments", "caller", "catch_kwargs", "catch_varargs", "explicit_caller"},
}

// member returns an attribute that the type of a value has in Python.
func (in *interp) member(v Value, name string) (Value, bool) {
	kind := typeName(v)
	switch v := v.(type) {
	case string:
		if m := stringMethods[name]; m != nil {
			return &function{"str." + name, func(in *interp, a *args) Value { return m(in, v, a) }}, true
		}
	case safe:
		if stringMethods[name] != nil {
			in.unsupported("the method " + name + " of a string that is marked safe")
		}
		kind = "str"
	case *Dict:
		if m := dictMethods[name]; m != nil {
			return &function{"dict." + name, func(in *interp, a *args) Value { return m(in, v, a) }}, true
		}
	case *List:
		if m := listMethods[name]; m != nil && v.kind <= seqTuple && (name != "copy" || v.kind == seqList) {
			return &function{kind + "." + name, func(in *interp, a *args) Value { return m(in, v, a) }}, true
		}
		if i := slices.Index([]string{"grouper", "list"}, name); v.group && i >= 0 {
			return v.items[i], true
		}
	case *namespace:
		if item, ok := v.vars.Get(name); ok {
			return item, true
		}
	case *loop:
		if a, ok := v.attribute(name); ok {
			return a, true
		}
	case *function:
		if v.name == "dict" && name == "fromkeys" {
			return &function{"dict.fromkeys", fromKeys}, true
		}
	case *macro:
		if name == "name" {
			return v.def.name, true
		}
	case *cycler:
		if a, ok := v.attribute(name); ok {
			return a, true
		}
	case bool, *big.Int:
		kind = "int"
	}
	if slices.Contains(changing[kind], name) || private(v, name) {
		return &undefined{"access to attribute " + quoted(name) + " of " + typeName(v) + " is unsafe"}, true
	}
	if slices.Contains(others[kind], name) {
		in.unsupported("the attribute " + name + " of " + kind)
	}
	return nil, false
}

// private reports whether a name is one that all of Python's objects have, and that the sandbox hides.
func private(v Value, name string) bool {
	word, ok := strings.CutPrefix(name, "__")
	if word, ok = strings.CutSuffix(word, "__"); !ok || name == word {
		return false
	}
	return slices.Contains([]string{"class", "delattr", "dir", "doc", "eq", "format", "ge", "getattribute", "getstate",
		"gt", "hash", "init", "init_subclass", "le", "lt", "ne", "new", "reduce", "reduce_ex", "repr", "setattr",
		"sizeof", "str", "subclasshook", "len", "getitem", "iter", "contains"}, word)
}
