package jinja

import (
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"
)

// A Value is a value of a template: nil (Python's None), bool, int64, *big.Int beyond that, float64, string, *List,
// *Dict, or one that only templates make. Numbers from outside are int64 or float64; no other types are values.
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

// Items returns the values. They are not to be changed.
func (l *List) Items() []Value { return l.items }

// A Dict is a dictionary, which keeps the order of its keys.
type Dict struct {
	entries []entry
	index   map[hash]int
}

type entry struct{ key, value Value }

// Set adds a value, or replaces that of a key, which keeps its place. It must not be called once a template has seen
// the dictionary.
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

// A function is a global function, or a method with what it is called on.
type function struct {
	name string
	call func(in *interp, a *args) Value
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
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case safe:
		return v != ""
	case *List:
		return len(v.items) > 0
	case *Dict:
		return len(v.entries) > 0
	}
	return true
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
	case string:
		return utf8.RuneCountInString(v), true
	case safe:
		return utf8.RuneCountInString(string(v)), true
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

// A key may be a tuple of so many levels, and so long.
const (
	maxKeyDepth = 20
	maxKeyText  = 1 << 20
)

func hashAt(v Value, depth int) (hash, bool) {
	switch v := v.(type) {
	case nil:
		return hash{kind: '0'}, true
	case string:
		return hash{kind: 's', text: v}, true
	case safe:
		return hash{kind: 's', text: string(v)}, true
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
			if n == 0 {
				return nil, false
			}
			s = s[n:]
			return string(r), true
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

func (d *Dict) keys() []Value {
	all := make([]Value, len(d.entries))
	for i, e := range d.entries {
		all[i] = e.key
	}
	return all
}

func (d *Dict) values() []Value {
	all := make([]Value, len(d.entries))
	for i, e := range d.entries {
		all[i] = e.value
	}
	return all
}

func (d *Dict) items() []Value {
	all := make([]Value, len(d.entries))
	for i, e := range d.entries {
		all[i] = tuple(e.key, e.value)
	}
	return all
}

func tuple(items ...Value) *List { return &List{items: items, kind: seqTuple} }
