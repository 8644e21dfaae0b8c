package importers

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
)

// fields reads typed values out of a JSON document and collects what is wrong with them.
type fields struct {
	doc   *checkpoint.Document
	diags diag.List
}

func (f *fields) pos(field string) string { return f.doc.Name + ": " + field }

func (f *fields) fail(code *diag.Code, field, format string, args ...any) {
	f.diags.Add(diag.Errorf(code, f.pos(field), format, args...))
}

// value returns a field that is there and not null.
func (f *fields) value(field string) (any, bool) {
	v, ok := f.doc.Get(field)
	return v, ok && v != nil
}

func (f *fields) text(field, def string) string {
	v, ok := f.value(field)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		f.fail(codeField, field, "is %s; want a string", spell(v))
		return def
	}
	return s
}

func (f *fields) truth(field string, def bool) bool {
	v, ok := f.value(field)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(codeField, field, "is %s; want true or false", spell(v))
		return def
	}
	return b
}

// size reads a positive integer, up to the bound of the model's fact that it is. A def of 0 makes the field mandatory.
// Of a field that is at fault it returns 1, which no message may speak of: code that compares sizes asks first whether
// there were errors.
func (f *fields) size(field string, def int, fact string) int {
	limit := ir.ModelBound(fact).Hi
	v, ok := f.value(field)
	if !ok {
		if def == 0 {
			f.fail(codeField, field, "is missing; want an integer from 1 to %d", limit)
			return 1
		}
		return def
	}
	n, ok := asInt(v)
	if !ok || n < 1 || n > limit {
		f.fail(codeField, field, "is %s; want an integer from 1 to %d", spell(v), limit)
		return 1
	}
	return n
}

// count reads an integer that is not negative. Products of it with sizes fit an int.
func (f *fields) count(field string) int {
	v, _ := f.value(field)
	n, ok := asInt(v)
	if !ok || n < 0 || n > math.MaxInt32 {
		f.fail(codeField, field, "is %s; want an integer from 0 to %d", spell(v), math.MaxInt32)
		return 0
	}
	return n
}

// single reads a positive number that the kernel computes with in float32, where it must be a normal number.
func (f *fields) single(field string, v any) float64 {
	x, ok := asFloat(v)
	if !ok || !(x > 0) || !ir.IsSingle(x) {
		f.fail(codeField, field, "is %s; want a number from %s", spell(v), ir.Singles)
		return 1
	}
	return x
}

// between reads a number of an interval, both ends included.
func (f *fields) between(field string, v any, in interval) float64 {
	x, ok := asFloat(v)
	if !ok || !(x >= in.lo && x <= in.hi) {
		f.fail(codeField, field, "is %s; want a number from %g to %g", spell(v), in.lo, in.hi)
		return in.lo
	}
	return x
}

// An interval of numbers, both ends included.
type interval struct{ lo, hi float64 }

func asInt(v any) (int, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(num.String())
	return n, err == nil
}

func asFloat(v any) (float64, bool) {
	num, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := num.Float64()
	return x, err == nil
}

// spell prints a JSON value for a message.
func spell(v any) string { return checkpoint.Spell(v) }

// same reports whether two JSON values mean the same: numbers by value, so that 8 is 8.0.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		x, isX := asFloat(a)
		y, isY := asFloat(b)
		return isX && isY && x == y
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, same)
	case *checkpoint.Object:
		other, ok := b.(*checkpoint.Object)
		return ok && len(a.Keys()) == len(other.Keys()) && !slices.ContainsFunc(a.Keys(), func(key string) bool {
			v, there := other.Get(key)
			return !there || !same(get(a, key), v)
		})
	}
	return a == b
}

// A known is a config field that has no effect on the generated tokens for the values that accept admits.
type known struct {
	accept func(any) bool
	want   string
	effect string // what other values do; empty if that cannot be known, so that the user may vouch for one
}

// does returns k with what the values that it does not accept do.
func (k known) does(effect string) known {
	k.effect = effect
	return k
}

var (
	whatever = known{accept: func(any) bool { return true }, want: "anything"}
	isNull   = known{accept: func(v any) bool { return v == nil }, want: "null"}
	isFalse  = known{accept: func(v any) bool { return v == nil || v == false }, want: "false"}
	isTrue   = known{accept: func(v any) bool { return v == nil || v == true }, want: "true"}
	onlyTrue = known{accept: func(v any) bool { return v == true }, want: "true"} // and not null
	isEmpty  = known{accept: func(v any) bool {
		switch v := v.(type) {
		case nil:
			return true
		case []any:
			return len(v) == 0
		case *checkpoint.Object:
			return len(v.Keys()) == 0
		}
		return false
	}, want: "empty"}
)

// isNumber is the value x, or null.
func isNumber(x float64) known {
	return known{accept: func(v any) bool {
		y, ok := asFloat(v)
		return v == nil || ok && x == y
	}, want: strconv.FormatFloat(x, 'g', -1, 64)}
}

// isText is the string s, or null.
func isText(s string) known {
	return known{accept: func(v any) bool { return v == nil || v == s }, want: strconv.Quote(s)}
}

// allText is an array of the same string, or null.
func allText(s string) known {
	return known{accept: func(v any) bool {
		array, ok := v.([]any)
		return v == nil || ok && !slices.ContainsFunc(array, func(e any) bool { return e != s })
	}, want: strconv.Quote(s) + " throughout"}
}

// isNote reports whether a field that no table has is a note of the tool that wrote the config: tools mark what is not
// part of a model with an underscore, as in _name_or_path, and classes read none of it. The one that a class reads,
// _remove_final_layer_norm, is in OPT's table.
func isNote(field string) bool { return strings.HasPrefix(field, "_") }

// checkFields refuses every field that is neither modelled nor inert. assume names those the user vouches for.
func (f *fields) checkFields(modelled []string, inert map[string]known, assume []string) {
	for _, field := range f.doc.Keys() {
		v, _ := f.doc.Get(field)
		k, isKnown := inert[field]
		switch {
		case slices.Contains(modelled, field), isKnown && k.accept(v), !isKnown && isNote(field):
		case isKnown && k.effect != "":
			f.fail(codeNotModelled, field, "is %s: %s, which is not modelled; accepted: %s", spell(v), k.effect, k.want)
		case slices.Contains(assume, field):
		case isKnown:
			f.fail(codeInert, field, "is %s; it is known to have no effect when %s; "+
				"if it has none here either, give --assume-inert %s", spell(v), k.want, field)
		default:
			f.fail(codeUnknownField, field, "is not a field that amkc knows, so it may change the model; "+
				"if it does not, give --assume-inert %s", field)
		}
	}
	for _, field := range assume {
		_, there := f.doc.Get(field)
		switch {
		case slices.Contains(modelled, field):
			f.fail(codeAssume, field, "--assume-inert %s: the field is modelled, and has its effect", field)
		case !there:
			f.diags.Add(diag.Warningf(codeAssume, f.pos(field), "--assume-inert %s: the config has no such field",
				field))
		}
	}
}
