package jinja

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// text is what a value prints as: Python's str.
func (in *interp) text(v Value) string {
	if s, ok := str(v); ok {
		return s
	}
	if _, ok := v.(*undefined); ok {
		return ""
	}
	return in.repr(v)
}

// repr is Python's repr of a value.
func (in *interp) repr(v Value) string {
	var b strings.Builder
	in.show(&b, v)
	return b.String()
}

func (in *interp) show(b *strings.Builder, v Value) {
	put := func(s string) {
		in.alloc(len(s))
		b.WriteString(s)
	}
	group := func(begin, end string, n int, item func(i int)) {
		put(begin)
		in.deeper(func() {
			for i := range n {
				if i > 0 {
					put(", ")
				}
				item(i)
			}
		})
		put(end)
	}
	switch v := v.(type) {
	case nil:
		put("None")
	case bool:
		put(map[bool]string{true: "True", false: "False"}[v])
	case int64, *big.Int:
		put(in.decimalOf(v))
	case float64:
		put(floatText(v))
	case string:
		in.alloc(len(v))
		put(quoted(v))
	case safe:
		in.alloc(len(v))
		put("Markup(" + quoted(string(v)) + ")")
	case *undefined:
		put("Undefined")
	case *macro:
		name := "anonymous"
		if v.def.name != "" {
			name = quoted(v.def.name)
		}
		put("<Macro " + name + ">")
	case *namespace:
		put("<Namespace ")
		in.show(b, &v.vars)
		put(">")
	case *List:
		begin, end := "[", "]"
		switch v.kind {
		case seqList:
		case seqTuple:
			if begin, end = "(", ")"; len(v.items) == 1 {
				end = ",)"
			}
		case seqRange:
			in.unsupported("printing a range")
		default:
			begin, end = seqNames[v.kind]+"([", "])"
		}
		group(begin, end, len(v.items), func(i int) { in.show(b, v.items[i]) })
	case *Dict:
		group("{", "}", len(v.entries), func(i int) {
			in.show(b, v.entries[i].key)
			put(": ")
			in.show(b, v.entries[i].value)
		})
	default:
		in.unsupported("printing a " + typeName(v))
	}
}

// quoted is Python's repr of a string.
func quoted(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch i := strings.IndexRune("\n\r\t", r); {
		case r == quote || r == '\\':
			b.WriteString(`\` + string(r))
		case i >= 0:
			b.WriteString(`\` + "nrt"[i:i+1])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escaped is a text with what HTML gives a meaning written otherwise.
func (in *interp) escaped(v Value) safe {
	if s, ok := v.(safe); ok {
		return s
	}
	s := in.text(v)
	in.alloc(5 * len(s))
	return safe(entities.Replace(s))
}

// The case of letters, as Python's strings have it: by the full mappings of Unicode, in which one letter may become
// several.

// expansions are the letters whose upper case is more than one letter: those of Unicode's SpecialCasing.txt that depend
// on no language. The titlecase of such a letter has only its first one in upper case.
var expansions = map[rune]string{}

func init() {
	const of = "ßSS ŉʼN ǰJ̌ ΐΪ́ ΰΫ́ ևԵՒ ẖH̱ ẗT̈ ẘW̊ ẙY̊ ẚAʾ ﬀFF ﬁFI ﬂFL ﬃFFI ﬄFFL ﬅST ﬆST ﬓՄՆ ﬔՄԵ ﬕՄԻ ﬖՎՆ ﬗՄԽ"
	for _, word := range strings.Fields(of) {
		r, size := utf8.DecodeRuneInString(word)
		expansions[r] = word[size:]
	}
}

func expansion(r rune) (string, bool) {
	if 0x1f00 <= r && r <= 0x1fff { // ancient Greek, with a breathing or an iota below
		fail(Unsupported, 0, "the upper case of the letter %q is not supported", r)
	}
	many, ok := expansions[r]
	return many, ok
}

func uppered(r rune) string {
	if many, ok := expansion(r); ok {
		return many
	}
	return string(unicode.ToUpper(r))
}

func titled(r rune) string {
	if many, ok := expansion(r); ok {
		_, size := utf8.DecodeRuneInString(many)
		return many[:size] + lower(many[size:])
	}
	return string(unicode.ToTitle(r))
}

// mapped is a text with f of each letter in its place.
func mapped(s string, f func(r rune) string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(f(r))
	}
	return b.String()
}

func upper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return mapped(s, uppered)
}

func lower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	runes := []rune(s)
	var b strings.Builder
	for i := range runes {
		b.WriteString(lowerAt(runes, i))
	}
	return b.String()
}

// lowerAt is a letter of a text in lower case. A sigma that ends a word has its own: a letter stands before it and none
// after it, apart from what does not end a word.
func lowerAt(s []rune, at int) string {
	beside := func(step int) bool {
		i := at + step
		for 0 <= i && i < len(s) && (unicode.In(s[i], unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
			strings.ContainsRune("'.:·’․", s[i])) {
			i += step
		}
		return 0 <= i && i < len(s) && cased(s[i])
	}
	switch {
	case s[at] == 'İ':
		return "i̇"
	case s[at] == 'Σ' && beside(-1) && !beside(1):
		return "ς"
	}
	return string(unicode.ToLower(s[at]))
}

func cased(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) }

// capitalize is the first letter in upper case and the rest in lower case.
func capitalize(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return titled(r) + strings.TrimPrefix(lower(s), lower(s[:size]))
}

// title is every word with its first letter in upper case, and the others in lower case.
func title(s string) string {
	runes := []rune(s)
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && cased(runes[i-1]) {
			b.WriteString(lowerAt(runes, i))
		} else {
			b.WriteString(titled(r))
		}
	}
	return b.String()
}

// words is the filter title: words begin after space and some brackets, unlike those of the method.
func words(s string) string {
	isBreak := func(r rune) bool { return isSpace(r) || strings.ContainsRune("-({[<", r) }
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return !isBreak(r) })
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		if s = s[n:]; s == "" {
			break
		}
		if n = strings.IndexFunc(s, isBreak); n < 0 {
			n = len(s)
		}
		_, size := utf8.DecodeRuneInString(s)
		b.WriteString(upper(s[:size]) + lower(s[size:n]))
		s = s[n:]
	}
	return b.String()
}

func swapCase(s string) string {
	return mapped(s, func(r rune) string {
		if unicode.IsUpper(r) {
			return lower(string(r))
		}
		return uppered(r)
	})
}

// inCase reports whether a text has letters with a case, and none of the other case.
func inCase(s string, other func(rune) bool) bool {
	return strings.IndexFunc(s, cased) >= 0 && strings.IndexFunc(s, other) < 0 &&
		strings.IndexFunc(s, unicode.IsTitle) < 0
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

var (
	directive = regexp.MustCompile(`(?s)%-?.?`)
	layouts   = map[string]string{"Y": "2006", "y": "06", "m": "01", "d": "02", "e": "_2", "H": "15", "I": "03",
		"M": "04", "S": "05", "j": "002", "-m": "1", "-d": "2", "-e": "2", "-I": "3", "-M": "4", "-S": "5",
		"A": "Monday", "a": "Mon", "B": "January", "b": "Jan", "h": "Jan", "p": "PM", "c": "Mon Jan _2 15:04:05 2006",
		"x": "01/02/06", "X": "15:04:05", "D": "01/02/06", "F": "2006-01-02", "T": "15:04:05", "R": "15:04"}
)

// strftime formats the time that the caller supplied, by the directives of C in its own locale.
func (in *interp) strftime(format string) string {
	t := in.now
	if t.IsZero() {
		in.fail("strftime_now: no time was given to render with")
	}
	return directive.ReplaceAllStringFunc(format, func(d string) string {
		d = d[1:]
		if layout, ok := layouts[d]; ok {
			return t.Format(layout)
		}
		switch plain := strings.TrimPrefix(d, "-"); plain {
		case "H":
			return fmt.Sprint(t.Hour())
		case "j":
			return fmt.Sprint(t.YearDay())
		case "y":
			return fmt.Sprint(t.Year() % 100)
		case "Y":
			return fmt.Sprint(t.Year())
		case "f":
			return fmt.Sprintf("%06d", t.Nanosecond()/int(time.Microsecond))
		case "u":
			return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
		case "w":
			return fmt.Sprint(int(t.Weekday()))
		case "z", "Z": // Python's datetime.now has no zone
			return ""
		case "n":
			return "\n"
		case "t":
			return "\t"
		case "%", "":
			return "%"
		}
		in.unsupported("%" + d + " in strftime_now")
		return ""
	})
}
