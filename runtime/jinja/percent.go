package jinja

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// percent is the operator % of a text, by the conversions of C.
func (in *interp) percent(format string, v Value) string {
	in.alloc(len(format))
	values, at := []Value{v}, 0
	t, isTuple := v.(*List)
	if isTuple = isTuple && t.kind == seqTuple; isTuple {
		values = t.items
	}
	dict, _ := v.(*Dict)
	named := false
	next := func() Value {
		if at++; at > len(values) {
			in.fail("%% has too few values for its format")
		}
		return values[at-1]
	}
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(format, "%")
		b.WriteString(text)
		if !found {
			break
		}
		s := spec{width: -1, precision: -1, fill: " "}
		value := next
		if strings.HasPrefix(rest, "(") {
			key, after, closed := strings.Cut(rest[1:], ")")
			if !closed || dict == nil {
				in.fail("%%( wants a name, a closing bracket, and a dictionary for its value")
			}
			named, rest = true, after
			value = func() Value {
				item, ok := dict.Get(key)
				if !ok {
					in.fail("%% does not find the key %q", key)
				}
				return item
			}
		}
		for ; rest != "" && strings.IndexByte("#0- +", rest[0]) >= 0; rest = rest[1:] {
			s.flag(rest[0])
		}
		number := func() (n int) {
			if strings.HasPrefix(rest, "*") {
				rest = rest[1:]
				return in.index(next(), "the width of %")
			}
			n, rest = in.count(rest)
			return n
		}
		if s.width = number(); s.width < -1 {
			s.align, s.width = "<", -s.width
		}
		if strings.HasPrefix(rest, ".") {
			rest = rest[1:]
			s.precision = max(number(), 0)
		}
		rest = strings.TrimLeft(rest, "hlL")
		if rest == "" {
			in.fail("a format of %% is incomplete")
		}
		c, size := utf8.DecodeRuneInString(rest)
		format = rest[size:]
		if c == '%' {
			b.WriteByte('%')
			continue
		}
		b.WriteString(in.made(in.conversion(s, byte(min(c, 127)), value())))
	}
	if !named && at < len(values) && (isTuple || dict == nil && !in.isMapping(v)) {
		in.fail("%% has more values than its format")
	}
	return b.String()
}

// isMapping reports whether Python leaves a value over without a word where a format has no use for it.
func (in *interp) isMapping(v Value) bool {
	l, ok := v.(*List)
	_, isUndefined := v.(*undefined)
	return ok && l.kind <= seqRange || isUndefined
}

// count reads digits, -1 where there are none.
func (in *interp) count(s string) (n int, rest string) {
	i := 0
	for ; i < len(s) && decimal(s[i]); i++ {
		if n = 10*n + int(s[i]-'0'); n > in.limits.Memory {
			in.alloc(n)
		}
	}
	if i == 0 {
		return -1, s
	}
	return n, s[i:]
}

// flag is one of those between % and the width.
func (s *spec) flag(c byte) {
	switch c {
	case '#':
		s.alternate = true
	case '0':
		s.zero = true
	case '-':
		s.align = "<"
	case '+':
		s.sign = "+"
	case ' ':
		if s.sign == "" {
			s.sign = " "
		}
	}
}

// conversion is one value in the format of %.
func (in *interp) conversion(s spec, c byte, v Value) string {
	if s.align == "<" {
		s.zero = false
	} else {
		s.align = ">"
	}
	switch c {
	case 's', 'r':
		text := ""
		if c == 's' {
			text = in.text(v)
		} else {
			text = in.repr(v)
		}
		if s.precision >= 0 && utf8.RuneCountInString(text) > s.precision {
			in.alloc(4 * len(text))
			text = string([]rune(text)[:s.precision])
		}
		s.zero = false
		return in.pad(s, "", text)
	case 'c':
		text, ok := str(v)
		if n, whole := small(v); whole && 0 <= n && n <= utf8.MaxRune && utf8.ValidRune(rune(n)) {
			text, ok = string(rune(n)), true
		}
		if !ok || utf8.RuneCountInString(text) != 1 {
			in.fail("%%c wants a character")
		}
		s.zero = false
		return in.pad(s, "", text)
	case 'd', 'i', 'u':
		in.notDefined(v)
		if f, ok := v.(float64); ok {
			v = in.whole(f)
		}
		if !isInt(v) {
			in.fail("%%%c wants a number and not %s", c, typeName(v))
		}
		return in.integer(s, 'd', v)
	case 'o', 'x', 'X':
		in.notDefined(v)
		if !isInt(v) {
			in.fail("%%%c wants an integer and not %s", c, typeName(v))
		}
		return in.integer(s, c, v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		in.notDefined(v)
		if !isNumber(v) {
			in.fail("%%%c wants a number and not %s", c, typeName(v))
		}
		return in.real(s, c, in.float(v))
	}
	if c == 'a' {
		in.unsupported("%a")
	}
	in.fail("%% has no conversion %q", string(rune(c)))
	return ""
}

// whole is a float without its fraction, if it is a number that is not infinite.
func (in *interp) whole(f float64) Value {
	if f != f || f-f != 0 {
		in.fail("%s is no integer", floatText(f))
	}
	n, _ := big.NewFloat(f).Int(nil)
	return norm(n)
}
