package jinja

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// text is what a value prints as: Python's str.
func (in *interp) text(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case safe:
		return string(v)
	case *undefined:
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
		if v.def.name == "" {
			put("<Macro anonymous>")
		} else {
			put("<Macro " + quoted(v.def.name) + ">")
		}
	case *namespace:
		put("<Namespace ")
		in.show(b, &v.vars)
		put(">")
	case *List:
		in.deeper(func() { in.showList(b, v, put) })
	case *Dict:
		put("{")
		in.deeper(func() {
			for i, e := range v.entries {
				if i > 0 {
					put(", ")
				}
				in.show(b, e.key)
				put(": ")
				in.show(b, e.value)
			}
		})
		put("}")
	default:
		in.unsupported("printing a " + typeName(v))
	}
}

func (in *interp) showList(b *strings.Builder, l *List, put func(string)) {
	begin, end := "[", "]"
	switch l.kind {
	case seqList:
	case seqTuple:
		if begin, end = "(", ")"; len(l.items) == 1 {
			end = ",)"
		}
	case seqRange:
		in.unsupported("printing a range")
	default:
		begin, end = seqNames[l.kind]+"([", "])"
	}
	put(begin)
	for i, item := range l.items {
		if i > 0 {
			put(", ")
		}
		in.show(b, item)
	}
	put(end)
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
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
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

// escaped is a text with what HTML gives a meaning written otherwise.
func (in *interp) escaped(v Value) safe {
	if s, ok := v.(safe); ok {
		return s
	}
	s := in.text(v)
	in.alloc(5 * len(s))
	return safe(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s))
}
