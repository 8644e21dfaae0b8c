package jinja

import (
	"math"
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
	base, prefix, size := 10, "", 3
	switch c {
	case 'x', 'X':
		base, prefix, size = 16, "0"+string(c), 4
	case 'o':
		base, prefix, size = 8, "0o", 4
	case 'b':
		base, prefix, size = 2, "0b", 4
	}
	text := in.decimalOf(v)
	if base != 10 {
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
		sign += prefix
	}
	if s.group != "" && s.zero {
		in.unsupported("a format with zeros in front and groups of digits")
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
	text := ""
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		text = floatText(f)
	case c|0x20 == 'g':
		precision = max(precision, 1)
		text = strconv.FormatFloat(f, 'e', precision-1, 64)
		exp, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
		if exp >= -4 && exp < precision {
			text = strconv.FormatFloat(f, 'f', precision-1-exp, 64)
		}
		if !s.alternate && strings.Contains(text, ".") {
			mantissa, exponent, has := strings.Cut(text, "e")
			text = strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".")
			if has {
				text += "e" + exponent
			}
		}
	default:
		text = strconv.FormatFloat(f, c|0x20, precision, 64)
	}
	sign, text := s.signOf(text)
	if c < 'a' {
		text = strings.ToUpper(text)
	}
	if s.group != "" && s.zero {
		in.unsupported("a format with zeros in front and groups of digits")
	}
	return in.pad(s, sign, in.grouped(s, text, 3))
}

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
		if converts {
			switch conversion {
			case "s":
				v = in.text(v)
			case "r":
				v = in.repr(v)
			default:
				in.unsupported("the conversion !" + conversion + " of str.format")
			}
		}
		b.WriteString(in.made(in.formatted(v, how)))
	}
	return b.String()
}

func strFormatMap(in *interp, s string, a *args) Value {
	d, ok := a.plain(in, "str.format_map", 1, 1).at(0).(*Dict)
	if !ok {
		in.fail("str.format_map wants a dictionary")
	}
	named := &args{}
	for _, e := range d.entries {
		if key, ok := e.key.(string); ok {
			in.alloc(32)
			named.names, named.named = append(named.names, key), append(named.named, e.value)
		}
	}
	return in.format(s, named)
}

// field looks up what stands in braces: an index or a name, then attributes and items.
func (in *interp) field(path string, a *args, auto *int) Value {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	whole, first, path := path, path[:end], path[end:]
	var v Value
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
	} else {
		named, ok := (&args{names: a.names, named: a.named}).take(first)
		if !ok {
			in.fail("str.format: there is no argument %q", first)
		}
		v = named
	}
	for path != "" {
		if path[0] == '.' {
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			v, path = in.attribute(v, path[1:1+end]), path[1+end:]
			continue
		}
		key, rest, closed := strings.Cut(path[1:], "]")
		if !closed || path[0] != '[' || rest != "" && rest[0] != '.' && rest[0] != '[' {
			in.fail("str.format: a bracket in a field is not closed")
		}
		if n, err := strconv.ParseInt(key, 10, 64); err == nil && n >= 0 {
			v = in.item(v, n)
		} else {
			v = in.item(v, key)
		}
		path = rest
	}
	return v
}

// formatted is a value by a format: [[fill]align][sign][#][0][width][,][.precision][type].
func (in *interp) formatted(v Value, how string) string {
	if how == "" {
		return in.text(v)
	}
	text, isText := v.(string)
	if !isText && !isNumber(v) {
		in.unsupported("str.format with a format for " + typeName(v))
	}
	s := in.spec(how)
	switch {
	case isText:
		if s.sign != "" || s.alternate || s.group != "" || s.align == "=" || s.kind != "" && s.kind != "s" {
			in.fail("the format %q is not one for a string", how)
		}
		if s.zero {
			in.unsupported("a format of a string with zeros")
		}
		if s.precision >= 0 && utf8.RuneCountInString(text) > s.precision {
			text = string([]rune(text)[:s.precision])
		}
		if s.align == "" {
			s.align = "<"
		}
		return in.pad(s, "", text)
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
		if b, isBool := v.(bool); isBool && s.kind == "" {
			v = int64(b2i(b))
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

// spec reads a format of str.format.
func (in *interp) spec(how string) spec {
	s := spec{fill: " ", width: -1, precision: -1}
	rest := how
	_, size := utf8.DecodeRuneInString(rest)
	if len(rest) > size && strings.IndexByte("<>^=", rest[size]) >= 0 {
		s.fill, s.align, rest = rest[:size], rest[size:size+1], rest[size+1:]
	} else if rest != "" && strings.IndexByte("<>^=", rest[0]) >= 0 {
		s.align, rest = rest[:1], rest[1:]
	}
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		s.sign, rest = strings.TrimPrefix(rest[:1], "-"), rest[1:]
	}
	if after, ok := strings.CutPrefix(rest, "#"); ok {
		s.alternate, rest = true, after
	}
	if after, ok := strings.CutPrefix(rest, "0"); ok {
		s.zero, rest = s.align == "", after
	}
	s.width, rest = in.count(rest)
	if rest != "" && (rest[0] == ',' || rest[0] == '_') {
		s.group, rest = rest[:1], rest[1:]
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if s.precision, rest = in.count(after); s.precision < 0 {
			in.fail("the format %q has no precision after the dot", how)
		}
	}
	if len(rest) > 1 {
		in.fail("the format %q is none that Python has", how)
	}
	s.kind = rest
	return s
}
