package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf16"
)

// jsonStyle is how tojson writes: the arguments of Python's json.dumps.
type jsonStyle struct {
	ascii, indented, sorted bool
	indent, item, key       string
}

// toJSON is the filter tojson of transformers, which is Python's json.dumps.
func toJSON(in *interp, a *args) Value {
	p := a.bind(in, "tojson", 1, "x", "ensure_ascii", "indent", "separators", "sort_keys")
	style := jsonStyle{ascii: p.is(1), sorted: p.is(4), item: ", ", key: ": "}
	if v := p.or(2, nil); v != nil {
		style.indented, style.item = true, ","
		if s, ok := str(v); ok {
			style.indent = s
		} else if n := in.index(v, "indent"); n > 0 {
			style.indent = in.repeat(" ", n)
		}
	}
	if v := p.or(3, nil); v != nil {
		parts := in.list(v)
		if len(parts) != 2 {
			in.fail("separators has %d parts; want 2", len(parts))
		}
		style.item, style.key = in.want(parts[0], "a separator"), in.want(parts[1], "a separator")
	}
	w := jsonWriter{in: in, style: style}
	w.value(p.at(0), "\n")
	return w.b.String()
}

type jsonWriter struct {
	in    *interp
	style jsonStyle
	b     strings.Builder
}

func (w *jsonWriter) put(s string) {
	w.in.alloc(len(s))
	w.b.WriteString(s)
}

// value writes a value. line is a line break with the indentation so far.
func (w *jsonWriter) value(v Value, line string) {
	switch v := v.(type) {
	case string:
		w.text(v)
	case safe:
		w.text(string(v))
	case *List:
		if v.kind > seqTuple {
			w.refuse(v)
		}
		w.group("[", "]", len(v.items), line, func(i int, line string) { w.value(v.items[i], line) })
	case *Dict:
		entries := v.entries
		if w.style.sorted {
			entries = slices.Clone(entries)
			w.in.alloc(32 * len(entries))
			slices.SortStableFunc(entries, func(a, b entry) int { return w.in.order(a.key, b.key) })
		}
		w.group("{", "}", len(entries), line, func(i int, line string) {
			w.key(entries[i].key)
			w.put(w.style.key)
			w.value(entries[i].value, line)
		})
	default:
		w.put(w.scalar(v))
	}
}

func (w *jsonWriter) group(begin, end string, n int, line string, member func(i int, line string)) {
	w.put(begin)
	w.in.deeper(func() {
		inner := line
		if w.style.indented {
			w.in.alloc(len(line) + len(w.style.indent))
			inner += w.style.indent
		}
		for i := range n {
			if i > 0 {
				w.put(w.style.item)
			}
			if w.style.indented {
				w.put(inner)
			}
			member(i, inner)
		}
	})
	if n > 0 && w.style.indented {
		w.put(line)
	}
	w.put(end)
}

func (w *jsonWriter) refuse(v Value) { w.in.fail("%s cannot be written as JSON", typeName(v)) }

func (w *jsonWriter) scalar(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	case int64, *big.Int:
		return w.in.decimalOf(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 0):
			return strings.Replace(floatText(v), "inf", "Infinity", 1)
		}
		return floatText(v)
	}
	w.refuse(v)
	return ""
}

func (w *jsonWriter) key(v Value) {
	if s, ok := str(v); ok {
		w.text(s)
		return
	}
	if _, ok := v.(*List); ok {
		w.in.fail("a tuple cannot be a key in JSON")
	}
	w.text(w.scalar(v))
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (w *jsonWriter) text(s string) {
	w.in.alloc(len(s))
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case jsonEscapes[r] != "":
			w.b.WriteString(jsonEscapes[r])
		case r < ' ' || w.style.ascii && r == 0x7f:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.style.ascii && r > 0x7f:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&w.b, `\u%04x`, unit)
			}
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}
