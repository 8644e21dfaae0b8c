package jinja

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A spec is how a value is formatted, by % or by str.format.
type spec struct {
	fill             string
	align            string // < > ^ =, or nothing
	sign             string // + or a space
	alternate, zero  bool
	width, precision int // -1: none
	group            string
	kind             string
}

// pad brings a text with a sign to the width.
func (in *interp) pad(s spec, sign, text string) string {
	n := s.width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(text)
	switch {
	case n <= 0:
		return sign + text
	case s.zero && s.align != "<" && s.align != "^":
		return sign + in.repeat("0", n) + text
	case s.align == "=":
		return sign + in.repeat(s.fill, n) + text
	case s.align == "<":
		return sign + text + in.repeat(s.fill, n)
	case s.align == "^":
		return in.repeat(s.fill, n/2) + sign + text + in.repeat(s.fill, n-n/2)
	}
	return in.repeat(s.fill, n) + sign + text
}

// padText is a text of at most the precision, brought to the width.
func (in *interp) padText(s spec, text string) string {
	if s.precision >= 0 && utf8.RuneCountInString(text) > s.precision {
		in.alloc(4 * len(text))
		text = string([]rune(text)[:s.precision])
	}
	s.zero = false
	return in.pad(s, "", text)
}

// signOf takes the sign off a number in digits.
func (s spec) signOf(text string) (sign, digits string) {
	if digits, ok := strings.CutPrefix(text, "-"); ok {
		return "-", digits
	}
	return s.sign, text
}

// grouped puts a separator between groups of digits of the part before the fraction.
func (in *interp) grouped(s spec, text string, size int) string {
	if s.group == "" {
		return text
	}
	if s.zero {
		in.unsupported("a format with zeros in front and groups of digits")
	}
	end := strings.IndexAny(text, ".e")
	if end < 0 {
		end = len(text)
	}
	in.alloc(2 * len(text))
	out := text[end:]
	for end > size {
		out = s.group + text[end-size:end] + out
		end -= size
		in.work(len(out))
	}
	return text[:end] + out
}

// integer formats an integer as d, x, X, o or b.
func (in *interp) integer(s spec, c byte, v Value) string {
	base, size := map[byte]int{'d': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}[c], 4
	text := ""
	if base == 10 {
		text, size = in.decimalOf(v), 3
	} else {
		text = large(v).Text(base)
	}
	sign, text := s.signOf(text)
	if c == 'X' {
		text = strings.ToUpper(text)
	}
	if n := s.precision - len(text); n > 0 {
		text = in.repeat("0", n) + text
	}
	if s.alternate && base != 10 {
		sign += "0" + string(c)
	}
	return in.pad(s, sign, in.grouped(s, text, size))
}

// real formats a float as e, f or g.
func (in *interp) real(s spec, c byte, f float64) string {
	precision := s.precision
	if precision < 0 {
		precision = 6
	}
	if precision > 1000 {
		in.unsupported("a format with more than 1000 digits")
	}
	if s.alternate {
		in.unsupported("the flag # of a format of floats")
	}
	if c|0x20 == 'g' {
		precision = max(precision, 1)
	}
	text := floatText(f)
	if f-f == 0 {
		text = strconv.FormatFloat(f, c|0x20, precision, 64)
	}
	sign, text := s.signOf(text)
	if c < 'a' {
		text = strings.ToUpper(text)
	}
	return in.pad(s, sign, in.grouped(s, text, 3))
}

var (
	fieldForm = regexp.MustCompile(`^([^.\[]*)((?:\.[^.\[]*|\[[^\]]*\])*)$`)
	fieldPart = regexp.MustCompile(`\.([^.\[]*)|\[([^\]]*)\]`)
	// [[fill]align][sign][#][0][width][,][.precision][type]
	specForm = regexp.MustCompile(`(?s)^(?:(.)?([<>^=]))?([-+ ]?)(#?)(0?)(\d*)([,_]?)(\.\d+)?(.?)$`)
	// %(name)flags width.precision type
	percentForm = regexp.MustCompile(`(?s)^(?:\(([^)]*)\))?([-#0+ ]*)(\*|\d*)(?:(\.)(\*|\d*))?[hlL]*(.)`)
)

// format is str.format.
func (in *interp) format(text string, a *args) string {
	in.alloc(len(text))
	var b strings.Builder
	auto := 0
	for text != "" {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:at])
		brace := text[at : at+1]
		text = text[at+1:]
		if strings.HasPrefix(text, brace) {
			b.WriteString(brace)
			text = text[1:]
			continue
		}
		end := strings.IndexAny(text, "{}")
		if brace == "}" || end < 0 {
			in.fail("str.format: a single %q in the text", brace)
		}
		if text[end] == '{' {
			in.unsupported("a format inside a format of str.format")
		}
		field, how, _ := strings.Cut(text[:end], ":")
		text = text[end+1:]
		field, conversion, converts := strings.Cut(field, "!")
		v := in.field(field, a, &auto)
		switch {
		case converts && conversion == "s":
			v = in.text(v)
		case converts && conversion == "r":
			v = in.repr(v)
		case converts:
			in.unsupported("the conversion !" + conversion + " of str.format")
		}
		b.WriteString(in.made(in.formatted(v, how)))
	}
	return b.String()
}

// field looks up what stands in braces: an index or a name, then attributes and items.
func (in *interp) field(whole string, a *args, auto *int) (v Value) {
	parts := fieldForm.FindStringSubmatch(whole)
	if parts == nil {
		in.fail("str.format: a bracket in a field is not closed")
	}
	first := parts[1]
	if n, err := strconv.Atoi(first); err == nil || whole == "" {
		switch {
		case whole == "" && *auto < 0, whole == first && whole != "" && *auto > 0:
			in.fail("str.format: fields with and without a number")
		case whole == "":
			n = *auto
			*auto++
		case whole == first:
			*auto = -1
		}
		if n < 0 || n >= len(a.pos) {
			in.fail("str.format: there is no argument number %d", n)
		}
		v = a.pos[n]
	} else if i := slices.Index(a.names, first); i >= 0 {
		v = a.named[i]
	} else {
		in.fail("str.format: there is no argument %q", first)
	}
	for _, part := range fieldPart.FindAllStringSubmatch(parts[2], -1) {
		if part[0][0] == '.' {
			v = in.attribute(v, part[1])
		} else if n, err := strconv.ParseInt(part[2], 10, 64); err == nil && n >= 0 {
			v = in.item(v, n)
		} else {
			v = in.item(v, part[2])
		}
	}
	return v
}

// formatted is a value by a format of str.format.
func (in *interp) formatted(v Value, how string) string {
	if how == "" {
		return in.text(v)
	}
	text, isText := v.(string)
	if !isText && !isNumber(v) {
		in.unsupported("str.format with a format for " + typeName(v))
	}
	m := specForm.FindStringSubmatch(how)
	if m == nil {
		in.fail("Python has no format %q", how)
	}
	s := spec{fill: cmp.Or(m[1], " "), align: m[2], sign: strings.TrimPrefix(m[3], "-"), alternate: m[4] != "",
		zero: m[5] != "" && m[2] == "", width: count(m[6]), group: m[7],
		precision: count(strings.TrimPrefix(m[8], ".")), kind: m[9]}
	switch {
	case isText:
		if s.sign != "" || s.alternate || s.group != "" || s.align == "=" || s.kind != "" && s.kind != "s" {
			in.fail("the format %q is not one for a string", how)
		}
		if s.zero {
			in.unsupported("a format of a string with zeros")
		}
		s.align = cmp.Or(s.align, "<")
		return in.padText(s, text)
	case s.kind != "" && strings.Contains("eEfFgG", s.kind):
		return in.real(s, s.kind[0], in.float(v))
	case s.kind == "%":
		s.kind, s.width = "", s.width-1
		if s.align == "<" || s.align == "^" {
			in.unsupported("a percentage that is not aligned to the right")
		}
		return in.real(s, 'f', in.float(v)*100) + "%"
	case isInt(v) && (s.kind == "" || strings.Contains("dxXob", s.kind)):
		if s.precision >= 0 {
			in.fail("the format %q has a precision, and an integer has none", how)
		}
		return in.integer(s, (s.kind + "d")[0], v)
	case !isInt(v) && s.kind == "" && s.precision < 0:
		sign, digits := s.signOf(floatText(v.(float64)))
		return in.pad(s, sign, in.grouped(s, digits, 3))
	}
	if s.kind == "" || s.kind == "n" || s.kind == "c" && isInt(v) {
		in.unsupported("the format " + strconv.Quote(how))
	}
	in.fail("the format %q is not one for %s", how, typeName(v))
	return ""
}

// count is a number in a format, -1 if there is none.
func count(s string) int {
	if s == "" {
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt32
	}
	return n
}

// percent is the operator % of a text, by the conversions of C.
func (in *interp) percent(format string, v Value) string {
	in.alloc(len(format))
	values, at := []Value{v}, 0
	t, isTuple := v.(*List)
	if isTuple = isTuple && t.kind == seqTuple; isTuple {
		values = t.items
	}
	dict, isDict := v.(*Dict)
	named := false
	next := func() Value {
		if at++; at > len(values) {
			in.fail("%% has too few values for its format")
		}
		return values[at-1]
	}
	number := func(digits string) int {
		if digits == "*" {
			return in.index(next(), "the width of %")
		}
		return count(digits)
	}
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(format, "%")
		b.WriteString(text)
		if !found {
			break
		}
		m := percentForm.FindStringSubmatchIndex(rest)
		if m == nil {
			in.fail("a format of %% is incomplete")
		}
		part := func(i int) string { return rest[max(m[2*i], 0):max(m[2*i+1], 0)] }
		flags := part(2)
		s := spec{fill: " ", align: ">", alternate: strings.Contains(flags, "#"), precision: -1}
		if strings.Contains(flags, "+") {
			s.sign = "+"
		} else if strings.Contains(flags, " ") {
			s.sign = " "
		}
		if s.width = number(part(3)); s.width < -1 {
			s.align, s.width = "<", -s.width
		} else if strings.Contains(flags, "-") {
			s.align = "<"
		}
		s.zero = strings.Contains(flags, "0") && s.align == ">"
		if part(4) != "" {
			s.precision = max(number(part(5)), 0)
		}
		format = rest[m[1]:]
		if part(6) == "%" {
			b.WriteByte('%')
			continue
		}
		var value Value
		if m[2] < 0 {
			value = next()
		} else if item, ok := dict.find(part(1)); ok {
			named, value = true, item
		} else {
			in.fail("%% does not find the key %q", part(1))
		}
		b.WriteString(in.made(in.conversion(s, part(6), value)))
	}
	_, isUndefined := v.(*undefined)
	spare := isUndefined || isDict || t != nil && t.kind <= seqRange && !isTuple // Python ignores these
	if !named && at < len(values) && !spare {
		in.fail("%% has more values than its format")
	}
	return b.String()
}

// find is Get, of a dictionary that may be nil.
func (d *Dict) find(key string) (Value, bool) {
	if d == nil {
		return nil, false
	}
	return d.Get(key)
}

// conversion is one value in the format of %.
func (in *interp) conversion(s spec, c string, v Value) string {
	switch c {
	case "s":
		return in.padText(s, in.text(v))
	case "r":
		return in.padText(s, in.repr(v))
	case "c":
		text, ok := str(v)
		if n, whole := small(v); whole && 0 <= n && n <= utf8.MaxRune && utf8.ValidRune(rune(n)) {
			text, ok = string(rune(n)), true
		}
		if !ok || utf8.RuneCountInString(text) != 1 {
			in.fail("%%c wants a character")
		}
		s.precision = -1
		return in.padText(s, text)
	case "a":
		in.unsupported("%a")
	}
	if !strings.Contains("diuoxXeEfFgG", c) {
		in.fail("%% has no conversion %q", c)
	}
	in.notDefined(v)
	f, isFloat := v.(float64)
	switch {
	case !isNumber(v) || isFloat && strings.Contains("oxX", c):
		in.fail("%%%s wants a number and not %s", c, typeName(v))
	case strings.Contains("oxX", c):
		return in.integer(s, c[0], v)
	case strings.Contains("diu", c):
		if isFloat {
			v = in.truncated(f)
		}
		return in.integer(s, 'd', v)
	}
	return in.real(s, c[0], in.float(v))
}
