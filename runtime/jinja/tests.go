package jinja

import "slices"

// The tests of jinja2: what stands after is.

type testFunc func(in *interp, a *args) bool

var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"defined":   func(in *interp, a *args) bool { _, u := one(in, a, "defined").(*undefined); return !u },
		"undefined": func(in *interp, a *args) bool { _, u := one(in, a, "undefined").(*undefined); return u },
		"none":      func(in *interp, a *args) bool { return one(in, a, "none") == nil },
		"boolean":   func(in *interp, a *args) bool { _, ok := one(in, a, "boolean").(bool); return ok },
		"true":      func(in *interp, a *args) bool { return one(in, a, "true") == true },
		"false":     func(in *interp, a *args) bool { return one(in, a, "false") == false },
		"integer": func(in *interp, a *args) bool {
			v := one(in, a, "integer")
			_, isBool := v.(bool)
			return isInt(v) && !isBool
		},
		"float":    func(in *interp, a *args) bool { _, ok := one(in, a, "float").(float64); return ok },
		"number":   func(in *interp, a *args) bool { return isNumber(one(in, a, "number")) },
		"string":   func(in *interp, a *args) bool { _, ok := str(one(in, a, "string")); return ok },
		"mapping":  func(in *interp, a *args) bool { _, ok := one(in, a, "mapping").(*Dict); return ok },
		"sequence": isSequence,
		"iterable": func(in *interp, a *args) bool {
			v := one(in, a, "iterable")
			_, isLoop := v.(*loop)
			return isLoop || in.iterate(v) != nil
		},
		"callable": func(in *interp, a *args) bool {
			switch one(in, a, "callable").(type) {
			case *function, *macro, *loop, *undefined:
				return true
			}
			return false
		},
		"odd":         remainder("odd", 2, 1),
		"even":        remainder("even", 2, 0),
		"divisibleby": isDivisible,
		"lower":       func(in *interp, a *args) bool { return isLower(in.text(one(in, a, "lower"))) },
		"upper":       func(in *interp, a *args) bool { return isUpper(in.text(one(in, a, "upper"))) },
		"escaped":     func(in *interp, a *args) bool { _, ok := one(in, a, "escaped").(safe); return ok },
		"filter": isName("filter", func(name string) bool {
			return filters[name] != nil || slices.Contains(refusedFilters, name)
		}),
		"test":   isName("test", func(name string) bool { return tests[name] != nil }),
		"sameas": isSame,
		"in": func(in *interp, a *args) bool {
			p := a.bind(in, "in", 2, "value", "seq")
			return in.contains(p.at(1), p.at(0))
		},
	}
	for op, names := range map[string][]string{"==": {"eq", "equalto"}, "!=": {"ne"}, ">": {"gt", "greaterthan"},
		">=": {"ge"}, "<": {"lt", "lessthan"}, "<=": {"le"}} {
		for _, name := range append(names, op) {
			tests[name] = func(in *interp, a *args) bool {
				p := a.plain(in, name, 2, 2)
				return in.compare(op, p.at(0), p.at(1))
			}
		}
	}
}

// one is the only argument of a test.
func one(in *interp, a *args, name string) Value { return a.bind(in, name, 1, "value").at(0) }

func isSequence(in *interp, a *args) bool {
	switch v := one(in, a, "sequence").(type) {
	case string, safe, *Dict, *undefined:
		return true
	case *List:
		return v.kind <= seqRange
	}
	return false
}

func remainder(name string, n, want int64) testFunc {
	return func(in *interp, a *args) bool {
		return in.equal(in.operate("%", one(in, a, name), n), want)
	}
}

func isDivisible(in *interp, a *args) bool {
	p := a.bind(in, "divisibleby", 2, "value", "num")
	return in.equal(in.operate("%", p.at(0), p.at(1)), int64(0))
}

func isName(what string, have func(string) bool) testFunc {
	return func(in *interp, a *args) bool {
		v := one(in, a, what)
		if _, ok := hashOf(v); !ok {
			in.fail("%s is no name of a %s", typeName(v), what)
		}
		s, ok := str(v)
		return ok && have(s)
	}
}

// isSame compares what Python keeps one object of. Whether numbers and texts are one object is not for a template to
// ask.
func isSame(in *interp, a *args) bool {
	p := a.bind(in, "sameas", 2, "value", "other")
	x, y := p.at(0), p.at(1)
	if typeName(x) != typeName(y) {
		return false
	}
	switch x.(type) {
	case nil, bool, *List, *Dict, *namespace, *macro, *loop, *iterator:
		return x == y
	}
	in.unsupported("the test sameas of two values of type " + typeName(x))
	return false
}
