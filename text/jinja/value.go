package jinja

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Value is a value of a template: nil (Python's None), bool, int64, *big.Int beyond that, float64, string, *List,
// *Dict, or one that only templates make. Numbers from callers are int64 or float64. No other types are values.
type Value any

type seqKind int

const (
	seqList seqKind = iota
	seqTuple
	seqRange
	seqKeys // what a dictionary has for keys, values and items
	seqValues
	seqItems
)

var seqNames = [...]string{"list", "tuple", "range", "dict_keys", "dict_values", "dict_items"}

// A List is a list or another sequence of Python. Templates do not change it.
type List struct {
	items []Value
	kind  seqKind
	group bool // a tuple of groupby, whose parts have names
}

// NewList returns a list of values.
func NewList(items ...Value) *List { return &List{items: items} }

// Items returns the values. Callers must not modify them.
func (l *List) Items() []Value { return l.items }

// A Dict is a dictionary, which keeps the order of its keys.
type Dict struct {
	entries []entry
	index   map[hash]int
}

type entry struct{ key, value Value }

// Set adds a value, or replaces that of a key, which keeps its place. It must not be called after a template has
// received the dictionary.
func (d *Dict) Set(key string, v Value) { d.set(hash{kind: 's', text: key}, key, v) }

// Get returns the value of a key.
func (d *Dict) Get(key string) (Value, bool) { return d.get(hash{kind: 's', text: key}) }

// Keys returns those keys that are strings, in order.
func (d *Dict) Keys() []string {
	keys := make([]string, 0, len(d.entries))
	for _, e := range d.entries {
		if s, ok := e.key.(string); ok {
			keys = append(keys, s)
		}
	}
	return keys
}

func (d *Dict) set(h hash, key, v Value) {
	if i, there := d.index[h]; there {
		d.entries[i].value = v
		return
	}
	if d.index == nil {
		d.index = map[hash]int{}
	}
	d.index[h] = len(d.entries)
	d.entries = append(d.entries, entry{key, v})
}

func (d *Dict) get(h hash) (Value, bool) {
	i, ok := d.index[h]
	if !ok {
		return nil, false
	}
	return d.entries[i].value, true
}

// undefined is what a name or an attribute is that nothing was assigned to. It prints as nothing, is false and empty,
// and anything else done with it fails with why.
type undefined struct{ why string }

// safe is a string that the filter safe or escape has marked. It prints like any other.
type safe string

// A namespace is what {% set ns.name = ... %} changes.
type namespace struct{ vars Dict }

func (ns *namespace) attribute(_ *interp, name string) (Value, bool) { return ns.vars.Get(name) }

// A function is a global function, or a method with what it is called on.
type function struct {
	name string
	self []Value
	do   builtin
}

// An object is a value whose attributes are its own business.
type object interface {
	attribute(in *interp, name string) (Value, bool)
}

// An iterator is a generator of Python: its values come once, and are made as they are asked for.
type iterator struct {
	kind  string
	next  func() (Value, bool)
	size  int // how many there are, -1 where that is not known
	depth int // how many other generators it asks for its values
}

// typeName is what Python calls the type of a value.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case safe:
		return "Markup"
	case *List:
		return seqNames[v.kind]
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	case *iterator:
		return v.kind
	case *function:
		return "function"
	}
	panic(fmt.Sprintf("a value of type %T", v)) // only what the documentation of Value excludes
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string, safe:
		text, _ := str(v)
		return text != ""
	case *loop:
		return true
	}
	n, sized := length(v)
	return !sized || n > 0
}

// str returns a string, marked or not.
func str(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case safe:
		return string(v), true
	}
	return "", false
}

// length is what Python's len is of a value.
func length(v Value) (int, bool) {
	switch v := v.(type) {
	case string, safe:
		text, _ := str(v)
		return utf8.RuneCountInString(text), true
	case *List:
		return len(v.items), true
	case *Dict:
		return len(v.entries), true
	case *undefined:
		return 0, true
	case *loop:
		return v.length(), true
	}
	return 0, false
}

// A hash is what makes a value a key: values that are equal have equal ones.
type hash struct {
	kind byte
	text string
	n    int64
}

// hashOf returns the hash of a value, and reports whether it may be a key.
func hashOf(v Value) (hash, bool) { return hashAt(v, 0) }

// Bounds on the levels of a tuple that is a key, and on its text.
const (
	maxKeyDepth = 20
	maxKeyText  = 1 << 20
)

func hashAt(v Value, depth int) (hash, bool) {
	switch v := v.(type) {
	case nil:
		return hash{kind: '0'}, true
	case string, safe:
		text, _ := str(v)
		return hash{kind: 's', text: text}, true
	case bool, int64:
		n, _ := small(v)
		return hash{kind: 'i', n: n}, true
	case *big.Int:
		return hash{kind: 'b', text: v.String()}, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return hash{kind: 'i', n: int64(v)}, true
		}
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			n, _ := big.NewFloat(v).Int(nil)
			return hash{kind: 'b', text: n.String()}, true
		}
		return hash{kind: 'f', n: int64(math.Float64bits(v))}, true
	case *undefined:
		return hash{kind: 'u'}, true
	case *List:
		if v.kind == seqRange { // equal to one with the same values
			h := hash{kind: 'r', n: int64(len(v.items))}
			if h.n > 0 {
				h.text = fmt.Sprint(v.items[0], v.items[h.n-1])
			}
			return h, true
		}
		if v.kind != seqTuple || depth == maxKeyDepth {
			return hash{}, false
		}
		h := hash{kind: 't'}
		for _, item := range v.items {
			part, ok := hashAt(item, depth+1)
			if !ok || len(h.text) > maxKeyText {
				return hash{}, false
			}
			h.text += fmt.Sprintf("%c%d:%d:%s", part.kind, part.n, len(part.text), part.text)
		}
		return h, true
	}
	return hash{}, false
}

// key is [hashOf] for a key of a dictionary, which fails otherwise.
func (in *interp) key(v Value) hash {
	h, ok := hashOf(v)
	if !ok {
		in.fail("%s cannot be a key of a dictionary", typeName(v))
	}
	in.work(len(h.text))
	return h
}

// iterate returns the values of what can be looped over, and otherwise nil.
func (in *interp) iterate(v Value) *iterator {
	switch v := v.(type) {
	case *iterator:
		return v
	case *undefined:
		return over("generator", nil)
	case *List:
		return over(seqNames[v.kind]+"_iterator", v.items)
	case *Dict:
		return over("dict_keyiterator", v.keys())
	case string, safe:
		s, _ := str(v)
		return &iterator{kind: "str_iterator", size: utf8.RuneCountInString(s), next: func() (Value, bool) {
			r, n := utf8.DecodeRuneInString(s)
			s = s[n:]
			return string(r), n > 0
		}}
	}
	return nil
}

func over(kind string, items []Value) *iterator {
	i := 0
	return &iterator{kind: kind, size: len(items), next: func() (Value, bool) {
		if i == len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}}
}

// each calls f for the values of what can be looped over, and fails for what cannot.
func (in *interp) each(v Value, f func(Value) bool) {
	it := in.iter(v)
	for {
		item, ok := it.next()
		in.work(1)
		if !ok || !f(item) {
			return
		}
	}
}

func (in *interp) iter(v Value) *iterator {
	it := in.iterate(v)
	if it == nil {
		in.fail("%s cannot be looped over", typeName(v))
	}
	return it
}

// list returns the values of what can be looped over.
func (in *interp) list(v Value) []Value {
	if l, ok := v.(*List); ok {
		in.work(1)
		return l.items
	}
	var all []Value
	in.each(v, func(item Value) bool {
		in.alloc(16)
		all = append(all, item)
		return true
	})
	return all
}

func (d *Dict) list(of func(e entry) Value) []Value {
	all := make([]Value, len(d.entries))
	for i, e := range d.entries {
		all[i] = of(e)
	}
	return all
}

func (d *Dict) keys() []Value  { return d.list(func(e entry) Value { return e.key }) }
func (d *Dict) items() []Value { return d.list(func(e entry) Value { return tuple(e.key, e.value) }) }

func tuple(items ...Value) *List { return &List{items: items, kind: seqTuple} }

// equal is Python's ==.
func (in *interp) equal(a, b Value) bool {
	in.work(0)
	if isNumber(a) && isNumber(b) {
		return numberOrder(a, b) == 0
	}
	if s, ok := str(a); ok {
		t, ok := str(b)
		in.work(min(len(s), len(t)))
		return ok && s == t
	}
	same := true
	switch a := a.(type) {
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		b, ok := b.(*List)
		if !ok || a.kind != b.kind || len(a.items) != len(b.items) {
			return false
		}
		in.deeper(func() {
			for i := 0; same && i < len(a.items); i++ {
				same = in.equal(a.items[i], b.items[i])
			}
		})
		return same
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || len(a.entries) != len(b.entries) {
			return false
		}
		in.deeper(func() {
			for i := 0; same && i < len(a.entries); i++ {
				v, there := b.get(in.key(a.entries[i].key))
				same = there && in.equal(a.entries[i].value, v)
			}
		})
		return same
	}
	return a == b
}

// order compares what Python can: numbers, texts, lists and tuples. Anything else fails.
func (in *interp) order(a, b Value) int {
	in.work(0)
	if isNumber(a) && isNumber(b) {
		return numberOrder(a, b)
	}
	s, aStr := str(a)
	t, bStr := str(b)
	if aStr && bStr {
		in.work(min(len(s), len(t)))
		return strings.Compare(s, t)
	}
	x, aList := a.(*List)
	y, bList := b.(*List)
	if aList && bList && x.kind == y.kind && x.kind <= seqTuple {
		for i := range min(len(x.items), len(y.items)) {
			if !in.equal(x.items[i], y.items[i]) {
				o := 0
				in.deeper(func() { o = in.order(x.items[i], y.items[i]) })
				return o
			}
		}
		return cmp.Compare(len(x.items), len(y.items))
	}
	in.notDefined(a)
	in.notDefined(b)
	in.fail("%s and %s have no order", typeName(a), typeName(b))
	return 0
}

// compare evaluates a comparison by its sign.
func (in *interp) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return in.equal(a, b)
	case "!=":
		return !in.equal(a, b)
	case "in":
		return in.contains(b, a)
	case "not in":
		return !in.contains(b, a)
	}
	o := in.order(a, b)
	return o == 0 && len(op) == 2 || o == -1 && op[0] == '<' || o == 1 && op[0] == '>'
}

// contains is Python's in.
func (in *interp) contains(all, v Value) (found bool) {
	switch all := all.(type) {
	case string, safe:
		text, _ := str(all)
		in.work(len(text))
		return strings.Contains(text, in.want(v, "what is looked for in a string"))
	case *Dict:
		_, ok := all.get(in.key(v))
		return ok
	}
	in.each(all, func(item Value) bool {
		found = in.equal(item, v)
		return !found
	})
	return found
}

// notDefined fails for what is undefined, as all that needs a value does.
func (in *interp) notDefined(v Value) {
	if u, ok := v.(*undefined); ok {
		in.fail("%s", u.why)
	}
}

// want is a value that must be a string.
func (in *interp) want(v Value, what string) string {
	s, ok := str(v)
	if !ok {
		in.notDefined(v)
		in.fail("%s is %s; want a string", what, typeName(v))
	}
	return s
}

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
	}
	return &undefined{typeName(v) + " has no such element"}
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
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	_, size := utf8.DecodeRuneInString(s)
	return s[:size], true
}

// slice is v[from:to:step], with nil for what is not given.
func (in *interp) slice(v Value, bounds [3]Value) Value {
	in.notDefined(v)
	switch v := v.(type) {
	case string:
		if ascii(v) {
			return in.made(string(pick(in, []byte(v), bounds)))
		}
		in.alloc(4 * len(v))
		return in.made(string(pick(in, []rune(v), bounds)))
	case safe:
		return in.unsupported("a slice of a string that is marked safe")
	case *List:
		if v.kind <= seqRange {
			return &List{items: pick(in, v.items, bounds), kind: v.kind}
		}
	}
	return in.fail("%s cannot be sliced", typeName(v))
}

// pick returns the items of a slice, by Python's rules.
func pick[T any](in *interp, all []T, b [3]Value) []T {
	n, step := len(all), 1
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
	from, to := at(b[0], low), at(b[1], high)
	if step < 0 {
		from, to = at(b[0], high), at(b[1], low)
	}
	if step == 1 {
		in.alloc(16 * max(to-from, 0))
		return all[from:max(from, to)]
	}
	var out []T
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		in.alloc(16)
		out = append(out, all[i])
	}
	return out
}

// operate applies an operator to two values.
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
		return &List{items: slices.Concat(x.items, y.items), kind: x.kind}
	case op == "*" && (isText || isList && x.kind <= seqTuple) && isInt(right):
		return in.times(left, right)
	case op == "*" && (bothText || bothLists && y.kind <= seqTuple) && isInt(left):
		return in.times(right, left)
	}
	in.notDefined(left)
	in.notDefined(right)
	return in.fail("%s %s %s has no meaning", typeName(left), op, typeName(right))
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
	if len(l.items) == 0 {
		n = 0
	}
	in.alloc(16 * len(l.items) * min(n, in.limits.Memory))
	return &List{items: slices.Repeat(l.items, n), kind: l.kind}
}

// sign applies a sign to a value.
func (in *interp) sign(op string, v Value) Value {
	in.notDefined(v)
	if !isNumber(v) {
		in.fail("%s has no sign", typeName(v))
	}
	if f, ok := v.(float64); ok && op == "-" {
		return -f
	}
	return in.arithmetic(op, int64(0), v)
}
