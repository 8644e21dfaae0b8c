package amk

import (
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
)

// A loader turns nodes into fields and collects what is wrong with them. A field that is wrong yields its zero value
// and a diagnostic, so that one pass over a file reports everything.
type loader struct {
	*source
	findings
}

func (l *loader) errorf(code *diag.Code, off int, format string, args ...any) {
	l.findings.errorf(l.source, code, off, format, args...)
}

func (l *loader) warnf(code *diag.Code, off int, format string, args ...any) {
	l.findings.warnf(l.source, code, off, format, args...)
}

// A record is an object with known fields. The zero record stands for a value that was no object, already reported:
// it has no fields and reports nothing more.
type record struct {
	*loader
	what string // in the words of the diagnostics: "task"
	node *node
}

// record checks that n is an object and warns of every key that is not known.
func (l *loader) record(n *node, what string, known []string) record {
	if n.kind != objectNode {
		l.errorf(codeType, n.off, "%s must be an object, found %s", what, n.kind)
		return record{}
	}
	fields := n.fields()
	for i := range fields {
		if f := &fields[i]; !slices.Contains(known, f.name) {
			l.warnf(codeUnknownKey, f.off, "%s: unknown key %q is dropped; known are %s", what, f.name,
				commaList(known))
		}
	}
	return record{l, what, n}
}

// commaList prints only when a message does: every key of a hostile file may be unknown.
type commaList []string

func (l commaList) String() string { return strings.Join(l, ", ") }

// find returns the value of a field, or nil.
func (r record) find(name string) *node {
	if r.node == nil {
		return nil
	}
	fields := r.node.fields()
	for i := range fields {
		if fields[i].name == name {
			return &fields[i].val
		}
	}
	return nil
}

// must returns the value of a required field. Where it is missing it reports so and returns nil.
func (r record) must(name string) *node {
	n := r.find(name)
	if n == nil && r.node != nil {
		r.errorf(codeMissing, r.node.off, "%s: required field %q is missing", r.what, name)
	}
	return n
}

func (r record) mistyped(n *node, name, accepted string) {
	r.errorf(codeType, n.off, "%s: %q must be %s, found %s", r.what, name, accepted, n.kind)
}

func (r record) str(name string) string { return r.strAt(r.must(name), name, "") }

func (r record) strOr(name, absent string) string { return r.strAt(r.find(name), name, absent) }

func (r record) strAt(n *node, name, absent string) string {
	switch {
	case n == nil:
		return absent
	case n.kind != stringNode:
		r.mistyped(n, name, "a string")
		return absent
	}
	return n.text
}

// name returns a required string that names something.
func (r record) name(field string) string { return r.nameAt(r.must(field), field, "") }

func (r record) nameOr(field, absent string) string { return r.nameAt(r.find(field), field, absent) }

// nameAt is strAt for what names something. Empty is for Flatten, which then makes up a name.
func (r record) nameAt(n *node, field, absent string) string {
	s := r.strAt(n, field, absent)
	if err := ir.CheckName(s); err != nil && s != "" && n != nil && n.kind == stringNode {
		r.errorf(codeName, n.off, "%s: %q %v", r.what, field, err)
	}
	return s
}

func (r record) int(name string) int { return r.intAt(r.must(name), name, 0) }

func (r record) intOr(name string, absent int) int { return r.intAt(r.find(name), name, absent) }

func (r record) intAt(n *node, name string, absent int) int {
	switch {
	case n == nil:
		return absent
	case n.kind != intNode:
		r.mistyped(n, name, "an integer")
		return absent
	}
	v, err := strconv.Atoi(n.text)
	if err != nil {
		r.errorf(codeRange, n.off, "%s: %q must fit in 64 bits", r.what, name)
		return absent
	}
	return v
}

func (r record) ints(name string) []int {
	items := r.arrayAt(r.must(name), name, "an array of integers")
	list := make([]int, len(items))
	for i := range items {
		list[i] = r.intAt(&items[i], name, 0)
	}
	return list
}

func (r record) number(name string) Number { return r.numberAt(r.must(name), name, "") }

func (r record) numberOr(name string, absent Number) Number {
	return r.numberAt(r.find(name), name, absent)
}

func (r record) numberAt(n *node, name string, absent Number) Number {
	switch {
	case n == nil:
		return absent
	case n.kind != intNode && n.kind != floatNode:
		r.mistyped(n, name, "a number")
		return absent
	}
	return Number(n.text)
}

func (r record) boolOr(name string, absent bool) bool {
	n := r.find(name)
	switch {
	case n == nil:
		return absent
	case n.kind != boolNode:
		r.mistyped(n, name, "true or false")
		return absent
	}
	return n.text == "true"
}

// arrayAt returns the items of an array; n may be nil.
func (r record) arrayAt(n *node, name, accepted string) []node {
	if n != nil && n.kind != arrayNode {
		r.mistyped(n, name, accepted)
		return nil
	}
	if n == nil {
		return nil
	}
	return n.items()
}

// objectOr returns a free-form object, empty where it is absent.
func (r record) objectOr(name string) Object {
	n := r.find(name)
	if n != nil && n.kind != objectNode {
		r.mistyped(n, name, "an object")
		return Object{}
	}
	if n == nil {
		return Object{}
	}
	return n.object()
}

// enum returns the code of a required name.
func (r record) enum(name string, names []string) uint8 {
	n := r.must(name)
	if n == nil {
		return 0
	}
	if n.kind != stringNode {
		r.mistyped(n, name, "one of "+strings.Join(names, ", "))
		return 0
	}
	code := slices.Index(names, n.text)
	if code < 0 {
		r.errorf(codeEnum, n.off, "%s: unknown %s %q; accepted are %s", r.what, name, n.text, strings.Join(names, ", "))
		return 0
	}
	return uint8(code)
}

// intMap returns an object whose keys are integers in quotes.
func (r record) intMap(n *node, name string) OrderedMap[int, int] {
	var m OrderedMap[int, int]
	fields := n.fields()
	for i := range fields {
		f := &fields[i]
		key, err := strconv.Atoi(f.name)
		if err != nil {
			r.errorf(codeIntKey, f.off, "%s: key %q of %q must be a decimal integer", r.what, f.name, name)
			continue
		}
		if fresh := m.Set(key, r.intAt(&f.val, name, 0)); !fresh {
			r.warnf(codeDuplicate, f.off, "%s: key %d of %q again; its last value counts", r.what, key, name)
		}
	}
	return m
}

// list converts the items of an optional array of objects.
func list[T any](r record, n *node, name string, convert func(*node) T) []T {
	items := r.arrayAt(n, name, "an array of objects")
	out := make([]T, 0, min(len(items), 1<<12)) // more than that grows: most items of a hostile file are none
	for i := range items {
		if r.loader != nil && r.full() {
			break
		}
		out = append(out, convert(&items[i]))
	}
	return out
}
