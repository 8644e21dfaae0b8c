package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The methods of strings.

func init() {
	all := map[string]builtin{
		"split": {"s|sep maxsplit", func(c *call) Value {
			s, sep, words, most := c.splitting()
			if !words {
				return texts(strings.SplitN(s, sep, most+1))
			}
			var parts []string
			for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
				c.alloc(32)
				end := strings.IndexFunc(s, isSpace)
				if end < 0 || len(parts) == most {
					end = len(s)
				}
				parts = append(parts, s[:end])
				s = s[end:]
			}
			return texts(parts)
		}},
		"rsplit": {"s|sep maxsplit", func(c *call) Value {
			s, sep, words, most := c.splitting()
			var parts []string
			for {
				c.alloc(32)
				at, size := strings.LastIndex(s, sep), len(sep)
				if words {
					if s = strings.TrimRightFunc(s, isSpace); s == "" {
						break
					}
					if at = strings.LastIndexFunc(s, isSpace); at >= 0 {
						_, size = utf8.DecodeRuneInString(s[at:])
					}
				}
				if at < 0 || len(parts) == most {
					parts = append(parts, s)
					break
				}
				parts = append(parts, s[at+size:])
				s = s[:at]
			}
			slices.Reverse(parts)
			return texts(parts)
		}},
		"splitlines": {"s|keepends", func(c *call) Value { return texts(c.lines(c.str(0), c.is(1))) }},
		"replace": {"/s old new|count", func(c *call) Value {
			return c.replace(c.str(0), c.str(1), c.str(2), c.int(3, -1))
		}},
		"join": {"/s items", func(c *call) Value {
			return c.joined(c.str(0), c.at(1), func(v Value) string { return c.want(v, "an item that is joined") })
		}},
		"removeprefix": {"/s prefix", func(c *call) Value { return strings.TrimPrefix(c.str(0), c.str(1)) }},
		"removesuffix": {"/s suffix", func(c *call) Value { return strings.TrimSuffix(c.str(0), c.str(1)) }},
		"count": {"/s sub|start end", func(c *call) Value {
			s, _, ok := c.part()
			if part := c.str(1); ok {
				return int64(strings.Count(s, part))
			}
			return int64(0)
		}},
		"ljust":  {"/s width|fill", func(c *call) Value { return c.str(0) + c.fill(c.wanting()) }},
		"rjust":  {"/s width|fill", func(c *call) Value { return c.fill(c.wanting()) + c.str(0) }},
		"center": {"/s width|fill", func(c *call) Value { return c.centered(c.str(0), c.int(1, 0)) }},
		"zfill": {"/s width", func(c *call) Value {
			s, sign := c.str(0), ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			return sign + c.repeat("0", c.wanting()) + s
		}},
		"expandtabs": {"s|tabsize", func(c *call) Value {
			size, column := c.int(1, 8), 0
			var b strings.Builder
			for _, r := range c.str(0) {
				switch r {
				case '\t':
					if size > 0 {
						n := size - column%size
						b.WriteString(c.repeat(" ", n))
						column += n
					}
					continue
				case '\n', '\r':
					column = -1
				}
				column++
				c.alloc(1)
				b.WriteRune(r)
			}
			return b.String()
		}},
		"format": {"*", func(c *call) Value {
			s := c.pos[0].(string)
			return c.format(s, &args{c.pos[1:], c.names, c.named})
		}},
		"format_map": {"/s mapping", func(c *call) Value {
			d, ok := c.at(1).(*Dict)
			if !ok {
				c.fail("str.format_map wants a dictionary")
			}
			named := &args{}
			for _, e := range d.entries {
				if key, ok := e.key.(string); ok {
					c.alloc(32)
					named.add(key, e.value)
				}
			}
			return c.format(c.str(0), named)
		}},
	}
	for name, trim := range map[string]func(string, func(rune) bool) string{
		"strip": strings.TrimFunc, "lstrip": strings.TrimLeftFunc, "rstrip": strings.TrimRightFunc,
	} {
		all[name] = builtin{"/s|chars", func(c *call) Value {
			c.work(len(c.str(0)))
			if c.or(1, nil) == nil {
				return trim(c.str(0), isSpace)
			}
			set := map[rune]bool{}
			c.alloc(len(c.str(1)))
			for _, r := range c.str(1) {
				set[r] = true
			}
			return trim(c.str(0), func(r rune) bool { return set[r] })
		}}
	}
	for name, f := range map[string]func(string) string{"upper": upper, "lower": lower, "title": title,
		"capitalize": capitalize, "swapcase": swapCase} {
		all[name] = builtin{"/s", func(c *call) Value {
			c.alloc(len(c.str(0)))
			return c.made(f(c.str(0)))
		}}
	}
	const digits = "²³¹⁰⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉①②③④⑤⑥⑦⑧⑨⑴⑵⑶⑷⑸⑹⑺⑻⑼⒈⒉⒊⒋⒌⒍⒎⒏⒐⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽⓿" +
		"❶❷❸❹❺❻❼❽❾➀➁➂➃➄➅➆➇➈➊➋➌➍➎➏➐➑➒"
	for name, of := range map[string]func(r rune) bool{"isalpha": unicode.IsLetter, "isspace": isSpace,
		"isalnum":   func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) },
		"isdecimal": unicode.IsDigit, "isnumeric": unicode.IsNumber,
		"isdigit": func(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune(digits, r) }} {
		all[name] = predicate(func(s string) bool {
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !of(r) }) < 0
		})
	}
	all["isascii"] = predicate(ascii)
	all["isprintable"] = predicate(func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	})
	all["isupper"] = predicate(func(s string) bool { return inCase(s, unicode.IsLower) })
	all["islower"] = predicate(func(s string) bool { return inCase(s, unicode.IsUpper) })
	all["istitle"] = predicate(func(s string) bool { return strings.IndexFunc(s, cased) >= 0 && title(s) == s })

	type index = func(s, part string) int
	for name, cut := range map[string]index{"partition": strings.Index, "rpartition": strings.LastIndex} {
		all[name] = builtin{"/s sep", func(c *call) Value {
			s, sep := c.str(0), c.str(1)
			c.work(len(s))
			if sep == "" {
				c.fail("%s is given an empty separator", c.what)
			}
			switch i := cut(s, sep); {
			case i >= 0:
				return tuple(s[:i], sep, s[i+len(sep):])
			case name == "partition":
				return tuple(s, "", "")
			}
			return tuple("", "", s)
		}}
	}
	for name, has := range map[string]func(s, part string) bool{"startswith": strings.HasPrefix,
		"endswith": strings.HasSuffix} {
		all[name] = builtin{"/s part|start end", func(c *call) Value {
			s, _, ok := c.part()
			if l, isList := c.at(1).(*List); isList && l.kind == seqTuple {
				return slices.ContainsFunc(l.items, func(v Value) bool {
					one := c.want(v, "a part of the tuple")
					return ok && has(s, one)
				})
			}
			c.work(len(c.str(1)))
			return ok && has(s, c.str(1))
		}}
	}
	for name, find := range map[string]index{"find": strings.Index, "rfind": strings.LastIndex,
		"index": strings.Index, "rindex": strings.LastIndex} {
		all[name] = builtin{"/s part|start end", func(c *call) Value {
			s, start, ok := c.part()
			i := -1
			if part := c.str(1); ok {
				i = find(s, part)
			}
			if i >= 0 {
				return int64(start + utf8.RuneCountInString(s[:i]))
			}
			if strings.HasSuffix(name, "index") {
				c.fail("%s does not find the text", c.what)
			}
			return int64(-1)
		}}
	}
	register("str.", "", all)
}

func predicate(holds func(s string) bool) builtin {
	return builtin{"/s", func(c *call) Value {
		c.alloc(len(c.str(0)))
		return holds(c.str(0))
	}}
}

// texts makes a list of parts of a text.
func texts(parts []string) Value {
	l := &List{items: make([]Value, len(parts))}
	for i, part := range parts {
		l.items[i] = part
	}
	return l
}

// splitting reads the arguments of split and rsplit.
func (c *call) splitting() (s, sep string, words bool, most int) {
	s = c.str(0)
	c.alloc(len(s) + 16)
	if most = c.int(2, -1); most < 0 {
		most = len(s) + 1
	}
	if c.or(1, nil) == nil {
		return s, "", true, most
	}
	if sep = c.str(1); sep == "" {
		c.fail("%s is given an empty separator", c.what)
	}
	c.alloc(32 * strings.Count(s, sep))
	return s, sep, false, most
}

// lines are the lines of a text as Python's splitlines has them, with what ends them or without.
func (in *interp) lines(s string, keep bool) (parts []string) {
	in.alloc(len(s) + 16)
	for s != "" {
		end := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		next := len(s)
		if end < 0 {
			end = next
		} else if _, size := utf8.DecodeRuneInString(s[end:]); strings.HasPrefix(s[end:], "\r\n") {
			next = end + 2
		} else {
			next = end + size
		}
		if keep {
			end = next
		}
		in.alloc(32)
		parts = append(parts, s[:end])
		s = s[next:]
	}
	return parts
}

// part is the part of a text that the third and fourth arguments of a method name, and where it begins.
func (c *call) part() (part string, start int, ok bool) {
	s := c.str(0)
	c.work(len(s))
	if !c.has(2) {
		return s, 0, true
	}
	c.alloc(4 * len(s))
	runes := []rune(s)
	n := len(runes)
	at := func(i, standard int) int {
		if c.or(i, nil) == nil {
			return standard
		}
		v := c.int(i, 0)
		if v < 0 {
			v = max(v+n, 0)
		}
		return v
	}
	from, to := at(2, 0), min(at(3, n), n)
	if from > to {
		return "", 0, false
	}
	return string(runes[from:to]), from, true
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

// joined is the texts of what can be looped over, with a separator between them.
func (in *interp) joined(sep string, over Value, text func(v Value) string) string {
	var b strings.Builder
	between := ""
	in.each(over, func(v Value) bool {
		s := text(v)
		in.alloc(len(sep) + len(s))
		b.WriteString(between + s)
		between = sep
		return true
	})
	return b.String()
}

// wanting is how many characters a text lacks of the width in the second argument.
func (c *call) wanting() int { return c.int(1, 0) - utf8.RuneCountInString(c.str(0)) }

// fill is n times the character in the third argument.
func (c *call) fill(n int) string {
	fill := " "
	if c.has(2) {
		fill = c.str(2)
	}
	if utf8.RuneCountInString(fill) != 1 {
		c.fail("%s is given %d characters to fill with; want 1", c.what, utf8.RuneCountInString(fill))
	}
	return c.repeat(fill, n)
}

// centered puts a text into the middle of a width. Python puts the odd one left if the width is odd.
func (c *call) centered(s string, width int) string {
	n := width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	left := n/2 + n&width&1
	return c.fill(left) + s + c.fill(n-left)
}
