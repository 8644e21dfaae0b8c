package jinja

import (
	"math"
	"math/big"
	"strings"
)

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
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		b, ok := b.(*List)
		if !ok || a.kind != b.kind || len(a.items) != len(b.items) {
			return false
		}
		same := true
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
		same := true
		in.deeper(func() {
			for i := 0; same && i < len(a.entries); i++ {
				v, there := b.get(in.key(a.entries[i].key))
				same = there && in.equal(a.entries[i].value, v)
			}
		})
		return same
	}
	switch b.(type) {
	case nil, bool, int64, *big.Int, float64, string, safe, *List, *Dict, *undefined:
		return false
	}
	return a == b
}

// unordered is the order of a number and one that is not a number.
const unordered = 2

// numberOrder compares two numbers exactly: -1, 0, 1 or unordered.
func numberOrder(a, b Value) int {
	x, aFloat := a.(float64)
	y, bFloat := b.(float64)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return unordered
	case aFloat && math.IsInf(x, 0), bFloat && math.IsInf(y, 0), aFloat && bFloat:
		switch {
		case !aFloat:
			x = 0
		case !bFloat:
			y = 0
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case aFloat:
		return big.NewFloat(x).Cmp(new(big.Float).SetInt(large(b)))
	case bFloat:
		return new(big.Float).SetInt(large(a)).Cmp(big.NewFloat(y))
	}
	m, mok := small(a)
	n, nok := small(b)
	switch {
	case !mok || !nok:
		return large(a).Cmp(large(b))
	case m < n:
		return -1
	case m > n:
		return 1
	}
	return 0
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
		return numberOrder(int64(len(x.items)), int64(len(y.items)))
	}
	in.notDefined(a)
	in.notDefined(b)
	in.fail("%s and %s have no order", typeName(a), typeName(b))
	return 0
}

// less is order for sorting.
func (in *interp) less(a, b Value) bool { return in.order(a, b) == -1 }

// compare carries out a comparison by its sign.
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
	switch op {
	case "<":
		return o == -1
	case "<=":
		return o == -1 || o == 0
	case ">":
		return o == 1
	}
	return o == 1 || o == 0
}

// contains is Python's in.
func (in *interp) contains(all, v Value) bool {
	switch all := all.(type) {
	case string, safe:
		text, _ := str(all)
		part, ok := str(v)
		if !ok {
			in.fail("%s cannot be in a string; want a string", typeName(v))
		}
		in.work(len(text))
		return strings.Contains(text, part)
	case *Dict:
		_, ok := all.get(in.key(v))
		return ok
	}
	found := false
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
