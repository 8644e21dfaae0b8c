package amk

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"amkc/ir/diag"
)

// maxIntDigits is where Python stops converting decimal text to an int.
const maxIntDigits = 4300

// A reader parses JSON as Python's json module does: NaN and the infinities are numbers, the last of several equal keys
// counts. It stops at the first error. Its memory is linear in the text, and its stack bounded by maxDepth.
type reader struct {
	*source
	findings
	off    int
	depth  int
	values int
	err    *diag.Diagnostic
}

// read parses the whole text. The list holds warnings, and the error if it failed.
func (s *source) read() (node, findings) {
	r := &reader{source: s}
	r.space()
	n := r.value()
	r.space()
	if r.err == nil && r.off < len(r.text) {
		r.fail(codeSyntax, r.off, "text after the end of the program; a file holds one JSON object")
	}
	r.diags.Add(r.err)
	return n, r.findings
}

// fail records the first error and moves to the end of the text, where every loop stops.
func (r *reader) fail(code *diag.Code, off int, format string, args ...any) {
	if r.err == nil {
		r.err = diag.Errorf(code, r.pos(off), format, args...)
	}
	r.off = len(r.text)
}

func (r *reader) unexpected(accepted string) {
	if r.off >= len(r.text) {
		r.fail(codeSyntax, len(r.text), "the file ends where %s is expected", accepted)
		return
	}
	c, size := utf8.DecodeRuneInString(r.text[r.off:])
	if c == utf8.RuneError && size == 1 {
		r.fail(codeSyntax, r.off, "byte 0x%02x is not UTF-8; %s is expected", r.text[r.off], accepted)
		return
	}
	r.fail(codeSyntax, r.off, "unexpected %q; %s is expected", c, accepted)
}

func (r *reader) space() {
	for r.off < len(r.text) {
		switch r.text[r.off] {
		case ' ', '\t', '\n', '\r':
			r.off++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end of the text.
func (r *reader) peek() byte {
	if r.off < len(r.text) {
		return r.text[r.off]
	}
	return 0
}

// accept consumes c if it is next.
func (r *reader) accept(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.off++
	return true
}

func (r *reader) value() node {
	n := node{off: r.off}
	if r.values++; r.values > maxValues {
		r.fail(codeSize, r.off, "more than %d values in one file", maxValues)
		return n
	}
	switch c := r.peek(); {
	case c == '{' || c == '[':
		if r.depth++; r.depth > maxDepth {
			r.fail(codeDepth, r.off, "nested more than %d levels deep", maxDepth)
			return n
		}
		if c == '{' {
			n.kind = objectNode
			if fields := r.object(); fields != nil {
				n.kids = &kids{fields: fields}
			}
		} else {
			n.kind = arrayNode
			if items := r.array(); items != nil {
				n.kids = &kids{items: items}
			}
		}
		r.depth--
	case c == '"':
		n.kind, n.text = stringNode, r.str()
	case c == '-' || '0' <= c && c <= '9':
		n.kind, n.text = r.number()
	default:
		n.kind, n.text = r.word()
	}
	return n
}

func (r *reader) word() (kind, string) {
	words := []struct {
		text string
		kind kind
	}{{"null", nullNode}, {"true", boolNode}, {"false", boolNode}, {"NaN", floatNode}, {"Infinity", floatNode}}
	for _, w := range words {
		if end := r.off + len(w.text); end <= len(r.text) && r.text[r.off:end] == w.text {
			r.off = end
			return w.kind, w.text
		}
	}
	r.unexpected("a JSON value")
	return nullNode, ""
}

func (r *reader) array() []node {
	r.off++
	r.space()
	if r.accept(']') {
		return nil
	}
	var items []node
	for r.err == nil {
		if len(items) == cap(items) {
			items = slices.Grow(items, len(items)+1) // append grows long slices in smaller steps, and copies more often
		}
		items = append(items, r.value())
		r.space()
		if r.err != nil || r.accept(']') {
			break
		}
		if !r.accept(',') {
			r.unexpected("',' or ']'")
			break
		}
		r.space()
	}
	return items
}

func (r *reader) object() []field {
	r.off++
	r.space()
	if r.accept('}') {
		return nil
	}
	var fields []field
	var places OrderedMap[string, int]
	for r.err == nil {
		f := field{off: r.off}
		if r.peek() != '"' {
			r.unexpected("a key in double quotes")
			break
		}
		f.name = r.str()
		r.space()
		if r.err == nil && !r.accept(':') {
			r.unexpected("':'")
		}
		r.space()
		if r.err == nil {
			f.val = r.value()
		}
		if place, again := places.Get(f.name); again {
			if d := r.warnf(r.source, codeDuplicate, f.off, "key %q again; its last value counts", f.name); d != nil {
				d.With("first at " + r.pos(fields[place].off))
			}
			fields[place].val = f.val
		} else {
			if len(fields) == maxFields {
				r.fail(codeSize, f.off, "more than %d keys in one object", maxFields)
				break
			}
			places.Set(f.name, len(fields))
			if len(fields) == cap(fields) {
				fields = slices.Grow(fields, len(fields)+1)
			}
			fields = append(fields, f)
		}
		r.space()
		if r.err != nil || r.accept('}') {
			break
		}
		if !r.accept(',') {
			r.unexpected("',' or '}'")
			break
		}
		r.space()
	}
	return fields
}

func (r *reader) number() (kind, string) {
	start := r.off
	r.accept('-')
	if r.peek() == 'I' {
		if k, text := r.word(); r.err == nil {
			return k, "-" + text
		}
		return floatNode, ""
	}
	whole := r.off
	if !r.accept('0') && r.digits() == 0 {
		r.unexpected("a digit")
		return intNode, ""
	}
	digits, isFloat := r.off-whole, false
	if r.accept('.') {
		isFloat = true
		if r.digits() == 0 {
			r.unexpected("a digit")
		}
	}
	if r.accept('e') || r.accept('E') {
		isFloat = true
		if !r.accept('+') {
			r.accept('-')
		}
		if r.digits() == 0 {
			r.unexpected("a digit")
		}
	}
	if r.err != nil {
		return floatNode, ""
	}
	text := r.text[start:r.off]
	if isFloat {
		f, _ := strconv.ParseFloat(text, 64) // beyond the range it is an infinity, as in Python
		return floatNode, string(Float(f))
	}
	if digits > maxIntDigits {
		r.fail(codeRange, start, "an integer of %d digits; up to %d are accepted", digits, maxIntDigits)
		return intNode, ""
	}
	return intNode, strings.Replace(text, "-0", "0", 1)
}

func (r *reader) digits() int {
	start := r.off
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		r.off++
	}
	return r.off - start
}
