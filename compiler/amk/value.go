package amk

import (
	"math"
	"strconv"
	"strings"
)

// A Value is a JSON value inside meta, params or tiling: Bool, Number, String, Array, *Object, or nil for null.
type Value interface{ isValue() }

type (
	Bool   bool
	String string
	Array  []Value
)

// An Object is a JSON object that keeps the order of its keys.
type Object struct {
	OrderedMap[string, Value]
}

func (Bool) isValue()    {}
func (Number) isValue()  {}
func (String) isValue()  {}
func (Array) isValue()   {}
func (*Object) isValue() {}

// Int returns the integer at key; ok is false when it is absent, not an integer (10000.0 is not), or beyond 64 bits.
func (o *Object) Int(key string) (n int64, ok bool) {
	v, _ := o.Get(key)
	num, isNumber := v.(Number)
	if !isNumber {
		return 0, false
	}
	return num.Int64()
}

// Float returns the number at key, whatever its type; ok is false when it is absent or no number.
func (o *Object) Float(key string) (f float64, ok bool) {
	v, _ := o.Get(key)
	num, isNumber := v.(Number)
	if !isNumber {
		return 0, false
	}
	return num.Float64(), true
}

// A Number is a Python int or float, held as the text that Python prints for it. The text tells the two apart (10000
// and 10000.0 are different Numbers), holds ints of any size, and is what the writer emits.
// The zero Number is the int 0.
type Number string

// Int returns the Number of an int.
func Int(n int) Number { return Number(strconv.Itoa(n)) }

// Float returns the Number of a float: its shortest digits that read back the same, with ".0" where nothing else would
// show that it is a float, and an exponent only below 1e-4 and from 1e16 on.
func Float(f float64) Number {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, _ := strings.Cut(scientific, "e")
	if e, _ := strconv.Atoi(exponent); e < -4 || e >= 16 {
		return Number(scientific)
	}
	fixed := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(fixed, ".") {
		fixed += ".0"
	}
	return Number(fixed)
}

// IsFloat reports whether the number is a float.
func (n Number) IsFloat() bool { return strings.ContainsAny(string(n), ".eNI") }

// Int64 returns the value of an int; ok is false for floats and beyond 64 bits.
func (n Number) Int64() (v int64, ok bool) {
	if n == "" {
		return 0, true
	}
	v, err := strconv.ParseInt(string(n), 10, 64)
	return v, err == nil
}

// Float64 returns the value as a double, the nearest one for an int.
func (n Number) Float64() float64 {
	// A range error still yields the infinity that the value rounds to, and a Number is well-formed or empty.
	f, _ := strconv.ParseFloat(string(n), 64)
	return f
}
