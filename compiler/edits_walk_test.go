package compiler

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"amkc/ir"
)

// A valueEdit changes one value of a program in place, or one element of one of its lists.
type valueEdit struct {
	path     string // Variants[1].Body[2].Body[0].Ops[1].In[0].Dims[0].Hi
	what     string // "0 instead of pos"
	do, undo func()
}

// field is the path without its indices.
func (e *valueEdit) field() string { return indices.ReplaceAllString(e.path, "[]") }

var indices = regexp.MustCompile(`\[[^]]*\]`)

// editsOf lists edits of every value that a structure holds: found by reflection, so that a field that is added later
// is edited too.
func editsOf(p *ir.Program) []valueEdit {
	w := &editWalk{strings: map[string][]string{}}
	w.walk(reflect.ValueOf(p).Elem(), "")
	w.edits, w.collected = nil, true
	w.walk(reflect.ValueOf(p).Elem(), "")
	return w.edits
}

// editWalk walks a program twice: first to collect the strings of each field, which are what a string is replaced by.
type editWalk struct {
	strings   map[string][]string
	collected bool
	edits     []valueEdit
}

func (w *editWalk) add(path, what string, v reflect.Value, to reflect.Value) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	w.edits = append(w.edits, valueEdit{path, what, func() { v.Set(to) }, func() { v.Set(old) }})
}

func (w *editWalk) walk(v reflect.Value, path string) {
	if e, ok := v.Interface().(ir.Expr); ok {
		for _, other := range []ir.Expr{ir.Int(0), e.Add(ir.Int(1)), e.Add(ir.Int(-1)), ir.Symbol(ir.Pos), e.Mul(2)} {
			if other.String() != e.String() {
				w.add(path, other.String()+" instead of "+e.String(), v, reflect.ValueOf(other))
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Int:
		n := v.Int()
		for _, other := range []int64{0, 1, n + 1, n - 1, 2 * n} {
			if other != n {
				to := reflect.New(v.Type()).Elem()
				to.SetInt(other)
				w.add(path, fmt.Sprintf("%d instead of %d", other, n), v, to)
			}
		}
	case reflect.Float64:
		for _, other := range []float64{0, v.Float() * 1.5} {
			if other != v.Float() {
				w.add(path, fmt.Sprintf("%g instead of %g", other, v.Float()), v, reflect.ValueOf(other))
			}
		}
	case reflect.Bool:
		w.add(path, "the other truth value", v, reflect.ValueOf(!v.Bool()))
	case reflect.String:
		field := indices.ReplaceAllString(path, "[]")
		if !w.collected {
			if s := v.String(); !slices.Contains(w.strings[field], s) {
				w.strings[field] = append(w.strings[field], s)
			}
			return
		}
		others := append(slices.Clone(w.strings[field]), v.String()+"x")
		for _, s := range others {
			if s != v.String() {
				w.add(path, fmt.Sprintf("%q instead of %q", s, v.String()), v, reflect.ValueOf(s).Convert(v.Type()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem(), path)
		}
	case reflect.Slice:
		w.list(v, path)
	case reflect.Map:
		w.keys(v, path)
	}
}

// list edits a list: without each element, with each one twice, and in another order.
func (w *editWalk) list(v reflect.Value, path string) {
	part := func(lo, hi int) reflect.Value { return v.Slice(lo, hi) }
	join := func(parts ...reflect.Value) reflect.Value {
		out := reflect.MakeSlice(v.Type(), 0, v.Len()+1)
		for _, p := range parts {
			out = reflect.AppendSlice(out, p)
		}
		return out
	}
	for i := range v.Len() {
		at := fmt.Sprintf("%s[%d]", path, i)
		w.add(at, "left out", v, join(part(0, i), part(i+1, v.Len())))
		w.add(at, "twice", v, join(part(0, i+1), part(i, v.Len())))
		if i > 0 {
			w.add(at, beforeTheOther, v, join(part(0, i-1), part(i, i+1), part(i-1, i), part(i+1, v.Len())))
		}
		w.walk(v.Index(i), at)
	}
}

// keys edits the numbers of a map of maps, which is what knobs are.
func (w *editWalk) keys(v reflect.Value, path string) {
	for _, key := range v.MapKeys() {
		at, value := fmt.Sprintf("%s[%s]", path, key), v.MapIndex(key)
		if value.Kind() == reflect.Map {
			w.keys(value, at)
			continue
		}
		for _, n := range []int64{0, value.Int() + 1, value.Int() * 2} {
			if n == value.Int() {
				continue
			}
			w.edits = append(w.edits, valueEdit{at, fmt.Sprintf("%d instead of %d", n, value.Int()),
				func() { v.SetMapIndex(key, reflect.ValueOf(int(n))) }, func() { v.SetMapIndex(key, value) }})
		}
	}
}
