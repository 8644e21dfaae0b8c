package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The methods of strings.

type stringMethod func(in *interp, s string, a *args) Value

var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"strip":  trimmer("strip", strings.TrimFunc),
		"lstrip": trimmer("lstrip", strings.TrimLeftFunc),
		"rstrip": trimmer("rstrip", strings.TrimRightFunc),
		"split":  strSplit, "rsplit": strSplitLast, "splitlines": strLines,
		"partition":  cutter("partition", strings.Index, true),
		"rpartition": cutter("rpartition", strings.LastIndex, false),
		"startswith": affix("startswith", strings.HasPrefix),
		"endswith":   affix("endswith", strings.HasSuffix),
		"replace":    strReplace,
		"join":       func(in *interp, s string, a *args) Value { return strJoin(in, s, a) },
		"upper":      mapper("upper", upper), "lower": mapper("lower", lower), "title": mapper("title", title),
		"capitalize": mapper("capitalize", capitalize), "swapcase": mapper("swapcase", swapCase),
		"removeprefix": func(in *interp, s string, a *args) Value {
			return strings.TrimPrefix(s, a.plain(in, "str.removeprefix", 1, 1).str(0))
		},
		"removesuffix": func(in *interp, s string, a *args) Value {
			return strings.TrimSuffix(s, a.plain(in, "str.removesuffix", 1, 1).str(0))
		},
		"find": finder("find", strings.Index, false), "rfind": finder("rfind", strings.LastIndex, false),
		"index": finder("index", strings.Index, true), "rindex": finder("rindex", strings.LastIndex, true),
		"count": strCount,
		"ljust": padder("ljust", func(n int) (int, int) { return 0, n }),
		"rjust": padder("rjust", func(n int) (int, int) { return n, 0 }),
		"center": func(in *interp, s string, a *args) Value {
			p := a.plain(in, "str.center", 1, 2)
			return in.center(s, p.integer(0, 0), fillOf(in, p))
		},
		"zfill": strZfill, "expandtabs": strTabs,
		"format":     func(in *interp, s string, a *args) Value { return in.format(s, a) },
		"format_map": strFormatMap,
		"isalpha":    classifier(unicode.IsLetter), "isspace": classifier(isSpace),
		"isalnum":     classifier(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isdecimal":   classifier(unicode.IsDigit),
		"isdigit":     classifier(isDigit),
		"isnumeric":   classifier(unicode.IsNumber),
		"isascii":     func(_ *interp, s string, _ *args) Value { return ascii(s) },
		"isprintable": func(_ *interp, s string, _ *args) Value { return strings.IndexFunc(s, notPrint) < 0 },
		"isupper":     func(_ *interp, s string, _ *args) Value { return isUpper(s) },
		"islower":     func(_ *interp, s string, _ *args) Value { return isLower(s) },
		"istitle":     func(in *interp, s string, _ *args) Value { return hasCase(s) && in.made(title(s)) == s },
	}
}

func notPrint(r rune) bool { return !unicode.IsPrint(r) }

func trimmer(name string, trim func(string, func(rune) bool) string) stringMethod {
	return func(in *interp, s string, a *args) Value {
		in.work(len(s))
		p := a.plain(in, "str."+name, 0, 1)
		if p.or(0, nil) == nil {
			return trim(s, isSpace)
		}
		chars := p.str(0)
		set := map[rune]bool{}
		in.alloc(len(chars))
		for _, r := range chars {
			set[r] = true
		}
		return trim(s, func(r rune) bool { return set[r] })
	}
}

func mapper(name string, f func(string) string) stringMethod {
	return func(in *interp, s string, a *args) Value {
		a.plain(in, "str."+name, 0, 0)
		in.alloc(len(s))
		return in.made(f(s))
	}
}

func classifier(of func(rune) bool) stringMethod {
	return func(in *interp, s string, a *args) Value {
		in.work(len(s))
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !of(r) }) < 0
	}
}

// texts makes a list of parts of a text.
func (in *interp) texts(parts []string) Value {
	l := &List{items: make([]Value, len(parts))}
	for i, part := range parts {
		l.items[i] = part
	}
	return l
}

// splitting reads the arguments of split and rsplit.
func splitting(in *interp, name, s string, a *args) (sep string, words bool, most int) {
	p := a.bind(in, "str."+name, 0, "sep", "maxsplit")
	in.alloc(len(s) + 16)
	if most = p.integer(1, -1); most < 0 {
		most = len(s) + 1
	}
	if p.or(0, nil) == nil {
		return "", true, most
	}
	if sep = p.str(0); sep == "" {
		in.fail("str.%s is given an empty separator", name)
	}
	in.alloc(32 * strings.Count(s, sep))
	return sep, false, most
}

func strSplit(in *interp, s string, a *args) Value {
	sep, words, most := splitting(in, "split", s, a)
	if !words {
		return in.texts(strings.SplitN(s, sep, most+1))
	}
	var parts []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		in.alloc(32)
		end := strings.IndexFunc(s, isSpace)
		if end < 0 || len(parts) == most {
			end = len(s)
		}
		parts = append(parts, s[:end])
		s = s[end:]
	}
	return in.texts(parts)
}

func strSplitLast(in *interp, s string, a *args) Value {
	sep, words, most := splitting(in, "rsplit", s, a)
	var parts []string
	for n := 0; ; n++ {
		in.alloc(32)
		if words {
			if s = strings.TrimRightFunc(s, isSpace); s == "" {
				break
			}
		}
		at, size := strings.LastIndex(s, sep), len(sep)
		if words {
			if at = strings.LastIndexFunc(s, isSpace); at >= 0 {
				_, size = utf8.DecodeRuneInString(s[at:])
			}
		}
		if at < 0 || n == most {
			parts = append(parts, s)
			break
		}
		parts = append(parts, s[at+size:])
		s = s[:at]
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return in.texts(parts)
}

// lines are the lines of a text as Python's splitlines has them, with what ends them or without.
func (in *interp) lines(s string, keep bool) []string {
	in.alloc(len(s) + 16)
	var parts []string
	start := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != '\n' && r != '\r' && r != '\v' && r != '\f' && (r < 0x1c || r > 0x1e) && r != 0x85 && r != 0x2028 &&
			r != 0x2029 {
			i += size
			continue
		}
		end := i
		if i += size; r == '\r' && i < len(s) && s[i] == '\n' {
			i++
		}
		if keep {
			end = i
		}
		in.alloc(32)
		parts = append(parts, s[start:end])
		start = i
	}
	if start < len(s) {
		parts = append(parts, s[start:])
	}
	return parts
}

func strLines(in *interp, s string, a *args) Value {
	return in.texts(in.lines(s, a.bind(in, "str.splitlines", 0, "keepends").is(0)))
}

func cutter(name string, index func(s, sep string) int, first bool) stringMethod {
	return func(in *interp, s string, a *args) Value {
		in.work(len(s))
		sep := a.plain(in, "str."+name, 1, 1).str(0)
		if sep == "" {
			in.fail("str.%s is given an empty separator", name)
		}
		switch i := index(s, sep); {
		case i >= 0:
			return tuple(s[:i], sep, s[i+len(sep):])
		case first:
			return tuple(s, "", "")
		}
		return tuple("", "", s)
	}
}

// part is the part of a text that the second and third arguments of a method name.
func (in *interp) part(s string, p params) (part string, start int, ok bool) {
	if !p.has(1) {
		return s, 0, true
	}
	in.alloc(4 * len(s))
	runes := []rune(s)
	n := len(runes)
	at := func(i, standard int) int {
		if p.or(i, nil) == nil {
			return standard
		}
		v := p.integer(i, 0)
		if v < 0 {
			v = max(v+n, 0)
		}
		return v
	}
	from, to := at(1, 0), min(at(2, n), n)
	if from > to {
		return "", 0, false
	}
	return string(runes[from:to]), from, true
}

func affix(name string, has func(s, part string) bool) stringMethod {
	return func(in *interp, s string, a *args) Value {
		p := a.plain(in, "str."+name, 1, 3)
		s, _, ok := in.part(s, p)
		if l, isList := p.at(0).(*List); isList && l.kind == seqTuple {
			for _, v := range l.items {
				if one := in.want(v, "a part of the tuple"); ok && has(s, one) {
					return true
				}
			}
			return false
		}
		one := p.str(0)
		in.work(len(one))
		return ok && has(s, one)
	}
}

func finder(name string, index func(s, part string) int, must bool) stringMethod {
	return func(in *interp, s string, a *args) Value {
		in.work(len(s))
		p := a.plain(in, "str."+name, 1, 3)
		s, start, ok := in.part(s, p)
		i := -1
		if part := p.str(0); ok {
			i = index(s, part)
		}
		if i >= 0 {
			return int64(start + utf8.RuneCountInString(s[:i]))
		}
		if must {
			in.fail("str.%s does not find the text", name)
		}
		return int64(-1)
	}
}

func strCount(in *interp, s string, a *args) Value {
	in.work(len(s))
	p := a.plain(in, "str.count", 1, 3)
	s, _, ok := in.part(s, p)
	part := p.str(0)
	if !ok {
		return int64(0)
	}
	return int64(strings.Count(s, part))
}

func strReplace(in *interp, s string, a *args) Value {
	p := a.plain(in, "str.replace", 2, 3)
	return in.replace(s, p.str(0), p.str(1), p.integer(2, -1))
}

func (in *interp) replace(s, old, with string, most int) string {
	in.work(len(s))
	n := strings.Count(s, old)
	if most >= 0 {
		n = min(n, most)
	}
	in.alloc(len(s) + n*len(with))
	return strings.Replace(s, old, with, most)
}

// repeat makes n copies of a text.
func (in *interp) repeat(s string, n int) string {
	if s == "" || n <= 0 {
		return ""
	}
	in.alloc(len(s) * min(n, in.limits.Memory))
	return strings.Repeat(s, n)
}

func strJoin(in *interp, s string, a *args) Value {
	var b strings.Builder
	i := 0
	in.each(a.plain(in, "str.join", 1, 1).at(0), func(v Value) bool {
		part := in.want(v, "an item that is joined")
		in.alloc(len(s) + len(part))
		if i > 0 {
			b.WriteString(s)
		}
		b.WriteString(part)
		i++
		return true
	})
	return b.String()
}

func fillOf(in *interp, p params) string {
	if !p.has(1) {
		return " "
	}
	fill := p.str(1)
	if utf8.RuneCountInString(fill) != 1 {
		in.fail("%s is given %d characters to fill with; want 1", p.what, utf8.RuneCountInString(fill))
	}
	return fill
}

func padder(name string, sides func(n int) (left, right int)) stringMethod {
	return func(in *interp, s string, a *args) Value {
		p := a.plain(in, "str."+name, 1, 2)
		left, right := sides(p.integer(0, 0) - utf8.RuneCountInString(s))
		fill := fillOf(in, p)
		return in.repeat(fill, left) + s + in.repeat(fill, right)
	}
}

// center puts a text into the middle of a width. Python puts the odd one left where the width is odd.
func (in *interp) center(s string, width int, fill string) string {
	n := width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	left := n/2 + n&width&1
	return in.repeat(fill, left) + s + in.repeat(fill, n-left)
}

func strZfill(in *interp, s string, a *args) Value {
	n := a.plain(in, "str.zfill", 1, 1).integer(0, 0) - utf8.RuneCountInString(s)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return sign + in.repeat("0", n) + s
}

func strTabs(in *interp, s string, a *args) Value {
	size := a.bind(in, "str.expandtabs", 0, "tabsize").integer(0, 8)
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch r {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(in.repeat(" ", n))
				column += n
			}
			continue
		case '\n', '\r':
			column = -1
		}
		column++
		in.alloc(1)
		b.WriteRune(r)
	}
	return b.String()
}
