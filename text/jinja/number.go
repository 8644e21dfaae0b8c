package jinja

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Bounds on integers: what Python's int of a text takes, and what arithmetic may make.
const (
	maxDigits = 4300
	maxBits   = 1 << 16
)

// norm is an integer as a value: int64 where it fits.
func norm(n *big.Int) Value {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// small returns an integer of 64 bits, which booleans are too.
func small(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func isInt(v Value) bool {
	_, large := v.(*big.Int)
	_, ok := small(v)
	return ok || large
}

func isNumber(v Value) bool {
	_, f := v.(float64)
	return f || isInt(v)
}

func large(v Value) *big.Int {
	if b, ok := v.(*big.Int); ok {
		return b
	}
	n, _ := small(v)
	return big.NewInt(n)
}

// float is a number as a float; integers too large for one fail.
func (in *interp) float(v Value) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			in.fail("an integer is too large for a float")
		}
		return f
	}
	n, _ := small(v)
	return float64(n)
}

// index is an integer that is used to count something.
func (in *interp) index(v Value, what string) int {
	n, ok := small(v)
	if !ok {
		if b, isBig := v.(*big.Int); isBig {
			return b.Sign() * math.MaxInt32
		}
		in.notDefined(v)
		in.fail("%s is %s; want an integer", what, typeName(v))
	}
	return int(min(max(n, -math.MaxInt32), math.MaxInt32))
}

// arithmetic computes with two numbers.
func (in *interp) arithmetic(op string, a, b Value) Value {
	if isInt(a) && isInt(b) && op != "/" {
		return in.integers(op, a, b)
	}
	x, y := in.float(a), in.float(b)
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return in.power(x, y)
	}
	if y == 0 {
		in.fail("division by zero")
	}
	rest := math.Mod(x, y)
	floor := (x - rest) / y
	if rest != 0 && (rest < 0) != (y < 0) {
		rest += y
		floor--
	} else if rest == 0 {
		rest = math.Copysign(0, y)
	}
	switch op {
	case "/":
		return in.divide(a, b, x, y)
	case "//":
		if floor == 0 {
			return math.Copysign(0, x/y)
		}
		if f := math.Floor(floor); floor-f > 0.5 {
			return f + 1
		} else {
			return f
		}
	}
	return rest
}

// divide rounds once, where both are integers too.
func (in *interp) divide(a, b Value, x, y float64) Value {
	if isInt(a) && isInt(b) && (math.Abs(x) > 1<<53 || math.Abs(y) > 1<<53) {
		f, _ := new(big.Rat).SetFrac(large(a), large(b)).Float64()
		return f
	}
	return x / y
}

func (in *interp) power(x, y float64) Value {
	if x == 0 && y < 0 {
		in.fail("zero to a negative power")
	}
	if x < 0 && y != math.Trunc(y) {
		in.unsupported("a complex number")
	}
	r := math.Pow(x, y)
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		in.fail("the result of ** is too large")
	}
	return r
}

func (in *interp) integers(op string, a, b Value) Value {
	x, y := large(a), large(b)
	in.work(x.BitLen() + y.BitLen())
	switch op {
	case "+":
		return in.bounded(new(big.Int).Add(x, y))
	case "-":
		return in.bounded(new(big.Int).Sub(x, y))
	case "*":
		return in.bounded(new(big.Int).Mul(x, y))
	case "**":
		if y.Sign() < 0 {
			return in.power(in.float(a), in.float(b))
		}
		if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxBits/int64(x.BitLen()-1)) {
			in.bits()
		}
		if x.BitLen() <= 1 { // -1, 0, 1: only whether y is odd counts
			if y.Sign() > 0 {
				y = big.NewInt(2 - int64(y.Bit(0)))
			}
		}
		in.work(maxBits)
		return in.bounded(new(big.Int).Exp(x, y, nil))
	}
	if y.Sign() == 0 {
		in.fail("division by zero")
	}
	quotient, rest := new(big.Int).DivMod(x, y, new(big.Int)) // the rest is not negative
	if rest.Sign() != 0 && y.Sign() < 0 {
		quotient.Sub(quotient, big.NewInt(1))
		rest.Add(rest, y)
	}
	if op == "//" {
		return norm(quotient)
	}
	return norm(rest)
}

func (in *interp) bits() { fail(Limit, in.line, "an integer of more than %d bits", maxBits) }

func (in *interp) bounded(n *big.Int) Value {
	if n.BitLen() > maxBits {
		in.bits()
	}
	in.alloc(n.BitLen() / 8)
	return norm(n)
}

// decimalOf is an integer in decimal digits.
func (in *interp) decimalOf(v Value) string {
	if b, ok := v.(*big.Int); ok {
		in.work(b.BitLen())
		if b.BitLen() > maxDigits*3 {
			s := b.String()
			if len(strings.TrimPrefix(s, "-")) > maxDigits {
				in.fail("an integer has more than %d digits to print", maxDigits)
			}
			return s
		}
		return b.String()
	}
	n, _ := small(v)
	return strconv.FormatInt(n, 10)
}

// floatText is what Python's repr is of a float.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	e := strings.IndexByte(s, 'e')
	if exp, _ := strconv.Atoi(s[e+1:]); exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

var (
	integerForm = regexp.MustCompile(`^[0-9a-z]+(?:_[0-9a-z]+)*$`)
	floatForm   = lexeme(`^[-+]?(?:inf(?:inity)?|nan|(?:DIGITS(?:\.(?:DIGITS)?)?|\.DIGITS)(?:e[-+]?DIGITS)?)$`)
)

// intOf is Python's int of a text in a base.
func intOf(s string, base int) (Value, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	for mark, of := range map[string]int{"0b": 2, "0o": 8, "0x": 16} {
		if rest, ok := strings.CutPrefix(s, mark); ok && (base == of || base == 0) {
			s, base = strings.TrimPrefix(rest, "_"), of
		}
	}
	if !integerForm.MatchString(s) || len(s) > maxDigits || base == 1 || base < 0 || base > 36 {
		return nil, false
	}
	s = strings.ReplaceAll(s, "_", "")
	if base == 0 {
		if s[0] == '0' && strings.Trim(s, "0") != "" {
			return nil, false
		}
		base = 10
	}
	v, ok := new(big.Int).SetString(sign+s, base)
	if !ok {
		return nil, false
	}
	return norm(v), true
}

// floatOf is Python's float of a text.
func floatOf(s string) (float64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	if !floatForm.MatchString(s) {
		return 0, false
	}
	if strings.HasSuffix(s, "nan") {
		return math.NaN(), true
	}
	f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64) // beyond its range it is an infinity
	return f, true
}

// truncated is a float without its fraction.
func (in *interp) truncated(f float64) Value {
	if f-f != 0 {
		in.fail("%s is not an integer", floatText(f))
	}
	n, _ := big.NewFloat(f).Int(nil)
	return norm(n)
}

// unordered is the order of a number and one that is not a number.
const unordered = 2

// numberOrder compares two numbers exactly: -1, 0, 1 or unordered.
func numberOrder(a, b Value) int {
	m, mok := small(a)
	n, nok := small(b)
	x, aFloat := a.(float64)
	y, bFloat := b.(float64)
	switch {
	case mok && nok:
		return cmp.Compare(m, n)
	case math.IsNaN(x) || math.IsNaN(y):
		return unordered
	case math.IsInf(x, 0) || math.IsInf(y, 0): // x or y is 0 if its operand is not a float
		return cmp.Compare(x, y)
	}
	return exact(a, aFloat, x).Cmp(exact(b, bFloat, y))
}

// exact is a finite number without rounding.
func exact(v Value, isFloat bool, f float64) *big.Float {
	if isFloat {
		return big.NewFloat(f)
	}
	return new(big.Float).SetInt(large(v))
}
