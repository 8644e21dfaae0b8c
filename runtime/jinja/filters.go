package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The filters of jinja2, and tojson of transformers. What a filter is applied to is its first argument.

type filterFunc func(in *interp, a *args) Value

var filters map[string]filterFunc

// refusedFilters are filters of jinja2 that this package does not have.
var refusedFilters = []string{"filesizeformat", "pprint", "random", "striptags", "urlencode", "urlize", "wordcount",
	"wordwrap", "xmlattr"}

func init() {
	filters = map[string]filterFunc{
		"abs": filterAbs, "attr": filterAttr, "batch": filterBatch, "center": filterCenter, "count": filterLength,
		"d": filterDefault, "default": filterDefault, "dictsort": filterDictsort, "e": filterEscape,
		"escape": filterEscape, "first": filterFirst, "float": filterFloat, "forceescape": filterForce,
		"format": filterFormat, "groupby": filterGroupby, "indent": filterIndent, "int": filterInt,
		"items": filterItems, "join": filterJoin, "last": filterLast, "length": filterLength,
		"list": filterList, "map": filterMap, "max": extreme("max", 1), "min": extreme("min", -1),
		"reject": selector("reject", false, false), "rejectattr": selector("rejectattr", false, true),
		"replace": filterReplace, "reverse": filterReverse, "round": filterRound, "safe": filterSafe,
		"select": selector("select", true, false), "selectattr": selector("selectattr", true, true),
		"slice": filterSlice, "sort": filterSort, "string": filterString, "sum": filterSum, "tojson": toJSON,
		"trim": filterTrim, "truncate": filterTruncate, "unique": filterUnique,
		"upper": cased1("upper", upper), "lower": cased1("lower", lower), "title": cased1("title", words),
		"capitalize": cased1("capitalize", capitalize),
	}
}

// soft is a value as a text. A string that is marked safe is refused where jinja2 would keep its mark.
func (in *interp) soft(v Value) string {
	if _, marked := v.(safe); marked {
		in.unsupported("a filter on a string that is marked safe")
	}
	return in.text(v)
}

func cased1(name string, f func(string) string) filterFunc {
	return func(in *interp, a *args) Value {
		s := in.soft(a.bind(in, name, 1, "s").at(0))
		in.alloc(len(s))
		return in.made(f(s))
	}
}

// words is the filter title: words begin after space and some brackets, unlike those of the method.
func words(s string) string {
	var b strings.Builder
	isBreak := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return !isBreak(r) })
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		s = s[n:]
		if n = strings.IndexFunc(s, isBreak); n < 0 {
			n = len(s)
		}
		if word := s[:n]; word != "" {
			_, size := utf8.DecodeRuneInString(word)
			b.WriteString(upper(word[:size]) + lower(word[size:]))
		}
		s = s[n:]
	}
	return b.String()
}

func filterAbs(in *interp, a *args) Value {
	v := a.bind(in, "abs", 1, "x").at(0)
	in.notDefined(v)
	switch f, isFloat := v.(float64); {
	case isFloat:
		return math.Abs(f)
	case !isInt(v):
		in.fail("%s has no absolute value", typeName(v))
	case numberOrder(v, int64(0)) < 0:
		return in.arithmetic("-", int64(0), v)
	}
	return in.arithmetic("+", v, int64(0))
}

func filterAttr(in *interp, a *args) Value {
	p := a.bind(in, "attr", 2, "obj", "name")
	in.notDefined(p.at(0))
	if v, ok := in.member(p.at(0), p.str(1)); ok {
		return v
	}
	return &undefined{typeName(p.at(0)) + " has no attribute " + quoted(p.str(1))}
}

func filterCenter(in *interp, a *args) Value {
	p := a.bind(in, "center", 1, "value", "width")
	return in.center(in.soft(p.at(0)), p.integer(1, 80), " ")
}

func filterLength(in *interp, a *args) Value {
	v := a.bind(in, "length", 1, "obj").at(0)
	if s, ok := str(v); ok {
		in.work(len(s))
	}
	n, ok := length(v)
	if !ok {
		in.fail("%s has no length", typeName(v))
	}
	return int64(n)
}

func filterDefault(in *interp, a *args) Value {
	p := a.bind(in, "default", 1, "value", "default_value", "boolean")
	_, isUndefined := p.at(0).(*undefined)
	if isUndefined || p.is(2) && !truth(p.at(0)) {
		return p.or(1, "")
	}
	return p.at(0)
}

func filterEscape(in *interp, a *args) Value { return in.escaped(a.bind(in, "escape", 1, "s").at(0)) }

func filterForce(in *interp, a *args) Value {
	return in.escaped(in.text(a.bind(in, "forceescape", 1, "value").at(0)))
}

func filterSafe(in *interp, a *args) Value {
	return safe(in.text(a.bind(in, "safe", 1, "value").at(0)))
}

func filterString(in *interp, a *args) Value {
	v := a.bind(in, "string", 1, "s").at(0)
	if _, marked := v.(safe); marked {
		return v
	}
	return in.text(v)
}

func filterFloat(in *interp, a *args) Value {
	p := a.bind(in, "float", 1, "value", "default")
	in.notDefined(p.at(0))
	if isNumber(p.at(0)) {
		return in.float(p.at(0))
	}
	if s, ok := str(p.at(0)); ok {
		if f, ok := floatOf(s); ok {
			return f
		}
	}
	return p.or(1, 0.0)
}

func filterInt(in *interp, a *args) Value {
	p := a.bind(in, "int", 1, "value", "default", "base")
	v := p.at(0)
	in.notDefined(v)
	if s, ok := str(v); ok {
		if n, ok := intOf(s, p.integer(2, 10)); ok {
			return n
		}
		if f, ok := floatOf(s); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return truncated(f)
		}
		return p.or(1, int64(0))
	}
	if f, ok := v.(float64); ok {
		if math.IsInf(f, 0) {
			in.fail("infinity is no integer")
		}
		if math.IsNaN(f) {
			return p.or(1, int64(0))
		}
		return truncated(f)
	}
	if isInt(v) {
		return in.arithmetic("+", v, int64(0))
	}
	return p.or(1, int64(0))
}

func filterFormat(in *interp, a *args) Value {
	if len(a.pos) > 1 && len(a.names) > 0 {
		in.fail("format takes arguments by position or by name, and not both")
	}
	s := in.soft(a.pos[0])
	if len(a.names) == 0 {
		return in.percent(s, tuple(a.pos[1:]...))
	}
	d := &Dict{}
	for i, name := range a.names {
		d.Set(name, a.named[i])
	}
	return in.percent(s, d)
}

func filterIndent(in *interp, a *args) Value {
	p := a.bind(in, "indent", 1, "s", "width", "first", "blank")
	if _, marked := p.at(0).(safe); marked {
		in.unsupported("a filter on a string that is marked safe")
	}
	s := p.str(0)
	by := ""
	if v := p.or(1, int64(4)); isNumber(v) {
		by = in.repeat(" ", in.index(v, "the width of indent"))
	} else {
		by = p.str(1)
	}
	lines := in.lines(s+"\n", false)
	var b strings.Builder
	for i, line := range lines {
		in.alloc(len(by) + len(line) + 1)
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && p.is(2) || i > 0 && (line != "" || p.is(3)) {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

func filterReplace(in *interp, a *args) Value {
	p := a.bind(in, "replace", 3, "s", "old", "new", "count")
	most := -1
	if p.or(3, nil) != nil {
		most = p.integer(3, -1)
	}
	return in.replace(in.text(p.at(0)), in.text(p.at(1)), in.text(p.at(2)), most)
}

func filterReverse(in *interp, a *args) Value {
	v := a.bind(in, "reverse", 1, "value").at(0)
	if s, ok := v.(string); ok {
		in.alloc(5 * len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	items := slices.Clone(in.list(v))
	in.alloc(16 * len(items))
	slices.Reverse(items)
	if _, isUndefined := v.(*undefined); isUndefined {
		return over("reversed", nil)
	}
	switch l, isList := v.(*List); {
	case isList && l.kind != seqRange:
		return over("reversed", items)
	case isList:
		return over("range_iterator", items)
	}
	if _, isDict := v.(*Dict); isDict {
		return over("dict_reversekeyiterator", items)
	}
	return &List{items: items}
}

func filterRound(in *interp, a *args) Value {
	p := a.bind(in, "round", 1, "value", "precision", "method")
	v, places, method := p.at(0), p.integer(1, 0), "common"
	if p.has(2) {
		method = p.str(2)
	}
	in.notDefined(v)
	if !slices.Contains([]string{"common", "ceil", "floor"}, method) || !isNumber(v) {
		in.fail("round of %s by method %q; want a number, and common, ceil or floor", typeName(v), method)
	}
	if method != "common" {
		scale := math.Pow(10, float64(places))
		if math.IsInf(scale, 0) || scale == 0 {
			in.fail("round to a precision of %d", places)
		}
		f := math.Ceil
		if method == "floor" {
			f = math.Floor
		}
		return f(in.float(v)*scale) / scale
	}
	if places < 0 {
		in.unsupported("round to a negative precision")
	}
	f, isFloat := v.(float64)
	if !isFloat {
		return in.arithmetic("+", v, int64(0))
	}
	if places > 308 || math.IsInf(f, 0) || math.IsNaN(f) {
		return f
	}
	f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', places, 64), 64)
	return f
}

func filterTrim(in *interp, a *args) Value {
	p := a.bind(in, "trim", 1, "value", "chars")
	v := p.at(0)
	s := in.text(v)
	rest := &args{}
	if p.has(1) {
		rest.pos = []Value{p.at(1)}
	}
	out := stringMethods["strip"](in, s, rest)
	if _, marked := v.(safe); marked {
		return safe(out.(string))
	}
	return out
}

func filterTruncate(in *interp, a *args) Value {
	p := a.bind(in, "truncate", 1, "s", "length", "killwords", "end", "leeway")
	most, end, leeway := p.integer(1, 255), []rune("..."), 5
	if p.has(3) {
		end = []rune(p.str(3))
	}
	if p.or(4, nil) != nil {
		leeway = p.integer(4, 5)
	}
	if most < len(end) || leeway < 0 {
		in.fail("truncate to %d characters, %d of them for the end, with a leeway of %d", most, len(end), leeway)
	}
	if n, ok := length(p.at(0)); ok && n <= most+leeway {
		return p.at(0)
	}
	s := []rune(in.soft(p.str(0)))
	in.alloc(4 * len(s))
	cut := string(s[:most-len(end)])
	if at := strings.LastIndexByte(cut, ' '); !p.is(2) && at >= 0 {
		cut = cut[:at]
	}
	return cut + string(end)
}
