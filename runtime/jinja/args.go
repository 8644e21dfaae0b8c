package jinja

import (
	"slices"
	"strings"
)

// args are the arguments of a call, by position and by name. Those of a filter or test begin with what it is applied
// to.
type args struct {
	pos   []Value
	names []string
	named []Value
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

// params are the arguments of a call by the parameters of what is called.
type params struct {
	in     *interp
	what   string
	values []Value
	given  []bool
}

// bind gives the arguments to parameters, of which the first ones are required.
func (a *args) bind(in *interp, what string, required int, names ...string) params {
	p := params{in, what, make([]Value, len(names)), make([]bool, len(names))}
	if len(a.pos) > len(names) {
		in.fail("%s takes %d arguments, and %d were given", what, len(names), len(a.pos))
	}
	for i, v := range a.pos {
		p.values[i], p.given[i] = v, true
	}
	for i, name := range a.names {
		at := slices.Index(names, name)
		if at < 0 || p.given[at] {
			in.fail("%s has no argument %q, or it was given twice; it takes %s", what, name, strings.Join(names, ", "))
		}
		p.values[at], p.given[at] = a.named[i], true
	}
	for i := range required {
		if !p.given[i] {
			in.fail("%s has no argument %q, which it needs", what, names[i])
		}
	}
	return p
}

// plain is bind for what takes no arguments by name, as the methods of Python's types.
func (a *args) plain(in *interp, what string, required, most int) params {
	if len(a.names) > 0 {
		in.fail("%s takes no argument by name, such as %q", what, a.names[0])
	}
	if len(a.pos) < required || len(a.pos) > most {
		in.fail("%s was given %d arguments; it takes %d to %d", what, len(a.pos), required, most)
	}
	return params{in, what, a.pos, slices.Repeat([]bool{true}, len(a.pos))}
}

func (p params) has(i int) bool { return i < len(p.given) && p.given[i] }
func (p params) at(i int) Value { return p.values[i] }

func (p params) or(i int, standard Value) Value {
	if p.has(i) {
		return p.values[i]
	}
	return standard
}

// is reports whether an argument was given that is true.
func (p params) is(i int) bool { return p.has(i) && truth(p.values[i]) }

func (p params) integer(i, standard int) int {
	if !p.has(i) {
		return standard
	}
	return p.in.index(p.values[i], "an argument of "+p.what)
}

// str is an argument that must be a string.
func (p params) str(i int) string { return p.in.want(p.values[i], "an argument of "+p.what) }

// want is a value that must be a string.
func (in *interp) want(v Value, what string) string {
	s, ok := str(v)
	if !ok {
		in.notDefined(v)
		in.fail("%s is %s; want a string", what, typeName(v))
	}
	return s
}
