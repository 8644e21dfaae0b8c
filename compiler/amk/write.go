package amk

import (
	"fmt"
	"strconv"
	"unicode/utf16"
)

// A writer prints JSON as Python's json.dumps(indent=2) does: ASCII only, every element on its own line, empty
// containers closed at once, no newline at the end.
type writer struct {
	buf   []byte
	depth int
	first bool // nothing written yet inside the innermost container
}

func (w *writer) open(bracket byte) {
	w.buf = append(w.buf, bracket)
	w.depth++
	w.first = true
}

func (w *writer) close(bracket byte) {
	w.depth--
	if !w.first {
		w.newline()
	}
	w.buf = append(w.buf, bracket)
	w.first = false
}

// element starts the next element of the innermost container.
func (w *writer) element() {
	if !w.first {
		w.buf = append(w.buf, ',')
	}
	w.newline()
	w.first = false
}

func (w *writer) newline() {
	w.buf = append(w.buf, '\n')
	for range w.depth {
		w.buf = append(w.buf, ' ', ' ')
	}
}

// key starts the next element of an object.
func (w *writer) key(name string) {
	w.element()
	w.quote(name)
	w.buf = append(w.buf, ':', ' ')
}

func (w *writer) null()       { w.buf = append(w.buf, "null"...) }
func (w *writer) bool(b bool) { w.buf = strconv.AppendBool(w.buf, b) }
func (w *writer) int(n int)   { w.buf = strconv.AppendInt(w.buf, int64(n), 10) }

func (w *writer) number(n Number) {
	if n == "" {
		n = Int(0)
	}
	w.buf = append(w.buf, n...)
}

func (w *writer) quote(s string) {
	w.buf = append(w.buf, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.buf = append(w.buf, '\\', byte(c))
		case ' ' <= c && c <= '~':
			w.buf = append(w.buf, byte(c))
		case c == '\n':
			w.buf = append(w.buf, `\n`...)
		case c == '\t':
			w.buf = append(w.buf, `\t`...)
		case c == '\r':
			w.buf = append(w.buf, `\r`...)
		case c == '\b':
			w.buf = append(w.buf, `\b`...)
		case c == '\f':
			w.buf = append(w.buf, `\f`...)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			w.buf = fmt.Appendf(w.buf, `\u%04x\u%04x`, high, low)
		default:
			w.buf = fmt.Appendf(w.buf, `\u%04x`, c)
		}
	}
	w.buf = append(w.buf, '"')
}

func (w *writer) value(v Value) {
	switch v := v.(type) {
	case nil:
		w.null()
	case Bool:
		w.bool(bool(v))
	case Number:
		w.number(v)
	case String:
		w.quote(string(v))
	case Array:
		array(w, v, w.value)
	case *Object:
		w.object(v)
	}
}

func (w *writer) object(o *Object) {
	w.open('{')
	for k, v := range o.All() {
		w.key(k)
		w.value(v)
	}
	w.close('}')
}

func (w *writer) intMap(m *OrderedMap[int, int]) {
	w.open('{')
	for k, v := range m.All() {
		w.key(strconv.Itoa(k))
		w.int(v)
	}
	w.close('}')
}

func array[T any](w *writer, items []T, write func(T)) {
	w.open('[')
	for _, item := range items {
		w.element()
		write(item)
	}
	w.close(']')
}
