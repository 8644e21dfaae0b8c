package passes

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"amkc/ir/diag"
	"amkc/passes/checkpoint"
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

// size reads a positive integer. A def of 0 makes the field mandatory.
func (f *fields) size(field string, def, limit int) int {
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

// positive reads a finite number above zero.
func (f *fields) positive(field string, v any) float64 {
	x, ok := asFloat(v)
	if !ok || !(x > 0) || math.IsInf(x, 0) {
		f.fail(codeField, field, "is %s; want a number above 0", spell(v))
		return 1
	}
	return x
}

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
func spell(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return strconv.Quote(v)
	case []any:
		return "an array"
	}
	return "an object"
}

// A known is a config field that has no effect on the logits for the values that accept admits.
type known struct {
	accept func(any) bool
	want   string
}

var (
	whatever = known{func(any) bool { return true }, "anything"}
	isNull   = known{func(v any) bool { return v == nil }, "null"}
	isFalse  = known{func(v any) bool { return v == nil || v == false }, "false"}
	isEmpty  = known{func(v any) bool {
		switch v := v.(type) {
		case nil:
			return true
		case []any:
			return len(v) == 0
		case *checkpoint.Object:
			return len(v.Keys()) == 0
		}
		return false
	}, "empty"}
)

// isNumber is the value x, or null.
func isNumber(x float64) known {
	return known{func(v any) bool {
		y, ok := asFloat(v)
		return v == nil || ok && x == y
	}, strconv.FormatFloat(x, 'g', -1, 64)}
}

// allText is an array of the same string, or null.
func allText(s string) known {
	return known{func(v any) bool {
		array, ok := v.([]any)
		return v == nil || ok && !slices.ContainsFunc(array, func(e any) bool { return e != s })
	}, strconv.Quote(s) + " throughout"}
}

// checkFields refuses every field that is neither modelled nor inert. assume names those the user vouches for.
func (f *fields) checkFields(modelled []string, inert map[string]known, assume []string) {
	for _, field := range f.doc.Keys() {
		v, _ := f.doc.Get(field)
		k, isKnown := inert[field]
		switch {
		case slices.Contains(modelled, field) || slices.Contains(assume, field):
		case !isKnown:
			f.fail(codeUnknownField, field, "is not a field that amkc knows, so it may change the model; "+
				"if it does not, give --assume-inert %s", field)
		case !k.accept(v):
			f.fail(codeInert, field, "is %s; it is known to have no effect when %s; "+
				"if it has none here either, give --assume-inert %s", spell(v), k.want, field)
		}
	}
	for _, field := range assume {
		_, there := f.doc.Get(field)
		switch {
		case slices.Contains(modelled, field):
			f.fail(codeAssume, field, "--assume-inert %s: the field is modelled, and has its effect", field)
		case !there:
			f.diags.Add(diag.Warningf(codeAssume, f.pos(field), "--assume-inert %s: the config has no such field", field))
		}
	}
}
