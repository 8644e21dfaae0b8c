package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// maxJSONDepth is how deep lists and objects of JSON may nest: templates look at them inside each other.
const maxJSONDepth = 100

// maxJSONValues is how many values a JSON text may have, as each takes many times what it is written with. A long
// conversation with many tools has some thousands.
const maxJSONValues = 1 << 18

// FromJSON reads a JSON text as Python does: objects keep the order of their keys, integers are exact.
func FromJSON(data []byte) (Value, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("it is not valid UTF-8")
	}
	if err := infile.Unmarshal(data, new(json.RawMessage)); err != nil {
		return nil, err
	}
	if at := infile.HalfCharacter(data); at >= 0 {
		return nil, fmt.Errorf("line %d: %s is half a character; want whole characters",
			1+bytes.Count(data[:at], []byte("\n")), data[at:at+6])
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	r.UseNumber()
	return r.value(0)
}

// A jsonReader counts the values that it reads.
type jsonReader struct {
	*json.Decoder
	values int
}

func (r *jsonReader) value(depth int) (Value, error) {
	if r.values++; r.values > maxJSONValues {
		return nil, fmt.Errorf("it has more than %d values", maxJSONValues)
	}
	t, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return readNumber(t.String())
	case json.Delim:
		if depth == maxJSONDepth {
			return nil, fmt.Errorf("lists and objects are nested more than %d deep", maxJSONDepth)
		}
		l, d := NewList(), &Dict{}
		for r.More() {
			var key json.Token
			if t == '{' {
				key, _ = r.Token()
			}
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			if name, ok := key.(string); ok {
				d.Set(name, v)
			} else {
				l.items = append(l.items, v)
			}
		}
		if _, err = r.Token(); t == '{' {
			return d, err
		}
		return l, err
	default:
		return t, nil
	}
}

func readNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %.40s is too large", s)
		}
		return f, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("an integer of %d digits; %d are the most", len(s), maxDigits)
	}
	n, _ := new(big.Int).SetString(s, 10)
	return norm(n), nil
}

// A jsonWriter writes as the arguments of Python's json.dumps say.
type jsonWriter struct {
	*call
	ascii, indented, sorted bool
	indent, item, colon     string
	b                       strings.Builder
}

// toJSON is the filter tojson of transformers, which is json.dumps.
func toJSON(c *call) Value {
	w := jsonWriter{call: c, ascii: c.is(1), sorted: c.is(4), item: ", ", colon: ": "}
	if v := c.or(2, nil); v != nil {
		w.indented, w.item = true, ","
		if s, ok := str(v); ok {
			w.indent = s
		} else if n := c.index(v, "indent"); n > 0 {
			w.indent = c.repeat(" ", n)
		}
	}
	if v := c.or(3, nil); v != nil {
		parts := c.list(v)
		if len(parts) != 2 {
			c.fail("separators has %d parts; want 2", len(parts))
		}
		w.item, w.colon = c.want(parts[0], "a separator"), c.want(parts[1], "a separator")
	}
	w.value(c.at(0), "\n")
	return w.b.String()
}

func (w *jsonWriter) put(s string) {
	w.alloc(len(s))
	w.b.WriteString(s)
}

// value writes a value. line is a line break with the indentation so far.
func (w *jsonWriter) value(v Value, line string) {
	switch v := v.(type) {
	case *List:
		if v.kind > seqTuple {
			w.put(w.scalar(v))
		}
		w.group("[", "]", len(v.items), line, func(i int, line string) { w.value(v.items[i], line) })
	case *Dict:
		entries := v.entries
		if w.sorted {
			entries = slices.Clone(entries)
			w.alloc(32 * len(entries))
			slices.SortStableFunc(entries, func(a, b entry) int { return w.order(a.key, b.key) })
		}
		w.group("{", "}", len(entries), line, func(i int, line string) {
			if s, ok := str(entries[i].key); ok {
				w.text(s)
			} else {
				w.text(w.scalar(entries[i].key))
			}
			w.put(w.colon)
			w.value(entries[i].value, line)
		})
	default:
		if s, ok := str(v); ok {
			w.text(s)
		} else {
			w.put(w.scalar(v))
		}
	}
}

func (w *jsonWriter) group(begin, end string, n int, line string, member func(i int, line string)) {
	w.put(begin)
	w.deeper(func() {
		inner := line
		if w.indented {
			w.alloc(len(line) + len(w.indent))
			inner += w.indent
		}
		for i := range n {
			if i > 0 {
				w.put(w.item)
			}
			if w.indented {
				w.put(inner)
			}
			member(i, inner)
		}
	})
	if n > 0 && w.indented {
		w.put(line)
	}
	w.put(end)
}

func (w *jsonWriter) scalar(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64, *big.Int:
		return w.decimalOf(v)
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
		return strings.Replace(floatText(v), "inf", "Infinity", 1)
	}
	w.fail("%s cannot be written as JSON", typeName(v))
	return ""
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (w *jsonWriter) text(s string) {
	w.alloc(len(s))
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case jsonEscapes[r] != "":
			w.b.WriteString(jsonEscapes[r])
		case r < ' ' || w.ascii && r >= 0x7f:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&w.b, `\u%04x`, unit)
			}
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}
